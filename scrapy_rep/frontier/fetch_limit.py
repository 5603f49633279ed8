"""How many robots.txt files are fetched at once (REP_CONCURRENT_ROBOTSTXT_REQUESTS).

If one more fetch has to begin, the oldest one is ended, as if it had timed out, after :data:`OLD`
seconds at the earliest. So a host that never answers cannot delay others, however many names it
has, and the number of connections is bounded.

A download handler with a pool of connections of its own may have no more of them than
CONCURRENT_REQUESTS. Fetches then get half of them, and none is ended early: the handler might keep
its connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import Clock, fire
from .engine import Engine

OLD = 8.0
"""Seconds after which the oldest fetch may be ended. Few files arrive later."""


@dataclass(slots=True, eq=False)
class Permit:
    """The permit of one fetch."""

    expire: Callable[[], None] | None = None
    """Ends the fetch. It is called once at most, when another fetch needs the permit."""
    granted: Deferred[None] = field(default_factory=Deferred)
    began: float = 0


class FetchLimit:
    """The permits of one crawl.

    ``connections`` is how many connections the download handler has; None if it has no limit. The
    engine is woken when one more fetch can begin.
    """

    def __init__(self, limit: int, clock: Clock, engine: Engine, connections: int | None) -> None:
        self._most = limit if connections is None else min(limit, max(connections // 2, 1))
        self._has_pool = connections is not None
        self._clock = clock
        self._engine = engine
        self._in_progress: dict[Permit, None] = {}
        """The permits that were granted, the oldest first."""
        self._waiting: deque[Permit] = deque()

    def can_begin(self) -> bool:
        """Whether a fetch may begin now. If not, ends the oldest fetch if it is old enough."""
        self._end_oldest()
        return self._is_free() and not self._waiting

    def _is_free(self) -> bool:
        return len(self._in_progress) < self._most

    async def acquire(self) -> Permit:
        """Wait for a permit. Set its ``expire``, and give it back with :meth:`release`."""
        permit = Permit()
        self._waiting.append(permit)
        self.update()
        try:
            await maybe_deferred_to_future(permit.granted)
        except BaseException:
            self.release(permit)
            raise
        return permit

    def release(self, permit: Permit) -> None:
        """Give a permit back: the fetch is over."""
        if permit in self._waiting:
            self._waiting.remove(permit)
        self._in_progress.pop(permit, None)
        self.update()

    def update(self) -> None:
        """Begin the fetches that may begin now. Call this from time to time: fetches grow old."""
        while self._waiting and self._is_free():
            permit = self._waiting.popleft()
            permit.began = self._clock.monotonic()
            self._in_progress[permit] = None
            fire(permit.granted, None)
        if self._waiting:
            self._end_oldest()
        elif self._is_free():
            self._engine.wake()

    def _end_oldest(self) -> None:
        """End the oldest fetch, if it is old and none less would do."""
        if self._is_free() or self._has_pool:
            return
        oldest = next(iter(self._in_progress))
        if oldest.began <= self._clock.monotonic() - OLD and oldest.expire is not None:
            expire, oldest.expire = oldest.expire, None
            expire()
