"""The line of a robots.txt that refuses a use of the content of a URL."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter

from .matcher import matching
from .parser import GROUP_FIELDS, RULE_FIELDS, records_of_groups
from .paths import path_of
from .records import USAGE
from .robotstxt import RobotsTxt
from .usage import POLICY_TOKENS, evaluated, use_of

MAX_LENGTH = 1000
"""Characters of a line or a pattern that a record holds."""


def refusing_line(
    robots: RobotsTxt, text: bytes, url: str, group: str | None, name: str
) -> str | None:
    """Return the line that refuses a use to the crawlers of a group; None if none is found.

    ``text`` is the file, in which each line begins with a LF.
    """
    use = use_of(name)
    lines = _refusing_lines(text, (group or "").encode(), use)
    for number in matching((pattern for _, pattern, _ in lines), path_of(url)):
        return lines[number][-1]  # of TOO_COMPLEX: the last line
    for token, verdict in robots.usage_policies(url).items():
        if POLICY_TOKENS[token] == use and verdict.rule and not verdict.allowed:
            return str(verdict)
    return None


@lru_cache(maxsize=16)
def _refusing_lines(text: bytes, group: bytes, use: str) -> list[tuple[int, str, str]]:
    """Return the records for a group, and above all groups, that refuse a use for some path.

    Each with the length of its pattern, the longest first, its pattern and its text.
    """
    found = []
    parsers = {row.field: row.parse for row in USAGE}
    ends = {*RULE_FIELDS, *GROUP_FIELDS}
    for (line, field, value), tokens in records_of_groups(text, strict=False, ends=ends):
        parsed = parsers[field](value) if field in parsers else None
        if parsed is None or (tokens is not None and group not in tokens):
            continue
        (pattern, length), stated = parsed
        if evaluated([stated]).get(use) is False:
            shown = f"line {line}, {field.decode().title()}: {line_text(value)}"
            found.append((-length, pattern, shown))
    return sorted(found, key=itemgetter(0, 1))


def line_text(line: bytes) -> str:
    """Return a line or a value of a file, cut."""
    return line[: 4 * MAX_LENGTH].decode("utf-8", "replace")[:MAX_LENGTH]
