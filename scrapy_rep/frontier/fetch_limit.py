"""How many robots.txt files are fetched at once (REP_CONCURRENT_ROBOTSTXT_REQUESTS).

Slow fetches do not prevent others: after :data:`SLOW` seconds a fetch leaves its place. At most
:data:`MAX_FACTOR` times as many may be in progress in all. If one more has to begin then, the
oldest is ended, as if it had timed out, after :data:`OLD` seconds at the earliest. So a host that
never answers cannot delay others, however many names it has, and the number of connections is
bounded.

A download handler with a pool of connections of its own may have no more of them than
CONCURRENT_REQUESTS. Fetches then get half of them, slow ones included, and none is ended early: the
handler might keep its connection.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import Clock, fire
from .engine import Engine

SLOW = 0.25
"""Seconds after which a fetch leaves its place. Most files arrive within this time."""

OLD = 8.0
"""Seconds after which the oldest fetch may be ended. Few files arrive later."""

MAX_FACTOR = 6
"""How many times as many fetches may be in progress in all, slow ones included."""


class Permit:
    """The permit of one fetch."""

    __slots__ = ("began", "expire", "granted")

    def __init__(self) -> None:
        self.expire: Callable[[], None] | None = None
        """Ends the fetch. It is called once at most, when another fetch needs the permit."""
        self.granted: Deferred[None] = Deferred()
        self.began = 0.0


class FetchLimit:
    """The permits of one crawl.

    ``connections`` is how many connections the download handler has; None if it has no limit. The
    engine is woken when one more fetch can begin.
    """

    def __init__(self, limit: int, clock: Clock, engine: Engine, connections: int | None) -> None:
        self._limit, self._most = limit, limit * MAX_FACTOR
        if connections is not None:
            self._limit = self._most = min(limit, max(connections // 2, 1))
        self._has_pool = connections is not None
        self._clock = clock
        self._engine = engine
        self._recent: OrderedDict[Permit, None] = OrderedDict()
        """The permits that count, the oldest first."""
        self._in_progress: OrderedDict[Permit, None] = OrderedDict()
        """All permits that were granted, the oldest first."""
        self._waiting: deque[Permit] = deque()

    def can_begin(self) -> bool:
        """Whether a fetch may begin now. If not, ends the oldest fetch if it is old enough."""
        if self._waiting:
            return False
        if not self._is_free():
            self._end_oldest()
        return self._is_free()

    def _is_free(self) -> bool:
        latest = self._clock.monotonic() - SLOW
        while self._recent and next(iter(self._recent)).began <= latest:
            self._recent.popitem(last=False)
        return len(self._recent) < self._limit and len(self._in_progress) < self._most

    async def acquire(self) -> Permit:
        """Wait for a permit, and return it. Give it back with :meth:`release`.

        The caller sets ``expire`` when the fetch can be ended.
        """
        permit = Permit()
        if self.can_begin():
            self._grant(permit)
            return permit
        self._waiting.append(permit)
        try:
            await maybe_deferred_to_future(permit.granted)
        except BaseException:
            self.release(permit)
            raise
        return permit

    def _grant(self, permit: Permit) -> None:
        permit.began = self._clock.monotonic()
        self._in_progress[permit] = self._recent[permit] = None

    def release(self, permit: Permit) -> None:
        """Give a permit back: the fetch is over."""
        if permit in self._waiting:
            self._waiting.remove(permit)
        self._in_progress.pop(permit, None)
        self._recent.pop(permit, None)
        self.update()

    def update(self) -> None:
        """Begin the fetches that may begin now. Call this from time to time: fetches grow old."""
        while self._waiting and self._is_free():
            permit = self._waiting.popleft()
            self._grant(permit)
            fire(permit.granted, None)
        if self._waiting:
            self._end_oldest()
        elif self._is_free():
            self._engine.wake()

    def _end_oldest(self) -> None:
        """End the oldest fetch, if it is old and none less would do."""
        if len(self._in_progress) < self._most or self._has_pool:
            return
        oldest = next(iter(self._in_progress))
        if oldest.began <= self._clock.monotonic() - OLD and oldest.expire is not None:
            expire, oldest.expire = oldest.expire, None
            expire()
