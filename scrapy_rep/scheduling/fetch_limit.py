"""How many robots.txt files are fetched at once.

A fetch that takes long does not keep new ones from beginning: after :data:`SLOW` seconds it no
longer counts. There may be four times as many fetches in all; when a further one is to begin then,
the oldest is ended, as if its time were over. So a host that never answers cannot keep others
waiting, however many names it has, and the number of connections is bounded.

Where the crawl has no more connections than CONCURRENT_REQUESTS, fetches get half of them, slow
ones included, and the oldest is ended after :data:`LONGER` seconds at the earliest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import fire

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

    from .clock import Clock

SLOW = 2.0
"""Seconds after which a fetch no longer counts. Most files are there within half a second."""

LONGER = 5.0
"""The same where there are few places."""

SLOW_FACTOR = 4
"""How many fetches there may be in all, slow ones included, for each place."""


class Permit:
    """The place of one fetch: waited for, then taken, then slow. ``expire`` ends the fetch."""

    __slots__ = ("began", "expire", "granted", "timer")

    def __init__(self, expire: Callable[[], None]) -> None:
        self.expire: Callable[[], None] | None = expire
        self.granted: Deferred[None] = Deferred()
        self.began = 0.0
        self.timer: CallLaterResult | None = None


class FetchLimit:
    """The places for the fetches of one crawl.

    ``on_capacity`` is called when a fetch could begin and none waits.
    """

    def __init__(self, places: int, clock: Clock, on_capacity: Callable[[], None]) -> None:
        self._places = places
        self._slow = SLOW
        self._most = places * SLOW_FACTOR
        self._clock = clock
        self._on_capacity = on_capacity
        self._quick: set[Permit] = set()
        self._in_progress: OrderedDict[Permit, None] = OrderedDict()
        """The oldest first."""
        self._waiting: deque[Permit] = deque()

    def share(self, connections: int) -> None:
        """Use half of so many connections at most."""
        self._places = self._most = min(self._places, max(connections // 2, 1))
        self._slow = LONGER

    def restart(self, place: Permit, expire: Callable[[], None]) -> None:
        """The fetch has begun only now: it has waited for a connection."""
        place.expire = expire
        if place.timer is not None:
            place.timer.cancel()
        self._begin(place)
        self._in_progress.move_to_end(place)

    @property
    def capacity(self) -> int:
        """How many fetches may begin now without waiting."""
        return 0 if self._waiting else self._free

    @property
    def _free(self) -> int:
        in_all = self._most - len(self._in_progress)
        return max(min(self._places - len(self._quick), in_all), 0)

    async def acquire(self, expire: Callable[[], None]) -> Permit:
        """Wait for a place, which is to be given back with :meth:`release`.

        ``expire`` ends the fetch. It is called, once at most, when others need the place.
        """
        place = Permit(expire)
        self._waiting.append(place)
        self._fill()
        try:
            await maybe_deferred_to_future(place.granted)
        except BaseException:
            self.release(place)
            raise
        return place

    def release(self, place: Permit) -> None:
        """The fetch is over."""
        if place in self._in_progress:
            del self._in_progress[place]
            self._quick.discard(place)
            if place.timer is not None:
                place.timer.cancel()
        elif place in self._waiting:
            self._waiting.remove(place)
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._free:
            place = self._waiting.popleft()
            self._begin(place)
            self._in_progress[place] = None
            fire(place.granted, None)
        self.end_oldest(len(self._waiting))
        if self.capacity:
            self._on_capacity()

    def _begin(self, place: Permit) -> None:
        place.began = self._clock.monotonic()
        place.timer = self._clock.call_later(self._slow, self._is_slow, place)
        self._quick.add(place)

    def _is_slow(self, place: Permit) -> None:
        place.timer = None
        self._quick.discard(place)
        self._fill()

    def end_oldest(self, wanted: int) -> None:
        """End up to so many of the oldest fetches, where there are too many slow ones."""
        excess = len(self._in_progress) + wanted - self._most
        latest = self._clock.monotonic() - self._slow
        for place in tuple(islice(self._in_progress, max(excess, 0))):
            if place.expire is not None and place.began <= latest:
                expire, place.expire = place.expire, None
                expire()
