"""What is known of each origin of a crawl, and the one fetch that all requests of an origin share.

A policy is in memory; else an earlier crawl or another crawler knows it; else it is fetched. When
there are too many, the least recently used go first, but none that a request waits for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from types import MappingProxyType
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import failure_to_exc_info
from twisted.internet.defer import CancelledError, Deferred

from ..fetch.fetcher import TOO_MANY_REDIRECTS, Fetcher
from ..fetch.redirects import NOT_PUBLIC
from ..origin import Action, Origin, State
from ..protocol.access import Cancelled, Rules, Unavailable, Unreachable
from ..protocol.paths import host_of
from ..robotparser import RobotParser
from ..scheduling.clock import fire
from ..scheduling.fetch_limit import FetchLimit
from ..scheduling.hosts import BlockReason
from .policy_store import StoreLookup, open_policy_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from ..protocol.access import FetchResult
    from ..protocol.robotstxt import RobotsTxt
    from ..scheduling.clock import Clock
    from ..scheduling.engine import Engine
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from ..stores import Store

logger = logging.getLogger(__name__)

MAX_PER_PASS = 100
"""Origins in use that are looked at for one that can go."""

MIN_USE = 1.0
"""Seconds for which requests that waited for a fetch use its result, if it expires earlier."""

MIN_CLOCK_STEP = 5.0
"""Seconds: less is a clock that is a little fast or slow."""

# From Scrapy 2.18 on.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class PolicyCache:
    """The policies of one crawl, by origin.

    ``on_policy`` is called with an origin whose rules are new, and with the request for which they
    were fetched. ``new_origin`` returns a new origin for its normal form.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        throttle: Throttle,
        clock: Clock,
        on_policy: Callable[[Origin, Request], object],
        new_origin: Callable[[str], Origin] = Origin,
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._new_origin = new_origin
        self._on_policy = on_policy
        self._stats = crawler.stats
        self._settings = settings
        self._throttle = throttle
        self._clock = clock
        self._clock_offset = clock.time() - clock.monotonic()
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._policy_store = open_policy_store(settings, crawler.stats, self._now)
        if self._policy_store is not None:
            crawler.signals.connect(self._policy_store.close, signal=signals.spider_closed)
        self._fetch_limit = FetchLimit(settings.concurrent_fetches, clock, self.use_capacity)
        self._awaiting_capacity: dict[str, None] = {}
        """Origins whose requests wait until a further fetch may begin."""
        shared = self.shared_store is not None
        self._fetcher = Fetcher(
            crawler, settings, engine, throttle, self._fetch_limit, clock, shared=shared
        )
        self._fetches: dict[str, Deferred[None]] = {}
        self._awaited: Counter[str] = Counter()
        """How many pages, which are there already, wait for an origin."""
        self._closing = False

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins that are in memory, by their normal form. Read-only."""
        return MappingProxyType(self._origins)

    @property
    def shared_store(self) -> Store | None:
        """The store, where several crawlers share it; else None."""
        return (
            self._policy_store.store
            if self._policy_store and self._policy_store.store.shared
            else None
        )

    def get_fresh(self, key: str) -> Origin | None:
        """The origin, where it can be asked straight away: the hot path."""
        origin = self._origins.get(key)
        if origin is None or self._clock.time() >= origin.refresh_at:
            return None
        self._origins.move_to_end(key)
        return origin

    def get_or_fetch(self, key: str, request: Request) -> Origin | None:
        """The origin, where it can be asked.

        None where its robots.txt is being fetched, which is begun if need be: the line of the
        origin is held for so long. None, too, once the spider is closing.
        """
        origin = self._origins.get(key)
        if origin is None:
            self.evict(1)
            origin = self._origins[key] = self._new_origin(key)
        self._origins.move_to_end(key)
        action = self._next_action(origin, request)
        if action in (Action.REFRESH, Action.FETCH):
            self._begin_fetch(origin, request)
            # Where Twisted runs the coroutine at once, the fetch may be over by now.
            if action is Action.FETCH:
                action = Action.WAIT if origin.in_flight else origin.next_action(self._now())
        if action in (Action.NONE, Action.REFRESH):
            return origin
        if action is Action.WAIT:
            self._throttle.block(origin.host, key, BlockReason.POLICY)
        return None

    async def settled(self, key: str, request: Request) -> Origin | None:
        """The origin, once it can be asked; None if the spider closes before.

        This waits for its robots.txt and for nothing else: in no line, and not for its pace.
        """
        self._awaited[key] += 1
        try:
            while (origin := self.get_or_fetch(key, request)) is None:
                fetch = self._fetches.get(key)
                if fetch is None:
                    break
                waiter: Deferred[None] = Deferred()
                fetch.addBoth(_pass_on, waiter)
                await maybe_deferred_to_future(waiter)
            return origin
        finally:
            self._awaited[key] -= 1
            if not self._awaited[key]:
                del self._awaited[key]

    def _is_awaited(self, key: str) -> bool:
        return key in self._awaited or self._throttle.has_waiting(host_of(key), key)

    def _next_action(self, origin: Origin, request: Request) -> Action:
        # A request that has waited uses the result of the fetch, even if it has expired since. A
        # page whose delay is longer than the lifetime of the file would otherwise never be fetched.
        if not origin.in_flight and self._throttle.is_in_progress(request):
            usable_for = max(2 * self._throttle.delay(origin.host), MIN_USE)
            if self._clock.monotonic() < origin.answered_at + usable_for:
                return Action.NONE
        return origin.next_action(self._now())

    def needs_fetch(self, key: str) -> bool:
        """Whether a request of an origin has to wait until its robots.txt is fetched."""
        origin = self._origins.get(key)
        return origin is None or origin.next_action(self._now()) in (Action.FETCH, Action.WAIT)

    @property
    def has_capacity(self) -> bool:
        """Whether a further fetch may begin now."""
        return bool(self._fetch_limit.capacity) or self._closing

    def await_capacity(self, key: str) -> None:
        """Hold the line of an origin until its robots.txt may be fetched."""
        if key not in self._awaiting_capacity and not (
            key in self._origins and self._origins[key].in_flight
        ):
            self._throttle.block(host_of(key), key, BlockReason.FETCH_LIMIT)
            self._awaiting_capacity[key] = None

    def _now(self) -> float:
        """The time, on the clock by which the times of all origins are."""
        self.adjust_to_clock()
        return self._clock.time()

    def share_connections(self, connections: int) -> None:
        """Fetch with a share of so many connections, which pages use, too."""
        self._fetch_limit.share(connections)

    def adjust_to_clock(self) -> None:
        """Keep what is known as long as was said, though somebody has set the clock."""
        offset = self._clock.time() - self._clock.monotonic()
        step = offset - self._clock_offset
        if abs(step) > MIN_CLOCK_STEP:
            self._clock_offset = offset
            for origin in self._origins.values():
                origin.shift_clock(step)

    def cancel_fetches(self) -> None:
        """The spider is closing: nothing is fetched any longer."""
        self._closing = True
        self._cancel(self._fetches)

    def cancel_refreshes(self) -> None:
        """What is fetched ahead of time, for nobody, is not worth holding a crawl open."""
        self._cancel(key for key in self._fetches if not self._is_awaited(key))

    def _cancel(self, keys: Iterable[str]) -> None:
        for key in tuple(keys):
            self._fetcher.cancelled.add(key)
            self._fetches[key].cancel()

    def use_capacity(self) -> None:
        """Let requests go on for which a fetch may begin now."""
        self._fetch_limit.end_oldest(len(self._awaiting_capacity))
        for _ in range(min(self._fetch_limit.capacity, len(self._awaiting_capacity))):
            key = next(iter(self._awaiting_capacity))
            del self._awaiting_capacity[key]
            self._throttle.unblock(host_of(key), key, BlockReason.FETCH_LIMIT)

    def _begin_fetch(self, origin: Origin, page: Request) -> None:
        if self._closing:
            return
        origin.start_fetch(self._now())
        fetch = deferred_from_coro(self._fetch(origin, page))
        fetch.addErrback(self._log_failure, origin)
        if origin.in_flight:
            self._fetches[origin.key] = fetch

    async def _fetch(self, origin: Origin, page: Request) -> None:
        """One fetch, in a task of its own: whoever waits may be cancelled, it goes on."""
        event: FetchResult = Cancelled()
        found = StoreLookup()
        robots: RobotsTxt | None = None
        try:
            if self._policy_store is not None:
                await self._policy_store.load(origin, found)
            if found.settled:
                robots = origin.robots
            else:
                event = await self._fetcher.fetch(
                    origin, page, lambda: self._is_awaited(origin.key)
                )
                robots = event.robots if isinstance(event, Rules) else None
            if robots is not None and _ROBOTS_PARSED is not None:
                await self._crawler.signals.send_catch_log_async(
                    signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=page
                )
        finally:
            self._fetches.pop(origin.key, None)
            self._fetcher.cancelled.discard(origin.key)
            if not found.settled:
                origin.apply(event, self._now())
                self._report(origin, event)
                self._save(origin, event, found)
            if found.settled or not isinstance(event, Cancelled):
                self._record_response(origin, from_store=found.settled)
                self._on_policy(origin, page)
            self._throttle.unblock(origin.host, origin.key, BlockReason.POLICY)
            self.evict(0)

    def _record_response(self, origin: Origin, *, from_store: bool) -> None:
        """A fetch has ended: note when, on a clock that nobody sets."""
        now = origin.answered_at = self._clock.monotonic()
        ago = max(self._now() - origin.fetched_at, 0) if from_store else 0
        origin.last_request = None if origin.from_cache else now - ago

    def _save(self, origin: Origin, event: FetchResult, found: StoreLookup) -> None:
        """Let the store have it, in a task of its own: nothing waits for it."""
        if self._policy_store is None:
            return
        entry = None
        if not isinstance(event, Cancelled):
            entry = self._policy_store.entry(origin, event, found)
        keep = deferred_from_coro(self._policy_store.save(origin.key, entry, found))
        keep.addErrback(self._log_failure, origin)

    def _log_failure(self, failure: Failure, origin: Origin) -> None:
        if not isinstance(failure.value, (asyncio.CancelledError, CancelledError)):
            logger.error(
                "Fetching the robots.txt of %(origin)s went wrong in a way that is not its fault",
                {"origin": origin.key},
                exc_info=failure_to_exc_info(failure),
                extra={"spider": self._crawler.spider},
            )

    def _report(self, origin: Origin, event: FetchResult) -> None:
        if isinstance(event, Unavailable):
            self._stats.inc_value("robotstxt/unavailable")
        if not isinstance(event, Unreachable):
            return
        self._stats.inc_value("robotstxt/unreachable")
        if origin.state is not State.UNREACHABLE or origin.failures > 1:
            return
        now = self._now()
        if origin.robots is not None:
            held = "its last copy is used"
        elif self._settings.unreachable == "allow":
            held = "everything there is allowed, as REP_UNREACHABLE says"
        elif self._settings.unreachable == "wait":
            held = (
                f"requests wait up to {self._settings.max_wait:g} s for it (REP_MAX_WAIT), then "
                f"they are dropped; the next attempt is in {origin.refresh_at - now:.0f} s"
            )
        else:
            held = (
                "everything there is disallowed (RFC 9309, section 2.3.1.4) until it answers; "
                f"{remedy(event)} changes that"
            )
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s; %(held)s.",
            {"origin": origin.key, "failure": event.failure.rstrip("."), "held": held},
            extra={"spider": self._crawler.spider},
        )

    def evict(self, places: int = 0) -> None:
        """Let the least recently used origins go, but none that somebody waits for."""
        excess = len(self._origins) + places - self._settings.cache_size
        if excess <= 0:
            return
        for _ in range(min(excess + MAX_PER_PASS, len(self._origins))):
            if excess <= 0:
                break
            key, origin = next(iter(self._origins.items()))
            in_use = origin.in_flight or key in self._awaited
            if in_use or self._throttle.is_in_use(origin.host, key):
                self._origins.move_to_end(key)
            else:
                del self._origins[key]
                excess -= 1


def _pass_on(result: None, waiter: Deferred[None]) -> None:
    """A fetch is over: what waits for it goes on."""
    fire(waiter, None)
    return result


def remedy(event: Unreachable) -> str:
    """The settings that make something else of what has happened."""
    status = event.status or 0
    if event.failure == TOO_MANY_REDIRECTS:
        first = "REP_TOO_MANY_REDIRECTS or "
    elif event.failure.endswith(NOT_PUBLIC):
        first = "REP_ALLOW_PRIVATE_REDIRECTS or "
    elif 400 <= status <= 499:
        first = "REP_UNREACHABLE_STATUSES or "
    elif 500 <= status <= 599:
        first = "REP_5XX_AS_404 or "
    else:
        first = ""
    return f"{first}REP_UNREACHABLE"
