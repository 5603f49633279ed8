"""The middlewares for what pages say: the directives of pages, and answers that ask for a pause.

The spider middleware annotates each response with directives such as ``noindex`` and ``nofollow``
before the spider gets it. If the settings say so, it then drops items of pages that say
``noindex``, and requests from pages that say ``nofollow``. The downloader middleware sees each
response before all others.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.log import logformatter_adapter

from .. import settings
from ..exceptions import ItemNotIndexable, ItemUsageRefused
from ..fetch.last_answer import FLAG
from ..frontier.frontier import Frontier
from ..frontier.queued import AnswerObserver, OutputObserver, find_frontier
from ..logs import plural, spider_logger
from ..policies.policies import Policies
from ..protocol import usage
from ..protocol.agents import product_tokens
from ..protocol.printable import printable
from ..protocol.refusals import refusing_line
from ..recorder import Events
from ..startup import abort_on_setting_error
from .directives import (
    NO_DIRECTIVES,
    PageDirectives,
    Statement,
    UnreadDirectives,
    directives_of,
    merge,
    stated_in,
    terms_of,
    uses_in,
)
from .html import Links

if TYPE_CHECKING:
    from typing_extensions import Self

_USAGE_HEADERS = frozenset([b"Content-Signal", b"Content-Usage"])

NOT_RETRIED = "scrapy_rep"
"""The value of ``dont_retry`` that the middleware sets. It differs from the value of a user."""

_SAID = (
    ("noindex", "robotstxt/noindex", "say", "noindex or a past unavailable_after", "item"),
    ("intended_uses", "robotstxt/usage", "refuse", "a use", "item"),
    ("nofollow", "robotstxt/nofollow", "say", "nofollow", "request"),
)
"""A setting, the stat of the pages that it is about, what they say, and what is dropped."""

ROOM_INTERVAL = 0.1
"""Seconds between two looks at a queue that is full."""

_Page: TypeAlias = tuple[PageDirectives, dict[str, bool], Sequence[Statement]]
"""The directives of a response, the uses that it grants or refuses, and what states the former."""

_Refusal: TypeAlias = ItemNotIndexable | ItemUsageRefused


def page_directives(response: Response, user_agent: str | Sequence[str]) -> PageDirectives:
    """Return the directives of a response for a crawler, from its headers and its HTML.

    ``user_agent`` is a product token, a User-Agent header, or a sequence of tokens. The response
    may be of any type. Its content never raises: unreadable directives are skipped.

    >>> from scrapy.http import Response
    >>> response = Response("https://example.com/", headers={"X-Robots-Tag": "noindex"})
    >>> page_directives(response, "mybot").noindex
    True
    """
    return directives_of(response, stated_in(response, product_tokens(user_agent)))


class PageDirectivesMiddleware(OutputObserver):
    """Annotates responses with their directives, and drops the items and requests they refuse.

    * ``response.meta["page_directives"]`` is the :class:`~scrapy_rep.PageDirectives`.
    * ``response.meta["robotstxt_usage"]`` maps uses to True (granted) or False (refused).
    * ``request.meta["robotstxt_link_rel"]`` is a sorted tuple of those of the ``rel`` values
      ``nofollow``, ``sponsored`` and ``ugc`` that the link of the request has.

    The settings REP_NOINDEX, REP_NOFOLLOW, REP_REL_NOFOLLOW and REP_INTENDED_USES decide what is
    dropped.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._logger = spider_logger(__name__, crawler.spider)
        self._stats = crawler.stats
        self._settings = settings.read_settings(crawler)
        self._pages: WeakKeyDictionary[Response, _Page] = WeakKeyDictionary()
        self._sources: WeakKeyDictionary[Response, str] = WeakKeyDictionary()
        """Why the items of a page are dropped. It may take long to find the line."""
        self._frontier: Frontier | None = None
        self._policies: Policies | None = None
        self._events = Events()
        crawler.signals.connect(self._on_spider_opened, signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.

        Raises :class:`~scrapy_rep.exceptions.SettingError` for an unusable setting.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    def process_spider_input(self, response: Response) -> None:
        """Annotate a response before the spider gets it."""
        request = response.request
        assert request is not None
        directives, uses, _ = self._pages[response] = self._read(response, request)
        request.meta.update({settings.PAGE_DIRECTIVES: directives, settings.USAGE: uses})
        if directives is not NO_DIRECTIVES:
            terms = directives.access_terms
            for stat, applies in (
                ("robotstxt/noindex", not directives.indexable),
                ("robotstxt/nofollow", directives.nofollow),
                ("robotstxt/payment_required", terms and terms.payment_required),
                ("robotstxt/license_required", terms and terms.license_required),
            ):
                if applies:
                    self._stats.inc_value(stat)
        if False in uses.values():
            self._stats.inc_value("robotstxt/usage")
        self._events.page(response.url, directives, uses)

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the items and requests that the spider made from a response and may keep."""
        if response not in self._pages:  # another middleware sent it to its errback
            self.process_spider_input(response)
        directives, uses, _ = page = self._pages[response]
        may_refuse = directives is not NO_DIRECTIVES or uses
        links: Links | None = None
        async for output in result:
            if isinstance(output, Request):
                links = links or Links(response)
                if not self._process_request(output, response, directives, links):
                    continue
                await self._wait_for_room()
            elif may_refuse and output is not None and (reason := self._refusal(response, page)):
                await self._drop(output, response, reason)
                continue
            yield output

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Yield what ``start()`` yields, as soon as the queue has room for it."""
        async for output in start:
            await self._wait_for_room()
            yield output

    async def _wait_for_room(self) -> None:
        frontier = self._frontier
        while frontier is not None and frontier.is_full:
            await frontier.clock.sleep(ROOM_INTERVAL)

    def _read(self, response: Response, request: Request) -> _Page:
        robots = tdm = None
        if self._policies is not None:
            robots, tdm = self._policies.stated_usage(response)
        tokens = self._tokens(request)
        statements = list(stated_in(response, tokens, tdm))
        directives = directives_of(response, statements)
        stated: list[usage.Signals] = []
        if robots is not None:
            url = response.url
            policies = usage.policy_statements(robots.usage_policies(url))
            stated = [statement for _, statement in policies]
            stated += [robots.content_signals(url, tokens), robots.content_usage(url, tokens)]
        if not _USAGE_HEADERS.isdisjoint(response.headers):
            stated += uses_in(response).values()
        if not stated and directives is NO_DIRECTIVES:  # the usual case
            return NO_DIRECTIVES, {}, ()
        return directives, usage.evaluated(stated, directives.tdm_reservation), statements

    def _tokens(self, request: Request) -> tuple[str, ...]:
        agents = request.headers.getlist(b"User-Agent")  # not get(), which takes thrice as long
        return product_tokens(self._settings.user_agent(agents[-1] if agents else None))

    def _on_spider_closed(self) -> None:
        """Log, in one line, what pages said, and what was dropped because of that."""
        value, said = self._stats.get_value, []
        for setting, stat, verb, what, kind in _SAID:
            pages = value(stat, 0)
            effect = f"{'its' if pages == 1 else 'their'} {kind}s were kept"
            if getattr(self._settings, setting) not in ("annotate", ()):
                effect = f"dropped {plural(value(f'{stat}/dropped', 0), kind)}"
            says = f"{plural(pages, 'page')} {verb}{'s' * (pages == 1)}"
            if pages:
                said.append(f"{says} {what}; {effect}: REP_{setting.upper()}")
        if said:
            self._logger.info(
                "What pages said: %(said)s. Each page of which something was dropped has a line at "
                "level DEBUG. A report (REP_REPORT) has examples of all.",
                {"said": ". ".join(said)},
            )

    def _on_spider_opened(self) -> None:
        self._frontier = frontier = find_frontier(self._crawler)
        if frontier is not None:
            self._policies, self._events = frontier.policies, frontier.recorder.events

    def _refusal(self, response: Response, page: _Page) -> _Refusal | None:
        """Return why an item of a page is dropped, after recording it; None if it is not."""
        (directives, uses, _), is_usage = page, False
        if self._settings.noindex == "drop" and not directives.indexable:
            names, said = ["noindex" if directives.noindex else "unavailable_after"], "says"
        elif names := usage.refused(self._settings.intended_uses, uses):
            said, is_usage = "refuses", True
        else:
            return None
        self._events.page_dropped(response.url, list(map(usage.use_of, names)), is_usage=is_usage)
        source = self._sources.get(response)
        if source is None:
            source = self._sources[response] = printable(self._source(response, names[0]))
        kind = ItemUsageRefused if is_usage else ItemNotIndexable
        return kind(f"{response.url} {said} {', '.join(names)} ({source})", log_level="DEBUG")

    def _source(self, response: Response, name: str) -> str:
        """Return the statement because of which the items of a page are dropped, with its line."""
        directives, _, statements = self._pages[response]
        field = "tdm_reservation" if name == usage.TDM else name
        value = getattr(directives, field, None)  # None for a use that no directive refuses
        for statement in statements if value else ():
            if getattr(merge([statement]), field) == value:
                return str(statement)
        for header, stated in uses_in(response).items():
            if usage.refused([name], usage.evaluated([stated])):
                return header
        assert self._policies is not None
        assert response.request is not None
        robots, _ = self._policies.stated_usage(response)
        if robots is None:  # it is no longer in memory
            return "robots.txt"
        group = robots.verdict("/", self._tokens(response.request)).agent
        text = b"\n" + (robots.text or b"")
        line = refusing_line(robots, text, response.url, group, name)
        return f"robots.txt, {line}" if line else "robots.txt"

    async def _drop(self, item: Any, response: Response, reason: _Refusal) -> None:
        """Drop an item with the log, signal and stats of an item that a pipeline drops."""
        self._stats.inc_value(reason.stat)
        spider = self._crawler.spider
        assert self._crawler.logformatter is not None
        assert spider is not None
        entry = self._crawler.logformatter.dropped(item, reason, response, spider)
        if entry is not None:  # a formatter returns None to log nothing
            self._logger.log(*logformatter_adapter(entry))
        await self._crawler.signals.send_catch_log_async(
            signals.item_dropped, item=item, response=response, spider=spider, exception=reason
        )

    def _process_request(
        self, request: Request, response: Response, directives: PageDirectives, links: Links
    ) -> bool:
        """Annotate a request with the ``rel`` of its link. Returns whether the request is kept."""
        rel, meta = links.rel(request.url), request.meta
        # The meta may be a copy of that of another page.
        if meta.get(settings.DONT_RETRY) == NOT_RETRIED:
            del meta[settings.DONT_RETRY]
        if isinstance(meta.get(settings.PAGE_DIRECTIVES), UnreadDirectives):
            del meta[settings.PAGE_DIRECTIVES]  # they keep their page in memory
        meta.pop(settings.LINK_REL, None)
        if rel:
            meta[settings.LINK_REL] = tuple(sorted(rel))
        if self._settings.nofollow == "drop" and directives.nofollow:
            reason = "nofollow"
        elif self._settings.rel_nofollow == "drop" and "nofollow" in rel:
            reason = "rel_nofollow"
        else:
            return True
        if not meta.get(settings.OBEY_NOFOLLOW, True):
            return True
        self._stats.inc_value(f"robotstxt/{reason}/dropped")
        self._events.page_dropped(response.url, [reason])
        self._logger.debug(
            "Dropped because of %(reason)s on %(response)s: %(request)s",
            {"reason": reason, "response": response, "request": request},
        )
        return False


class AnswerMiddleware(AnswerObserver):
    """Holds the host of a response that asks for fewer requests, whoever made the response.

    It is near the downloader, so RetryMiddleware has not yet replaced the response, which a
    download handler or another middleware has made. It also excludes from retries a page that
    requires a payment or a license, and the last answer for a robots.txt.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    @cached_property
    def _frontier(self) -> Frontier | None:
        return find_frontier(self._crawler)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response as it is."""
        # Scrapy's RetryMiddleware and others do not retry a request with ``dont_retry``.
        kept = settings.DONT_RETRY, settings.IS_ROBOTSTXT_REQUEST
        is_final = FLAG in response.flags or terms_of(response) is not None
        if is_final and not any(map(request.meta.get, kept)):
            request.meta[settings.DONT_RETRY] = NOT_RETRIED
        if self._frontier is not None:
            self._frontier.note_response(request, response)
        return response
