"""The meta and link elements of an HTML page, and the ``rel`` values of its links.

Scrapy uses any Python codec that a page names, such as ``charset=idna`` or ``rot13``. Some of them
are not text encodings, some raise, and some take quadratic time. This module reads a page that
names one of these as UTF-8.

A link extractor returns ``Link.nofollow``, but a request that is made from the link does not keep
it. So the middleware looks up the URL of each request among the links of the page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any
from urllib.parse import urljoin

from lxml.etree import HTMLParser  # type: ignore[import-untyped]
from parsel import Selector
from parsel.selector import create_root_node
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_base_url
from w3lib.encoding import resolve_encoding
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import canonicalize_url, safe_url_string

MAX_PAGE = 2 * 1024 * 1024
"""The bytes of a page in which elements are searched for. Googlebot reads no more of a page."""
MAX_ELEMENTS = 10_000
"""The meta and link elements of a page that are looked at, whatever their names are. Also the
roots of a page behind its first (ours)."""
MAX_VALUE = 4096
"""The characters of an attribute that are read. A link with a longer URL is skipped (ours)."""
MAX_VALUES = 4 * MAX_VALUE
"""The characters of all contents and URLs of a page that are read (ours)."""
_MAX_TAG = 4 * MAX_VALUE
"""The bytes of the last tag of a page that are read (ours)."""

REL_VALUES = frozenset(["nofollow", "sponsored", "ugc"])
"""The ``rel`` values for search engines. Google's page "Qualify outbound links" defines them."""

NO_VALUES: frozenset[str] = frozenset()

MAX_LINKS = 2000
"""How many links of a page are parsed, those with `REL_VALUES` first. Each 100 characters of an
`href` count as one more link. A page could otherwise stop the crawl for seconds (ours)."""

_NOT_ASCII = ("utf-16", "utf-32", "iso2022")
"""Prefixes of encodings in which the bytes of markup are not those of ASCII."""

_UNREADABLE = frozenset(["idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"])
"""Codecs that Python takes for text encodings, but that are not encodings of pages."""


def markup(response: HtmlResponse) -> bytes:
    """Return a page in an encoding that is a superset of ASCII. For most pages, it is the body."""
    body: bytes = response.body
    if 0 not in body and 0x1B not in body:  # numbers: CPython finds them sooner than bytes
        return body
    if not (resolve_encoding(response.encoding) or "").startswith(_NOT_ASCII):
        return body
    return response.text.encode("utf-8", "replace")


_BODY_TAG = re.compile(rb"<body(?=[\s/>])", re.IGNORECASE)
_ANY_TAG = re.compile(rb"<(?:meta|link)(?=[\s/>])", re.IGNORECASE)
_END_TYPE = "end-of-head"
_HEAD_END = f"<link rel={_END_TYPE}>".encode()
"""Marks the end of the head in the text that is parsed."""


def elements(html: bytes, names: Collection[str], rel: str) -> Iterator[tuple[str, str, str, int]]:
    """Yield the meta elements with one of some names, and the links with a link type.

    Each has its tag, its name or link types in lower case, its content or URL, and its line. `html`
    is a page in an encoding that is a superset of ASCII. `names` and `rel` are in lower case. Only
    links up to the first body tag count: `rel` is a link type that is not allowed in the body (HTML
    §4.6.7). An element in a ``template`` is ignored.
    """
    html = _searched(html[:MAX_PAGE], (rel, *names))
    if not html:
        return
    # Unlike those of Selector, its elements have no class that lxml looks up in Python.
    root = create_root_node(html.decode("utf-8", "replace"), HTMLParser)
    skipped = html[: len(html) - len(html.lstrip())].count(b"\n")  # it parses no space before
    in_head = True
    left = MAX_VALUES
    for element in islice(iter_elements(root, "meta", "link"), MAX_ELEMENTS):
        is_meta = element.tag == "meta"
        key = element.get("name" if is_meta else "rel", "")[:MAX_VALUE].strip().lower()
        value = element.get("content" if is_meta else "href", "")
        in_head = in_head and key != _END_TYPE
        is_link = in_head and rel in key.split() and len(value) <= MAX_VALUE
        is_wanted = key in names if is_meta else is_link
        if is_wanted and next(element.iterancestors("template"), None) is None:
            value = value[:MAX_VALUE]
            left -= len(value)
            if left < 0:
                return
            yield element.tag, key, value, element.sourceline + skipped


def _searched(html: bytes, words: Iterable[str]) -> bytes:
    """Return the part of a page to parse, up to its last meta element; b"" without a word there."""
    first = _ANY_TAG.search(html)
    if first is None:  # the usual case of what is not HTML
        return b""
    body = _BODY_TAG.search(html)
    head_end = body.start() if body else len(html)
    lower = html.lower()
    last = lower.rfind(b"<meta", head_end)
    start, end = first.start(), head_end if last < 0 else last + _MAX_TAG
    if all(lower.find(word.encode(), start, end) < 0 for word in words):
        return b""
    return html[:head_end] + _HEAD_END + html[head_end:end] if head_end < end else html[:end]


def roots(root: Any) -> Iterator[Any]:
    """Yield the root of a page, and those that libxml2 makes of what is behind ``</html>``.

    A browser adds it to the body (HTML §13.2.6, "after after body").
    """
    yield root
    yield from islice(root.itersiblings("html"), MAX_ELEMENTS)


def iter_elements(root: Any, *tags: str) -> Iterator[Any]:
    """Return the elements of a page with some tags, in the order of the page."""
    return (element for each in roots(root) for element in each.iter(*tags))


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


class Links:
    """The links of one page. The page is parsed only if it contains one of `REL_VALUES`."""

    def __init__(self, response: Response) -> None:
        self._page: HtmlResponse | None = None
        if isinstance(response, HtmlResponse):
            text = markup(response).lower()
            # CPython finds the last place of a short text faster than the first one.
            if any(text.rfind(value.encode()) >= 0 for value in REL_VALUES):
                self._page = response
        self._left = 100 * MAX_LINKS

    def rel(self, url: str) -> frozenset[str]:
        """Return those of `REL_VALUES` that all links to a URL have; none if no link has this URL.

        The URL is that of a request, which Scrapy, a link extractor or a spider made from a link.
        """
        if self._page is None:
            return NO_VALUES
        url = url.partition("#")[0]
        values = self._marked.get(url, NO_VALUES)
        return NO_VALUES if not values or url in self._unmarked else values

    @cached_property
    def _marked(self) -> dict[str, frozenset[str]]:
        """By URL, the values that all links with `REL_VALUES` to it have. Most pages have few."""
        found: dict[str, frozenset[str]] = {}
        for href, values in self._hrefs:
            for url in self._urls(href) if values else ():
                found[url] = values & found.get(url, values)
        return found

    @cached_property
    def _unmarked(self) -> frozenset[str]:
        hrefs = dict.fromkeys(href for href, values in self._hrefs if not values)
        return frozenset(url for href in hrefs for url in self._urls(href))

    @cached_property
    def _hrefs(self) -> list[tuple[str, frozenset[str]]]:
        assert self._page is not None
        selector, encoding, self._base = document(self._page)
        # The query of a request has the encoding of the page if a link extractor made the request,
        # else UTF-8.
        self._encodings = dict.fromkeys([encoding, "utf-8"])
        found: list[tuple[str, frozenset[str]]] = []
        known: dict[str | None, frozenset[str]] = {None: NO_VALUES}  # most links have the same rel
        for link in iter_elements(selector.root, "a", "area"):
            href, rel = link.get("href"), link.get("rel")
            if href is None:
                continue
            values = known.get(rel)
            if values is None:
                values = known[rel] = REL_VALUES.intersection(rel.lower().replace(",", " ").split())
            found.append((href.partition("#")[0].strip(HTML5_WHITESPACE), values))
        return found

    def _urls(self, href: str) -> set[str]:
        """Return the URLs that a request for a link may have: none for an unusable link."""
        self._left -= 100 + len(href)
        if self._left < 0:
            return set()
        try:
            url = urljoin(self._base, href)
            found = {safe_url_string(url, encoding) for encoding in self._encodings}
            if "&" in url or url.count("/") < 3:  # a link extractor may sort the query
                found.update(canonicalize_url(each) for each in tuple(found))
        except ValueError:  # not a URL, so no request has it
            return set()
        return found
