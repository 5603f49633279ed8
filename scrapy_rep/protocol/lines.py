"""Splits a body into lines: size limit, byte order marks, line ends (RFC 9309 §2.2 and §2.5).

Lines stay bytes, because a robots.txt may not be UTF-8, as it should. Bytes above 127 are
percent-encoded later, whatever their encoding is.

A browser shows a text file as ``<html>…<pre>…</pre></body></html>``. If the server calls the file
HTML, there is no ``<pre>``. Read as a robots.txt, such a page would lose its first line, and with
it the first group. `file_of` recovers the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

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
    text = b"\n" + decoded(body)
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _INDENTATION.search(text):
        text = _INDENTATION.sub(b"\n", text)
    return _without_nuls(text) if b"\0" in text else text


def decoded(body: bytes) -> bytes:
    """Return the part of a body that is read, without byte order mark, and UTF-16 as UTF-8."""
    text = _within_limit(body) if len(body) > SIZE_LIMIT else body
    if text[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        # Without a NUL byte the mark is a mistake, and decoding would lose every line.
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


def line_numbers(text: bytes) -> Callable[[int], int]:
    """Return a function that answers as `line_number` does, for many positions in one text."""
    line_feeds = [match.start() for match in re.finditer(b"\n", text)]
    return partial(bisect_right, line_feeds)


_MARKUP = re.compile(rb"<(?:!doctype|html|head|\?xml)\b", re.IGNORECASE)
_BEFORE_MARKUP = re.compile(rb"\s+|\#[^\r\n]*|<!--.*?-->", re.DOTALL)


def begins_as_markup(body: bytes) -> bool:
    """Return whether HTML or XML is the first thing in a body that is not a comment."""
    text, position = decoded(body), 0
    while skipped := _BEFORE_MARKUP.match(text, position):
        position = skipped.end()
    return _MARKUP.match(text, position) is not None


def _within_limit(body: bytes) -> bytes:
    """Return the lines that end within the limit. A rule that is cut would match too much."""
    head = body[:SIZE_LIMIT]
    if body[SIZE_LIMIT] in b"\r\n":
        return head
    return head[: max(head.rfind(b"\n"), head.rfind(b"\r")) + 1]


def _without_nuls(text: bytes) -> bytes:
    """Return the lines without the NUL bytes at the ends of their values."""
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        if b"\0" in line:
            content, mark, comment = line.partition(b"#")
            lines[number] = content.rstrip(WHITE_SPACE + b"\0") + mark + comment
    return b"\n".join(lines)


# The markup that Chromium, Firefox and WebKit put before and after the text of a file. Between the
# two there is no tag, because a browser escapes the text. All repetitions have a limit, so that a
# search that fails takes little time.
#
#   before = [BOM] [doctype] html-tag [head] body-tag pre-tag
#   head   = head-tag *20( meta / link ) [title] *20( meta / link ) "</head>"
#   after  = "</pre>" *5( div-tag "</div>" ) "</body></html>"
_BEFORE = re.compile(
    rb"""
    (?: \xef\xbb\xbf )? \s{0,100}
    (?: <!doctype [^<>]{0,200} > \s{0,100} )?
    <html [^<>]{0,500} > \s{0,100}
    (?: <head [^<>]{0,200} >
        (?: \s{0,100} < (?: meta | link ) [^<>]{0,500} > ){0,20}
        (?: \s{0,100} <title [^<>]{0,200} > [^<>]{0,500} </title> )?
        (?: \s{0,100} < (?: meta | link ) [^<>]{0,500} > ){0,20}
        \s{0,100} </head> \s{0,100}
    )?
    <body [^<>]{0,500} > \s{0,100}
    <pre [^<>]{0,500} >
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTER = re.compile(
    rb"""
    </pre>
    (?: \s{0,100} <div [^<>]{0,500} > \s{0,100} </div> ){0,5}
    \s{0,100} </body> \s{0,100} </html> \s*
    """,
    re.VERBOSE | re.IGNORECASE,
)
# The markup that browsers put around text that the server calls HTML: the elements that the text
# lacks, without attributes (HTML standard §13.2.6.4).
_BARE_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?<html><head></head><body>")
_BARE_AFTER = re.compile(rb"</body></html>\s*")
_MAX_AFTER = 1000
"""The bytes of an incomplete end that a limit has cut off (ours)."""

# The characters that a browser writes as entities in text (HTML standard §13.3). "&amp;" is
# replaced last, so that nothing is replaced twice.
_ENTITIES = (
    (b"&nbsp;", "\u00a0".encode()),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b'"'),
    (b"&#39;", b"'"),
    (b"&amp;", b"&"),
)


def file_of(body: bytes) -> bytes:
    """Return a robots.txt as its site has it: of a page that a browser made, the text it shows.

    `body` may be one byte longer than the size limit, and the same object is returned if it is no
    such page.
    """
    text = unwrap_browser_page(body, cut_off=len(body) > SIZE_LIMIT)
    return body if text is None else text


def unwrap_browser_page(body: bytes, *, cut_off: bool) -> bytes | None:
    """Return the text that a browser shows in this page. None if it is another page.

    `cut_off` is true if a size limit may have removed the end of the page.
    """
    before, after = _BEFORE.match(body), _AFTER
    if before is None:
        before, after = _BARE_BEFORE.match(body), _BARE_AFTER
    if before is None:
        return None
    end = body.find(b"<", before.end())
    if end < 0:
        if not cut_off:
            return None
        end = len(body)
    elif not after.fullmatch(body, end) and not (cut_off and len(body) - end < _MAX_AFTER):
        return None
    text = body[before.end() : end]
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
