"""Octets to lines: size limit, byte order marks, line ends and comments (RFC 9309 §2.2 and §2.5).

Lines stay octets. Robots.txt is UTF-8 by definition and not always in fact, so nothing is decoded
that could fail: what is not UTF-8 is percent-encoded later like any other octet above 127.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

SIZE_LIMIT = 500 * 1024
"""RFC 9309 §2.5: "The parsing limit MUST be at least 500 kibibytes"."""

WHITE_SPACE = b" \t\v\f"
"""What is stripped around names and values: Google's set, without the line ends."""


def text_of(body: bytes) -> bytes:
    """The part of a body that is read: UTF-8 without BOM, at most the limit, every line end a LF."""
    text = body
    if len(body) > SIZE_LIMIT:
        text = _whole_lines(body)
    if text.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        text = text.decode("utf-16", "replace").encode("utf-8", "replace")
    for length in (3, 2, 1):
        if text.startswith(BOM_UTF8[:length]):
            text = text[length:]
            break
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text


def content(line: bytes) -> bytes:
    """A line without its comment and the white space around it."""
    return line.partition(b"#")[0].strip(WHITE_SPACE)


def _whole_lines(body: bytes) -> bytes:
    """The lines that end within the limit; half a rule is a wider rule, so it is none."""
    if body[SIZE_LIMIT] in b"\r\n":
        return body[:SIZE_LIMIT]
    head = body[:SIZE_LIMIT]
    return head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]
