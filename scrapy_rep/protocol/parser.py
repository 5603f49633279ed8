"""Reads lines as records and groups (RFC 9309 §2.2). Nothing in a file raises.

    robotstxt      = *(group / emptyline)
    group          = startgroupline *(startgroupline / emptyline) *(rule / emptyline)
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule           = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL

A crawler needs only one of many groups. So `groups` searches for user-agent lines only, and notes
where the rules between them are. `GroupText` reads the rules of one group when they are needed.
`records` reads every line, for callers that need other records or all of them, and
`records_of_groups` says which crawlers each of them is for.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from .agents import LINE_TOKEN, WILDCARD_AGENT, product_tokens, tokens_of_line, tokens_of_match
from .lines import WHITE_SPACE
from .verdict import Rule

USER_AGENT = b"user-agent"
RULE_FIELDS = (b"allow", b"disallow")
GROUP_FIELDS = frozenset(
    b"crawl-delay request-rate visit-time content-signal content-usage".split()
)
"""The other records that are for the crawlers that the user-agent lines above them name. They end a
run of user-agent lines, but only for themselves: a Crawl-delay below each of two user-agent lines
is for the one above it alone."""

PREFIXES = {
    b"user-agent": (b"user-agent", b"useragent", b"user agent"),
    b"allow": (b"allow",),
    b"disallow": (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw"),
    b"sitemap": (b"sitemap", b"site-map"),
}
"""The fields that Google's parser recognizes, and the beginnings of the names it accepts for each.

Every name that begins so is accepted: ``Disallowed:``."""

TYPOS = {
    b"crawl delay": b"crawl-delay",
    b"crawldelay": b"crawl-delay",
    b"request rate": b"request-rate",
    b"visit time": b"visit-time",
}
"""Other names that Protego and other parsers accept, and the field each stands for."""

RawRule: TypeAlias = tuple[bool, bytes, int]
"""A rule as it is written: whether it allows, its value, and the position of its line."""


class Record(NamedTuple):
    """A line with a field and a value."""

    line: int
    """The number of the line, from 1."""
    field: bytes
    """The field, in lower case."""
    value: bytes


class GroupText(NamedTuple):
    """The part of a file that contains the rules of a group."""

    text: bytes
    spans: list[int]
    """The start and the end of each piece, in turn. A group may consist of several pieces."""
    strict: bool

    def rules(self, path: bytes | None = None) -> Iterator[RawRule]:
        """Yield the rules with a value, in the order of the file.

        With a path, rules are left out that cannot match it because it does not begin as they do.
        Rules that may stand for the directory of an index page are kept.
        """
        # A rule that stands for a directory matches only paths that end in a slash.
        directory = path is not None and path[-1:] == b"/"
        for start, end in zip(self.spans[::2], self.spans[1::2], strict=True):
            for match in _RULES[self.strict].finditer(self.text, start, end):
                plain = match[2]
                if path is None or path.startswith(plain) or (directory and b"/index.htm" in plain):
                    position, value = match.start(), match[1].rstrip(WHITE_SPACE)
                    if value:
                        yield self.text[position + 1] in b"Aa", value, position

    def rule_at(self, position: int, line: int) -> Rule:
        """Return the rule of the line with this number, which begins at a position."""
        match = _RULES[self.strict].match(self.text, position)
        assert match is not None
        allow = self.text[position + 1] in b"Aa"
        return Rule.of(match[1].rstrip(WHITE_SPACE), line, allow=allow)


def groups(text: bytes, *, strict: bool) -> dict[bytes, list[int]]:
    """Return the spans of the rules for each product token.

    All groups that name a token are one group (RFC 9309 §2.2.1).
    """
    user_agent, rule = _USER_AGENTS[strict], _RULES[strict]
    found: dict[bytes, list[int]] = {}
    naming: dict[bytes, None] = {}
    end = 0
    for match in user_agent.finditer(text):
        start = match.start()
        # Only allow and disallow end a run of user-agent lines. Other records "MUST NOT
        # interfere with the parsing of explicitly defined records" (RFC 9309 §2.2.4).
        if naming and start > end and rule.search(text, end, start):
            for token in naming:
                found.setdefault(token, []).extend((end, start))
            naming = {}
        naming |= dict.fromkeys(tokens_of_match(match))
        end = match.end()
    for token in naming:
        found.setdefault(token, []).extend((end, len(text)))
    return found


def has_rules(text: bytes) -> bool:
    """Return whether a rule with a value is below a user-agent line, in a lenient reading."""
    first = _USER_AGENTS[False].search(text)
    return first is not None and any(GroupText(text, [first.end(), len(text)], False).rules())


def records(text: bytes, *, strict: bool) -> Iterator[Record]:
    """Yield every line with a field and a value, whether the field is known or not."""
    for number, line in enumerate(text.split(b"\n")):
        record = parse_line(line, number, strict=strict)
        if record is not None:
            yield record


def parse_line(line: bytes, number: int, *, strict: bool) -> Record | None:
    """Return the record of one line, or None if the line is not a record."""
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
    fields = (field for field, prefixes in PREFIXES.items() if name.startswith(prefixes))
    return next(fields, TYPOS.get(name, name))


class Group(NamedTuple):
    """One group of a robots.txt, as it is written (RFC 9309 §2.1).

    Several groups may name the same agent. Together they are its rules (RFC 9309 §2.2.1).
    """

    agents: tuple[str, ...]
    """The product tokens of its user-agent lines, in lower case, each once. Empty if no crawler can
    have such a token. A token with digits is listed whole. The group also applies to the crawler
    that has its first letters as a name: RFC 9309 reads ``MJ12bot`` as ``mj``."""
    rules: tuple[Rule, ...]
    """Its rules, in the order of the file. Lines without a pattern are no rules."""


def records_of_groups(
    text: bytes, *, strict: bool, ends: Container[bytes]
) -> Iterator[tuple[Record, list[bytes] | None]]:
    """Yield every record with the tokens of the run of user-agent lines above it.

    `ends` are the fields that end a run. The list of a run is the same object for all its records,
    and complete with the first record that is no user-agent line. None: there is no run above.
    """
    tokens: list[bytes] | None = None
    naming = False
    for record in records(text, strict=strict):
        if record.field == USER_AGENT:
            if tokens is None or not naming:
                tokens, naming = [], True
            tokens += tokens_of_line(record.value)
        elif record.field in ends:
            naming = False
        yield record, tokens


@lru_cache(maxsize=16)
def agent_lines(text: bytes) -> dict[bytes, list[list[int]]]:
    """Return the numbers of the user-agent lines of the groups of each token, in a lenient reading.

    Each list has the lines of one group. Groups of several tokens share it.
    """
    runs: list[tuple[list[bytes], list[int]]] = []
    for record, tokens in records_of_groups(text, strict=False, ends=RULE_FIELDS):
        if record.field == USER_AGENT and tokens is not None:
            if not runs or runs[-1][0] is not tokens:
                runs.append((tokens, []))
            runs[-1][1].append(record.line)
    found: dict[bytes, list[list[int]]] = {}
    for tokens, lines in runs:
        for token in dict.fromkeys(tokens):
            found.setdefault(token, []).append(lines)
    return found


def list_groups(text: bytes, *, strict: bool) -> list[Group]:
    """Return the groups in the order of the file. Rules above any user-agent line are skipped."""
    found: list[tuple[dict[str, None], list[Rule]]] = []
    run: list[bytes] | None = None
    # Only rules end a run of user-agent lines (RFC 9309 §2.2.4).
    for (line, field, value), tokens in records_of_groups(text, strict=strict, ends=RULE_FIELDS):
        if tokens is not run:
            run = tokens
            found.append(({}, []))
        if field == USER_AGENT:
            if (agent := _agent_of_line(value)) is not None:
                found[-1][0][agent] = None
        elif found and value and field in RULE_FIELDS:
            found[-1][1].append(Rule.of(value, line, allow=field == b"allow"))
    return [Group(tuple(agents), tuple(rules)) for agents, rules in found]


def list_records(
    text: bytes, name: str, token: bytes | None = None, *, strict: bool
) -> Iterator[str]:
    """Yield the values of all records with a name, in the order of the file.

    With a token, only those in its groups. A record that is not known ends a run of user-agent
    lines for itself, as those of `GROUP_FIELDS` do.
    """
    # Only ASCII letters have a case here, as in a file: str.lower() makes "k" of a Kelvin sign.
    wanted = name.strip().encode("utf-8", "surrogatepass").lower()
    wanted = wanted if strict else field_of(wanted)
    ends = {*RULE_FIELDS, *(() if wanted in RULE_FIELDS else (*GROUP_FIELDS, wanted))}
    run: list[bytes] | None = None
    included = False
    for (_, field, value), tokens in records_of_groups(text, strict=strict, ends=ends):
        named = included
        if field == USER_AGENT:
            named = token in tokens_of_line(value)
            included = named or (included and tokens is run)
            run = tokens
        if field == wanted and (token is None or named):
            yield value.decode("utf-8", "replace")


@lru_cache(maxsize=256)
def _agent_of_line(value: bytes) -> str | None:
    """Return the longest token of a user-agent line that a crawler can have."""
    for name in reversed(tokens_of_line(value)):
        token = name.decode("ascii")
        if token == WILDCARD_AGENT or product_tokens(token) == (token,):
            return token
    return None


# A line of a group begins with the LF before it. In a strict reading:
#
#   line  = LF field *WS ":" *WS value
#
# In a lenient reading, with one of Google's PREFIXES instead of the field:
#
#   line  = LF ( prefix *( any byte but LF, "#" and ":" ) ":" / two-words ) *WS value
#
# Google's parser accepts a missing colon if the line is exactly two words. A prefix of two words
# ("user agent") needs its colon.
#
#   two-words = word-prefix *BYTE 1*WS        if then follows   1*BYTE *WS ( LF / "#" / end )
#   BYTE      = any byte but WS, LF, "#" and ":"
#   WS        = SP / HTAB / VT / FF
_STRICT_NAME = rb"%(names)b %(WS)b* :"
_LENIENT_NAME = rb"""
    %(names)b [^:\n\#]* :
  | %(words)b %(BYTE)b* %(WS)b+ (?= %(BYTE)b+ %(WS)b* (?: [\n\#] | \Z ) )
"""
# The lookahead at the first letter skips most other lines.
_LINE = rb"\n (?= [%%(letters)b] ) (?i: %b ) %%(WS)b* %%(value)b"
# value = *BYTE, of which the first are those that stand for themselves in every URL
_VALUE = rb"( ( [A-Za-z0-9\-._~!&()+,/:;=@]* ) [^\n\#]* )"


def _line(fields: Sequence[bytes], value: bytes, *, strict: bool) -> re.Pattern[bytes]:
    names = fields if strict else [prefix for field in fields for prefix in PREFIXES[field]]
    parts = {
        b"letters": b"".join(field[:1].upper() + field[:1] for field in fields),
        b"names": _any_of(names),
        b"words": _any_of(name for name in names if b" " not in name),
        b"value": value,
        b"BYTE": rb"[^\x20\t\v\f\n\#:]",
        b"WS": rb"[\x20\t\v\f]",
    }
    return re.compile(_LINE % (_STRICT_NAME if strict else _LENIENT_NAME) % parts, re.VERBOSE)


def _any_of(names: Iterable[bytes]) -> bytes:
    return b"(?: %b )" % b" | ".join(map(re.escape, names))


_USER_AGENTS = {strict: _line((USER_AGENT,), LINE_TOKEN, strict=strict) for strict in (False, True)}
"""A user-agent line, by `strict`. Its groups are those of `LINE_TOKEN`."""
_RULES = {strict: _line(RULE_FIELDS, _VALUE, strict=strict) for strict in (False, True)}
"""A rule, by `strict`. Its groups are the value, and the part of the value before any byte that may
stand for another: ``*``, ``$``, ``%``, or one that is percent-encoded in URLs."""
