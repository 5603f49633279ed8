"""The spider middleware: the directives of pages, such as ``noindex`` and ``nofollow``.

It annotates each response before the spider gets it. If the settings say so, it then drops items of
pages that say ``noindex``, requests from pages that say ``nofollow``, and disallowed requests.

A disallowed request that is dropped later costs Scrapy much more (REP_FILTER_LINKS): it passes the
duplicate filter, the scheduler, the engine and the code that calls errbacks. Only requests whose
verdict is known are dropped here. All others pass, and the downloader middleware checks them when
they are due. So does a request with an errback, which gets the exception of the downloader
middleware: the setting never hides a drop from a spider that handles it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.http import HtmlResponse
from scrapy.spiders import CrawlSpider
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
    Statement,
    header_lines,
    merge,
    meta_names,
    statements,
    statements_of,
)
from .html import elements, markup
from .links import Links

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from ..protocol.tdmrep import TdmRule
    from ..reports.event_log import CrawlLog
    from ..settings import Settings

logger = get_logger(__name__)

_SIGNAL, _USAGE = "Content-Signal", "Content-Usage"
# In the form of the names that Scrapy's Headers use.
_ALL_HEADERS = frozenset(name.title().encode() for name in (*HEADERS, _SIGNAL, _USAGE))


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
    return _directives(response, statements_in(response, tokens, tdm=tdm))


def statements_in(
    response: Response,
    tokens: tuple[str, ...],
    found: Iterable[Element] | None = None,
    tdm: TdmRule | None = None,
) -> list[Statement]:
    """Return the statements of a response that apply to a crawler, in the order found.

    ``found`` are the elements of its page, if they are known.
    """
    lines = [(name, line) for name in HEADERS for line in header_lines(response, name)]
    if found is None:
        found = elements(_html(response), meta_names(tokens), LICENSE)
    return [*statements(lines, found, tokens), *(() if tdm is None else statements_of(tdm))]


def _html(response: Response) -> bytes:
    return markup(response) if isinstance(response, HtmlResponse) else b""


class PageDirectivesMiddleware:
    """Annotates responses with their directives, and drops the items and requests they refuse.

    * ``response.meta["page_directives"]`` is the :class:`~scrapy_rep.PageDirectives`.
    * ``response.meta["robotstxt_usage"]`` maps uses to True (granted) or False (refused).
    * ``response.meta["robotstxt_usage_sources"]`` maps each refused use to the places of the
      refusals.
    * ``request.meta["robotstxt_link_rel"]`` is a sorted tuple of those of the ``rel`` values
      ``nofollow``, ``sponsored`` and ``ugc`` that the link of the request has.

    The settings REP_NOINDEX, REP_NOFOLLOW, REP_REL_NOFOLLOW, REP_INTENDED_USES and REP_FILTER_LINKS
    decide what is dropped.
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
            elif output is not None and (reason := self._refusal(response.url, page)):
                await self._drop(output, response, reason)
                continue
            yield output

    def _read(self, response: Response, request: Request) -> _Page:
        robots = tdm = None
        if self._robots is not None:
            robots, tdm = self._robots.usage_file(response), self._robots.tdm_rule(response)
        has_headers = not _ALL_HEADERS.isdisjoint(response.headers)
        has_more = has_headers or robots or tdm or response.status in STATUSES
        tokens = self._tokens(self._settings.user_agent(request.headers.get(b"User-Agent")))
        found = list(elements(_html(response), meta_names(tokens), LICENSE))
        if not has_more and not found:  # the usual case
            return _Page(NO_DIRECTIVES, {}, {})
        directives = _directives(response, statements_in(response, tokens, found, tdm))
        stated: list[tuple[str, usage.Signals]] = []
        if robots is not None:
            url = response.url
            stated += [
                ("Content-Signal in robots.txt", robots.content_signals(url, tokens)),
                ("Content-Usage in robots.txt", robots.content_usage(url, tokens)),
                *usage.policy_statements(robots.usage_policies(url)),
            ]
        if has_headers:
            signals = header_lines(response, _SIGNAL)
            *by_line, by_all = usage.of_response(signals, header_lines(response, _USAGE))
            stated += [(f"{_SIGNAL} header", statement) for statement in by_line]
            stated.append((f"{_USAGE} header", by_all))
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
        if self._robots is not None:
            self._events = self._robots.events
            return
        warn_about_unknown_settings(self._crawler)  # the other middleware would
        settings = self._settings
        names = ("REP_REPORT", "REP_TDMREP", "REP_FILTER_LINKS")
        values = (settings.report, settings.tdmrep, settings.filter_links)
        for name in (name for name, value in zip(names, values, strict=True) if value):
            logger.warning(
                "%(name)s has no effect, because scrapy_rep.RobotsTxtMiddleware is not enabled: "
                "ROBOTSTXT_OBEY is off, or DOWNLOADER_MIDDLEWARES does not have it.",
                {"name": name},
                extra={"spider": self._crawler.spider},
            )

    def _refusal(self, url: str, page: _Page) -> ItemNotIndexable | ItemUsageRefused | None:
        """Return why an item of a page is dropped, after recording it; None if it is not."""
        if self._settings.noindex == "drop" and not page.directives.indexable:
            name, text = "noindex", "says noindex"
            if not page.directives.noindex:
                date = page.directives.unavailable_after
                name, text = "unavailable_after", f"is unavailable since {date:%Y-%m-%d}"
            if self._events is not None:
                self._events.dropped_for_directive(url, name)
            return ItemNotIndexable(f"its page {text}")
        refused = usage.refused(self._settings.intended_uses, page.usage)
        if not refused:
            return None
        if self._events is not None:
            self._events.dropped_for_usage(url, [usage.use(name) for name in refused])
        reasons = (f"{name} ({', '.join(page.usage_sources[usage.use(name)])})" for name in refused)
        return ItemUsageRefused(f"its page refuses {', '.join(reasons)}")

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
        rel, meta = links.rel(request.url), request.meta
        if rel:
            meta[LINK_REL] = tuple(sorted(rel))
        else:
            meta.pop(LINK_REL, None)  # of the link of another page, whose meta was copied
        if meta.get(OBEY_NOFOLLOW, True):
            if self._settings.nofollow == "drop" and page.directives.nofollow:
                self._drop_request(request, response, "nofollow")
                return False
            if self._settings.rel_nofollow == "drop" and "nofollow" in rel:
                self._drop_request(request, response, "rel_nofollow")
                return False
        if not self._settings.filter_links or self._robots is None:
            return True
        has_errback = _has_errback(request, self._crawler.spider)
        return has_errback or not self._robots.filter_link(request)

    def _drop_request(self, request: Request, response: Response, reason: str) -> None:
        self._stats.inc_value(f"robotstxt/{reason}/dropped")
        if self._events is not None:
            self._events.dropped_for_directive(response.url, reason)
        logger.debug(
            "Dropped because of %(reason)s on %(response)s: %(request)s",
            {"reason": reason, "response": response, "request": request},
            extra={"spider": self._crawler.spider},
        )


def _directives(response: Response, stated: list[Statement]) -> PageDirectives:
    terms = terms_of(response)
    if not stated and terms is None:
        return NO_DIRECTIVES
    directives = replace(merge(stated), access_terms=terms)
    if directives.licenses:
        directives = directives.at(response.url)
    return directives.as_of(_date(response)) if directives.unavailable_after else directives


def _date(response: Response) -> datetime:
    """Return the date of a response; the current time if it has no valid Date header."""
    value = response.headers.get("Date")
    seconds = http_date(value.decode("latin-1")) if value else None
    date = None if seconds is None else utc(seconds)
    return date or datetime.now(timezone.utc)


def _has_errback(request: Request, spider: Spider | None) -> bool:
    """Whether code of the spider runs if a request is dropped."""
    errback = request.errback
    if errback is None:
        return False
    if not isinstance(spider, CrawlSpider) or errback.__module__ != CrawlSpider.__module__:
        return True
    # Scrapy's CrawlSpider sets an errback of its own, which calls that of the rule.
    try:
        return spider.rules[request.meta["rule"]].errback is not None
    except (LookupError, TypeError):  # the spider has changed its meta, or has other rules
        return True
