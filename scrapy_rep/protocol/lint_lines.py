"""Findings about single lines: fields, product tokens, patterns and values."""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from .agents import tokens_of_line
from .lines import WHITE_SPACE
from .lint_codes import Code, Severity
from .parser import PREFIXES, TYPOS, field_of, parse_line
from .printable import LENGTH, printable
from .records import RECORD_TYPES, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .lint_findings import Finding, Source

_RULES = (b"allow", b"disallow")
_RECORDS = {row.field: row for row in RECORD_TYPES}
_FIELDS = sorted([b"user-agent", *_RULES, *_RECORDS])
# Above any user-agent line these are ignored.
_ONLY_IN_GROUPS = frozenset(
    [*_RULES, *(row.field for row in RECORD_TYPES if row.scope is Scope.GROUP)]
)
_URL_FIELDS = frozenset([b"sitemap", b"license"])
# draft-canel-robots-ai-control-00
_AI_TRAINING_FIELDS = frozenset([b"allowaitraining", b"disallowaitraining"])
_SPELLINGS = frozenset([*TYPOS, *(prefix for known in PREFIXES.values() for prefix in known)])
_MAX_FIELD_LENGTH = 40
"""Characters of an unknown field that are shown, and compared with known fields. The longest known
field has 14."""
_FIELD_AND_SCHEME = re.compile(rb"([a-z -]+?)[ \t\v\f]+https?").fullmatch
# The beginning of a field, and an ending such as those of "Disallowed" and "User-agents". Longer
# endings may have a meaning of their own.
_FIELD_AND_ENDING = re.compile(
    rb"(?:%b)[a-z]{0,3}" % b"|".join(map(re.escape, sorted(_SPELLINGS, key=len, reverse=True)))
).fullmatch
# A path without its slash. Other values may be meant for any place in the path or query: ".pdf$",
# "?page=", "page=".
_PATH_WITHOUT_SLASH = re.compile(
    rb"""
    [A-Za-z0-9_~\x80-\xff-] [^:=?$\x00-\x20\x7f]*
    (?: \? [^:$\x00-\x20\x7f]* )?
    """,
    re.VERBOSE,
).fullmatch
_IDENTIFIER = re.compile(rb"[a-z_-]+").fullmatch
_TOKEN_WITH_DIGITS = re.compile(rb"[A-Za-z0-9_-]+").fullmatch


class _Line(NamedTuple):
    """A line with a field and a value."""

    number: int
    written: bytes
    """The name as it is written."""
    field: bytes
    """The field in a lenient reading."""
    value: bytes
    has_colon: bool
    value_start: int
    """Where the value begins."""

    @property
    def name(self) -> bytes:
        """The name in lower case."""
        return self.written.lower()

    @property
    def name_end(self) -> int:
        """Where the name ends."""
        return len(self.written)

    @property
    def value_end(self) -> int:
        """Where the value ends."""
        return self.value_start + len(self.value)


def findings_of_lines(source: Source, *, strict: bool) -> Iterator[Finding]:
    """Yield findings about lines that are skipped, misspelled or out of place, and values."""
    started = False
    for number, text in enumerate(source.text.split(b"\n")):
        content = text.partition(b"#")[0].strip(WHITE_SPACE)
        if not content:
            continue
        line = _read_line(number, content)
        if line is None:
            message = "no colon, so the line is skipped"
            yield source.finding(number, Code.NO_COLON, message, _with_colon(content))
            continue
        if strict and not line.has_colon:
            known = line.field in _FIELDS
            yield source.finding(
                number,
                Code.MISSING_COLON if known else Code.NO_COLON,
                "no colon, so the line is skipped",
                _with_colon(content),
                severity=Severity.ERROR,
                correction=(line.name_end, line.name_end, b":") if known else None,
            )
            continue
        yield from _about_field(source, line, strict=strict)
        if line.field == b"user-agent":
            started = True
            yield from _about_token(source, line)
        elif not started and line.field in _ONLY_IN_GROUPS:
            message = f"{_text(line.field)} before any user-agent line is ignored"
            yield source.finding(
                number, Code.OUTSIDE_GROUP, message, "write 'User-agent: *' above it"
            )
        yield from _about_value(source, line)


def _read_line(number: int, content: bytes) -> _Line | None:
    record = parse_line(content, number, strict=False)
    if record is None:
        return None
    before, colon, _ = content.partition(b":")
    written = before.rstrip(WHITE_SPACE) if colon else content.split()[0]
    value_start = len(content) - len(record.value)
    return _Line(number, written, record.field, record.value, bool(colon), value_start)


def _about_field(source: Source, line: _Line, *, strict: bool) -> Iterator[Finding]:
    number, name, end = line.number, line.name, line.name_end
    scheme = _FIELD_AND_SCHEME(name)
    if scheme and field_of(scheme[1]) in _URL_FIELDS and line.value.startswith(b"//"):
        # "Sitemap https://example.com/": the first colon is that of the URL.
        end = len(scheme[1])
        message = "the colon is missing, and the one in the URL is read instead"
        advice = f"write '{_text(field_of(scheme[1]))}:'"
        yield source.finding(
            number,
            Code.MISSING_COLON,
            message,
            advice,
            0,
            end,
            severity=Severity.ERROR,
            correction=(end, end, b":"),
        )
        return
    if line.field not in _FIELDS:
        near = _nearest(_text(name))
        message = f"unknown field {_quoted(name, _MAX_FIELD_LENGTH)}, the line is skipped"
        if near:
            yield source.finding(number, Code.UNREAD_FIELD, message, f"write '{near}:'", 0, end)
        elif line.has_colon:
            advice = "remove it if it is a mistake"
            yield source.finding(number, Code.UNKNOWN_FIELD, message, advice, 0, end)
        else:
            advice = "begin comments with '#'"
            yield source.finding(number, Code.NO_COLON, message, advice, 0, end)
        return
    advice = f"write '{_text(line.field)}:'"
    if not line.has_colon:
        message = "the colon is missing"
        correction = (end, end, b":")
        yield source.finding(
            number, Code.MISSING_COLON, message, advice, 0, end, correction=correction
        )
    if name in _AI_TRAINING_FIELDS:
        message = f"{_quoted(name)} is of an expired draft, and is read as {_quoted(line.field)}"
        advice = "write 'Content-Usage: train-ai=n' to refuse AI training"
        yield source.finding(number, Code.AI_TRAINING_FIELD, message, advice, 0, end)
    elif name != line.field:
        longer = name.startswith(line.field)
        yield source.finding(
            number,
            Code.LONGER_FIELD if longer else Code.MISSPELLED_FIELD,
            f"{_quoted(name)} is misspelled",
            advice,
            0,
            end,
            severity=Severity.ERROR if strict else None,
            correction=(0, end, _in_case_of(line.written, line.field))
            if name in TYPOS or _FIELD_AND_ENDING(name)
            else None,
        )


def _about_token(source: Source, line: _Line) -> Iterator[Finding]:
    number, value, start = line.number, line.value, line.value_start
    tokens, end = tokens_of_line(value), line.value_end
    if not value:
        message, advice = "no product token", "write '*' for everyone"
        yield source.finding(number, Code.NO_TOKEN, message, advice)
        return
    if not tokens:
        message = f"no crawler has the product token {_quoted(value)}"
        advice = "write letters, hyphens and underscores, or '*' alone for everyone"
        yield source.finding(number, Code.INVALID_TOKEN, message, advice, start, end)
        return
    if value[:1] == b"*":
        return
    correction = None
    if _TOKEN_WITH_DIGITS(tokens[-1]) and any(octet in b"0123456789" for octet in tokens[-1]):
        code = Code.TOKEN_WITH_DIGITS
    elif _IDENTIFIER(tokens[-1]) and value[len(tokens[-1]) :].startswith(b"/"):
        code, correction = Code.TOKEN_WITH_VERSION, (start + len(tokens[-1]), end, b"")
    elif tokens[0] == value.lower():
        return
    else:
        code = Code.TOKEN_CUT
    message = f"of {_quoted(value)} most crawlers compare {_quoted(tokens[0])} alone"
    if not _IDENTIFIER(tokens[0]):
        message = f"most crawlers find no product token in {_quoted(value)}"
    advice = "write letters, hyphens and underscores only"
    if correction:
        advice = f"write {_quoted(value[: len(tokens[-1])])}"
    yield source.finding(number, code, message, advice, start, end, correction=correction)


def _about_value(source: Source, line: _Line) -> Iterator[Finding]:
    value, quoted = _text(line.value), _quoted(line.value)
    start, end = line.value_start, line.value_end
    if line.field in _RULES and value and value[0] not in "/*":
        path = _path_of_url(value)
        correction = None
        if path is not None:
            code = Code.URL_AS_PATTERN
        elif _PATH_WITHOUT_SLASH(line.value):
            code, correction = Code.MISSING_SLASH, (start, start, b"/")
        else:
            code = Code.UNMATCHABLE_PATTERN
        advice = f"write '{printable(path or '/' + value)}', as every path begins with a slash"
        message = f"the pattern {quoted} never matches"
        yield source.finding(line.number, code, message, advice, start, end, correction=correction)
    elif line.field in _RECORDS:
        for check in _RECORDS[line.field].checks:
            if not check.passes(line.value):
                message = check.message.format(value=quoted)
                yield source.finding(
                    line.number,
                    check.code,
                    message,
                    check.advice,
                    start,
                    end,
                    correction=(start, end, check.correct(line.value)) if check.correct else None,
                )
                break


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


def _in_case_of(written: bytes, field: bytes) -> bytes:
    """Return a field in lower case, in upper case, or with a capital, as it is written."""
    if written.isupper():
        return field.upper()
    return field.capitalize() if written[:1].isupper() else field


def _path_of_url(pattern: str) -> str | None:
    """Return the path and query of a URL, or None if the pattern is no absolute URL."""
    try:
        parts = urlsplit(pattern)
    except ValueError:
        return None
    if not (parts.scheme and parts.netloc):
        return None
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _quoted(octets: bytes, length: int = LENGTH) -> str:
    """Return octets of a file in quotation marks, cut and escaped."""
    return f"'{printable(_text(octets), length)}'"


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")
