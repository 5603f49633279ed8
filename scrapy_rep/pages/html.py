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
    from collections.abc import Collection, Iterable, Iterator

    from scrapy.http import HtmlResponse

MAX_PAGE = 2 * 1024 * 1024
"""The octets of a page in which elements are searched for. Googlebot reads no more of a page."""
MAX_ELEMENTS = 10_000
"""The meta and link elements of a page that are looked at, whatever their names are (ours)."""
MAX_VALUE = 4096
"""The characters of an attribute that are read. A link with a longer URL is skipped, for a part of
a URL is another URL (ours)."""
MAX_VALUES = 4 * MAX_VALUE
"""The characters of all contents and URLs of a page that are read (ours)."""
_MAX_TAG = 4 * MAX_VALUE
"""The octets of the last tag of a page that are read (ours)."""


_WIDE = ("utf-16", "utf-32")
"""Prefixes of encodings in which each ASCII character has a NUL octet."""

_NOT_ASCII = ("iso2022", "cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp875")
"""Prefixes of other encodings in which the octets of markup differ from ASCII: ISO 2022 has escape
sequences, and EBCDIC has other octets for all characters."""

_UNREADABLE = frozenset(["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"])
"""Codecs that Python counts as text encodings, but that are not encodings of pages."""


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


_META_TAG, _LINK_TAG, _BODY_TAG, _ANY_TAG = (
    re.compile(rb"<(?:%b)(?=[\s/>])" % name, re.IGNORECASE)
    for name in (b"meta", b"link", b"body", b"meta|link")
)
_TAG_TO_END = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_END_TYPE = "end-of-head"
_HEAD_END = f"<link rel={_END_TYPE}>".encode()
"""Marks the end of the head in the text that is parsed."""
_NO_LETTERS = re.compile("[^a-z]+")


def has_elements(html: bytes) -> bool:
    """Whether a page has a meta or a link element, in an encoding that is a superset of ASCII."""
    return _ANY_TAG.search(html) is not None


def elements(html: bytes, names: Collection[str], rel: str) -> Iterator[Element]:
    """Yield the meta elements with one of some names, and the links with a link type.

    `html` is a page in an encoding that is a superset of ASCII. `names` and `rel` are in lower
    case. Only links up to the first body tag count: `rel` is a link type that is not allowed in the
    body (HTML §4.6.7). An element in a ``template`` does not count.
    """
    html = html[:MAX_PAGE]
    body = _BODY_TAG.search(html)
    head_end = body.start() if body else len(html)
    parts = (
        (_part_with_metas(html, head_end), _letters(*names)),
        (_part_with_links(html, head_end), _letters(rel)),
    )
    ends = [part.stop for part, words in parts if part and _has_one(html[part].lower(), words)]
    if not ends:
        return
    end = min(max(ends), len(html))
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


def _part_with_metas(html: bytes, head_end: int) -> slice | None:
    """Return the part of a page from the first meta tag to the last."""
    found = _META_TAG.search(html)
    if found is None:
        return None
    first = found.start()
    # Most heads have many meta tags in lower case. This skips them at once.
    last = max(html.rfind(b"<meta", first, head_end), first)
    for found in _META_TAG.finditer(html, last + 1):
        last = found.start()
    end = _TAG_TO_END.match(html, last, last + _MAX_TAG)
    # A quotation mark within a value may hide the end, but not the next tag.
    after = html.find(b"<", end.end()) if end else last + _MAX_TAG
    return slice(first, after if after >= 0 else len(html))


def _part_with_links(html: bytes, head_end: int) -> slice | None:
    """Return the part of the head from the first link tag on."""
    found = _LINK_TAG.search(html, 0, head_end)
    return slice(found.start(), head_end) if found else None


def _has_one(html: bytes, words: Iterable[bytes]) -> bool:
    return any(map(html.__contains__, words))


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


def is_ascii_superset(encoding: str) -> bool:
    """Whether an encoding has the same octets as ASCII for ASCII characters."""
    return not (resolve_encoding(encoding) or "").startswith((*_WIDE, *_NOT_ASCII))


@lru_cache(maxsize=64)
def _is_readable(encoding: str) -> bool:
    if encoding in _UNREADABLE:
        return False
    try:
        b"a".decode(encoding, "replace")
    except LookupError:  # not a text encoding, or unknown
        return False
    return True
