"""The downloader middleware: request → origin → verdict → IgnoreRequest.

A request knocks here; the middleware asks the origin's policy; if there is none yet, one fetch is
made and everyone who waits gets its answer; the policy says yes or no and why.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured

from ..exceptions import RobotsTxtDisallowed
from ..origin import ROBOTS_TXT, Origin, State, UnreachablePolicy
from ..protocol.agents import parse_user_agent
from ..protocol.pacing import describe
from ..protocol.paths import host_of, lacks_host, origin_of
from ..protocol.verdict import Reason, Verdict
from ..scheduling.clock import Clock
from ..scheduling.engine import Engine
from ..scheduling.hosts import BlockReason
from ..scheduling.rendering import RenderingService
from ..scheduling.scheduler import WaitingScheduler, remove_annotations
from ..scheduling.throttle import EXEMPT, Throttle
from ..settings import read_settings, robotstxt_obey
from ..startup import abort_on_setting_error, warn_about_configuration
from .final_url import FinalUrls
from .local_rules import LocalRulesFile, record_exception
from .outages import Outages
from .policy_cache import PolicyCache
from .robots_page import FROM_CACHE, answer
from .wait_stats import WaitStats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser
    from typing_extensions import Self

    from ..protocol.pacing import Pacing

logger = logging.getLogger(__name__)

DONT_OBEY = "dont_obey_robotstxt"
"""The meta key, Scrapy's own, of requests that need not obey."""

CLOSING = "the spider is closing"
"""What a caller of ``engine.download_async`` is told whose request waits at the end."""

AMBIGUOUS_AGENT = "robotstxt/ambiguous_user_agent_count"


class RobotsTxtMiddleware:
    """Obeys robots.txt for every request of a crawl.

    Leaves the :class:`~scrapy_rep.Verdict` at ``request.meta["robotstxt"]``; a request that is
    disallowed ends in :class:`RobotsTxtDisallowed`, which reaches its errback.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not robotstxt_obey(crawler):
            raise NotConfigured
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings = read_settings(crawler)
        self._patience = UnreachablePolicy(
            settings.unreachable == "allow", settings.unreachable_days
        )
        self._clock = Clock()
        self._now = self._clock.time
        self._engine = Engine(crawler)
        rendering = RenderingService(settings.splash_url)
        self._page_url = rendering.page_url
        self._throttle = Throttle(
            crawler,
            self._engine,
            self._clock,
            rendering,
            capacity=settings.max_waiting,
            most_hosts=settings.cache_size,
        )
        self._local_rules = LocalRulesFile(settings.local_rules)
        self._policy_cache = PolicyCache(
            crawler,
            settings,
            self._engine,
            self._throttle,
            self._clock,
            self._learn,
            self._local_rules.origin,
        )
        self._outages = Outages(
            crawler,
            settings,
            self._patience,
            self._throttle,
            self._policy_cache,
            self._clock,
            self._is_excepted,
        )
        self._final_urls = FinalUrls(
            crawler,
            self._engine,
            self._policy_cache,
            self._verdict,
            lambda key, url: self._local_rules.disallowed(key, url, self._now()),
        )
        if settings.shared_pace and self._policy_cache.shared_store is not None:
            self._throttle.share(self._policy_cache.shared_store)
        self._wait_stats = WaitStats(crawler.stats, self._clock)
        self._tokens = lru_cache(maxsize=256)(self._identify)
        self._has_warned_about_agent = False
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        self._engine.watch(self._poll, self._closing, self._policy_cache.cancel_refreshes)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Raises NotConfigured where ROBOTSTXT_OBEY is off, and
        :class:`~scrapy_rep.exceptions.SettingError` for a setting that cannot be read.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """What is known of each origin, by its normal form ``scheme://host[:port]``. Read-only."""
        return self._policy_cache.origins

    async def process_request(self, request: Request) -> Request | Response | None:
        """Let the request pass, or raise :class:`RobotsTxtDisallowed`.

        Returns the request where it goes back to the scheduler, because the spider is closing, and
        a response where it is for a robots.txt that is in memory.
        """
        hosts = self._throttle.hosts
        if request.meta.get(DONT_OBEY):
            if request.meta.get("is_robotstxt_request"):
                self._engine.exclude_download(request)
            remove_annotations(request.meta)  # of another request, whose meta was copied
            if not request.meta.get("is_robotstxt_request"):
                self._apply_local_rules(request)
            return await self._keep_pace(request) if hosts else None
        key = origin_of(self._page_url(request))
        if key is None:  # a scheme without robots.txt, or no host
            if lacks_host(self._page_url(request)):
                verdict = request.meta["robotstxt"] = Verdict(False, Reason.INVALID_HOST)
                raise self._disallowed(request, verdict)
            return None
        origin = self._policy_cache.get_fresh(key)
        if origin is None or origin.has_conditions or origin.host in hosts:
            return await self._obey(request, key)
        if self._outages.waits and origin.state is State.UNREACHABLE:
            return await self._obey(request, key)
        self.process_request_2(origin, request)
        if request.url.endswith(ROBOTS_TXT):
            return self._answer(request, origin)
        return None

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        """Judge the page at which a request has ended, where that is not the one it was for.

        Raises :class:`RobotsTxtDisallowed` if it is dropped. Returns the request where it goes back
        to the scheduler, because the spider is closing.
        """
        if response.url == request.url:  # nearly always
            return response
        mode, meta = self._settings.check_final_url, request.meta
        is_judged = isinstance(meta.get("robotstxt"), Verdict) and not meta.get(DONT_OBEY)
        if mode == "ignore" or not is_judged:
            return response
        verdict = await self._final_urls.verdict(request, self._page_url(request), response)
        if verdict is None:
            return response
        meta["robotstxt"] = verdict
        if verdict.allowed:
            return response
        if mode == "annotate":
            self._final_urls.warn(request, response, verdict)
            return response
        is_undecided = verdict.reason is Reason.UNREACHABLE and self._engine.is_closing
        if is_undecided and self._is_rescheduled(request):
            return request
        raise self._disallowed(request, verdict, response)

    def process_request_2(self, rp: Origin | RobotParser | None, request: Request) -> None:
        """Ask what is known, and raise :class:`RobotsTxtDisallowed` if it is a no.

        The name of this half, and a parser in the place of the origin, are those of Scrapy's own
        middleware, for what builds on it.
        """
        if rp is None:
            return
        if isinstance(rp, Origin):
            tokens = self._tokens_of(request)
            verdict = rp.verdict(self._page_url(request), tokens, self._now(), self._patience)
        else:
            agent: Any = self._settings.user_agent(request.headers.get(b"User-Agent"))
            verdict = Verdict(rp.allowed(self._page_url(request), agent), Reason.RULES)
        request.meta["robotstxt"] = verdict
        if not verdict.allowed:
            raise self._disallowed(request, verdict)

    def _verdict(self, origin: Origin, request: Request, url: str) -> Verdict:
        """What an origin says of a URL to which a request has led."""
        return origin.verdict(url, self._tokens_of(request), self._now(), self._patience)

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Note that a request has ended without an answer.

        One that a middleware dropped was not sent. Any other error may have come of sending it,
        also where no download slot was passed, as by a middleware that drives a browser.
        """
        self._throttle.finish(request, sent=not isinstance(exception, IgnoreRequest))

    async def _obey(self, request: Request, key: str) -> Request | Response | None:
        """Wait until the request may go on, as far as its origin ``key`` goes; as process_request.

        What leaves a line is judged by what is known then.
        """
        name = host_of(key)
        self._record_wait(request, name, key)
        self._drop_if_disallowed_locally(request, key)  # before its robots.txt is fetched
        while True:
            origin = self._policy_cache.get_or_fetch(key, request)
            response = self._answer(request, origin) if origin is not None else None
            if response is not None or (origin is not None and self._may_proceed(request, origin)):
                self._policy_cache.evict()
                self._wait_stats.finish(request)
                return response
            self._wait_stats.start(
                request, for_policy=origin is None or self._outages.holds(origin)
            )
            line = EXEMPT if self._skips_outage(request, key) else key
            if not await self._throttle.wait(request, name, line):
                break
            self._record_wait(request, name, key)
        if self._is_rescheduled(request):
            return request
        if origin is None:
            self.process_request_2(
                self._policy_cache.origins.get(key, self._local_rules.origin(key)), request
            )
        raise IgnoreRequest(CLOSING)

    def _answer(self, request: Request, origin: Origin) -> Response | None:
        """The response to a request for a robots.txt that is in memory; else None."""
        response = answer(request, origin) if self._settings.answer_robots_txt else None
        if response is not None:
            self.process_request_2(origin, request)
            self._throttle.finish(request, sent=False)
            self._stats.inc_value("robotstxt/answered_count")
        return response

    async def _keep_pace(self, request: Request) -> Request | None:
        """Wait for the host of a request that need not obey robots.txt; as process_request."""
        key = origin_of(self._page_url(request))
        if key is None:
            return None
        name = host_of(key)
        self._record_wait(request, name, None)
        while not self._throttle.try_start(request, name):
            self._wait_stats.start(request, for_policy=False)
            if not await self._throttle.wait(request, name, EXEMPT):
                if self._is_rescheduled(request):
                    return request
                raise IgnoreRequest(CLOSING)
            self._record_wait(request, name, None)
        self._wait_stats.finish(request)
        return None

    def _is_rescheduled(self, request: Request) -> bool:
        """Whether a request goes back to the scheduler, now that the spider is closing."""
        self._wait_stats.forget(request)
        return self._throttle.can_reschedule(request)

    def _record_wait(self, request: Request, name: str, key: str | None) -> None:
        """A request comes out of its line: note what it has waited for."""
        origin = self._policy_cache.origins.get(key) if key is not None else None
        asks = origin is not None and origin.has_pacing and self._settings.obey_crawl_delay
        paced = asks or self._throttle.delay(name) > 0
        self._wait_stats.pause(request, -inf if origin is None else origin.answered_at, paced=paced)

    def _may_proceed(self, request: Request, origin: Origin) -> bool:
        """Whether a request may go on now. Raises :class:`RobotsTxtDisallowed` if it never may."""
        if not self._outages.holds(origin) or self._is_excepted(request, origin.key):
            self.process_request_2(origin, request)
        else:
            limit = self._outages.postpone(request, origin)
            if limit is None:
                return False
            try:
                self.process_request_2(origin, request)
            except RobotsTxtDisallowed:
                self._outages.note_drop(origin, limit)
                raise
        pacing = self._set_delay(origin, request)
        if pacing is not None:
            closed = pacing.seconds_until_visit_time(self._now())
            if closed > self._settings.max_wait:
                verdict = request.meta["robotstxt"]._replace(
                    allowed=False, reason=Reason.VISIT_TIME, rule=None, detail=str(pacing.hours)
                )
                request.meta["robotstxt"] = verdict
                raise self._disallowed(request, verdict)
            if closed:
                self._throttle.block_for(origin.host, origin.key, closed, BlockReason.VISIT_TIME)
                return False
        may_start = self._throttle.try_start(request, origin.host)
        if may_start:
            record_exception(self._crawler, request)
        return may_start

    def _apply_local_rules(self, request: Request) -> None:
        """Apply local rules to a request that need not obey robots.txt."""
        key = origin_of(self._page_url(request))
        if key is None:
            return
        self._drop_if_disallowed_locally(request, key)
        host, seconds = (
            self._throttle.hosts.get(host_of(key)),
            self._local_rules.delay(key, self._now()),
        )
        if seconds > (host.delays.get(key, 0) if host is not None else 0):
            self._throttle.set_delay(host_of(key), key, seconds, None)

    def _drop_if_disallowed_locally(self, request: Request, key: str) -> None:
        verdict = self._local_rules.disallowed(key, self._page_url(request), self._now())
        if verdict is not None:
            request.meta["robotstxt"] = verdict
            raise self._disallowed(request, verdict)

    def _is_excepted(self, request: Request, key: str) -> bool:
        """Whether a local rule allows a request, whatever the robots.txt says."""
        return self._local_rules.excepts(key, self._page_url(request), self._now())

    def _skips_outage(self, request: Request, key: str) -> bool:
        """Whether a request does not wait for an unreachable origin for which others wait."""
        origin = self._policy_cache.origins.get(key)
        is_held = origin is not None and self._outages.holds(origin)
        return is_held and self._is_excepted(request, key)

    def _learn(self, origin: Origin, request: Request) -> None:
        """There is news of an origin, which was fetched for a request."""
        self._set_delay(origin, request)
        self._outages.learn(origin)

    def _set_delay(self, origin: Origin, request: Request) -> Pacing | None:
        """Have the host of an origin keep the pace that is asked of a request, and return it."""
        pacing = None
        if origin.has_pacing and self._settings.obey_crawl_delay:
            pacing = origin.pacing(self._tokens_of(request))
        seconds = self._local_rules.delay(origin.key, self._now())
        if origin.robots is None and origin.state is State.UNREACHABLE:
            # What it asks for is not known: what it has asked for still holds.
            host = self._throttle.hosts.get(origin.host)
            if seconds and (host is None or origin.key not in host.delays):
                self._throttle.set_delay(origin.host, origin.key, seconds, origin.last_request)
            return None
        if pacing is not None:
            asked = min(pacing.seconds_between(self._now()), self._settings.max_delay)
            seconds = max(seconds, asked)
            self._log_pace(origin, pacing, request)
        if seconds or origin.host in self._throttle.hosts:
            self._throttle.set_delay(origin.host, origin.key, seconds, origin.last_request)
        return pacing

    def _queue_for(self, request: Request) -> tuple[str, str] | None:
        """The host and the line in which a request from the scheduler has to wait, if it has to."""
        key = origin_of(self._page_url(request))
        if key is None:
            return None
        if "_splash_processed" in request.meta:
            self._throttle.collect_finished()  # the one of which it was made has ended just now
        name = host_of(key)
        exempt = request.meta.get(DONT_OBEY) or self._skips_outage(request, key)
        line = name, EXEMPT if exempt else key
        if self._throttle.has_queue(*line):
            return None if self._throttle.is_full(*line) else line  # it goes on to be dropped
        if not exempt and self._policy_cache.needs_fetch(key):
            return None if self._policy_cache.has_capacity else line
        return line if self._throttle.is_throttled(name, request) else None

    def _park(self, request: Request, line: tuple[str, str]) -> tuple[bool, list[Request]]:
        """Keep a request from the scheduler in its line; as Admission.park."""
        kept, evicted = self._throttle.enqueue(request, *line)
        _, key = line
        for other in evicted:
            self._wait_stats.forget(other)
        if kept:
            needs_fetch = key != EXEMPT and self._policy_cache.needs_fetch(key)
            origin = self._policy_cache.origins.get(key)
            is_out = origin is not None and self._outages.holds(origin)
            self._wait_stats.start(request, for_policy=needs_fetch or is_out)
            if needs_fetch:
                self._policy_cache.await_capacity(key)
        return kept, evicted

    def _tokens_of(self, request: Request) -> tuple[str, ...]:
        headers = request.headers
        return self._tokens(
            headers[b"User-Agent"] if headers and b"User-Agent" in headers else None
        )

    def _identify(self, header: bytes | None) -> tuple[str, ...]:
        user_agent = self._settings.user_agent(header)
        tokens, doubt = parse_user_agent(user_agent)
        if doubt is not None:
            self._stats.inc_value(AMBIGUOUS_AGENT)
        if doubt is not None and not self._has_warned_about_agent:
            self._has_warned_about_agent = True
            logger.warning(
                "The user agent %(agent)r is read as %(tokens)s for robots.txt: %(doubt)s. "
                "ROBOTSTXT_USER_AGENT can name the product token. Further user agents like this "
                "are counted in the stat %(stat)s.",
                {
                    "agent": user_agent,
                    "tokens": list(tokens),
                    "doubt": doubt.value,
                    "stat": AMBIGUOUS_AGENT,
                },
                extra={"spider": self._crawler.spider},
            )
        return tokens

    def _opened(self) -> None:
        warn_about_configuration(self._crawler, self._settings, type(self))
        self._local_rules.warn_about_expired(self._now(), self._crawler.spider)
        self._engine.open(self._wrap)
        if self._engine.connection_limit:
            self._policy_cache.share_connections(self._engine.connection_limit)

    def _wrap(self, scheduler: Any) -> WaitingScheduler:
        return WaitingScheduler(
            scheduler, self._throttle, self._engine, self._clock, self._queue_for, self._park
        )

    def _poll(self) -> None:
        self._throttle.collect_finished()
        self._throttle.prune()
        self._policy_cache.use_capacity()
        self._policy_cache.adjust_to_clock()
        self._local_rules.warn_about_expired(self._now(), self._crawler.spider)

    def _closing(self) -> None:
        """The spider is closing: whoever waits goes back to the scheduler."""
        self._policy_cache.cancel_fetches()
        self._throttle.close()

    def _disallowed(
        self, request: Request, verdict: Verdict, response: Response | None = None
    ) -> RobotsTxtDisallowed:
        """The exception for a request, or for a response that has come of it."""
        is_sent = response is not None and FROM_CACHE not in response.flags
        self._throttle.finish(request, sent=is_sent)
        self._wait_stats.finish(request)
        self._stats.inc_value("robotstxt/forbidden")
        self._stats.inc_value(f"robotstxt/forbidden/{verdict.reason}")
        if verdict.reason is Reason.LOCAL_RULE:
            self._stats.inc_value("robotstxt/local/disallowed")
        logger.debug(
            "Forbidden by robots.txt: %(request)s (%(because)s)",
            {"request": response or request, "because": verdict},
            extra={"spider": self._crawler.spider},
        )
        return RobotsTxtDisallowed(response.url if response else self._page_url(request), verdict)

    def _log_pace(self, origin: Origin, pacing: Pacing, request: Request) -> None:
        """Tell once what an origin asks for and what of it is kept, and again if it changes."""
        robots, told = origin.robots, origin.reported_pace
        if robots is None or (told is not None and told[0] is robots):
            return
        wish = describe(robots, self._tokens_of(request))
        origin.reported_pace = robots, wish
        if told is not None and told[1] == wish:
            return
        kept = []
        seconds, most = pacing.seconds_between(self._now()), self._settings.max_delay
        if seconds > most:
            kept.append(f"{most:g} s between two requests, the most that REP_MAX_DELAY allows")
        elif pacing.delay or pacing.changes:
            at_this_hour = " at this hour" if len(pacing.changes) > 1 else ""
            kept.append(f"{seconds:g} s between two requests{at_this_hour}")
        if pacing.hours is not None:
            wait = self._settings.max_wait
            kept.append(
                f"requests wait up to {wait:g} s for that time (REP_MAX_WAIT), or are dropped"
            )
        logger.info(
            "%(origin)s asks for %(wish)s. What is kept: %(kept)s.",
            {"origin": origin.key, "wish": wish, "kept": "; ".join(kept)},
            extra={"spider": self._crawler.spider},
        )
