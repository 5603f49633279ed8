"""The markup, the meta and link elements, and the element tree of an HTML page in any encoding.

Scrapy uses any Python codec that a page names, such as ``charset=idna`` or ``rot13``. Some of them
are not text encodings, some raise, and some take quadratic time. This module reads a page that
names one of these as UTF-8.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from parsel import Selector
from scrapy.utils.response import get_base_url
from w3lib.encoding import resolve_encoding

from .directives import Element

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from scrapy.http import HtmlResponse

MAX_PAGE = 2 * 1024 * 1024
"""The bytes of a page in which elements are searched for. Googlebot reads no more of a page."""
MAX_ELEMENTS = 10_000
"""The meta and link elements of a page that are looked at, whatever their names are (ours)."""
MAX_VALUE = 4096
"""The characters of an attribute that are read. A link with a longer URL is skipped, for a part of
a URL is another URL (ours)."""
MAX_VALUES = 4 * MAX_VALUE
"""The characters of all contents and URLs of a page that are read (ours)."""
_MAX_TAG = 4 * MAX_VALUE
"""The bytes of the last tag of a page that are read (ours)."""


_WIDE = ("utf-16", "utf-32")
"""Prefixes of encodings in which each ASCII character has a NUL byte."""

_NOT_ASCII = ("iso2022", "cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp875")
"""Prefixes of other encodings in which the bytes of markup differ from ASCII: ISO 2022 has escape
sequences, and EBCDIC has other bytes for all characters."""

_UNREADABLE = frozenset(["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"])
"""Codecs that Python takes for text encodings, but that are not encodings of pages."""


def markup(response: HtmlResponse) -> bytes:
    """Return a page in an encoding that is a superset of ASCII. For most pages, it is the body."""
    body: bytes = response.body
    has_nul = b"\0" in body
    if not has_nul and b"\x1b" not in body and (b"<" in body or not body):
        return body
    encoding = resolve_encoding(response.encoding) or ""
    if encoding.startswith(_NOT_ASCII) or (has_nul and encoding.startswith(_WIDE)):
        return response.text.encode("utf-8", "replace")
    return body


_BODY_TAG, _ANY_TAG = (
    re.compile(rb"<(?:%b)(?=[\s/>])" % name, re.IGNORECASE) for name in (b"body", b"meta|link")
)
_END_TYPE = "end-of-head"
_HEAD_END = f"<link rel={_END_TYPE}>".encode()
"""Marks the end of the head in the text that is parsed."""
_NO_LETTERS = re.compile("[^a-z]+")


def elements(html: bytes, names: Collection[str], rel: str) -> Iterator[Element]:
    """Yield the meta elements with one of some names, and the links with a link type.

    `html` is a page in an encoding that is a superset of ASCII. `names` and `rel` are in lower
    case. Only links up to the first body tag count: `rel` is a link type that is not allowed in the
    body (HTML §4.6.7). An element in a ``template`` is ignored.
    """
    html = html[:MAX_PAGE]
    first = _ANY_TAG.search(html)
    if first is None:  # the usual case of what is not HTML
        return
    body = _BODY_TAG.search(html)
    head_end = body.start() if body else len(html)
    lower = html.lower()
    last = lower.rfind(b"<meta", head_end)
    end = head_end if last < 0 else last + _MAX_TAG
    if not any(map(lower[first.start() : end].__contains__, _letters(rel, *names))):
        return
    html = html[:head_end] + _HEAD_END + html[head_end:end] if head_end < end else html[:end]
    text = html.decode("utf-8", "replace")
    in_head = True
    left = MAX_VALUES
    for element in islice(Selector(text=text, type="html").root.iter("meta", "link"), MAX_ELEMENTS):
        is_meta = element.tag == "meta"
        key = element.get("name" if is_meta else "rel", "")[:MAX_VALUE]
        # HTML ignores the case of ASCII letters only: a Kelvin sign is no "k".
        if not key.isascii():
            continue
        key = key.strip().lower()
        if key == _END_TYPE:
            in_head = False
        if key not in names if is_meta else not in_head or rel not in key.split():
            continue
        value = element.get("content" if is_meta else "href", "")
        if not is_meta and len(value) > MAX_VALUE:
            continue
        if next(element.iterancestors("template"), None) is None:
            value = value[:MAX_VALUE]
            left -= len(value)
            if left < 0:
                return
            yield Element(element.tag, key, value)


@lru_cache(maxsize=256)
def _letters(*names: str) -> tuple[bytes, ...]:
    """Return texts of which a part of a page in lower case has one, if it has one of some names.

    Of each name, this is the longest run of letters: all other characters may be written as named
    character references. With a numeric one, any character may be written.
    """
    return (b"&#", *(max(_NO_LETTERS.split(name), key=len).encode() for name in names))


def document(response: HtmlResponse) -> tuple[Selector, str, str]:
    """Return the element tree of a page, its encoding, and the base URL of its links."""
    if not _is_readable(resolve_encoding(response.encoding) or ""):
        text = response.body.decode("utf-8", "replace")
        return Selector(text=text, type="html"), "utf-8", response.url
    try:
        return response.selector, response.encoding, get_base_url(response)
    except ValueError:  # the base element has no valid URL, so it is ignored
        return Selector(text=response.text, type="html"), response.encoding, response.url


@lru_cache(maxsize=64)
def _is_readable(encoding: str) -> bool:
    if encoding in _UNREADABLE:
        return False
    try:
        b"a".decode(encoding, "replace")
    except LookupError:  # not a text encoding, or unknown
        return False
    return True
