"""The markup and the element tree of an HTML page in any encoding.

Scrapy uses any Python codec that a page names, such as ``charset=idna`` or ``rot13``. Some of them
are not text encodings, some raise, and some take quadratic time. This module reads a page that
names one of these as UTF-8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from parsel import Selector
from scrapy.utils.response import get_base_url
from w3lib.encoding import resolve_encoding

if TYPE_CHECKING:
    from scrapy.http import HtmlResponse

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
