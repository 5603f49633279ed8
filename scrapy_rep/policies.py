"""What is known of each origin of a crawl, and the one fetch that everyone who waits shares.

A policy is in memory; else an earlier crawl or another crawler knows it; else it is fetched. The
least recently used go first when there are too many.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import failure_to_exc_info
from twisted.internet.defer import CancelledError

from .fetch import Fetcher
from .origin import Need, Origin, State
from .protocol.access import Abandoned, Rules, Unavailable, Unreachable
from .recall import Recollection, open_recall
from .robotparser import RobotParser
from .waiting import WaitingRoom

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred
    from twisted.python.failure import Failure

    from .pace import Turn
    from .protocol.access import Event
    from .protocol.robotstxt import RobotsTxt
    from .settings import Settings
    from .waiting import Engine, WayBack

logger = logging.getLogger(__name__)

# From Scrapy 2.18 on.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class Policies:
    """The policies of one crawl, by origin.

    ``now`` gives the time, in seconds.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        way_back: WayBack,
        now: Callable[[], float],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings
        self._engine = engine
        self._way_back = way_back
        self._now = now
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._recall = open_recall(settings, crawler.stats, now)
        if self._recall is not None:
            crawler.signals.connect(self._recall.store.close, signal=signals.spider_closed)
        shared = self._recall is not None and self._recall.store.shared
        self._fetcher = Fetcher(crawler, settings, engine, now, shared=shared)
        self._fetches: dict[str, Deferred[None]] = {}
        self._closing = False
        self._room = WaitingRoom(engine, settings.max_waiting)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins that are in memory, by their normal form. Read-only."""
        return MappingProxyType(self._origins)

    @property
    def turn(self) -> Turn | None:
        """Asks for the turns at hosts, where several crawlers share them; else None."""
        return self._recall.store.turn if self._recall and self._recall.store.shared else None

    def settled(self, key: str) -> Origin | None:
        """The origin, where it can be asked straight away: the hot path."""
        origin = self._origins.get(key)
        if origin is None or self._now() >= origin.settled_until:
            return None
        self._origins.move_to_end(key)
        return origin

    async def settle(self, key: str, request: Request) -> Origin | Request:
        """The origin, with an answer: its own, or that of a fetch which is begun or joined.

        Or the request as it goes back to the scheduler.
        """
        origin = self._origins.get(key)
        if origin is None:
            self._make_room(1)
            origin = self._origins[key] = Origin(key)
        self._origins.move_to_end(key)
        need = origin.need(self._now())
        if need is Need.NOTHING:
            return origin
        if need is Need.REFRESH:
            self._begin_fetch(origin, request)
            return origin
        if not self._closing:
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
        return self._way_back.if_crowded(request) or origin

    def give_up(self) -> None:
        """The spider is closing: nobody waits any longer, and nothing is fetched for anybody."""
        self._closing = True
        self._cancel(self._fetches)
        self._room.call_all()

    def give_up_refreshes(self) -> None:
        """What is fetched ahead of time, for nobody, is not worth holding a crawl open."""
        self._cancel(key for key in self._fetches if key not in self._room)

    def _cancel(self, keys: Iterable[str]) -> None:
        for key in tuple(keys):
            self._fetcher.given_up.add(key)
            self._fetches[key].cancel()

    def _begin_fetch(self, origin: Origin, page: Request) -> None:
        if self._closing:
            return
        origin.begin()
        fetch = deferred_from_coro(self._fetch(origin, page))
        fetch.addErrback(self._log_failure, origin)
        if origin.in_flight:
            self._fetches[origin.key] = fetch

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
            self._fetcher.given_up.discard(origin.key)
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
        elif self._settings.unreachable == "allow":
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

    def _make_room(self, places: int) -> None:
        """Let the least recently used origins go, but none that somebody waits for."""
        excess = len(self._origins) + places - self._settings.cache_size
        if excess > 0:
            idle = (key for key, origin in self._origins.items() if not origin.in_flight)
            for key in tuple(islice(idle, excess)):
                del self._origins[key]
