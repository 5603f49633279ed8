"""The ``rel`` of a page's links, by the URL that they lead to.

A link extractor tells of ``rel=nofollow`` with ``Link.nofollow``, which is lost when a request is
made of the link. So the links of the page are looked up, whoever made the request and however.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from scrapy.http import HtmlResponse
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import canonicalize_url

from .html import agrees_with_ascii, document, octets

if TYPE_CHECKING:
    from parsel import Selector
    from scrapy.http import Response

WORDS = frozenset(["nofollow", "sponsored", "ugc"])
"""What a ``rel`` says of a link to search engines (Google)."""

NO_WORDS: frozenset[str] = frozenset()

MAX_UNUSUAL_LINKS = 2000
"""How many links of a page are read with `canonicalize_url`, which is slow: those whose `href` is
not of the usual form. In a long one each 100 characters count for one more."""

# A letter that is written as a number (&#110; or &#x6e;): no letter has a name of its own.
_LETTER_REFERENCE = re.compile(
    rb"&#(?:0*(?:6[5-9]|[789][0-9]|1[01][0-9]|12[0-2])|[xX]0*[4-7][0-9A-Fa-f])(?![0-9A-Fa-f])"
)

# The usual form of an href, without its fragment: canonicalize_url changes nothing of it but what
# stands before the path and the order of the query. No part of a match can be given to another.
_ESCAPE = "%[89A-F][0-9A-F]"  # of an octet that is not ASCII
_PATH_CHARACTERS = r"[A-Za-z0-9_.~!$&'()*+,=@-]*"
_SEGMENT = rf"(?![./]){_PATH_CHARACTERS}(?:{_ESCAPE}{_PATH_CHARACTERS})*"
_QUERY_CHARACTERS = r"[A-Za-z0-9_.~+-]*"
_QUERY_PART = rf"{_QUERY_CHARACTERS}(?:{_ESCAPE}{_QUERY_CHARACTERS})*"
_PAIR = rf"(?!=){_QUERY_PART}={_QUERY_PART}"
_USUAL = re.compile(
    r"((?:https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?)?/)?"
    rf"({_SEGMENT}(?:/{_SEGMENT})*)(?:\?({_PAIR}(?:&{_PAIR})*))?"
)


class Links:
    """The links of one page. Nothing is parsed unless it holds one of `WORDS`."""

    def __init__(self, response: Response) -> None:
        self._page: HtmlResponse | None = None
        if isinstance(response, HtmlResponse) and _has_words(octets(response)):
            self._page = response

    def rel(self, url: str) -> frozenset[str]:
        """Those of `WORDS` that are on each of the links to a URL; none where there is no link.

        URLs are the same that Scrapy's duplicate filter takes for the same. Where there are more
        than `MAX_UNUSUAL_LINKS`, those that are not read may lead to any URL that no other link of
        the page leads to, so that URL has their words.
        """
        if self._page is None or not any(self._marked):
            return NO_WORDS
        try:
            same = canonicalize_url(url)
        except ValueError:
            return NO_WORDS
        words = self._marked.read.get(same, self._marked.unread)
        return NO_WORDS if not words or same in self._unmarked else words

    @cached_property
    def _marked(self) -> _Marked:
        """The links with one of the words: few, so that the others are seldom looked at."""
        read: dict[str, frozenset[str]] = {}
        unread: frozenset[str] = NO_WORDS
        for href, words in self._links[0]:
            urls = self._targets.urls(href)
            if urls is None:
                unread |= words
            else:
                for url in urls:
                    read[url] = words & read[url] if url in read else words
        return _Marked(read, unread)

    @cached_property
    def _unmarked(self) -> frozenset[str]:
        """Where the other links lead to."""
        return frozenset(url for href in self._links[1] for url in self._targets.urls(href) or ())

    @cached_property
    def _links(self) -> tuple[list[tuple[str, frozenset[str]]], list[str]]:
        """The links with one of the words, with their words, and the others: href, no fragment."""
        marked: list[tuple[str, frozenset[str]]] = []
        unmarked: list[str] = []
        known: dict[str | None, frozenset[str]] = {None: NO_WORDS}  # most links have the same rel
        for link in self._document[0].root.iter("a", "area"):
            href, rel = link.get("href"), link.get("rel")
            if href is None:
                continue
            words = known.get(rel)
            if words is None:
                words = known[rel] = WORDS.intersection(rel.lower().replace(",", " ").split())
            href = href.partition("#")[0].strip(HTML5_WHITESPACE)
            if words:
                marked.append((href, words))
            else:
                unmarked.append(href)
        return marked, unmarked

    @cached_property
    def _targets(self) -> _Targets:
        _, encoding, base = self._document
        return _Targets(base, encoding)

    @cached_property
    def _document(self) -> tuple[Selector, str, str]:
        assert self._page is not None
        return document(self._page)


class _Marked(NamedTuple):
    """Where the links with one of `WORDS` lead to, and the words of those that were not read."""

    read: dict[str, frozenset[str]]
    unread: frozenset[str]


class _Targets:
    """Where links lead to, in the form in which URLs are compared."""

    def __init__(self, base: str, encoding: str) -> None:
        self._base = base
        # A request by hand has its query in UTF-8, one of a link extractor in that of the page.
        self._encodings = dict.fromkeys([encoding, "utf-8"])
        self._ascii = agrees_with_ascii(encoding)
        self._budget = 100 * MAX_UNUSUAL_LINKS
        # What the usual form needs, whatever else there is. "_" is like any name in a path, and
        # the same in all forms of a URL.
        self._known = {href: tuple(self._read(href)) for href in ("_", "/_")}

    def urls(self, href: str) -> tuple[str, ...] | None:
        """Where an href leads to: nowhere, if it holds no URL; None if it is not read."""
        usual = _USUAL.fullmatch(href)
        if usual is None:
            return self._canonical(href)
        start, path, query = usual.groups("")
        if not (start or path) or (query and not self._ascii):
            return self._canonical(href)
        if "&" in query:
            if "%" in query:  # its parts are sorted as what the escapes stand for
                return self._canonical(href)
            query = "&".join(sorted(query.split("&"), key=_pair))
        starts = self._canonical(start + "_")
        tail = f"{path}?{query}" if query else path
        return starts and tuple([known[:-1] + tail for known in starts])

    def _canonical(self, href: str) -> tuple[str, ...] | None:
        known = self._known.get(href)
        if known is None:
            cost = 100 + len(href)
            if cost > self._budget:
                return None
            self._budget -= cost
            known = self._known[href] = tuple(self._read(href))
        return known

    def _read(self, href: str) -> dict[str, None]:
        try:
            url = urljoin(self._base, href)
            return dict.fromkeys(canonicalize_url(url, encoding=name) for name in self._encodings)
        except ValueError:  # no URL, so no request leads there
            return {}


def _has_words(html: bytes) -> bool:
    text = html.lower()
    return any(word.encode() in text for word in WORDS) or bool(_LETTER_REFERENCE.search(html))


def _pair(text: str) -> list[str]:
    return text.split("=")
