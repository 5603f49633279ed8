"""How many robots.txt files are fetched at once.

Slow fetches do not prevent others: after :data:`SLOW` seconds a fetch no longer counts. At most
:data:`SLOW_FACTOR` times as many fetches may be in progress in all. If one more has to begin then,
the oldest is ended, as if it had timed out, after :data:`OLD` seconds at the earliest. So a host
that never answers cannot delay others, however many names it has. The number of connections is
bounded, and so is the number of fetches that begin within :data:`OLD` seconds.

At most :data:`MAX_PER_TURN` fetches begin before the event loop runs again, so that many first
requests do not delay the pages of other sites.

If the crawl has no more connections than CONCURRENT_REQUESTS, fetches get half of them, slow
fetches included, and the oldest is ended after :data:`OLD_WITH_POOL` seconds at the earliest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import Timer, fire

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock

SLOW = 0.5
"""Seconds after which a fetch no longer counts. Most files arrive within this time."""

OLD = 8.0
OLD_WITH_POOL = 5.0
"""Seconds after which the oldest fetch may be ended; fewer if connections are few."""

SLOW_FACTOR = 4
"""How many times as many fetches may be in progress in all, slow ones included."""

MAX_PER_TURN = 5
"""How many fetches begin before the event loop runs again."""


class Permit:
    """The permit of one fetch. ``expire`` ends the fetch."""

    __slots__ = ("began", "expire", "granted")

    def __init__(self, expire: Callable[[], None]) -> None:
        self.expire: Callable[[], None] | None = expire
        self.granted: Deferred[None] | None = None
        """Fires when a permit that waited is granted."""
        self.began = 0.0


class FetchLimit:
    """The permits of one crawl.

    ``on_capacity`` is called when a fetch could begin and none waits.
    """

    def __init__(self, limit: int, clock: Clock, on_capacity: Callable[[], None]) -> None:
        self._limit = limit
        self._slow, self._old = SLOW, OLD
        self._max_in_progress = limit * SLOW_FACTOR
        self._clock = clock
        self._on_capacity = on_capacity
        self._quick: OrderedDict[Permit, None] = OrderedDict()
        """The permits that count, the oldest first."""
        self._slow_timer = Timer(clock)
        """Notes that the oldest of them is slow. There is one timer for all fetches: most of them
        end long before it."""
        self._in_progress: OrderedDict[Permit, None] = OrderedDict()
        """All permits that were granted, the oldest first."""
        self._waiting: deque[Permit] = deque()
        self._in_turn = 0
        """How many permits were granted since the event loop ran."""
        self._turn_timer = Timer(clock)

    def share(self, connections: int) -> None:
        """Use half of so many connections at most."""
        self._limit = self._max_in_progress = min(self._limit, max(connections // 2, 1))
        self._slow = self._old = OLD_WITH_POOL

    def restart(self, permit: Permit, expire: Callable[[], None]) -> None:
        """Count a fetch from now on: until now it has waited for a connection."""
        permit.expire = expire
        self._begin(permit)
        self._in_progress.move_to_end(permit)

    @property
    def capacity(self) -> int:
        """How many fetches may begin now without waiting."""
        return 0 if self._waiting else self._free

    @property
    def _free(self) -> int:
        in_all = self._max_in_progress - len(self._in_progress)
        return max(min(self._limit - len(self._quick), in_all), 0)

    @property
    def _can_begin(self) -> bool:
        """Whether one more fetch may begin before the event loop runs again."""
        return self._in_turn < MAX_PER_TURN and bool(self._free)

    async def acquire(self, expire: Callable[[], None]) -> Permit:
        """Wait for a permit, and return it. Give it back with :meth:`release`.

        ``expire`` ends the fetch. It is called once at most, when other fetches need the permit.
        """
        permit = Permit(expire)
        if not self._waiting and self._can_begin:
            self._grant(permit)
            return permit
        permit.granted = Deferred()
        self._waiting.append(permit)
        self.end_oldest()
        try:
            await maybe_deferred_to_future(permit.granted)
        except BaseException:
            self.release(permit)
            raise
        return permit

    def release(self, permit: Permit) -> None:
        """Give a permit back: the fetch is over."""
        if permit in self._in_progress:
            del self._in_progress[permit]
            self._quick.pop(permit, None)
            if not self._quick:
                self._slow_timer.cancel()
        elif permit in self._waiting:
            self._waiting.remove(permit)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._can_begin:
            permit = self._waiting.popleft()
            self._grant(permit)
            assert permit.granted is not None
            fire(permit.granted, None)
        self.end_oldest()
        if self.capacity:
            self._on_capacity()

    def _grant(self, permit: Permit) -> None:
        self._in_progress[permit] = None
        self._begin(permit)
        self._in_turn += 1
        if not self._turn_timer.is_active:
            self._turn_timer.start(0, self._end_turn)

    def _end_turn(self) -> None:
        self._in_turn = 0
        if self._waiting:
            self._fill()

    def _begin(self, permit: Permit) -> None:
        permit.began = self._clock.monotonic()
        self._quick[permit] = None
        self._quick.move_to_end(permit)
        if not self._slow_timer.is_active:
            self._slow_timer.start(self._slow, self._note_slow)

    def _note_slow(self) -> None:
        latest = self._clock.monotonic() - self._slow
        while self._quick:
            oldest = next(iter(self._quick))
            if oldest.began > latest:
                self._slow_timer.start(oldest.began - latest, self._note_slow)
                break
            del self._quick[oldest]
        self._fill()

    def end_oldest(self, wanted: int = 0) -> None:
        """End the oldest fetches, so that those that wait and ``wanted`` others may begin.

        Only fetches that are old are ended, and no more than needed. Call this from time to time:
        a fetch may have become old.
        """
        excess = len(self._in_progress) + len(self._waiting) + wanted - self._max_in_progress
        if excess <= 0:
            return
        latest = self._clock.monotonic() - self._old
        for permit in tuple(islice(self._in_progress, excess)):
            if permit.expire is not None and permit.began <= latest:
                expire, permit.expire = permit.expire, None
                expire()
