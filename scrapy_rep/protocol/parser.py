"""Lines to records and groups (RFC 9309 §2.2). Nothing in a file raises.

    robotstxt      = *(group / emptyline)
    group          = startgroupline *(startgroupline / emptyline) *(rule / emptyline)
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule           = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL

A crawler needs one group of many. So `groups` looks for user-agent lines alone and notes where
the rules between them are; `GroupText` reads those of one group when it is asked for. `records`
reads any line, one at a time, for everything that is not asked thousands of times a second.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from .agents import LINE_TOKEN, tokens_of_match
from .lines import WHITE_SPACE
from .records import RECORD_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    b"|".join(b"(%b)" % b"|".join(spellings) for spellings in PREFIXES.values())
).match
_PREFIXED = list(PREFIXES)

RawRule: TypeAlias = tuple[bool, bytes, int]
"""Whether it allows, its value, and where its line begins: a rule as it stands in the file."""


class Record(NamedTuple):
    """A line that says something: its number from 1, its field in lower case, its value."""

    line: int
    field: bytes
    value: bytes


class Dialect(NamedTuple):
    """How the lines that make groups are recognised."""

    user_agent: re.Pattern[bytes]
    """A user-agent line; its groups are those of `LINE_TOKEN`."""
    rule: re.Pattern[bytes]
    """A rule: its value, and that up to the first octet that does not stand for itself."""


class GroupText(NamedTuple):
    """Where in a file the rules of a group are."""

    text: bytes
    spans: list[int]
    """Beginning and end, beginning and end, … of the pieces: a group may be in several."""
    dialect: Dialect

    def rules(self, path: bytes | None = None) -> Iterator[RawRule]:
        """The rules that are not empty, in the order of the file.

        With a path only those whose plain beginning is that of the path, as the others cannot
        match it, and those that may stand for the directory of an index page.
        """
        # What stands for a directory matches nothing that does not end in a slash.
        directory = path is not None and path[-1:] == b"/"
        for start, end in zip(self.spans[::2], self.spans[1::2], strict=True):
            for match in self.dialect.rule.finditer(self.text, start, end):
                plain = match[2]
                if path is None or path.startswith(plain) or (directory and b"/index.htm" in plain):
                    rule = self._rule(match)
                    if rule[1]:
                        yield rule

    def rule_at(self, position: int) -> RawRule:
        """The rule whose line begins at a position."""
        match = self.dialect.rule.match(self.text, position)
        assert match is not None
        return self._rule(match)

    def _rule(self, match: re.Match[bytes]) -> RawRule:
        start = match.start()
        return self.text[start + 1] in b"Aa", match[1].rstrip(WHITE_SPACE), start


def groups(text: bytes, *, strict: bool) -> dict[bytes, list[int]]:
    """The spans of the rules for each product token, all groups that name it as one (§2.2.1)."""
    user_agent, rule = STRICT if strict else LENIENT
    found: dict[bytes, list[int]] = {}
    naming: dict[bytes, None] = {}
    end = 0
    for match in user_agent.finditer(text):
        start = match.start()
        # Only allow and disallow end a run of user-agent lines. Other records "MUST NOT
        # interfere with the parsing of explicitly defined records" (§2.2.4).
        if naming and start > end and rule.search(text, end, start):
            _note(found, naming, end, start)
            naming = {}
        for token in tokens_of_match(match):
            naming[token] = None
        end = match.end()
    _note(found, naming, end, len(text))
    return found


def records(text: bytes, *, strict: bool) -> Iterator[Record]:
    """Every line with a field and a value, known field or not."""
    for number, line in enumerate(text.split(b"\n")):
        record = parse_line(line, number, strict=strict)
        if record is not None:
            yield record


def parse_line(line: bytes, number: int, *, strict: bool) -> Record | None:
    """The record of one line, if it is one."""
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
    """The field that a name in lower case is taken for, unless the reading is strict."""
    match = _PREFIX(name)
    if match and match.lastindex:
        return _PREFIXED[match.lastindex - 1]
    return TYPOS.get(name, name)


def _note(found: dict[bytes, list[int]], tokens: Iterable[bytes], start: int, end: int) -> None:
    for token in tokens:
        spans = found.get(token)
        if spans is None:
            found[token] = [start, end]
        else:
            spans += (start, end)


def _dialect(*, strict: bool) -> Dialect:
    space = rb"[ \t\v\f]*"

    def named(*fields: bytes) -> bytes:
        """What a line with one of the fields begins with, its colon included."""
        if strict:
            return rb"(?i:%b)%b:" % (b"|".join(fields), space)
        names = [name for field in fields for name in PREFIXES[field]]
        # Google: a missing colon is forgiven where the line is exactly two words. With "user
        # agent" two words are no record yet, so there the colon is needed.
        words = [name for name in names if b" " not in name]
        word = rb"[^ \t\v\f\n#:]"
        two = rb"(?:%b)%b*[ \t\v\f]+(?=%b+%b(?:[\n#]|\Z))" % (b"|".join(words), word, word, space)
        return rb"(?i:(?:%b)[^:\n#]*:|%b)" % (b"|".join(names), two)

    # The look at the first letter passes over most other lines.
    line = rb"\n(?=[%b])%b" + space
    value = rb"(([A-Za-z0-9\-._~!&()+,/:;=@]*)[^\n#]*)"
    return Dialect(
        re.compile(line % (b"Uu", named(b"user-agent")) + LINE_TOKEN),
        re.compile(line % (b"AaDd", named(b"allow", b"disallow")) + value),
    )


LENIENT = _dialect(strict=False)
STRICT = _dialect(strict=True)
