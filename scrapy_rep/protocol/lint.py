"""Findings: lines of a robots.txt that do not do what their author probably meant.

Nothing here changes how a file is read. Findings say how the rest of the package reads it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from .agents import tokens_of_line
from .lines import SIZE_LIMIT, lines_of, read
from .matcher import PatternIndex, rank
from .parser import LENIENT, STRICT, GroupText, field_of, groups, parse_line
from .printable import LENGTH, printable
from .records import RECORD_TYPES, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RULES = (b"allow", b"disallow")
_RECORDS = {row.field: row for row in RECORD_TYPES}
_FIELDS = sorted([b"user-agent", *_RULES, *_RECORDS])
# Above any user-agent line these are ignored.
_ONLY_IN_GROUPS = frozenset(
    [*_RULES, *(row.field for row in RECORD_TYPES if row.scope is Scope.GROUP)]
)
_MAX_FIELD_LENGTH = 40
"""Characters of an unknown field that are shown, and compared with known fields. The longest known
field has 14."""
_GOOGLE_LINE_LENGTH = 16_664
"""Octets of a line that Google's open-source parser keeps: eight times the longest URL, 2,083."""
_MAX_OCTETS = 4 * SIZE_LIMIT
"""Octets of groups that are searched for rules that never decide. It bounds the time. A file in
which each token has its own groups has at most one `SIZE_LIMIT` of them."""


class Severity(str, Enum):
    """How much a finding matters. Each severity is also a `str`, which is its value."""

    ERROR = "error"
    """The line has no effect, or another effect than it says."""
    WARNING = "warning"
    """The line works here, but not with every crawler; or another line makes it redundant."""
    INFO = "info"
    """The line is correct, but its effect may be unexpected."""

    def __str__(self) -> str:
        return self.value


class Finding(NamedTuple):
    """One remark about one line of a robots.txt.

    `str` is the whole finding in one line. Parts of the file that it quotes are cut and escaped.

    >>> print(Finding(2, Severity.WARNING, "the colon is missing", "write 'disallow:'"))
    line 2: warning: the colon is missing; write 'disallow:'
    """

    line: int
    """The number of the line, from 1."""
    severity: Severity
    """How much it matters."""
    message: str
    """What is wrong."""
    advice: str
    """What to write instead."""

    def __str__(self) -> str:
        return f"line {self.line}: {self.severity}: {self.message}; {self.advice}"


def lint(body: bytes, *, strict: bool = False) -> list[Finding]:
    r"""Return the lines of a robots.txt that do not do what they seem to, in the order of the file.

    `body` is the body of the response as it came. `strict` finds what `RobotsTxt` makes of it with
    ``strict=True``. An empty list means that there is nothing to report. What the body holds never
    raises. Raises TypeError if the body is not bytes.

    >>> for finding in lint(b"User-agent: *\nDissallow: /private\nSitemap: /sitemap.xml"):
    ...     print(f"{finding.line}: {finding.message}")
    2: 'dissallow' is misspelt
    3: the sitemap '/sitemap.xml' is no absolute URL
    """
    text = read(body)
    findings = [
        *_about_octets(body, text),
        *_about_lines(text, strict=strict),
        *_about_groups(text, strict=strict),
        *_about_size(body, text),
    ]
    return sorted(findings, key=lambda finding: finding.line)


def _about_octets(body: bytes, text: bytes) -> Iterator[Finding]:
    """Find byte order marks, NUL octets and long lines."""
    if body[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) and b"\0" not in body[:SIZE_LIMIT]:
        yield Finding(
            1,
            Severity.WARNING,
            "a byte order mark of UTF-16 before text that is not UTF-16 is dropped",
            "save the file as UTF-8",
        )
    written = lines_of(body).split(b"\n")
    for number, (line, kept) in enumerate(zip(written, text.split(b"\n"), strict=True)):
        if line != kept:
            yield Finding(
                number,
                Severity.WARNING,
                "NUL octets at the end of the value are dropped",
                "remove them",
            )
        if len(line) > _GOOGLE_LINE_LENGTH:
            yield Finding(
                number,
                Severity.WARNING,
                f"Google reads only the first {_GOOGLE_LINE_LENGTH} octets of a line",
                "write a shorter line",
            )


def _about_lines(text: bytes, *, strict: bool) -> Iterator[Finding]:
    """Find lines that are skipped, misspelt or out of place, and values that cannot be read."""
    started = False
    for number, line in enumerate(text.split(b"\n")):
        if not _is_utf_8(line):
            yield Finding(
                number, Severity.WARNING, "an octet that is not UTF-8", "save the file as UTF-8"
            )
        content = line.partition(b"#")[0].strip()
        if not content:
            continue
        record = parse_line(line, number, strict=False)
        if record is None or (strict and b":" not in content):
            yield Finding(
                number, Severity.ERROR, "no colon, so the line is skipped", _with_colon(content)
            )
            continue
        yield from _about_spelling(number, content, strict=strict)
        if record.field == b"user-agent":
            started = True
            yield from _about_token(number, record.value)
        elif not started and record.field in _ONLY_IN_GROUPS:
            yield Finding(
                number,
                Severity.ERROR,
                f"{_text(record.field)} before any user-agent line is ignored",
                "write 'User-agent: *' above it",
            )
        yield from _about_value(number, record.field, record.value)


def _about_spelling(number: int, content: bytes, *, strict: bool) -> Iterator[Finding]:
    name, colon, _ = content.partition(b":")
    written = (name if colon else content.split()[0]).strip().lower()
    field = field_of(written)
    if field not in _FIELDS:
        near = _nearest(_text(written))
        message = f"unknown field {_quoted(written, _MAX_FIELD_LENGTH)}, the line is skipped"
        if near:
            yield Finding(number, Severity.ERROR, message, f"write '{near}:'")
        elif colon:
            yield Finding(number, Severity.INFO, message, "remove it if it is a mistake")
        else:
            yield Finding(number, Severity.ERROR, message, "begin comments with '#'")
        return
    if not colon:
        yield Finding(number, Severity.WARNING, "the colon is missing", f"write '{_text(field)}:'")
    if written != field:
        severity = Severity.ERROR if strict else Severity.WARNING
        message = f"{_quoted(written)} is misspelt"
        yield Finding(number, severity, message, f"write '{_text(field)}:'")


def _about_token(number: int, value: bytes) -> Iterator[Finding]:
    tokens = tokens_of_line(value)
    if not value:
        yield Finding(number, Severity.ERROR, "no product token", "write '*' for everyone")
    elif not tokens:
        yield Finding(
            number,
            Severity.ERROR,
            f"no crawler has the product token {_quoted(value)}",
            "write letters, hyphens and underscores, or '*' alone for everyone",
        )
    elif tokens[0] != value.lower() and value[:1] != b"*":
        yield Finding(
            number,
            Severity.INFO,
            f"of {_quoted(value)} most crawlers compare {_quoted(tokens[0])} alone",
            "write letters, hyphens and underscores only",
        )


def _about_value(number: int, field: bytes, octets: bytes) -> Iterator[Finding]:
    value, quoted = _text(octets), _quoted(octets)
    if field in _RULES and value and value[0] not in "/*":
        yield Finding(
            number,
            Severity.ERROR,
            f"the pattern {quoted} never matches",
            f"write '{printable(_with_slash(value))}', as every path begins with a slash",
        )
    elif field in _RECORDS:
        for check in _RECORDS[field].checks:
            if not check.passes(octets):
                severity = Severity.ERROR if check.is_error else Severity.WARNING
                yield Finding(number, severity, check.message.format(value=quoted), check.advice)
                break


def _about_groups(text: bytes, *, strict: bool) -> Iterator[Finding]:
    """Find tokens with several groups, and rules that never decide."""
    dialect = STRICT if strict else LENIENT
    # The line of an octet is the number of LFs before it.
    line_at = partial(bisect_left, [match.start() for match in re.finditer(b"\n", text)])
    decided: set[int] = set()
    overridden: dict[int, Finding] = {}
    pieces = groups(text, strict=strict)
    for token, spans in pieces.items():
        if len(spans) > 2:
            yield Finding(
                line_at(spans[2]),
                Severity.INFO,
                f"another group for {_quoted(token)}: the two are one",
                "write the rules of a crawler in one place",
            )
    left = _MAX_OCTETS
    for spans in {tuple(spans): spans for spans in pieces.values()}.values():
        group = GroupText(text, spans, dialect)
        left -= sum(spans[1::2]) - sum(spans[::2])
        if left < 0:
            # The number of ways in which tokens share groups can grow with the square of the file.
            yield Finding(
                line_at(spans[0]) or 1,
                Severity.INFO,
                "too many groups share their rules: rules that never decide are not searched for",
                "write the rules of a crawler in one place",
            )
            return
        found = dict(_overridden(group, line_at, strict=strict))
        decided.update(position for _, _, position in group.rules() if position not in found)
        overridden.update(found)
    yield from (found for position, found in overridden.items() if position not in decided)


def _overridden(
    group: GroupText, line_at: Callable[[int], int], *, strict: bool
) -> Iterator[tuple[int, Finding]]:
    """Yield the rules that never decide, as another rule wins for every path that they match."""
    ranked = rank(group.rules(), strict=strict)
    index = PatternIndex([pattern for _, _, _, pattern in ranked])
    winners: dict[str, int] = {}
    for number, (_, _, _, pattern) in enumerate(ranked):
        winners.setdefault(_stem(pattern), number)
    for allow, value, position in group.rules():
        for _, _, _, pattern in rank([(allow, value, position)], strict=True):
            stem = _stem(pattern)
            ended = stem[-1:] == "$" and "*" not in stem
            winner = ranked[index.first(stem[:-1]) if ended else winners[stem]][2]
            if winner != position:
                field = "allow" if allow else "disallow"
                line = line_at(winner + 1)
                message = f"{field} {_quoted(value)} never decides: line {line} does"
                finding = Finding(line_at(position + 1), Severity.WARNING, message, "remove it")
                yield position, finding


def _stem(pattern: str) -> str:
    """Return the shortest pattern that matches the same paths: without stars that match nothing."""
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    return pattern.removesuffix("*$").removesuffix("*")


def _about_size(body: bytes, text: bytes) -> Iterator[Finding]:
    if len(body) > SIZE_LIMIT:
        last = text.count(b"\n")
        number = last if text.endswith(b"\n") else last + 1
        yield Finding(
            number,
            Severity.ERROR,
            f"nothing is read from here on: the file has more than {SIZE_LIMIT} octets",
            "write fewer or shorter rules",
        )


@lru_cache(maxsize=256)
def _nearest(field: str) -> str | None:
    if len(field) > _MAX_FIELD_LENGTH:
        return None
    near = get_close_matches(field, [_text(known) for known in _FIELDS], 1, 0.75)
    return near[0] if near else None


def _with_colon(content: bytes) -> str:
    word = _text(content.split()[0])
    near = _nearest(word.lower())
    return f"write '{near}:'" if near else "begin comments with '#'"


def _with_slash(pattern: str) -> str:
    try:
        parts = urlsplit(pattern)
    except ValueError:
        return "/" + pattern
    if parts.scheme and parts.netloc:
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return "/" + pattern


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _quoted(octets: bytes, length: int = LENGTH) -> str:
    """Return octets of a file in quotation marks, cut and escaped."""
    return f"'{printable(_text(octets), length)}'"


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")
