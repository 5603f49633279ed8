"""Splits a body into lines: size limit, byte order marks, line ends (RFC 9309 §2.2 and §2.5).

Lines stay octets, because a robots.txt may not be UTF-8, as it should. Octets above 127 are
percent-encoded later, whatever their encoding is.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

SIZE_LIMIT = 500 * 1024
"""RFC 9309 §2.5: "The parsing limit MUST be at least 500 kibibytes". Google's limit is the same."""

WHITE_SPACE = b" \t\v\f"
"""The octets that are stripped around names and values: Google's set, no Unicode spaces."""

_INDENTATION = re.compile(rb"\n[ \t\v\f]+")


def read(body: bytes) -> bytes:
    """Return the part of a body that counts, as lines without indentation.

    Each line *begins* with a LF, so the number of a line is the number of LFs up to its beginning.
    Only CR, LF and CRLF end lines. At most `SIZE_LIMIT` octets of the body are read. Raises
    TypeError if the body is not bytes.
    """
    require_bytes(body)
    text = lines_of(body)
    return _without_nuls(text) if b"\0" in text else text


def lines_of(body: bytes) -> bytes:
    """Return what `read` returns, but keep the NUL octets at the ends of values."""
    text = b"\n" + decoded(body)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _INDENTATION.search(text):
        text = _INDENTATION.sub(b"\n", text)
    return text


def decoded(body: bytes) -> bytes:
    """Return the part of a body that counts, without byte order mark, and UTF-16 as UTF-8."""
    text = _within_limit(body) if len(body) > SIZE_LIMIT else body
    if text[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        # Without a NUL octet the mark is a mistake, and decoding would lose every line.
        return text.decode("utf-16", "replace").encode() if b"\0" in text else text[2:]
    return text[len(utf_8_mark(text)) :] if text[:1] == BOM_UTF8[:1] else text


def utf_8_mark(text: bytes) -> bytes:
    """Return the byte order mark at the start of a text, even if it is incomplete, as for Google.

    It is empty if there is none.
    """
    known = 0
    while known < len(BOM_UTF8) and text[known : known + 1] == BOM_UTF8[known : known + 1]:
        known += 1
    return text[:known]


def require_bytes(body: object) -> None:
    """Raise TypeError if a body is not bytes. The message does not quote it."""
    if not isinstance(body, bytes):
        raise TypeError(f"the body of a robots.txt must be bytes, not {type(body).__name__}")


def line_number(text: bytes, position: int) -> int:
    """Return the number, from 1, of the line that begins with the LF at a position."""
    return text.count(b"\n", 0, position + 1)


def _within_limit(body: bytes) -> bytes:
    """Return the lines that end within the limit. A rule that is cut would match too much."""
    head = body[:SIZE_LIMIT]
    if body[SIZE_LIMIT] in b"\r\n":
        return head
    return head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]


def _without_nuls(text: bytes) -> bytes:
    """Return the lines without the NUL octets at the ends of their values."""
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        if b"\0" in line:
            content, mark, comment = line.partition(b"#")
            lines[number] = content.rstrip(WHITE_SPACE + b"\0") + mark + comment
    return b"\n".join(lines)
