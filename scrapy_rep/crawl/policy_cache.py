"""The policies of a crawl, by origin: in memory, from the store, or from a fetch.

All requests to an origin share one fetch. If there are too many origins, the least recently used
ones are removed, except those that a request waits for.
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
    from .recorder import Recorder

logger = logging.getLogger(__name__)

MAX_PER_PASS = 100
"""How many origins in use one eviction may skip, so that it takes a bounded time."""

MIN_USE = 1.0
"""Seconds for which requests that waited for a fetch use its result, even if it expires earlier."""

MIN_CLOCK_STEP = 5.0
"""Seconds. A smaller change of the clock counts as drift: the clock was not set."""

# Scrapy has this signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class PolicyCache:
    """The policies of one crawl, by origin.

    After each fetch, ``on_policy`` is called with the origin and with the request that started the
    fetch. ``new_origin`` returns a new origin for its normal form.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        throttle: Throttle,
        clock: Clock,
        on_policy: Callable[[Origin, Request], object],
        new_origin: Callable[[str], Origin],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._on_policy = on_policy
        self._new_origin = new_origin
        self._stats = crawler.stats
        self._settings = settings
        self._throttle = throttle
        self._clock = clock
        self._clock_offset = clock.time() - clock.monotonic()
        self._origins: OrderedDict[str, Origin] = OrderedDict()
        self._policy_store = open_policy_store(settings, crawler.stats, clock, self._now)
        if self._policy_store is not None:
            crawler.signals.connect(self._policy_store.close, signal=signals.spider_closed)
        self._fetch_limit = FetchLimit(settings.concurrent_fetches, clock, self.unblock_origins)
        self._blocked_by_limit: dict[str, None] = {}
        """Origins whose requests wait until REP_CONCURRENT_FETCHES allows another fetch."""
        shared = self.shared_store is not None
        self._fetcher = Fetcher(
            crawler, settings, engine, throttle, self._fetch_limit, clock, shared=shared
        )
        self._fetches: dict[str, Deferred[None]] = {}
        self._waiting_responses: Counter[str] = Counter()
        """How many responses wait for the policy of an origin, which is that of their final URL."""
        self._closing = False
        self.recorder: Recorder | None = None
        self.bodies: dict[str, bytes] | None = None
        """The good copies of origins as they were received. None: they are not kept, as in a crawl.
        """

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins in memory, by their normal form. Read-only."""
        return MappingProxyType(self._origins)

    @property
    def shared_store(self) -> Store | None:
        """The store if several crawlers can share it; else None."""
        return (
            self._policy_store.store
            if self._policy_store and self._policy_store.store.shared
            else None
        )

    @property
    def is_closing(self) -> bool:
        """Whether the spider is closing, so that no fetch starts any more."""
        return self._closing

    def get_fresh(self, key: str) -> Origin | None:
        """Return an origin whose policy is in memory and fresh, else None. This is the hot path."""
        origin = self._origins.get(key)
        if origin is None or self._clock.time() >= origin.refresh_at:
            return None
        self._origins.move_to_end(key)
        return origin

    def get_or_fetch(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy can be used, else start a fetch and return None.

        The queue of the origin is blocked until the fetch ends. Also returns None if the policy has
        to be fetched and the spider is closing.
        """
        origin = self._origins.get(key)
        if origin is None:
            self.evict(reserve=1)
            origin = self._origins[key] = self._new_origin(key)
        self._origins.move_to_end(key)
        action = self._next_action(origin, request)
        if action in (Action.REFRESH, Action.FETCH):
            self._start_fetch(origin, request)
            # Twisted runs the coroutine at once, so the fetch may have ended already.
            if action is Action.FETCH:
                action = Action.WAIT if origin.in_flight else origin.next_action(self._now())
        if action in (Action.NONE, Action.REFRESH):
            return origin
        if action is Action.WAIT:
            self._throttle.block(origin.host, key, BlockReason.POLICY)
        return None

    async def wait_for_policy(self, key: str, request: Request) -> Origin | None:
        """Return an origin when its policy can be used; None if the spider closes first.

        This waits for the fetch only, not for the queue of the origin or the delay of its host.
        """
        self._waiting_responses[key] += 1
        try:
            while (origin := self.get_or_fetch(key, request)) is None:
                fetch = self._fetches.get(key)
                if fetch is None:
                    break
                waiter: Deferred[None] = Deferred()
                fetch.addBoth(_notify, waiter)
                await maybe_deferred_to_future(waiter)
            return origin
        finally:
            self._waiting_responses[key] -= 1
            if not self._waiting_responses[key]:
                del self._waiting_responses[key]

    def _has_waiting(self, key: str) -> bool:
        """Whether a request or a response waits for the policy of an origin."""
        return key in self._waiting_responses or self._throttle.has_waiting(host_of(key), key)

    def _next_action(self, origin: Origin, request: Request) -> Action:
        # A request that waited uses the result of the fetch even if it has expired since. Otherwise
        # no page would be fetched from a site whose delay is longer than the lifetime of its file.
        if not origin.in_flight and self._throttle.is_in_progress(request):
            usable_for = max(2 * self._throttle.delay(origin.host), MIN_USE)
            if self._clock.monotonic() < origin.answered_at + usable_for:
                return Action.NONE
        return origin.next_action(self._now())

    def needs_fetch(self, key: str) -> bool:
        """Whether requests to an origin have to wait for a fetch of its robots.txt."""
        origin = self._origins.get(key)
        return origin is None or origin.next_action(self._now()) in (Action.FETCH, Action.WAIT)

    @property
    def allows_fetch(self) -> bool:
        """Whether REP_CONCURRENT_FETCHES allows another fetch now."""
        return bool(self._fetch_limit.capacity) or self._closing

    def block_until_fetch_allowed(self, key: str) -> None:
        """Block the queue of an origin until REP_CONCURRENT_FETCHES allows the fetch."""
        if key not in self._blocked_by_limit and not (
            key in self._origins and self._origins[key].in_flight
        ):
            self._throttle.block(host_of(key), key, BlockReason.FETCH_LIMIT)
            self._blocked_by_limit[key] = None

    def _now(self) -> float:
        """Return the time on the clock that the times of all origins refer to."""
        self.adjust_to_clock()
        return self._clock.time()

    def share_connections(self, connections: int) -> None:
        """Limit the fetches to a share of a connection pool that pages use, too."""
        self._fetch_limit.share(connections)

    def adjust_to_clock(self) -> None:
        """Keep the remaining lifetimes after a change of the system clock."""
        offset = self._clock.time() - self._clock.monotonic()
        step = offset - self._clock_offset
        if abs(step) > MIN_CLOCK_STEP:
            self._clock_offset = offset
            for origin in self._origins.values():
                origin.shift_clock(step)
            if self._policy_store is not None:
                self._policy_store.shift_clock(step)

    def close(self) -> None:
        """Cancel all fetches, and start no more: the spider is closing."""
        self._closing = True
        self._cancel(self._fetches)

    def cancel_background_fetches(self) -> None:
        """Cancel the fetches for which no request waits. They would keep the crawl open."""
        self._cancel(key for key in self._fetches if not self._has_waiting(key))

    def _cancel(self, keys: Iterable[str]) -> None:
        for key in tuple(keys):
            self._fetcher.cancelled.add(key)
            self._fetches[key].cancel()

    def unblock_origins(self) -> None:
        """Unblock as many origins as REP_CONCURRENT_FETCHES allows to fetch."""
        self._fetch_limit.end_oldest(len(self._blocked_by_limit))
        for _ in range(min(self._fetch_limit.capacity, len(self._blocked_by_limit))):
            key = next(iter(self._blocked_by_limit))
            del self._blocked_by_limit[key]
            self._throttle.unblock(host_of(key), key, BlockReason.FETCH_LIMIT)

    def _start_fetch(self, origin: Origin, page: Request) -> None:
        if self._closing:
            return
        origin.start_fetch(self._now())
        fetch = deferred_from_coro(self._fetch(origin, page))
        fetch.addErrback(self._log_failure, origin)
        if origin.in_flight:
            self._fetches[origin.key] = fetch

    async def _fetch(self, origin: Origin, page: Request) -> None:
        """Load or fetch the policy of an origin.

        This runs in a task of its own. It continues if a request that waits for it is cancelled.
        """
        event: FetchResult = Cancelled()
        found = StoreLookup()
        robots: RobotsTxt | None = None
        try:
            if self._policy_store is not None:
                await self._policy_store.load(origin, found)
            if found.is_hit:
                robots = origin.robots
            else:
                event = await self._fetcher.fetch(
                    origin, page, lambda: self._has_waiting(origin.key)
                )
                robots = event.robots if isinstance(event, Rules) else None
            if robots is not None and _ROBOTS_PARSED is not None:
                await self._crawler.signals.send_catch_log_async(
                    signal=_ROBOTS_PARSED, robotparser=RobotParser(robots), request=page
                )
        finally:
            self._fetches.pop(origin.key, None)
            self._fetcher.cancelled.discard(origin.key)
            if self.bodies is not None:
                body = event.body if isinstance(event, Rules) else found.body
                if body is not None:
                    self.bodies[origin.key] = body
            if not found.is_hit:
                origin.apply(event, self._now())
                self._record_result(origin, event)
                self._save(origin, event, found)
            if found.is_hit or not isinstance(event, Cancelled):
                self._record_response(origin, from_store=found.is_hit)
                if self.recorder is not None:
                    body = event.body if isinstance(event, Rules) else found.body
                    self.recorder.fetched(origin, event, body, from_store=found.is_hit)
                self._on_policy(origin, page)
            self._throttle.unblock(origin.host, origin.key, BlockReason.POLICY)
            self.evict()

    def _record_response(self, origin: Origin, *, from_store: bool) -> None:
        """Record on the monotonic clock when a fetch ended."""
        now = origin.answered_at = self._clock.monotonic()
        origin.from_store = from_store
        if from_store:
            origin.redirects = ()
        ago = max(self._now() - origin.fetched_at, 0) if from_store else 0
        origin.last_request = None if origin.from_cache else now - ago

    def _save(self, origin: Origin, event: FetchResult, found: StoreLookup) -> None:
        """Save the result of a fetch in the store, in a task of its own."""
        if self._policy_store is None:
            return
        entry = None
        if not isinstance(event, Cancelled):
            entry = self._policy_store.entry(origin, event, found)
        save = deferred_from_coro(self._policy_store.save(origin.key, entry, found))
        save.addErrback(self._log_failure, origin)

    def _log_failure(self, failure: Failure, origin: Origin) -> None:
        if not isinstance(failure.value, (asyncio.CancelledError, CancelledError)):
            logger.error(
                "Error in scrapy-rep while it handled the robots.txt of %(origin)s. Please report "
                "this bug.",
                {"origin": origin.key},
                exc_info=failure_to_exc_info(failure),
                extra={"spider": self._crawler.spider},
            )

    def _record_result(self, origin: Origin, event: FetchResult) -> None:
        """Count a failed fetch. Warn about the first one of an outage."""
        if isinstance(event, Unavailable):
            self._stats.inc_value("robotstxt/unavailable")
        if not isinstance(event, Unreachable):
            return
        self._stats.inc_value("robotstxt/unreachable")
        if origin.state is not State.UNREACHABLE or origin.failures > 1:
            return
        now = self._now()
        if origin.robots is not None:
            effect = "Its last good copy is used"
        elif self._settings.unreachable == "allow":
            effect = "All requests to the site are allowed, because REP_UNREACHABLE is 'allow'"
        elif self._settings.unreachable == "wait":
            effect = (
                f"Requests to the site wait up to {self._settings.max_wait:g} s (REP_MAX_WAIT), "
                f"then they are dropped. The next attempt is in {origin.refresh_at - now:.0f} s"
            )
        else:
            effect = (
                "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch "
                f"succeeds. To change that, set {' or '.join(settings_for(event))}"
            )
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s. %(effect)s.",
            {"origin": origin.key, "failure": event.failure.rstrip("."), "effect": effect},
            extra={"spider": self._crawler.spider},
        )

    def evict(self, reserve: int = 0) -> None:
        """Remove the least recently used origins beyond REP_CACHE_SIZE, except those in use.

        ``reserve`` is the number of origins that are about to be added.
        """
        excess = len(self._origins) + reserve - self._settings.cache_size
        if excess <= 0:
            return
        for _ in range(min(excess + MAX_PER_PASS, len(self._origins))):
            if excess <= 0:
                break
            key, origin = next(iter(self._origins.items()))
            in_use = origin.in_flight or key in self._waiting_responses
            if in_use or self._throttle.is_in_use(origin.host, key):
                self._origins.move_to_end(key)
            else:
                del self._origins[key]
                excess -= 1


def _notify(result: None, waiter: Deferred[None]) -> None:
    """Resume a coroutine that waits for a fetch, which has ended."""
    fire(waiter, None)
    return result


def settings_for(event: Unreachable) -> list[str]:
    """Return the settings that change what a failure means, the most specific one first."""
    status = event.status or 0
    names = ["REP_UNREACHABLE"]
    if event.failure == TOO_MANY_REDIRECTS:
        names.insert(0, "REP_TOO_MANY_REDIRECTS")
    elif event.failure.endswith(NOT_PUBLIC):
        names.insert(0, "REP_ALLOW_PRIVATE_REDIRECTS")
    elif 400 <= status <= 499:
        names.insert(0, "REP_UNREACHABLE_STATUSES")
    elif 500 <= status <= 599:
        names.insert(0, "REP_5XX_AS_404")
    return names
