"""The spider middleware: the directives of pages, such as ``noindex`` and ``nofollow``.

It annotates each response before the spider gets it. If the settings say so, it then drops items of
pages that say ``noindex``, and requests from pages that say ``nofollow``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.http import HtmlResponse
from scrapy.utils.log import logformatter_adapter

from ..crawl.middleware import RobotsTxtMiddleware
from ..exceptions import ItemNotIndexable, ItemUsageRefused
from ..logs import get_logger
from ..meta_keys import LINK_REL, OBEY_NOFOLLOW, PAGE_DIRECTIVES, USAGE, USAGE_SOURCES
from ..protocol import usage
from ..protocol.agents import product_tokens
from ..protocol.freshness import http_date, utc
from ..settings import read_settings
from ..startup import abort_on_setting_error, warn_about_unknown_settings
from .access_terms import STATUSES, terms_of
from .directives import (
    HEADERS,
    LICENSE,
    NO_DIRECTIVES,
    Element,
    PageDirectives,
    merge,
    meta_names,
    statements,
    statements_of,
)
from .html import elements, markup
from .links import Links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from ..protocol.tdmrep import TdmRule
    from ..reports.event_log import CrawlLog
    from ..settings import Settings

logger = get_logger(__name__)

# By the form of the names that Scrapy's Headers use.
_HEADERS = {name.title().encode(): name for name in HEADERS}
_SIGNAL, _USAGE = b"Content-Signal", b"Content-Usage"
_USAGE_HEADERS = frozenset([_SIGNAL, _USAGE])
_ALL_HEADERS = _USAGE_HEADERS | _HEADERS.keys()


class _Page(NamedTuple):
    """The annotations of a response."""

    directives: PageDirectives
    usage: dict[str, bool]
    usage_sources: dict[str, tuple[str, ...]]


def page_directives(response: Response, user_agent: str | Sequence[str]) -> PageDirectives:
    """Return the directives of a response for a crawler, from its headers and its HTML.

    ``user_agent`` is a product token, a User-Agent header, or a sequence of tokens. The response
    may be of any type. Its content never raises: unreadable directives are skipped.

    >>> from scrapy.http import Response
    >>> response = Response("https://example.com/", headers={"X-Robots-Tag": "noindex"})
    >>> page_directives(response, "mybot").noindex
    True
    """
    return directives_of(response, product_tokens(user_agent))


def directives_of(
    response: Response, tokens: tuple[str, ...], tdm: TdmRule | None = None
) -> PageDirectives:
    """Return the directives of a response for a crawler with these product tokens.

    ``tdm`` is the rule of the TDM file for the page, if there is one.
    """
    return _directives(response, tokens, page_elements(response, tokens), tdm)


def page_elements(response: Response, tokens: tuple[str, ...]) -> list[Element]:
    """Return the elements of a response that state something to a crawler with these tokens."""
    if not isinstance(response, HtmlResponse):
        return []
    return list(elements(markup(response), meta_names(tokens), LICENSE))


class PageDirectivesMiddleware:
    """Annotates responses with their directives, and drops the items and requests they refuse.

    * ``response.meta["page_directives"]`` is the :class:`~scrapy_rep.PageDirectives`.
    * ``response.meta["usage"]`` maps uses to True (granted) or False (refused).
    * ``response.meta["usage_sources"]`` maps each refused use to the places of the refusals.
    * ``request.meta["link_rel"]`` is a sorted tuple of those of the ``rel`` values ``nofollow``,
      ``sponsored`` and ``ugc`` that the link of the request has.

    The settings REP_NOINDEX, REP_NOFOLLOW, REP_REL_NOFOLLOW and REP_REQUIRE_USAGE decide what is
    dropped.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings: Settings = read_settings(crawler)
        self._tokens = lru_cache(maxsize=256)(product_tokens)
        self._pages: WeakKeyDictionary[Response, _Page] = WeakKeyDictionary()
        self._robots: RobotsTxtMiddleware | None = None
        self._events: CrawlLog | None = None
        crawler.signals.connect(self._on_spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.

        Raises :class:`~scrapy_rep.exceptions.SettingError` for an unusable setting.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        """Annotate a response before the spider gets it."""
        assert response.request is not None
        page = self._pages[response] = self._read(response, response.request)
        meta = response.meta
        meta[PAGE_DIRECTIVES], meta[USAGE], meta[USAGE_SOURCES] = page
        if not page.directives.indexable:
            self._stats.inc_value("robotstxt/noindex")
        if page.directives.nofollow:
            self._stats.inc_value("robotstxt/nofollow")
        if self._events is not None:
            self._events.page(response.url, page.directives, page.usage)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the items and requests that the spider made from a response and may keep."""
        if response not in self._pages:  # another middleware sent it to its errback
            self.process_spider_input(response)
        page = self._pages[response]
        links: Links | None = None
        async for output in result:
            if isinstance(output, Request):
                links = links or Links(response)
                if not self._process_request(output, response, page, links):
                    continue
            elif output is not None and (reason := self._refusal(page)):
                self._record_drop(response.url, page, reason)
                await self._drop(output, response, reason)
                continue
            yield output

    def _read(self, response: Response, request: Request) -> _Page:
        robots = tdm = None
        if self._robots is not None:
            robots, tdm = self._robots.usage_file(response), self._robots.tdm_rule(response)
        tokens = self._tokens(self._settings.user_agent(request.headers.get(b"User-Agent")))
        found = page_elements(response, tokens)
        if (
            robots is None
            and tdm is None
            and not found
            and _ALL_HEADERS.isdisjoint(response.headers)
            and response.status not in STATUSES
        ):
            return _Page(NO_DIRECTIVES, {}, {})
        directives = _directives(response, tokens, found, tdm)
        stated: list[tuple[str, usage.Signals]] = []
        if robots is not None:
            url = response.url
            stated += [
                ("Content-Signal in robots.txt", robots.content_signals(url, tokens)),
                ("Content-Usage in robots.txt", robots.content_usage(url, tokens)),
                *usage.training_refusals(robots, url, self._settings.training_tokens),
            ]
        if not _USAGE_HEADERS.isdisjoint(response.headers):
            signals = usage.of_response(_lines(response, _SIGNAL), ())
            usages = usage.of_response((), _lines(response, _USAGE))
            stated += [("Content-Signal header", statement) for statement in signals]
            stated += [("Content-Usage header", statement) for statement in usages]
        reserved = directives.tdm_reservation
        if not stated and reserved is None:
            return _Page(directives, {}, {})
        return _Page(
            directives,
            usage.evaluated((statement for _, statement in stated), reserved),
            usage.refusal_sources(stated, reserved),
        )

    def _on_spider_opened(self) -> None:
        self._robots = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if self._robots is None:  # which warns about them otherwise
            warn_about_unknown_settings(self._crawler)
            if self._settings.report:
                logger.warning(
                    "REP_REPORT writes no report, because scrapy_rep.RobotsTxtMiddleware is not "
                    "enabled: ROBOTSTXT_OBEY is off, or DOWNLOADER_MIDDLEWARES does not have it.",
                    extra={"spider": self._crawler.spider},
                )
        else:
            self._events = self._robots.events
        if self._settings.tdmrep and self._robots is None:
            logger.warning(
                "REP_TDMREP has no effect, because ROBOTSTXT_OBEY is off.",
                extra={"spider": self._crawler.spider},
            )

    def _refusal(self, page: _Page) -> ItemNotIndexable | ItemUsageRefused | None:
        """Return why the items of a page are dropped; None if they are not."""
        if self._settings.noindex == "drop" and not page.directives.indexable:
            if page.directives.noindex:
                return ItemNotIndexable("its page says noindex")
            return ItemNotIndexable(
                f"its page is unavailable since {page.directives.unavailable_after:%Y-%m-%d}"
            )
        refused = usage.refused(self._settings.require_usage, page.usage)
        if not refused:
            return None
        reasons = (f"{name} ({', '.join(page.usage_sources[usage.use(name)])})" for name in refused)
        return ItemUsageRefused(f"its page refuses {', '.join(reasons)}")

    def _record_drop(
        self, url: str, page: _Page, reason: ItemNotIndexable | ItemUsageRefused
    ) -> None:
        if self._events is None:
            return
        if isinstance(reason, ItemUsageRefused):
            refused = usage.refused(self._settings.require_usage, page.usage)
            self._events.dropped_for_usage(url, [usage.use(name) for name in refused])
        else:
            name = "noindex" if page.directives.noindex else "unavailable_after"
            self._events.dropped_for_directive(url, name)

    async def _drop(
        self, item: Any, response: Response, reason: ItemNotIndexable | ItemUsageRefused
    ) -> None:
        """Drop an item with the log, signal and stats of an item that a pipeline drops."""
        self._stats.inc_value(reason.stat)
        spider = self._crawler.spider
        assert self._crawler.logformatter is not None
        assert spider is not None
        entry = self._crawler.logformatter.dropped(item, reason, response, spider)
        if entry is not None:  # a formatter returns None to log nothing
            logger.log(*logformatter_adapter(entry), extra={"spider": spider})
        await self._crawler.signals.send_catch_log_async(
            signal=signals.item_dropped,
            item=item,
            response=response,
            spider=spider,
            exception=reason,
        )

    def _process_request(
        self, request: Request, response: Response, page: _Page, links: Links
    ) -> bool:
        """Annotate a request with the ``rel`` of its link. Returns whether the request is kept."""
        rel = links.rel(request.url)
        if rel:
            request.meta[LINK_REL] = tuple(sorted(rel))
        else:
            request.meta.pop(LINK_REL, None)  # of the link of another page, whose meta was copied
        if not request.meta.get(OBEY_NOFOLLOW, True):
            return True
        if self._settings.nofollow == "drop" and page.directives.nofollow:
            self._drop_request(request, response, "nofollow")
            return False
        if self._settings.rel_nofollow == "drop" and "nofollow" in rel:
            self._drop_request(request, response, "rel_nofollow")
            return False
        return True

    def _drop_request(self, request: Request, response: Response, reason: str) -> None:
        self._stats.inc_value(f"robotstxt/{reason}/dropped")
        if self._events is not None:
            self._events.dropped_for_directive(response.url, reason)
        logger.debug(
            "Dropped because of %(reason)s on %(response)s: %(request)s",
            {"reason": reason, "response": response, "request": request},
            extra={"spider": self._crawler.spider},
        )


def _directives(
    response: Response, tokens: tuple[str, ...], found: list[Element], tdm: TdmRule | None
) -> PageDirectives:
    lines: list[tuple[str, str]] = []
    if not _HEADERS.keys().isdisjoint(response.headers):
        lines = [(name, line) for key, name in _HEADERS.items() for line in _lines(response, key)]
    stated = statements(lines, found, tokens)
    if tdm is not None:
        stated += statements_of(tdm)
    terms = terms_of(response) if response.status in STATUSES else None
    if not stated and terms is None:
        return NO_DIRECTIVES
    directives = merge(stated)
    if terms is not None:
        directives = replace(directives, access_terms=terms)
    if directives.licenses:
        directives = directives.at(response.url)
    return directives.as_of(_date(response)) if directives.unavailable_after else directives


def _lines(response: Response, header: bytes) -> list[str]:
    return [line.decode("latin-1") for line in response.headers.getlist(header)]


def _date(response: Response) -> datetime:
    """Return the date of a response; the current time if it has no valid Date header."""
    value = response.headers.get("Date")
    seconds = http_date(value.decode("latin-1")) if value else None
    date = None if seconds is None else utc(seconds)
    return date or datetime.now(timezone.utc)
