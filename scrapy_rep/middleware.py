"""The downloader middleware: request → origin → verdict → IgnoreRequest.

A request knocks here; the middleware asks the origin's policy; if there is none yet, one fetch is
made and everyone who waits gets its answer; the policy says yes or no and why.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.log import failure_to_exc_info
from twisted.internet.defer import CancelledError

from .fetch import Fetcher
from .origin import Need, Origin, Patience, State
from .pace import Pace
from .protocol.access import Abandoned, Rules, Unavailable, Unreachable
from .protocol.agents import identify
from .protocol.paths import origin_of
from .protocol.verdict import Reason
from .recall import Recollection, open_recall
from .robotparser import RobotParser
from .settings import obeys, settings_of
from .waiting import Engine, WaitingRoom, WayBack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure
    from typing_extensions import Self

    from .protocol.access import Event
    from .protocol.pacing import Pacing
    from .protocol.robotstxt import RobotsTxt
    from .protocol.verdict import Verdict

logger = logging.getLogger(__name__)

# From Scrapy 2.18 on.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)

_origin_of = lru_cache(maxsize=10_000)(origin_of)


class RobotsTxtDisallowed(IgnoreRequest):
    """A request was dropped for the robots.txt of its site. ``verdict`` says why."""

    def __init__(self, url: str, verdict: Verdict) -> None:
        self.url = url
        self.verdict = verdict
        super().__init__(url, verdict)

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {_because(self.verdict)}"


class RobotsTxtMiddleware:
    """Obeys robots.txt for every request of a crawl.

    Leaves the :class:`~scrapy_rep.Verdict` at ``request.meta["robotstxt"]``; a request that is
    disallowed ends in :class:`RobotsTxtDisallowed`, which reaches its errback.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not obeys(crawler):
            raise NotConfigured
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings = settings_of(crawler)
        self._patience = Patience(settings.unreachable == "allow", settings.unreachable_days)
        self._now = time.time
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._engine = Engine(crawler)
        self._engine.when_closing(self._give_up)
        self._recall = open_recall(settings, crawler.stats, self._now)
        if self._recall is not None:
            crawler.signals.connect(self._recall.store.close, signal=signals.spider_closed)
        self._fetcher = Fetcher(
            crawler,
            settings,
            self._engine,
            self._now,
            shared=self._recall is not None and self._recall.store.shared,
        )
        self._fetches: dict[str, Deferred[None]] = {}
        self._room = WaitingRoom(self._engine, settings.max_waiting)
        self._hours = WaitingRoom(self._engine, settings.max_waiting)
        self._way_back = WayBack(crawler)
        self._pace: Pace | None = None
        if settings.obey_crawl_delay:
            self._pace = Pace(crawler, settings, self._engine, self._way_back)
        self._slowest: set[str] = set()
        self._tokens = lru_cache(maxsize=256)(self._identify)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Raises NotConfigured where ROBOTSTXT_OBEY is off."""
        return cls(crawler)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """What is known of each origin, by its normal form ``scheme://host[:port]``. Read-only."""
        return MappingProxyType(self._origins)

    async def process_request(self, request: Request) -> Request | None:
        """Let the request pass, or raise :class:`RobotsTxtDisallowed`.

        Returns a request that has to wait where too many do already, and goes back to the
        scheduler.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return None
        parts = urlparse_cached(request)
        key = _origin_of(parts.scheme, parts.netloc)
        if key is None:  # a scheme without robots.txt, or no host: Scrapy will say what is wrong
            return None
        now = self._now()
        origin = self._origins.get(key)
        if origin is None or now >= origin.settled_until:
            settled = await self._settle(key, request, now)
            if isinstance(settled, Request):
                return settled
            origin, now = settled, self._now()
        else:
            self._origins.move_to_end(key)
        agents = self._agents_of(request)
        verdict = origin.verdict(request.url, agents, now, self._patience)
        request.meta["robotstxt"] = verdict
        if not verdict.allowed:
            raise self._disallowed(request, verdict)
        if self._pace is None:
            return None
        pacing = origin.pacing(agents)
        seconds = 0.0
        if pacing is not None:
            if pacing.hours is not None:
                later = await self._come_in_time(request, origin, pacing)
                if later is not None:
                    return later
            seconds = self._capped(origin, pacing.seconds_between(now))
        if not self._pace.keep(request, origin.key, seconds):
            return await self._way_back.to_the_end(request)
        return None

    async def _come_in_time(
        self, request: Request, origin: Origin, pacing: Pacing
    ) -> Request | None:
        """Wait for the Visit-time to begin, if that is not too long; as in process_request."""
        seconds = pacing.seconds_until_welcome(self._now())
        if seconds > self._settings.max_wait:
            verdict = request.meta["robotstxt"]._replace(
                allowed=False, reason=Reason.VISIT_TIME, rule=None
            )
            request.meta["robotstxt"] = verdict
            raise self._disallowed(request, verdict)
        if not seconds:
            return None
        if not self._hours.has_place(origin.key):
            return await self._way_back.to_the_end(request)
        await self._hours.wait(origin.key, seconds)
        return self._after_waiting(request)

    def _agents_of(self, request: Request) -> tuple[str, ...]:
        agent = self._settings.robots_agent or request.headers.get("User-Agent")
        return self._tokens(agent or self._settings.page_agent or "")

    def _identify(self, user_agent: str | bytes | tuple[str, ...]) -> tuple[str, ...]:
        tokens, doubt = identify(user_agent)
        if doubt is not None:
            logger.warning(
                "The user agent %(agent)r is read as %(tokens)s for robots.txt: %(doubt)s. "
                "ROBOTSTXT_USER_AGENT can name the product token.",
                {"agent": user_agent, "tokens": list(tokens), "doubt": doubt.value},
                extra={"spider": self._crawler.spider},
            )
        return tokens

    async def _settle(self, key: str, request: Request, now: float) -> Origin | Request:
        """The origin, with an answer: its own, or that of a fetch which is begun or joined.

        Or the request as it goes back to the scheduler.
        """
        origin = self._origins.get(key)
        if origin is None:
            self._make_room(1)
            origin = self._origins[key] = Origin(key)
        self._origins.move_to_end(key)
        need = origin.need(now)
        if need is Need.NOTHING:
            return origin
        if need is Need.REFRESH:
            self._begin_fetch(origin, request)
            return origin
        if not self._fetcher.closing:
            if not self._room.has_place(key):
                later = await self._way_back.to_the_end(request)
                if later is not None:
                    return later
                need = origin.need(self._now())
            if need is Need.FETCH:
                self._begin_fetch(origin, request)
            # Where Twisted runs the coroutine at once, the fetch may be over by now.
            if origin.in_flight:
                await self._room.wait(key)
        return self._after_waiting(request) or origin

    def _after_waiting(self, request: Request) -> Request | None:
        """Those who waited go on as far as the crawl's concurrency allows, the others later."""
        if self._fetcher.closing or self._engine.is_crowded:
            return self._way_back.as_it_is(request)
        return None

    def _begin_fetch(self, origin: Origin, page: Request) -> None:
        origin.begin()
        fetch = deferred_from_coro(self._fetch(origin, page))
        fetch.addErrback(self._log_failure, origin)
        if origin.in_flight:
            self._fetches[origin.key] = fetch

    def _give_up(self) -> None:
        """The spider is closing: nobody waits any longer, and nothing is fetched for anybody."""
        self._fetcher.closing = True
        for fetch in tuple(self._fetches.values()):
            fetch.cancel()
        self._room.call_all()
        self._hours.call_all()
        if self._pace is not None:
            self._pace.flush()

    async def _fetch(self, origin: Origin, page: Request) -> None:
        """One fetch, in a task of its own: whoever waits may be cancelled, it goes on."""
        event: Event = Abandoned()
        found = Recollection()
        robots: RobotsTxt | None = None
        try:
            if self._recall is not None:
                await self._recall.settle(origin, found)
            if found.settled:
                robots = origin.robots
            else:
                event = await self._fetcher.fetch(origin, page, lambda: origin.key in self._room)
                robots = event.robots if isinstance(event, Rules) else None
            if robots is not None and _ROBOTS_PARSED is not None:
                await self._crawler.signals.send_catch_log_async(
                    signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=page
                )
        finally:
            self._fetches.pop(origin.key, None)
            if not found.settled:
                origin.learn(event, self._now())
                self._report(origin, event)
                self._keep(origin, event, found)
            self._room.call(origin.key)
            self._make_room(0)

    def _keep(self, origin: Origin, event: Event, found: Recollection) -> None:
        """Let the store have it, in a task of its own: nobody need wait for that."""
        if self._recall is None:
            return
        entry = None
        if not isinstance(event, Abandoned):
            entry = self._recall.entry(origin, event, found)
        keep = deferred_from_coro(self._recall.keep(origin.key, entry, found))
        keep.addErrback(self._log_failure, origin)

    def _log_failure(self, failure: Failure, origin: Origin) -> None:
        if not isinstance(failure.value, (asyncio.CancelledError, CancelledError)):
            logger.error(
                "Fetching the robots.txt of %(origin)s went wrong in a way that is not its fault",
                {"origin": origin.key},
                exc_info=failure_to_exc_info(failure),
                extra={"spider": self._crawler.spider},
            )

    def _report(self, origin: Origin, event: Event) -> None:
        if isinstance(event, Unavailable):
            self._stats.inc_value("robotstxt/unavailable")
        if not isinstance(event, Unreachable):
            return
        self._stats.inc_value("robotstxt/unreachable")
        if origin.state is not State.UNREACHABLE or origin.failures > 1:
            return
        if origin.robots is not None:
            held = "its last copy is used"
        elif self._patience.allow:
            held = "everything there is allowed, as REP_UNREACHABLE says"
        else:
            held = (
                "everything there is disallowed (RFC 9309, section 2.3.1.4) until it answers; "
                "REP_UNREACHABLE, REP_UNREACHABLE_STATUSES and REP_5XX_AS_404 change that"
            )
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s; %(held)s.",
            {"origin": origin.key, "failure": origin.failure, "held": held},
            extra={"spider": self._crawler.spider},
        )

    def _disallowed(self, request: Request, verdict: Verdict) -> RobotsTxtDisallowed:
        self._stats.inc_value("robotstxt/forbidden")
        self._stats.inc_value(f"robotstxt/forbidden/{verdict.reason}")
        logger.debug(
            "Forbidden by robots.txt: %(request)s (%(because)s)",
            {"request": request, "because": _because(verdict)},
            extra={"spider": self._crawler.spider},
        )
        return RobotsTxtDisallowed(request.url, verdict)

    def _capped(self, origin: Origin, seconds: float) -> float:
        """The pace that an origin asks for, as far as it is granted."""
        most = self._settings.max_delay
        if seconds > most and origin.key not in self._slowest:
            self._slowest.add(origin.key)
            logger.info(
                "%(origin)s asks for %(seconds)g s between two requests: REP_MAX_DELAY makes it "
                "%(most)g s.",
                {"origin": origin.key, "seconds": seconds, "most": most},
                extra={"spider": self._crawler.spider},
            )
        return min(seconds, most)

    def _make_room(self, places: int) -> None:
        """Let the least recently used origins go, but none that somebody waits for."""
        excess = len(self._origins) + places - self._settings.cache_size
        if excess > 0:
            idle = (key for key, origin in self._origins.items() if not origin.in_flight)
            for key in tuple(islice(idle, excess)):
                del self._origins[key]


def _because(verdict: Verdict) -> str:
    if verdict.rule is None:
        return str(verdict.reason)
    field = "Allow" if verdict.rule.allow else "Disallow"
    return f"line {verdict.rule.line}, {field}: {verdict.rule.pattern}, for {verdict.agent}"
