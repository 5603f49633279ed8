"""Lines to records and groups (RFC 9309 §2.2). Nothing in a file raises.

    robotstxt      = *(group / emptyline)
    group          = startgroupline *(startgroupline / emptyline) *(rule / emptyline)
    startgroupline = *WS "user-agent" *WS ":" *WS product-token EOL
    rule           = *WS ("allow" / "disallow") *WS ":" *WS (path-pattern / empty-pattern) EOL
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .agents import line_tokens
from .lines import WHITE_SPACE, content

FIELDS = frozenset(
    b"user-agent allow disallow sitemap crawl-delay request-rate visit-time host clean-param"
    b" noindex content-signal content-usage".split()
)

TYPOS = {
    b"dissallow": b"disallow",
    b"dissalow": b"disallow",
    b"disalow": b"disallow",
    b"diasllow": b"disallow",
    b"disallaw": b"disallow",
    b"useragent": b"user-agent",
    b"user agent": b"user-agent",
    b"site-map": b"sitemap",
}
"""The misspellings that Google's parser accepts."""


class Record(NamedTuple):
    """A line that says something: its number from 1, its field in lower case, its value."""

    line: int
    field: bytes
    value: bytes


class RawRule(NamedTuple):
    """A rule as it stands in the file."""

    allow: bool
    value: bytes
    line: int


def records(text: bytes, *, strict: bool) -> Iterator[Record]:
    """Every line with a field and a value, known field or not."""
    for number, line in enumerate(text.split(b"\n"), 1):
        record = parse_line(line, number, strict=strict)
        if record:
            yield record


def parse_line(line: bytes, number: int, *, strict: bool) -> Record | None:
    """One line's record, if it is one."""
    line = content(line)
    name, colon, value = line.partition(b":")
    if not colon:
        words = line.split()
        if strict or len(words) != 2:
            return None
        name, value = words
    field = name.strip(WHITE_SPACE).lower()
    if not strict:
        field = TYPOS.get(field, field)
    return Record(number, field, value.strip(WHITE_SPACE))


def groups(text: bytes, *, strict: bool) -> dict[bytes, list[RawRule]]:
    """The rules for each product token, all groups that name it as one (§2.2.1)."""
    found: dict[bytes, list[list[RawRule]]] = {}
    rules: list[RawRule] | None = None
    naming = False
    for line, field, value in records(text, strict=strict):
        if field == b"user-agent":
            if not naming or rules is None:
                naming, rules = True, []
            for token in line_tokens(value):
                runs = found.setdefault(token, [])
                if not runs or runs[-1] is not rules:
                    runs.append(rules)
        elif field in (b"allow", b"disallow"):
            # Only these end a run of user-agent lines; "crawlers MAY interpret other records …
            # [they] MUST NOT interfere with the parsing of explicitly defined records" (§2.2.4).
            naming = False
            if rules is not None and value:
                rules.append(RawRule(field == b"allow", value, line))
    return {token: [rule for run in runs for rule in run] for token, runs in found.items()}
