"""The downloader middleware: each request gets the verdict of its origin's robots.txt.

The methods of :class:`RobotsTxtMiddleware` are in the order in which they process a request:

1. Does robots.txt apply? A request whose URL has none proceeds.
2. Is its gate open (:mod:`scrapy_rep.policies.gate`)? Then it has a verdict, which is stored in its
   ``meta``, and it proceeds. So do most requests, because the queues of the frontier ask the same.
3. If its gate drops it, the verdict is in the exception.
4. Otherwise it waits in the downloader, in a queue of its own for the origin, until that changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response

from .build import Crawl
from .exceptions import RobotsTxtDisallowed
from .fetch.downloader import DOWNLOAD, Downloaded
from .fetch.last_answer import gets_last_answer, last_answer
from .frontier.queued import AnswerObserver, FrontierOwner
from .logs import spider_logger
from .origin import Origin
from .pages.directives import directives_when_asked, merge, stated_in_headers
from .policies.gate import Gate, Kind, Place
from .protocol.paths import host_of, is_robots_txt, lacks_host, origin_of, path_of
from .protocol.verdict import Reason, Verdict
from .scrapy_internals import MAX_EXTRA, is_of_media_pipeline
from .settings import CACHED_FLAG, DONT_OBEY, PAGE_DIRECTIVES, ROBOTSTXT, read_settings
from .startup import abort_on_setting_error, warn_about_configuration

if TYPE_CHECKING:
    from typing_extensions import Self


class RobotsTxtMiddleware(FrontierOwner):
    """Obeys robots.txt for every request of a crawl.

    Stores the :class:`~scrapy_rep.Verdict` at ``request.meta["robotstxt"]``. A disallowed request
    is dropped: its errback gets a :class:`~scrapy_rep.RobotsTxtDisallowed`.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._settings = settings = read_settings(crawler)
        if not settings.obey:
            warn_about_configuration(crawler, settings)
            raise NotConfigured
        self._crawler = crawler
        self._logger = spider_logger(__name__, crawler.spider)
        self.crawl = crawl = Crawl(crawler, settings)
        self.policies = crawl.policies
        self.frontier = crawl.frontier
        self._recorder = crawl.recorder
        self._in_progress = crawl.frontier.in_progress
        self._has_conditions = settings.on_unreachable == "wait" or settings.local_rules is not None
        """Whether requests may have to wait for an unreachable robots.txt, or obey local rules."""
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(crawl.close, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.

        Raises NotConfigured if ROBOTSTXT_OBEY is off, and
        :class:`~scrapy_rep.exceptions.SettingError` for an unusable setting.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins in memory, by their normal form ``scheme://host[:port]``. Read-only."""
        return self.policies.origins

    # Requests.

    async def process_request(self, request: Request) -> Request | Response | None:
        """Return None for an allowed request as soon as it may start.

        Returns the request itself if it returns to the scheduler because the spider is closing, and
        the last answer if a spider requests a robots.txt. Raises
        :class:`~scrapy_rep.RobotsTxtDisallowed` for a disallowed request.
        """
        meta = request.meta
        if isinstance(meta.get(ROBOTSTXT), Verdict):
            del meta[ROBOTSTXT]  # of another request, whose meta was copied
        is_exempt, started = meta.get(DONT_OBEY), self._in_progress.get(request)
        key = origin_of(request.url) if started is None else started.origin
        if key is None:  # a scheme without robots.txt, or an invalid host
            if lacks_host(request.url) and not is_exempt:
                raise self._drop(request, Verdict(False, Reason.INVALID_HOST))
            return None
        origin = self.policies.fresh(key)
        address = self.policies.address(request) if started is None else None
        if (
            is_exempt
            or origin is None
            or origin.has_pacing
            or self._has_conditions
            or (started is not None and started.host.is_paced)
            or is_robots_txt(request.url)
            or (address and self.frontier.pace_of(request, address).place is not Place.READY)
        ):
            return await self._process_when_ready(request, key)
        verdict = self._judge(request, origin)  # the usual case
        if not verdict.allowed:
            raise self._drop(request, verdict)
        if address is not None:
            self.frontier.enter(request, address)
        if self.policies.states_usage:
            self.policies.note_use(request, origin)
        return None

    async def _process_when_ready(self, request: Request, key: str) -> Request | Response | None:
        """Process a request to the origin ``key`` when its gate is open.

        The verdict is that of the policy at the end of the wait. Only local rules and the pace of
        the host apply to exempt requests, and only the pace to those for a robots.txt.
        """
        started = self._in_progress.get(request)
        if started is not None and not started.is_from_queue:  # a middleware has sent it back
            self.frontier.finish(request)
        if not await self._wait_until_ready(request, key):
            return self._go_back(request)
        if gets_last_answer(request):
            # The fetch of the file also waits for the pace of the host.
            self.frontier.end(request, sent=False)
            origin = await self.crawl.fetches.wait_for(key, request)
            response = None if origin is None else last_answer(origin, request)
            if response is not None:
                self._recorder.count("robotstxt/answered_count")
                return response
            if origin is None or not await self._wait_until_ready(request, key):
                return self._go_back(request)
        self.frontier.enter(request, self.policies.address(request))
        origin = None if request.meta.get(DONT_OBEY) else self.origins.get(key)
        if origin is not None:
            self.crawl.fetches.refresh(origin, request)
            origin.notes.use()
            self.policies.note_use(request, origin)
            self.crawl.fetches.evict()
        self._recorder.exempted(request)
        return None

    async def _wait_until_ready(self, request: Request, key: str) -> bool:
        """Wait until the gate of a request is open. Returns False if the spider closes first.

        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` if the request is dropped.
        """
        gate = self._apply_pace(request)
        while gate.place is not Place.READY:
            if gate.place is Place.DROPS:
                verdict = gate.verdict
                if verdict is None:  # its truth value says whether it allows
                    verdict = self.policies.local_disallow(key, request.url)
                assert verdict is not None
                raise self._drop(request, verdict)
            if gate.place is Place.UNKNOWN:
                self.crawl.fetches.begin(key, request)
            if not await self.crawl.waiting.wait(request):
                return False
            gate = self._apply_pace(request)
        return True

    def _apply_pace(self, request: Request) -> Gate:
        """Set the delay of the host for the crawler of a request. Returns where that has to be."""
        policies, frontier = self.policies, self.frontier
        address = policies.address(request)
        delay = frontier.delay_of(address.host)
        gate = policies.gate(address, delay, partial(self._judge, request))
        if gate.place is not Place.READY:
            return gate
        if address.kind in (Kind.OBEY, Kind.EXCEPTED) and address.origin is not None:
            origin, tokens = self.origins[address.origin], policies.tokens(request)
            if (seconds := policies.delay(origin, tokens)) is not None:
                frontier.set_delay(address.host, address.origin, seconds)
        return frontier.pace_of(request, address)

    def decide(self, request: Request, verdict: Verdict) -> Verdict:  # noqa: ARG002
        """Return the verdict that applies to a request, which is by default that of its robots.txt.

        Subclasses may override this to return another one, such as
        ``verdict._replace(allowed=False)``. It is called when the robots.txt is known, maybe more
        than once for a request that waits. It is not called for requests that are exempt, that a
        local rule disallows, or whose URL has no valid host.
        """
        return verdict

    def _judge(self, request: Request, origin: Origin) -> Verdict:
        """Return the verdict on a request, which is then in its ``meta``."""
        verdict = self.policies.verdict(origin, request.url, self.policies.tokens(request))
        verdict = request.meta[ROBOTSTXT] = self.decide(request, verdict)
        return verdict

    def _drop(
        self, request: Request, verdict: Verdict, response: Response | None = None
    ) -> RobotsTxtDisallowed:
        """End a request, because it or its response is dropped. Returns the exception."""
        self.frontier.end(request, sent=False)  # one that was sent has ended with its response
        return self._recorder.dropped(request, verdict, response)

    def _go_back(self, request: Request) -> Request:
        """Return a request to its scheduler, because the spider is closing.

        Raises IgnoreRequest if a caller of ``engine.download_async`` has waited for it too long:
        the engine would download it again.
        """
        self.frontier.end(request, sent=False)
        if self.crawl.closing.is_called(request):
            self._recorder.count("robotstxt/abandoned_count")
            raise IgnoreRequest(
                "the crawl was stopped, and the request could not start within REP_MAX_WAIT"
            )
        return self.crawl.closing.send_back(request)

    # Responses.

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Check the URL of a response that is not the URL of its request (REP_CHECK_FINAL_URL).

        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` or :class:`~scrapy_rep.PageNotIndexable` if
        the response is dropped. Returns the request if it returns to the scheduler because the
        spider is closing.
        """
        if response.status >= 400:  # a middleware may have changed the response
            self.frontier.note_response(request, response)
        started = self._in_progress.get(request)
        # The host did not receive a request that a cache has answered.
        self._end(request, sent=CACHED_FLAG not in response.flags)
        if DOWNLOAD in request.meta:  # a robots.txt is not a page: only its fetch gets it
            raise Downloaded(response)
        tdm_files, is_called = self.crawl.tdm_files, self.crawl.closing.is_called
        if tdm_files and not (await tdm_files.wait(request, response) or is_called(request)):
            return self._go_back(request)
        if response.url != request.url:
            checked = await self._check_final_url(request, response)
            if checked is not response:
                return checked
        if started is None or not started.is_from_queue:  # the spider middleware may not get it
            self._note_directives(request, response)
        return response

    def _note_directives(self, request: Request, response: Response) -> None:
        """Note the directives of a response in the meta of its request.

        Raises :class:`~scrapy_rep.PageNotIndexable` if REP_NOINDEX drops it.
        """
        tokens = self.policies.tokens(request)
        if self._settings.noindex == "drop" and is_of_media_pipeline(request):
            for statement in stated_in_headers(response, tokens):
                if merge([statement]).noindex:
                    raise self._recorder.media_dropped(response, str(statement))
        _, tdm = self.policies.stated_usage(response)
        request.meta[PAGE_DIRECTIVES] = directives_when_asked(response, tokens, tdm)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that a request ended without a response.

        A request that a middleware dropped was not sent. Any other exception may come from sending
        it, even if no download slot was used: a middleware may send it with a browser.
        """
        self._end(request, sent=not isinstance(exception, IgnoreRequest))

    def _end(self, request: Request, *, sent: bool) -> None:
        """End a request. ``sent`` says whether its site may have received it."""
        self.frontier.end(request, sent=sent)
        if sent:
            self._recorder.events.ended(request)

    async def _check_final_url(self, request: Request, response: Response) -> Request | Response:
        """Return a response whose URL is not that of its request, if the spider may get it."""
        verdict = await self._final_verdict(request, response)
        if verdict is None:
            return response
        self._recorder.final_url(request, verdict)
        if verdict.allowed:
            return response
        if self._settings.check_final_url == "drop":
            is_early = verdict.reason is Reason.UNREACHABLE and self.crawl.engine.is_closing
            if is_early and not self.crawl.closing.is_called(request):
                return self._go_back(request)
            raise self._drop(request, verdict, response)
        self._recorder.final_url_kept(request, response, verdict)
        return response

    async def _final_verdict(self, request: Request, response: Response) -> Verdict | None:
        """Return the verdict on the URL of a response, after its robots.txt is fetched.

        Browsers and some download handlers follow redirects themselves. Returns None if the URL of
        the request was not checked, or is the same for robots.txt, and if that of the response has
        a scheme without robots.txt.
        """
        url, final_url, meta = request.url, response.url, request.meta
        was_checked = isinstance(meta.get(ROBOTSTXT), Verdict) and not meta.get(DONT_OBEY)
        is_same = origin_of(final_url) == origin_of(url) and path_of(final_url) == path_of(url)
        if self._settings.check_final_url == "ignore" or not was_checked or is_same:
            return None
        return await self.crawl.fetches.verdict_on(final_url, request, response)

    def _on_send(self, request: Request) -> None:
        """Record that a request has reached its download slot, from which nothing removes it."""
        key, meta, broken = origin_of(request.url), request.meta, None
        if meta.get(DONT_OBEY) or getattr(meta.get(ROBOTSTXT), "reason", None) is Reason.LOCAL_RULE:
            broken = self.policies.known_site_verdict(request)
        delay = 0 if key is None else self.frontier.delay_of(host_of(key))
        self._recorder.events.sent(request, delay, broken)

    # The crawl.

    def _on_spider_opened(self) -> None:
        warn_about_configuration(self._crawler, self._settings)
        if self._crawler.get_downloader_middleware(AnswerObserver) is None:
            self._logger.warning(
                "scrapy_rep.AnswerMiddleware is not enabled: pages with status 429 or 503 that "
                "RetryMiddleware retries do not hold their host, and pages that require a payment "
                "are retried. Add it to DOWNLOADER_MIDDLEWARES at 990, or use scrapy_rep.Addon.",
            )
        self.crawl.open()
        state = getattr(self._crawler.spider, "state", None)  # Scrapy keeps it in JOBDIR
        if self._settings.backoff and isinstance(state, dict):
            held = state.get("scrapy_rep.backoff")
            state["scrapy_rep.backoff"] = held = held if isinstance(held, dict) else {}
            self.frontier.hold_again(held)
        if not self.frontier.queues:
            self._logger.info(
                "The scheduler of this crawl does not use the priority queue of scrapy-rep. So "
                "requests wait in the downloader, at most %(most)d in addition to "
                "CONCURRENT_REQUESTS, and sites that do not answer may delay others. See "
                "SCHEDULER_PRIORITY_QUEUE.",
                {"most": MAX_EXTRA},
            )
        reached = signals.request_reached_downloader
        if self._settings.own_delay or self._settings.slots:
            self._crawler.signals.connect(self.frontier.note_reached, reached)
        if self._settings.report:
            self._crawler.signals.connect(self._on_send, reached)
