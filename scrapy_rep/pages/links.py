"""The ``rel`` values of the links of a page, by the URL of the link.

A link extractor returns ``Link.nofollow``, but a request that is made from the link does not keep
it. So the middleware looks up the URL of each request among the links of the page.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from scrapy.http import HtmlResponse
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import canonicalize_url

from .html import document, is_ascii_superset, markup

if TYPE_CHECKING:
    from parsel import Selector
    from scrapy.http import Response

REL_VALUES = frozenset(["nofollow", "sponsored", "ugc"])
"""The ``rel`` values for search engines. Google's page "Qualify outbound links" defines them."""

NO_VALUES: frozenset[str] = frozenset()

MAX_UNUSUAL_LINKS = 2000
"""How many links of a page are parsed with `canonicalize_url`: those whose `href` does not have the
common form. The function is slow, so a page could otherwise stop the crawl for seconds. Each 100
characters of an `href` count as one more link."""

# A numeric character reference that may be a letter (&#110; or &#x6e;). HTML has no names for them.
_LETTER_REFERENCE = re.compile(
    rb"&#(?:0|(?:6[5-9]|[789][0-9]|1[01][0-9]|12[0-2])(?![0-9])|[xX](?:0|[4-7][0-9A-Fa-f](?![0-9A-Fa-f])))"
)

# The common form of an href without its fragment. canonicalize_url changes only the part before the
# path and the order of the query. The expression is unambiguous, so that it does not backtrack.
_ESCAPE = "%[89A-F][0-9A-F]"  # an octet that is not ASCII
_PATH_CHARACTERS = r"[A-Za-z0-9_.~!$&'()*+,=@-]*"
_SEGMENT = rf"(?![./]){_PATH_CHARACTERS}(?:{_ESCAPE}{_PATH_CHARACTERS})*"
_QUERY_CHARACTERS = r"[A-Za-z0-9_.~+-]*"
_QUERY_PART = rf"{_QUERY_CHARACTERS}(?:{_ESCAPE}{_QUERY_CHARACTERS})*"
_PAIR = rf"(?!=){_QUERY_PART}={_QUERY_PART}"
_COMMON = re.compile(
    r"((?:https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?)?/)?"
    rf"({_SEGMENT}(?:/{_SEGMENT})*)(?:\?({_PAIR}(?:&{_PAIR})*))?"
)


class Links:
    """The links of one page. The page is parsed only if it contains one of `REL_VALUES`."""

    def __init__(self, response: Response) -> None:
        self._page: HtmlResponse | None = None
        if isinstance(response, HtmlResponse) and _has_rel_values(markup(response)):
            self._page = response

    def rel(self, url: str) -> frozenset[str]:
        """Return those of `REL_VALUES` that all links to a URL have; none if no link has this URL.

        URLs are compared as Scrapy's duplicate filter compares them. If a page has more than
        `MAX_UNUSUAL_LINKS`, the others are not parsed. They may have any URL that no parsed link
        has, so such a URL gets their values.
        """
        if self._page is None or not any(self._marked):
            return NO_VALUES
        try:
            canonical = canonicalize_url(url)
        except ValueError:
            return NO_VALUES
        values = self._marked.parsed.get(canonical, self._marked.unparsed)
        return NO_VALUES if not values or canonical in self._unmarked else values

    @cached_property
    def _marked(self) -> _Marked:
        """The values of links with `REL_VALUES`. There are few, so most pages need no more."""
        parsed: dict[str, frozenset[str]] = {}
        unparsed: frozenset[str] = NO_VALUES
        for href, values in self._links[0]:
            urls = self._urls.of(href)
            if urls is None:
                unparsed |= values
            else:
                for url in urls:
                    parsed[url] = values & parsed[url] if url in parsed else values
        return _Marked(parsed, unparsed)

    @cached_property
    def _unmarked(self) -> frozenset[str]:
        """The URLs of the links without `REL_VALUES`."""
        return frozenset(url for href in self._links[1] for url in self._urls.of(href) or ())

    @cached_property
    def _links(self) -> tuple[list[tuple[str, frozenset[str]]], list[str]]:
        """The hrefs of links with `REL_VALUES`, with the values, and the hrefs of the others."""
        marked: list[tuple[str, frozenset[str]]] = []
        unmarked: list[str] = []
        known: dict[str | None, frozenset[str]] = {None: NO_VALUES}  # most links have the same rel
        for link in self._document[0].root.iter("a", "area"):
            href, rel = link.get("href"), link.get("rel")
            if href is None:
                continue
            values = known.get(rel)
            if values is None:
                values = known[rel] = REL_VALUES.intersection(rel.lower().replace(",", " ").split())
            href = href.partition("#")[0].strip(HTML5_WHITESPACE)
            if values:
                marked.append((href, values))
            else:
                unmarked.append(href)
        return marked, unmarked

    @cached_property
    def _urls(self) -> _LinkUrls:
        _, encoding, base = self._document
        return _LinkUrls(base, encoding)

    @cached_property
    def _document(self) -> tuple[Selector, str, str]:
        assert self._page is not None
        return document(self._page)


class _Marked(NamedTuple):
    """The values of the links with `REL_VALUES`."""

    parsed: dict[str, frozenset[str]]
    """By URL, the values that all links to it have."""
    unparsed: frozenset[str]
    """The values of all links whose href was not parsed."""


class _LinkUrls:
    """Parses the hrefs of a page into URLs, in the form in which URLs are compared."""

    def __init__(self, base: str, encoding: str) -> None:
        self._base = base
        # The query of a request has the encoding of the page if a link extractor made the request,
        # else UTF-8.
        self._encodings = dict.fromkeys([encoding, "utf-8"])
        self._ascii = is_ascii_superset(encoding)
        self._budget = 100 * MAX_UNUSUAL_LINKS
        # The common form needs these two, even when the budget is spent. "_" stands for any path:
        # canonicalize_url does not change it.
        self._known = {href: tuple(self._parse(href)) for href in ("_", "/_")}

    def of(self, href: str) -> tuple[str, ...] | None:
        """Return the URLs of an href: empty if it is invalid, None if it is not parsed."""
        common = _COMMON.fullmatch(href)
        if common is None:
            return self._canonical(href)
        start, path, query = common.groups("")
        if not (start or path) or (query and not self._ascii):
            return self._canonical(href)
        if "&" in query:
            if "%" in query:  # canonicalize_url sorts by the decoded values
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
            known = self._known[href] = tuple(self._parse(href))
        return known

    def _parse(self, href: str) -> dict[str, None]:
        try:
            url = urljoin(self._base, href)
            return dict.fromkeys(canonicalize_url(url, encoding=name) for name in self._encodings)
        except ValueError:  # not a URL, so no request has it
            return {}


def _has_rel_values(html: bytes) -> bool:
    if _LETTER_REFERENCE.search(html):
        return True
    text = html.lower()
    return any(value.encode() in text for value in REL_VALUES)


def _pair(text: str) -> list[str]:
    return text.split("=")
