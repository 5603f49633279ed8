"""The downloader middleware: each request gets the verdict of its origin's robots.txt.

The methods of :class:`RobotsTxtMiddleware` are in the order in which they process a request:

1. Does robots.txt apply? A request whose URL has none proceeds.
2. Is its gate open (:mod:`scrapy_rep.policies.gate`)? Then it has a verdict, which is stored in its
   ``meta``, and it proceeds. So do most requests, because the queues of the frontier ask the same.
3. If its gate drops it, the verdict is in the exception.
4. Otherwise it waits in the downloader, in a queue of its own for the origin, until that changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.utils.misc import load_object

from .clock import Clock
from .exceptions import RobotsTxtDisallowed, forbidden_by
from .fetch.downloader import DOWNLOAD, Downloaded
from .frontier.frontier import SLOW_DOWN, FrontierOwner
from .logs import get_logger
from .origin import Origin
from .policies.gate import Address, Gate, Kind, Place
from .policies.policies import PolicyCache
from .protocol.access import retry_after
from .protocol.paths import host_of, lacks_host, origin_of, path_of
from .protocol.verdict import Reason, Verdict
from .scrapy_internals import MAX_EXTRA, Engine
from .settings import CACHED_FLAG, DONT_OBEY, IS_ROBOTSTXT_REQUEST, ROBOTSTXT, read_settings
from .startup import abort_on_setting_error, warn_about_configuration

if TYPE_CHECKING:
    from typing_extensions import Self

    from .reports.event_log import CrawlLog

logger = get_logger(__name__)

MAX_KEPT = 10_000
"""How many verdicts are kept, each with its site. A crawl may have any number of them."""


class AnswerObserver:
    """A downloader middleware that calls :meth:`RobotsTxtMiddleware.note_answer`."""


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
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._clock = clock = Clock()
        self.events: CrawlLog | None = None
        """The events for the report; None without REP_REPORT."""
        archive = None
        if settings.report or settings.archive is not None:
            open_recordings = load_object("scrapy_rep.reports.recording.open_recordings")
            self.events, archive = open_recordings(crawler, settings, clock)
        self._engine = Engine(crawler)
        self.policies = PolicyCache(crawler, settings, self._engine, clock, self.events, archive)
        """The policies of the crawl."""
        self.frontier = self.policies.frontier
        self._in_progress = self.frontier.in_progress
        self._has_conditions = settings.on_unreachable == "wait" or settings.local_rules is not None
        """Whether more than a verdict may be needed before a request starts, beside a pace."""
        self._has_warned_of_final_url = False
        self._drops: Counter[tuple[str | None, Verdict]] = Counter()
        """How often each verdict has dropped a request to a site."""
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signal=signals.spider_closed)

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
        return self.policies.files

    # Requests.

    async def process_request(self, request: Request) -> Request | None:
        """Return None for an allowed request as soon as it may start.

        Returns the request itself if it returns to the scheduler because the spider is closing.
        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` for a disallowed request.
        """
        meta = request.meta
        if isinstance(meta.get(ROBOTSTXT), Verdict):
            del meta[ROBOTSTXT]  # of another request, whose meta was copied
        is_exempt, entry = meta.get(DONT_OBEY), self._in_progress.get(request)
        key = origin_of(request.url) if entry is None else entry.origin
        if key is None:  # a scheme without robots.txt, or an invalid host
            if lacks_host(request.url) and not is_exempt:
                raise self._disallow(request, Verdict(False, Reason.INVALID_HOST))
            return None
        origin = self.policies.get_fresh(key)
        address = self.policies.address(request) if entry is None else None
        if (
            is_exempt
            or origin is None
            or origin.has_pacing
            or self._has_conditions
            or (entry is not None and entry.host.is_paced)
            or (address and self.frontier.pace_of(request, address).place is not Place.READY)
        ):
            return await self._process_when_ready(request, key)
        verdict = self._judge(request, origin)  # the usual case
        if not verdict.allowed:
            raise self._disallow(request, verdict)
        if address is not None:
            self.frontier.enter(request, address)
        if self.policies.states_usage:
            self.policies.note_use(request, origin)
        return None

    async def _process_when_ready(self, request: Request, key: str) -> Request | None:
        """Process a request to the origin ``key`` when its gate is open.

        The verdict is that of the policy at the end of the wait. Only local rules and the pace of
        the host apply to exempt requests, and only the pace to those for a robots.txt.
        """
        entry = self._in_progress.get(request)
        if entry is not None and not entry.is_from_queue:  # a middleware has sent it back
            self.frontier.finish(request)
        while True:
            address = self.policies.address(request)
            gate = self._gate(request, address)
            if gate.place is Place.READY:
                break
            if gate.place is Place.DROPS:
                verdict = gate.verdict
                if verdict is None:  # its truth value says whether it allows
                    verdict = self.policies.local_disallow(key, request.url)
                assert verdict is not None
                raise self._disallow(request, verdict)
            if gate.place is Place.UNKNOWN:
                self.policies.fetch(key, request)
            if not await self.frontier.waiting.wait(request):
                return self._go_back(request)
        self.frontier.enter(request, address)
        origin = None if request.meta.get(DONT_OBEY) else self.policies.files.get(key)
        if origin is not None:
            self.policies.refresh(origin, request)
            origin.record_use()
            self.policies.evict()
            self.policies.note_use(request, origin)
        self._record_exception(request)
        return None

    def _gate(self, request: Request, address: Address) -> Gate:
        """Return whether a request may start, with the pace that applies to its crawler."""
        gate = self.policies.gate(address, partial(self._judge, request))
        if gate.place is not Place.READY:
            return gate
        if address.kind in (Kind.OBEY, Kind.EXCEPTED) and address.origin is not None:
            self.policies.apply_pace(self.policies.files[address.origin], request)
        return self.frontier.pace_of(request, address)

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

    def _disallow(
        self, request: Request, verdict: Verdict, response: Response | None = None
    ) -> RobotsTxtDisallowed:
        """Record that a request, or the response to it, is dropped. Returns the exception."""
        self.frontier.finish(request, sent=False)  # one that was sent has ended with its response
        request.meta[ROBOTSTXT] = verdict
        url = response.url if response else request.url
        self._stats.inc_value("robotstxt/forbidden")
        self._stats.inc_value(f"robotstxt/forbidden/{verdict.reason}")
        if verdict.reason is Reason.LOCAL_RULE:
            self._stats.inc_value("robotstxt/local/disallowed")
        logger.debug(
            "Forbidden by %(source)s: %(request)s (%(verdict)s)",
            {"source": forbidden_by(verdict), "request": response or request, "verdict": verdict},
            extra={"spider": self._crawler.spider},
        )
        if self.events is not None:
            self.events.disallowed(url, verdict, was_sent=response is not None)
        drop = origin_of(url), verdict
        if drop in self._drops or len(self._drops) < MAX_KEPT:
            self._drops[drop] += 1
        return RobotsTxtDisallowed(url, verdict)

    def _record_exception(self, request: Request) -> None:
        """Count and log a request that starts because it is exempt, or a local rule allows it."""
        verdict = request.meta.get(ROBOTSTXT)  # None if a subclass sets no verdict
        if request.meta.get(DONT_OBEY):
            if not request.meta.get(IS_ROBOTSTXT_REQUEST):
                self._stats.inc_value("robotstxt/exempt_count")
        elif verdict is not None and verdict.reason is Reason.LOCAL_RULE:
            self._stats.inc_value("robotstxt/local/allowed")
            logger.debug(
                "Allowed by a local rule: %(request)s (%(verdict)s)",
                {"request": request, "verdict": verdict},
                extra={"spider": self._crawler.spider},
            )

    def _go_back(self, request: Request) -> Request:
        """Return a request to its scheduler, because the spider is closing.

        Raises IgnoreRequest if a caller of ``engine.download_async`` has waited for it too long:
        the engine would download it again.
        """
        self.frontier.finish(request, sent=False)
        if self.frontier.is_called(request):
            self._stats.inc_value("robotstxt/abandoned_count")
            raise IgnoreRequest(
                "the crawl was stopped, and the request could not start within REP_MAX_WAIT"
            )
        self.frontier.returned[request] = request.dont_filter
        request.dont_filter = True  # the scheduler has seen it; our queues store it as it was
        return request

    # Responses.

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Check the URL of a response that is not the URL of its request (REP_CHECK_FINAL_URL).

        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` if the response is dropped. Returns the
        request if it returns to the scheduler because the spider is closing.
        """
        if response.status in SLOW_DOWN:  # a middleware may have changed the response
            self.note_answer(request, response)
        # The host did not receive a request that a cache has answered.
        self._end(request, sent=CACHED_FLAG not in response.flags)
        if DOWNLOAD in request.meta:  # a robots.txt is not a page: only its fetch gets it
            raise Downloaded(response)
        tdm_files, is_called = self.policies.tdm_files, self.frontier.is_called
        if tdm_files and not (await tdm_files.wait(request, response) or is_called(request)):
            return self._go_back(request)
        if response.url == request.url:  # the usual case
            return response
        verdict = await self._final_verdict(request, response)
        if verdict is None or verdict.allowed:
            return response
        if self._settings.check_final_url == "drop":
            is_early = verdict.reason is Reason.UNREACHABLE and self._engine.is_closing
            if is_early and not is_called(request):
                return self._go_back(request)
            raise self._disallow(request, verdict, response)
        if self.events is not None:
            self.events.disallowed(response.url, verdict, was_sent=True)
        if not self._has_warned_of_final_url:
            self._has_warned_of_final_url = True
            logger.warning(
                "%(request)s was redirected to %(url)s, which robots.txt disallows (%(verdict)s). "
                "The spider gets this page, with the verdict in response.meta['robotstxt']. The "
                "stat robotstxt/final_url/disallowed counts such pages. Set REP_CHECK_FINAL_URL = "
                "'drop' to drop them.",
                {"request": request, "url": response.url, "verdict": verdict},
                extra={"spider": self._crawler.spider},
            )
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that a request ended without a response.

        A request that a middleware dropped was not sent. Any other exception may come from sending
        it, even if no download slot was used: a middleware may send it with a browser.
        """
        self._end(request, sent=not isinstance(exception, IgnoreRequest))

    def _end(self, request: Request, *, sent: bool) -> None:
        """End a request. ``sent`` says whether its site may have received it."""
        self.frontier.finish(request, sent=sent)
        if sent and self.events is not None:
            self.events.ended(request)

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
        verdict = await self.policies.verdict_on(final_url, request, response)
        if verdict is not None:
            meta[ROBOTSTXT] = verdict
            self._stats.inc_value("robotstxt/final_url")
            if not verdict.allowed:
                self._stats.inc_value("robotstxt/final_url/disallowed")
        return verdict

    def _on_send(self, request: Request) -> None:
        """Log that a request has reached its download slot, where it waits for DOWNLOAD_DELAY."""
        assert self.events is not None
        key, meta, broken = origin_of(request.url), request.meta, None
        if meta.get(DONT_OBEY) or getattr(meta.get(ROBOTSTXT), "reason", None) is Reason.LOCAL_RULE:
            broken = self.policies.known_site_verdict(request)
        delay = 0 if key is None else self.frontier.known_host(host_of(key)).delay
        self.events.sent(request, delay, broken)

    def note_answer(self, request: Request, response: Response) -> None:
        """Note what a site has answered. :class:`~scrapy_rep.AnswerMiddleware` calls this.

        A further call for the same request changes no more than the first one has.
        """
        entry, status = self._in_progress.get(request), response.status
        if entry is None or request.meta.get(IS_ROBOTSTXT_REQUEST) or not self._settings.backoff:
            return
        if (status in SLOW_DOWN or entry.host.backoffs) and CACHED_FLAG not in response.flags:
            header = (response.headers.get(b"Retry-After") or b"").decode("latin-1")
            seconds = retry_after(header, self._clock.time())
            self.frontier.note_answer(entry, status, seconds)

    # The crawl.

    def _on_spider_opened(self) -> None:
        warn_about_configuration(self._crawler, self._settings)
        if self._crawler.get_downloader_middleware(AnswerObserver) is None:
            logger.warning(
                "scrapy_rep.AnswerMiddleware is not enabled: pages with status 429 or 503 that "
                "RetryMiddleware retries do not hold their host, and pages that require a payment "
                "are retried. Add it to DOWNLOADER_MIDDLEWARES at 990, or use scrapy_rep.Addon.",
                extra={"spider": self._crawler.spider},
            )
        self.policies.open()
        state = getattr(self._crawler.spider, "state", None)  # Scrapy keeps it in JOBDIR
        if self._settings.backoff and isinstance(state, dict):
            self.frontier.hold_again(state.setdefault("scrapy_rep.backoff", {}))
        if not self.frontier.queues:
            logger.info(
                "The scheduler of this crawl does not use the priority queue of scrapy-rep. So "
                "requests wait in the downloader, at most %(most)d in addition to "
                "CONCURRENT_REQUESTS, and sites that do not answer may delay others. See "
                "SCHEDULER_PRIORITY_QUEUE.",
                {"most": MAX_EXTRA},
                extra={"spider": self._crawler.spider},
            )
        reached = signals.request_reached_downloader
        if self._settings.has_delay or self._settings.slots:
            self._crawler.signals.connect(self.frontier.note_reached, reached)
        if self.events is not None:
            self._crawler.signals.connect(self._on_send, reached)

    def _on_spider_closed(self) -> None:
        self.policies.close()
        self._log_drops()
        abandoned = self._stats.get_value("robotstxt/abandoned_count", 0)
        if abandoned:
            logger.warning(
                "%(count)d requests of media pipelines or other callers of engine.download_async "
                "could not start within %(seconds)s s after the crawl was stopped (REP_MAX_WAIT). "
                "The callers got an exception. The stat robotstxt/abandoned_count counts these "
                "requests.",
                {"count": abandoned, "seconds": f"{self._settings.max_wait:g}"},
                extra={"spider": self._crawler.spider},
            )

    def _log_drops(self) -> None:
        """Log one line about the requests that the crawl has dropped, if there are some."""
        if not self._drops:
            return
        count = self._stats.get_value
        dropped = count("robotstxt/forbidden", 0)
        reasons = {verdict.reason for _, verdict in self._drops}
        times, reason = max((count(f"robotstxt/forbidden/{each}", 0), each) for each in reasons)
        most_common = (drop for drop, _ in self._drops.most_common())
        site, verdict = next(drop for drop in most_common if drop[1].reason is reason)
        sent = count("downloader/request_count", 0) - count("robotstxt/request_count", 0)
        sent -= count("robotstxt/tdmrep/request_count", 0)
        if self._settings.check_final_url == "drop":
            sent -= count("robotstxt/final_url/disallowed", 0)
        sites = len({site for site, _ in self._drops})
        at_least = "at least " if len(self._drops) == MAX_KEPT else ""
        logger.info(
            "Dropped %(dropped)d of %(all)d requests, on %(sites)s. Most by %(reason)s "
            "(%(times)d), such as on %(site)s: %(verdict)s. Exempt from robots.txt: %(exempt)d "
            "with dont_obey_robotstxt, %(excepted)d by exceptions in REP_LOCAL_RULES.",
            {
                "dropped": dropped,
                "all": dropped + max(sent, 0),
                "sites": f"{at_least}{sites} site{'s' * (sites != 1)}",
                "reason": reason,
                "times": times,
                "site": site or "URLs without a valid host",
                "verdict": verdict,
                "exempt": count("robotstxt/exempt_count", 0),
                "excepted": count("robotstxt/local/allowed", 0),
            },
            extra={"spider": self._crawler.spider},
        )
