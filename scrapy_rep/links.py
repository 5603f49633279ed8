"""The ``rel`` of a page's links, by the URL that they lead to.

A link extractor tells of ``rel=nofollow`` with ``Link.nofollow``, which is lost when a request is
made of the link. So the links of the page are looked up, whoever made the request and however.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

if TYPE_CHECKING:
    from scrapy.http import Response

WORDS = frozenset(["nofollow", "sponsored", "ugc"])
"""What a ``rel`` says of a link to search engines (Google)."""

NO_WORDS: frozenset[str] = frozenset()


class Links:
    """The links of one page. Nothing is parsed unless it holds one of `WORDS`."""

    def __init__(self, response: Response) -> None:
        self._page: HtmlResponse | None = None
        if isinstance(response, HtmlResponse):
            text = response.body.lower()
            if any(word.encode() in text for word in WORDS):
                self._page = response

    def rel(self, url: str) -> frozenset[str]:
        """Those of `WORDS` that are on each of the links to a URL; none where there is no link.

        URLs are the same that Scrapy's duplicate filter takes for the same.
        """
        if self._page is None or not self._marked:
            return NO_WORDS
        same = canonicalize_url(url)
        return self._rels.get(same, NO_WORDS) if same in self._marked else NO_WORDS

    @cached_property
    def _marked(self) -> frozenset[str]:
        """Where the links with one of the words lead to: few, so that all are seldom looked at."""
        return frozenset(self._url(href) for href, words in self._links if words)

    @cached_property
    def _rels(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for href, words in self._links:
            url = self._url(href)
            found[url] = words & found.get(url, words)
        return found

    @cached_property
    def _links(self) -> list[tuple[str, frozenset[str]]]:
        assert self._page is not None
        found = []
        for link in self._page.selector.root.iter("a", "area"):
            href = link.get("href")
            if href is not None:
                rel = link.get("rel", "").lower().replace(",", " ").split()
                found.append((href, WORDS.intersection(rel)))
        return found

    def _url(self, href: str) -> str:
        assert self._page is not None
        try:
            url = self._page.urljoin(strip_html5_whitespace(href))
            return canonicalize_url(url, encoding=self._page.encoding)
        except ValueError:
            return ""  # no URL, so no request leads there
