"""Findings about octets: byte order marks, encodings, NUL octets, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lines import SIZE_LIMIT, WHITE_SPACE
from .lint_codes import Code
from .lint_findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .lint_findings import Source

_GOOGLE_LINE_LENGTH = 16_664
"""Octets of a line that Google's open-source parser keeps: eight times the longest URL, 2,083."""


def findings_of_octets(source: Source, body: bytes) -> Iterator[Finding]:
    """Yield findings about byte order marks, encodings, NUL octets and long lines."""
    if source.mark:
        yield _about_mark(source)
    for number, line in enumerate(source.written, 1):
        indentation = len(line) - len(line.lstrip(WHITE_SPACE))
        if b"\0" in line:
            yield from _about_nuls(source, number, line[indentation:])
        if len(line) > _GOOGLE_LINE_LENGTH:
            message = f"Google reads only the first {_GOOGLE_LINE_LENGTH} octets of a line"
            yield source.finding(number, Code.LONG_LINE, message, "write a shorter line")
        if (position := _first_not_utf_8(line)) is not None:
            start = position - indentation
            yield source.finding(
                number,
                Code.NOT_UTF_8,
                "an octet that is not UTF-8",
                "save the file as UTF-8",
                start,
                start + 1,
            )
    if len(body) > SIZE_LIMIT:
        yield _about_size(source)


def _about_size(source: Source) -> Finding:
    last = source.text.count(b"\n")
    message = f"nothing is read from here on: the file has more than {SIZE_LIMIT} octets"
    return Finding(
        last if source.text.endswith(b"\n") else last + 1,
        Code.TOO_LARGE.severity,
        message,
        "write fewer or shorter rules",
        Code.TOO_LARGE,
    )


def _about_mark(source: Source) -> Finding:
    if source.encoding:
        code, message = Code.UTF_16, "the file is UTF-16, which most crawlers do not decode"
    elif source.mark[:1] == b"\xef":
        code, message = Code.BYTE_ORDER_MARK, "not every crawler skips the byte order mark"
    else:
        code = Code.UTF_16_MARK
        message = "a byte order mark of UTF-16 before text that is not UTF-16 is dropped"
    advice = "save the file as UTF-8 without a mark"
    is_fixable = source.has_removable_mark
    return Finding(1, code.severity, message, advice, code, is_fixable=is_fixable)


def _about_nuls(source: Source, number: int, line: bytes) -> Iterator[Finding]:
    content = line.partition(b"#")[0]
    value = content.rstrip(WHITE_SPACE + b"\0")
    dropped = content[len(value) :]
    if b"\0" in dropped:
        start, end = len(value) + dropped.index(b"\0"), len(value) + dropped.rindex(b"\0") + 1
        yield source.finding(
            number,
            Code.NUL_AT_END,
            "NUL octets at the end of the value are dropped",
            "remove them",
            start,
            end,
            correction=(start, end, content[start:end].replace(b"\0", b"")),
        )
    if b"\0" in value:
        start = value.index(b"\0")
        yield source.finding(
            number,
            Code.NUL_IN_LINE,
            "Google reads the line only up to the NUL octet in it",
            "remove it",
            start,
            start + 1,
        )


def _first_not_utf_8(line: bytes) -> int | None:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None
