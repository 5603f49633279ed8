"""Reads lines as records and groups (RFC 9309 §2.2). Nothing in a file raises.

    robotstxt      = *(group / emptyline)
    group          = startgroupline *(startgroupline / emptyline) *(rule / emptyline)
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule           = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL

A crawler needs only one of many groups. So `groups` searches for user-agent lines only, and notes
where the rules between them are. `GroupText` reads the rules of one group when they are needed.
`records` reads every line, for callers that need other records or all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .agents import LINE_TOKEN, tokens_of_match
from .lines import WHITE_SPACE
from .records import RECORD_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

PREFIXES = {
    b"user-agent": (b"user-agent", b"useragent", b"user agent"),
    b"allow": (b"allow",),
    b"disallow": (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
    **{row.field: row.prefixes for row in RECORD_TYPES if row.prefixes},
}
"""The fields that Google's parser recognizes, and the beginnings of the names it accepts for each.

Every name that begins so is accepted: ``Disallowed:``."""

TYPOS = {typo: row.field for row in RECORD_TYPES for typo in row.typos}
"""Other names that Protego and other parsers accept, and the field each stands for."""

_PREFIX = re.compile(
    b"|".join(b"(%b)" % b"|".join(prefixes) for prefixes in PREFIXES.values())
).match
_PREFIX_FIELDS = list(PREFIXES)

RawRule: TypeAlias = tuple[bool, bytes, int]
"""A rule as it is written: whether it allows, its value, and the position of its line."""


class Record(NamedTuple):
    """A line with a field and a value."""

    line: int
    """The number of the line, from 1."""
    field: bytes
    """The field, in lower case."""
    value: bytes


class Dialect(NamedTuple):
    """How the lines of groups are recognized: strictly, or with Google's leniency."""

    user_agent: re.Pattern[bytes]
    """A user-agent line. Its groups are those of `LINE_TOKEN`."""
    rule: re.Pattern[bytes]
    """A rule. Its groups are the value, and the part of the value before any octet that may stand
    for another: ``*``, ``$``, ``%``, or one that is percent-encoded in URLs."""


class GroupText(NamedTuple):
    """The part of a file that contains the rules of a group."""

    text: bytes
    spans: list[int]
    """The start and the end of each piece, in turn. A group may consist of several pieces."""
    dialect: Dialect

    def rules(self, path: bytes | None = None) -> Iterator[RawRule]:
        """Yield the rules with a value, in the order of the file.

        With a path, rules are left out that cannot match it because it does not begin as they do.
        Rules that may stand for the directory of an index page are kept.
        """
        # A rule that stands for a directory matches only paths that end in a slash.
        directory = path is not None and path[-1:] == b"/"
        for start, end in zip(self.spans[::2], self.spans[1::2], strict=True):
            for match in self.dialect.rule.finditer(self.text, start, end):
                plain = match[2]
                if path is None or path.startswith(plain) or (directory and b"/index.htm" in plain):
                    rule = self._rule(match)
                    if rule[1]:
                        yield rule

    def rule_at(self, position: int) -> RawRule:
        """Return the rule whose line begins at a position."""
        match = self.dialect.rule.match(self.text, position)
        assert match is not None
        return self._rule(match)

    def _rule(self, match: re.Match[bytes]) -> RawRule:
        start = match.start()
        return self.text[start + 1] in b"Aa", match[1].rstrip(WHITE_SPACE), start


def groups(text: bytes, *, strict: bool) -> dict[bytes, list[int]]:
    """Return the spans of the rules for each product token.

    All groups that name a token are one group (RFC 9309 §2.2.1).
    """
    user_agent, rule = STRICT if strict else LENIENT
    found: dict[bytes, list[int]] = {}
    naming: dict[bytes, None] = {}
    end = 0
    for match in user_agent.finditer(text):
        start = match.start()
        # Only allow and disallow end a run of user-agent lines. Other records "MUST NOT
        # interfere with the parsing of explicitly defined records" (RFC 9309 §2.2.4).
        if naming and start > end and rule.search(text, end, start):
            _note(found, naming, end, start)
            naming = {}
        for token in tokens_of_match(match):
            naming[token] = None
        end = match.end()
    _note(found, naming, end, len(text))
    return found


def records(text: bytes, *, strict: bool) -> Iterator[Record]:
    """Yield every line with a field and a value, whether the field is known or not."""
    for number, line in enumerate(text.split(b"\n")):
        record = parse_line(line, number, strict=strict)
        if record is not None:
            yield record


def parse_line(line: bytes, number: int, *, strict: bool) -> Record | None:
    """Return the record of one line, or None if the line is no record."""
    content = line.partition(b"#")[0]
    name, colon, value = content.partition(b":")
    if not colon:
        words = content.split()
        if strict or len(words) != 2:
            return None
        name, value = words
    name = name.strip(WHITE_SPACE).lower()
    field = name if strict else field_of(name)
    return Record(number, field, value.strip(WHITE_SPACE))


def field_of(name: bytes) -> bytes:
    """Return the field that a name in lower case stands for in a lenient reading."""
    match = _PREFIX(name)
    if match and match.lastindex:
        return _PREFIX_FIELDS[match.lastindex - 1]
    return TYPOS.get(name, name)


def _note(found: dict[bytes, list[int]], tokens: Iterable[bytes], start: int, end: int) -> None:
    for token in tokens:
        spans = found.get(token)
        if spans is None:
            found[token] = [start, end]
        else:
            spans += (start, end)


# A line of a group begins with the LF before it. In a strict reading:
#
#   line  = LF field *WS ":" *WS value
#
# In a lenient reading, with one of Google's PREFIXES instead of the field:
#
#   line  = LF ( prefix *( any octet but LF, "#" and ":" ) ":" / two-words ) *WS value
#
# Google's parser accepts a missing colon if the line is exactly two words. A prefix of two words
# ("user agent") needs its colon.
#
#   two-words = word-prefix *OCTET 1*WS        if then follows   1*OCTET *WS ( LF / "#" / end )
#   OCTET     = any octet but WS, LF, "#" and ":"
#   WS        = SP / HTAB / VT / FF
_WS = rb"[\x20\t\v\f]"
_OCTET = rb"[^\x20\t\v\f\n\#:]"

# value = *OCTET, of which the first are those that stand for themselves in every URL
_VALUE = rb"( ( [A-Za-z0-9\-._~!&()+,/:;=@]* ) [^\n\#]* )"


def _strict_line(fields: Sequence[bytes], value: bytes) -> re.Pattern[bytes]:
    return _line(rb"%(names)b %(WS)b* :" % {b"names": _any_of(fields), b"WS": _WS}, fields, value)


def _lenient_line(fields: Sequence[bytes], value: bytes) -> re.Pattern[bytes]:
    prefixes = [prefix for field in fields for prefix in PREFIXES[field]]
    name = rb"""
        %(prefixes)b [^:\n\#]* :
      | %(words)b %(OCTET)b* %(WS)b+ (?= %(OCTET)b+ %(WS)b* (?: [\n\#] | \Z ) )
    """ % {
        b"prefixes": _any_of(prefixes),
        b"words": _any_of([prefix for prefix in prefixes if b" " not in prefix]),
        b"OCTET": _OCTET,
        b"WS": _WS,
    }
    return _line(name, fields, value)


def _line(name: bytes, fields: Sequence[bytes], value: bytes) -> re.Pattern[bytes]:
    # The lookahead at the first letter skips most other lines.
    letters = b"".join(field[:1].upper() + field[:1] for field in fields)
    expression = rb"\n (?= [%(letters)b] ) (?i: %(name)b ) %(WS)b* %(value)b"
    parts = {b"letters": letters, b"name": name, b"WS": _WS, b"value": value}
    return re.compile(expression % parts, re.VERBOSE)


def _any_of(names: Iterable[bytes]) -> bytes:
    return b"(?: %b )" % b" | ".join(map(re.escape, names))


_USER_AGENT, _RULE = (b"user-agent",), (b"allow", b"disallow")

LENIENT = Dialect(_lenient_line(_USER_AGENT, LINE_TOKEN), _lenient_line(_RULE, _VALUE))
STRICT = Dialect(_strict_line(_USER_AGENT, LINE_TOKEN), _strict_line(_RULE, _VALUE))
