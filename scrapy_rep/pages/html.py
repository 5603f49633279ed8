"""The octets and the tree of an HTML page, whatever encoding it is in or claims to be in.

Scrapy takes any codec of Python's that a page names (``charset=idna``, ``rot13``): some are no text
encodings, some raise, some take quadratic time. A page with such a name is read as octets that
agree with ASCII.
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
"""Encodings with a NUL octet in each ASCII character; each with ``-be`` and ``-le``, too."""

_NOT_ASCII = ("iso2022", "cp037", "cp1026", "cp1140", "cp273", "cp424", "cp500", "cp875")
"""Other encodings in which the octets of markup are not those of ASCII: ISO 2022, which has escape
sequences, and EBCDIC, in which there is no octet for ``<``."""

_UNREADABLE = frozenset(["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"])
"""Codecs that Python counts as text encodings and that are none for a page."""


def octets(response: HtmlResponse) -> bytes:
    """The page in an encoding that agrees with ASCII: its body, for almost all pages."""
    body: bytes = response.body
    wide = b"\0" in body
    if not wide and b"\x1b" not in body and (b"<" in body or not body):
        return body
    encoding = resolve_encoding(response.encoding) or ""
    if encoding.startswith(_NOT_ASCII) or (wide and encoding.startswith(_WIDE)):
        return response.text.encode("utf-8", "replace")
    return body


def document(response: HtmlResponse) -> tuple[Selector, str, str]:
    """The tree of the page, its encoding, and the URL that its links are relative to."""
    if not _is_readable(resolve_encoding(response.encoding) or ""):
        text = response.body.decode("utf-8", "replace")
        return Selector(text=text, type="html"), "utf-8", response.url
    try:
        return response.selector, response.encoding, get_base_url(response)
    except ValueError:  # the base element holds no URL, and so counts for nothing
        return Selector(text=response.text, type="html"), response.encoding, response.url


def agrees_with_ascii(encoding: str) -> bool:
    """Whether text of ASCII characters is the same octets in an encoding as in ASCII."""
    return not (resolve_encoding(encoding) or "").startswith((*_WIDE, *_NOT_ASCII))


@lru_cache(maxsize=64)
def _is_readable(encoding: str) -> bool:
    if encoding in _UNREADABLE:
        return False
    try:
        b"a".decode(encoding, "replace")
    except LookupError:  # no text encoding, or none at all
        return False
    return True
