"""The downloader middleware: each request gets the verdict of its origin's robots.txt.

The methods of :class:`RobotsTxtMiddleware` are in the order in which they process a request:

1. A request that is exempt, or whose URL has no robots.txt, proceeds.
2. If the policy of the origin is in memory and fresh, the request proceeds or is dropped at once.
3. Otherwise the request waits for the policy, which all requests to the origin share, and for the
   delay of the host.
4. The verdict is stored in ``request.meta`` and, if it is negative, in the exception.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured

from ..exceptions import RobotsTxtDisallowed
from ..meta_keys import CACHED_FLAG, DONT_OBEY, IS_ROBOTSTXT_REQUEST, ROBOTSTXT
from ..origin import Origin, State, UnreachablePolicy
from ..protocol.paths import ROBOTS_TXT, host_of, lacks_host, origin_of
from ..protocol.verdict import Reason, Verdict
from ..scheduling.clock import Clock
from ..scheduling.engine import Engine
from ..scheduling.hosts import EXEMPT, BlockReason
from ..scheduling.rendering import RenderingService
from ..scheduling.scheduler import WaitingScheduler, remove_annotations
from ..scheduling.shared_overflow import overflow_for
from ..scheduling.throttle import Throttle
from ..scrapy_settings import robotstxt_obey
from ..settings import read_settings
from ..startup import abort_on_setting_error, warn_about_configuration
from .admission import AdmissionControl
from .agent_tokens import AgentTokens
from .drops import record_drop
from .final_url import FinalUrlChecker
from .link_filter import LinkFilter
from .local_rules import LocalRulesFile, record_exception
from .outages import Outages
from .pace import Pace
from .policy_cache import PolicyCache
from .robots_page import robots_txt_response
from .tdm_files import TdmFiles
from .wait_stats import WaitStats
from .waiting_responses import WaitingResponses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser
    from typing_extensions import Self

    from ..protocol.pacing import Pacing
    from ..protocol.tdmrep import TdmRule
    from .recorder import Recorder
    from .usage_files import UsageFiles

CLOSING = "the spider is closing"
"""The message of the IgnoreRequest for a call of ``engine.download_async`` that still waits when
the spider closes."""


class RobotsTxtMiddleware:
    """Obeys robots.txt for every request of a crawl.

    Stores the :class:`~scrapy_rep.Verdict` at ``request.meta["robotstxt"]``. A disallowed request
    is dropped: its errback gets a :class:`~scrapy_rep.RobotsTxtDisallowed`.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not robotstxt_obey(crawler):
            raise NotConfigured
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings = read_settings(crawler)
        self._unreachable_policy = UnreachablePolicy(
            settings.unreachable == "allow", settings.unreachable_days
        )
        self._clock = Clock()
        self._engine = Engine(crawler)
        rendering = RenderingService(settings.splash_url)
        self._page_url = rendering.page_url
        self._origin_of = rendering.origin
        self._tokens = AgentTokens(crawler, settings).of
        self._throttle = Throttle(
            crawler,
            self._engine,
            self._clock,
            rendering,
            capacity=settings.max_waiting,
        )
        self._hosts = self._throttle.hosts
        self._local_rules = LocalRulesFile(settings.local_rules)
        self._policy_cache = PolicyCache(
            crawler,
            settings,
            self._engine,
            self._throttle,
            self._clock,
            self._unreachable_policy,
            self._on_policy,
            self._local_rules.origin,
        )
        self._now = self._policy_cache.now
        self._pace = Pace(
            crawler, settings, self._throttle, self._local_rules, self._tokens, self._now
        )
        if settings.shared_pace and self._policy_cache.shared_store is not None:
            self._throttle.share(self._policy_cache.shared_store)
        self._outages = Outages(
            crawler,
            settings,
            self._unreachable_policy,
            self._throttle,
            self._policy_cache,
            self._is_excepted,
        )
        self._wait_stats = WaitStats(crawler.stats, self._clock)
        self._admission = AdmissionControl(
            rendering, self._throttle, self._policy_cache, self._outages, self._wait_stats
        )
        self._recorder: Recorder | None = None
        waiting = WaitingResponses(self._engine)
        self._final_url_checker = FinalUrlChecker(
            crawler, self._policy_cache, waiting, self._verdict, self._local_disallow
        )
        self.link_filter = LinkFilter(
            crawler, self._policy_cache, self._page_url, self._verdict, self._local_disallow
        )
        """Drops the requests of a spider that are known to be disallowed (REP_FILTER_LINKS)."""
        self.usage_files: UsageFiles | None = None
        """The files that state a usage. None if no middleware reads them."""
        self._tdm_files: TdmFiles | None = None
        if settings.tdmrep:
            self._tdm_files = TdmFiles(
                crawler,
                settings,
                self._engine,
                self._clock,
                self._policy_cache,
                waiting,
                self._verdict,
                self._local_disallow,
            )
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        self._engine.watch(
            self._poll, self._on_spider_closing, self._policy_cache.cancel_background_fetches
        )

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
        return self._policy_cache.origins

    @property
    def tdm_rule(self) -> Callable[[Response], TdmRule | None] | None:
        """Returns the rule of a TDM file for a response. None without REP_TDMREP."""
        return None if self._tdm_files is None else self._tdm_files.rule

    # Requests.

    async def process_request(self, request: Request) -> Request | Response | None:
        """Return None for an allowed request as soon as it may start.

        Returns the request itself if it returns to the scheduler because the spider is closing, and
        a response if the request is for a robots.txt that is in memory. Raises
        :class:`~scrapy_rep.RobotsTxtDisallowed` for a disallowed request.
        """
        remove_annotations(request.meta)  # of another request, whose meta was copied
        if request.meta.get(DONT_OBEY):
            return await self._process_exempt(request)
        url = self._page_url(request)
        key = origin_of(url)
        if key is None:  # a scheme without robots.txt, or an invalid host
            if lacks_host(url):
                verdict = request.meta[ROBOTSTXT] = Verdict(False, Reason.INVALID_HOST)
                raise self._disallow(request, verdict)
            return None
        origin = self._policy_cache.get_fresh(key)
        if (
            origin is None
            or origin.has_conditions
            or origin.host in self._hosts
            or (self._outages.is_enabled and origin.state is State.UNREACHABLE)
        ):
            return await self._process_when_ready(request, key)
        self.process_request_2(origin, request)
        if self.usage_files is not None:
            self.usage_files.add(request, origin)
        if url.endswith(ROBOTS_TXT):
            return self._answer(request, origin)
        return None

    async def _process_exempt(self, request: Request) -> Request | None:
        """Process a request that is exempt from robots.txt.

        Only local rules and the delay of its host apply. Requests for a robots.txt are exempt from
        local rules, too.
        """
        is_robotstxt_request = bool(request.meta.get(IS_ROBOTSTXT_REQUEST))
        if is_robotstxt_request:
            self._engine.exclude_download(request)
        if not (self._hosts or self._local_rules):
            return None
        key = self._origin_of(request)
        if key is None:
            return None
        name = host_of(key)
        if not is_robotstxt_request:
            self._drop_if_locally_disallowed(request, key)
            # The delay of a host that was idle may have been removed.
            origin = None if name in self._hosts else self._policy_cache.origins.get(key)
            if origin is not None and self._pace.applies_to(origin):
                self._pace.apply(origin, request)
            self._pace.apply_local_delay(key, None)
        self._stop_wait(request, name, None)
        while not self._throttle.try_start(request, name):
            self._wait_stats.start(request, for_policy=False)
            if not await self._throttle.wait(request, name, EXEMPT):
                if self._reschedule(request):
                    return request
                raise IgnoreRequest(CLOSING)
            self._stop_wait(request, name, None)
        self._wait_stats.finish(request)
        return None

    async def _process_when_ready(self, request: Request, key: str) -> Request | Response | None:
        """Process a request to the origin ``key`` when its policy is known and its host is free.

        The verdict is that of the policy at the end of the wait.
        """
        name = host_of(key)
        self._stop_wait(request, name, key)
        self._drop_if_locally_disallowed(request, key)  # before its robots.txt is fetched
        while True:
            origin = self._outages.get_or_fetch(key, request)
            response = self._answer(request, origin) if origin is not None else None
            if response is not None or (origin is not None and self._try_start(request, origin)):
                self._policy_cache.evict()
                self._wait_stats.finish(request)
                return response
            self._wait_stats.start(
                request, for_policy=origin is None or self._outages.applies_to(origin)
            )
            queue = EXEMPT if self._outages.has_exception(request, key) else key
            if not await self._throttle.wait(request, name, queue):
                break
            self._stop_wait(request, name, key)
        if self._reschedule(request):
            return request
        if origin is None:
            origin = self._policy_cache.origins.get(key) or self._local_rules.origin(key)
            self.process_request_2(origin, request)
        raise IgnoreRequest(CLOSING)

    def _answer(self, request: Request, origin: Origin) -> Response | None:
        """Return the response to a request for a robots.txt that is in memory, else None."""
        if not self._settings.answer_robots_txt:
            return None
        response = robots_txt_response(request, origin)
        if response is not None:
            self.process_request_2(origin, request)
            self._throttle.finish(request, sent=False)
            self._stats.inc_value("robotstxt/answered_count")
        return response

    def _try_start(self, request: Request, origin: Origin) -> bool:
        """Check a request, and start it if the pace of its site allows that now.

        Returns False if the request has to wait. Raises :class:`~scrapy_rep.RobotsTxtDisallowed`.
        """
        if not self._outages.applies_to(origin) or self._is_excepted(request, origin.key):
            self.process_request_2(origin, request)
        else:
            limit = self._outages.block(request, origin)
            if limit is None:
                return False
            try:
                self.process_request_2(origin, request)
            except RobotsTxtDisallowed:
                self._outages.record_drop(origin, limit)
                raise
        pacing = self._pace.apply(origin, request)
        if pacing is not None and self._block_until_visit_time(pacing, origin, request):
            return False
        may_start = self._throttle.try_start(request, origin.host)
        if may_start:
            record_exception(self._crawler, request)
            if self.usage_files is not None:
                self.usage_files.add(request, origin)
        return may_start

    def process_request_2(self, rp: Origin | RobotParser | None, request: Request) -> None:
        """Check a request. Raises :class:`~scrapy_rep.RobotsTxtDisallowed` if it is disallowed.

        Scrapy's own middleware has this method, with a parser in place of the origin. Subclasses
        may override it or call it. REP_FILTER_LINKS does not call it.
        """
        if rp is None:
            return
        url = self._page_url(request)
        if isinstance(rp, Origin):
            verdict = rp.verdict(url, self._tokens(request), self._now(), self._unreachable_policy)
        else:
            agent: Any = self._settings.user_agent(request.headers.get(b"User-Agent"))
            verdict = Verdict(rp.allowed(url, agent), Reason.RULES)
        request.meta[ROBOTSTXT] = verdict
        if not verdict.allowed:
            raise self._disallow(request, verdict)

    def _disallow(
        self, request: Request, verdict: Verdict, response: Response | None = None
    ) -> RobotsTxtDisallowed:
        """Record that a request, or the response to it, is dropped. Returns the exception."""
        self._throttle.finish(request, sent=False)  # one that was sent has ended with its response
        self._wait_stats.finish(request)
        url = response.url if response else self._page_url(request)
        return record_drop(self._crawler, self._recorder, response or request, url, verdict)

    def _reschedule(self, request: Request) -> bool:
        """End the wait of a request, because the spider is closing.

        Returns whether the request may return to the scheduler: only if it came from there.
        """
        self._wait_stats.discard(request)
        return self._throttle.try_reschedule(request)

    # Responses.

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Check the URL of a response that is not the URL of its request (REP_CHECK_FINAL_URL).

        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` if the response is dropped. Returns the
        request if it returns to the scheduler because the spider is closing.
        """
        # The host did not receive a request that a cache has answered.
        self._throttle.finish(request, sent=CACHED_FLAG not in response.flags)
        if self._tdm_files is not None:
            is_known = await self._tdm_files.wait(request, response)
            if not is_known and self._reschedule(request):
                return request
        if response.url == request.url:  # the usual case
            return response
        mode, meta = self._settings.check_final_url, request.meta
        was_checked = isinstance(meta.get(ROBOTSTXT), Verdict) and not meta.get(DONT_OBEY)
        if mode == "ignore" or not was_checked:
            return response
        verdict = await self._final_url_checker.check(request, self._page_url(request), response)
        if verdict is None:
            return response
        meta[ROBOTSTXT] = verdict
        if verdict.allowed:
            return response
        if mode == "annotate":
            self._final_url_checker.warn(request, response, verdict)
            return response
        is_unknown = verdict.reason is Reason.UNREACHABLE and self._engine.is_closing
        if is_unknown and self._reschedule(request):
            return request
        raise self._disallow(request, verdict, response)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Record that a request ended without a response.

        A request that a middleware dropped was not sent. Any other exception may come from sending
        it, even if no download slot was used: a middleware may send it with a browser.
        """
        self._throttle.finish(request, sent=not isinstance(exception, IgnoreRequest))

    def _verdict(self, origin: Origin, request: Request, url: str) -> Verdict:
        """Return the verdict of an origin on a URL for the crawler of a request."""
        return origin.verdict(url, self._tokens(request), self._now(), self._unreachable_policy)

    # For the report of the crawl (REP_REPORT) and for the command-line tools.

    def record(self, recorder: Recorder) -> None:
        """Pass what happens in this crawl to a recorder, before the first request."""
        self._recorder = self._policy_cache.recorder = self._wait_stats.recorder = recorder
        self._final_url_checker.recorder = self.link_filter.recorder = recorder
        self._engine.on_send = recorder.sent
        recorder.delay_of, recorder.is_complete = self._throttle.delay, self._engine.shows_sent

    @property
    def policy_cache(self) -> PolicyCache:
        """The policies of the crawl."""
        return self._policy_cache

    def verdict(self, origin: Origin, url: str, agents: tuple[str, ...]) -> Verdict:
        """Return the verdict of an origin on a URL for a crawler with these product tokens."""
        return origin.verdict(url, agents, self._now(), self._unreachable_policy)

    # Local rules (REP_LOCAL_RULES).

    def _local_disallow(self, key: str, url: str) -> Verdict | None:
        """Return the verdict of a local rule that disallows a URL of an origin, or None."""
        return self._local_rules.disallowed(key, url, self._now())

    def _drop_if_locally_disallowed(self, request: Request, key: str) -> None:
        """Raise :class:`~scrapy_rep.RobotsTxtDisallowed` if a local rule disallows a request."""
        if not self._local_rules:
            return
        verdict = self._local_disallow(key, self._page_url(request))
        if verdict is not None:
            request.meta[ROBOTSTXT] = verdict
            raise self._disallow(request, verdict)

    def _is_excepted(self, request: Request, key: str) -> bool:
        """Whether a local rule allows a request, whatever the robots.txt says."""
        return self._local_rules.excepts(key, self._page_url(request), self._now())

    # The pace of a host.

    def _on_policy(self, origin: Origin, request: Request) -> None:
        """Apply the policy of an origin that was just fetched for a request."""
        self._pace.apply(origin, request)
        self._outages.update(origin)
        self._throttle.has_disallowed |= self._policy_cache.disallows_all(origin.key)
        if self._tdm_files is not None:
            self._tdm_files.prefetch(origin, request, self._page_url(request))
        if self._recorder is not None:
            local_delay = self._local_rules.delay(origin.key, self._now())
            self._recorder.paced(origin, self._tokens(request), local_delay)

    def _block_until_visit_time(self, pacing: Pacing, origin: Origin, request: Request) -> bool:
        """Block the queue of an origin outside of its Visit-time. Returns whether it is blocked.

        Raises :class:`~scrapy_rep.RobotsTxtDisallowed` if it begins too late (REP_MAX_WAIT).
        """
        seconds = pacing.seconds_until_visit_time(self._now())
        if seconds > self._settings.max_wait:
            verdict = request.meta[ROBOTSTXT]._replace(
                allowed=False, reason=Reason.VISIT_TIME, rule=None, detail=str(pacing.hours)
            )
            request.meta[ROBOTSTXT] = verdict
            raise self._disallow(request, verdict)
        if seconds:
            self._throttle.blocks.block_for(
                origin.host, origin.key, seconds, BlockReason.VISIT_TIME
            )
        return seconds > 0

    def _stop_wait(self, request: Request, name: str, key: str | None) -> None:
        """Record the end of a wait of a request, which has left its queue."""
        if not self._wait_stats.is_waiting(request):
            return
        origin = self._policy_cache.origins.get(key) if key is not None else None
        has_pacing = origin is not None and self._pace.applies_to(origin)
        self._wait_stats.stop(
            request,
            -inf if origin is None else origin.answered_at,
            has_delay=has_pacing or self._throttle.delay(name) > 0,
        )

    # The crawl.

    def _on_spider_opened(self) -> None:
        warn_about_configuration(self._crawler, self._settings, type(self))
        self._local_rules.warn_about_expired(self._now(), self._crawler.spider)
        self._engine.open(self._wrap_scheduler)
        if self._engine.connection_limit:
            self._policy_cache.share_connections(self._engine.connection_limit)

    def _wrap_scheduler(self, scheduler: Any) -> WaitingScheduler:
        self._throttle.queues.overflow = overflow_for(scheduler, self._crawler, self._clock)
        self._throttle.on_start = self._admission.count_wait
        self._throttle.is_dropped = self._admission.is_dropped
        is_extended = type(self).process_request is not RobotsTxtMiddleware.process_request
        self._policy_cache.can_fetch_early = not (
            is_extended or self._local_rules or not self._engine.is_first_middleware(self)
        )
        calls = self._admission.queue_for, self._admission.enqueue
        return WaitingScheduler(scheduler, self._throttle, self._engine, self._clock, *calls)

    def _poll(self) -> None:
        """Do the work for which Scrapy sends no signal. The engine calls this twice a second."""
        self._throttle.collect_finished()
        self._throttle.prune()
        self._policy_cache.poll()
        self._local_rules.warn_about_expired(self._now(), self._crawler.spider)

    def _on_spider_closing(self) -> None:
        """End all fetches and all waits: requests return to the scheduler."""
        self._policy_cache.close()
        self._throttle.close()
