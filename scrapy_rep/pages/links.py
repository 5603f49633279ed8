"""The ``rel`` values of the links of a page, by the URL of the link.

A link extractor returns ``Link.nofollow``, but a request that is made from the link does not keep
it. So the middleware looks up the URL of each request among the links of the page.
"""

from __future__ import annotations

import re
from functools import cached_property
from urllib.parse import urljoin

from scrapy.http import HtmlResponse, Response
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import canonicalize_url, safe_url_string

from .html import document, markup

REL_VALUES = frozenset(["nofollow", "sponsored", "ugc"])
"""The ``rel`` values for search engines. Google's page "Qualify outbound links" defines them."""

NO_VALUES: frozenset[str] = frozenset()

MAX_LINKS = 2000
"""How many links of a page are parsed, those with `REL_VALUES` first. Each 100 characters of an
`href` count as one more link. Further links are ignored, because parsing is slow: a page could
otherwise stop the crawl for seconds (ours)."""

# A numeric character reference that may be a letter (&#110; or &#x6e;). HTML has no names for them.
_LETTER_REFERENCE = re.compile(
    rb"&#(?:0|(?:6[5-9]|[789][0-9]|1[01][0-9]|12[0-2])(?![0-9])|[xX](?:0|[4-7][0-9A-Fa-f](?![0-9A-Fa-f])))"
)


class Links:
    """The links of one page. The page is parsed only if it contains one of `REL_VALUES`."""

    def __init__(self, response: Response) -> None:
        self._page: HtmlResponse | None = None
        if isinstance(response, HtmlResponse) and _has_rel_values(markup(response)):
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
        """By URL, the values that all links with `REL_VALUES` to it have.

        There are few, so most pages need no more than these.
        """
        found: dict[str, frozenset[str]] = {}
        for href, values in self._hrefs:
            for url in self._urls(href) if values else ():
                found[url] = values & found.get(url, values)
        return found

    @cached_property
    def _unmarked(self) -> frozenset[str]:
        """The URLs of the links without `REL_VALUES`."""
        hrefs = dict.fromkeys(href for href, values in self._hrefs if not values)
        return frozenset(url for href in hrefs for url in self._urls(href))

    @cached_property
    def _hrefs(self) -> list[tuple[str, frozenset[str]]]:
        """The hrefs of all links, with their values."""
        assert self._page is not None
        selector, encoding, self._base = document(self._page)
        # The query of a request has the encoding of the page if a link extractor made the request,
        # else UTF-8.
        self._encodings = dict.fromkeys([encoding, "utf-8"])
        found: list[tuple[str, frozenset[str]]] = []
        known: dict[str | None, frozenset[str]] = {None: NO_VALUES}  # most links have the same rel
        for link in selector.root.iter("a", "area"):
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


def _has_rel_values(html: bytes) -> bool:
    if _LETTER_REFERENCE.search(html):
        return True
    text = html.lower()
    return any(value.encode() in text for value in REL_VALUES)
