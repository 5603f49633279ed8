"""Splits a body into lines: size limit, byte order marks, line ends (RFC 9309 §2.2 and §2.5).

Lines stay bytes, because a robots.txt may not be UTF-8, as it should. Bytes above 127 are
percent-encoded later, whatever their encoding is.

Of a page that a browser made of a text file, the text is read. Line by line, the page would lose
its first line, and with it the first group.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable
from functools import partial
from html import unescape

SIZE_LIMIT = 500 * 1024
"""RFC 9309 §2.5: "The parsing limit MUST be at least 500 kibibytes". Google's limit is the same."""

WHITE_SPACE = b" \t\v\f"
"""The bytes that are stripped around names and values: Google's set, no Unicode spaces."""

_INDENTATION = re.compile(rb"\n[ \t\v\f]+")


def read(body: bytes) -> bytes:
    """Return the part of a body that is read, as lines without indentation.

    Each line *begins* with a LF, so the number of a line is the number of LFs up to its beginning.
    Only CR, LF and CRLF end lines. At most `SIZE_LIMIT` bytes of the body are read. Raises
    TypeError if the body is not bytes.
    """
    require_bytes(body)
    text = b"\n" + decoded(body).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = _INDENTATION.sub(b"\n", text)
    return _without_nuls(text) if b"\0" in text else text


def decoded(body: bytes) -> bytes:
    """Return what `read` reads of a body, without byte order mark, and UTF-16 as UTF-8."""
    return _decoded(file_of(body))


def _decoded(body: bytes) -> bytes:
    text, behind = body[:SIZE_LIMIT], body[SIZE_LIMIT : SIZE_LIMIT + 1]
    if behind not in (b"", b"\r", b"\n"):  # a rule that is cut would match too much
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]
    if text[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        # Without a NUL byte the mark is a mistake, and decoding would lose every line.
        return text.decode("utf-16", "replace").encode() if b"\0" in text else text[2:]
    return text[len(utf_8_mark(text)) :] if text[:1] == BOM_UTF8[:1] else text


def utf_8_mark(text: bytes) -> bytes:
    """Return the byte order mark at the start of a text, which Google drops even if incomplete."""
    marks = BOM_UTF8, BOM_UTF8[:2], BOM_UTF8[:1], b""
    return next(mark for mark in marks if text.startswith(mark))


def require_bytes(body: object) -> None:
    """Raise TypeError if a body is not bytes. The message does not quote it."""
    if not isinstance(body, bytes):
        raise TypeError(f"the body of a robots.txt must be bytes, not {type(body).__name__}")


def line_number(text: bytes, position: int) -> int:
    """Return the number, from 1, of the line that begins with the LF at a position."""
    return text.count(b"\n", 0, position + 1)


def line_numbers(text: bytes) -> Callable[[int], int]:
    """Return a function that answers as `line_number` does, for many positions in one text."""
    return partial(bisect_right, [match.start() for match in re.finditer(b"\n", text)])


_TAG = re.compile(rb"<([!?]?[a-z][a-z0-9]*)\b", re.IGNORECASE)
_BEFORE_TAG = re.compile(rb"\s+|\#[^\r\n]*|<!--.*?-->", re.DOTALL)


def first_tag(body: bytes) -> bytes:
    """Return the name of the tag with which a body begins, after comments; empty without one.

    It is in lower case, such as ``html``, ``!doctype`` or ``?xml``.
    """
    text, position = decoded(body), 0
    while skipped := _BEFORE_TAG.match(text, position):
        position = skipped.end()
    tag = _TAG.match(text, position)
    return b"" if tag is None else tag[1].lower()


def _without_nuls(text: bytes) -> bytes:
    """Return the lines without the NUL bytes and white space at the ends of their values."""
    lines = (line.partition(b"#") for line in text.split(b"\n"))
    removed = WHITE_SPACE + b"\0"
    return b"\n".join(value.rstrip(removed) + mark + comment for value, mark, comment in lines)


# What Chromium, Firefox and WebKit make of a file: elements without text but a title, the text, in
# which each "<" is escaped, and the end, of which a size limit may have removed a part. If the
# server calls the file HTML, there is no pre element. Each repetition begins with a character that
# the one before it cannot match, so the time is linear.
_BROWSER_PAGE = re.compile(
    rb"""
    \s*
    (?: < (?: !doctype | html | /? head | meta | link ) \b [^<>]* > \s*
      | <title [^<>]* > [^<>]* </title> \s* )*
    <body [^<>]* > (?: \s* <pre [^<>]* > | (?<= <html><head></head><body> ) )
    ( [^<]* )
    (?: < (?: / (?: pre | div | body | html ) | div \b ) [^<>]* > \s* )*
    (?: < [^<>]* \Z )?
    """,
    re.VERBOSE | re.IGNORECASE,
)


def file_of(body: bytes) -> bytes:
    """Return a robots.txt as its site has it: of a page that a browser made, the text it shows.

    The same object is returned if it is no such page, or if its text is one.
    """
    text = _shown_text(body)
    return body if text is None or _shown_text(text) is not None else text


def _shown_text(body: bytes) -> bytes | None:
    """Return the text of a page that a browser made; None for another body."""
    html = _decoded(body)
    page = _BROWSER_PAGE.match(html)
    if page is None or page.end() < len(html):
        return None
    text = unescape(page[1].decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")
