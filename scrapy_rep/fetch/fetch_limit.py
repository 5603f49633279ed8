"""How many robots.txt files are fetched at once, and for how long.

If one more fetch has to begin than REP_CONCURRENT_ROBOTSTXT_REQUESTS allows, the oldest one is
ended, as if it had timed out, after :data:`OLD` seconds at the earliest. So a host that never
answers cannot delay others, however many names it has, and the number of connections is bounded.

A download handler with its own pool may have only CONCURRENT_REQUESTS connections. Fetches get half
of them, and none is ended early: the handler might keep its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred

from ..clock import Clock, fire
from ..scrapy_internals import Engine

T = TypeVar("T")

TIMEOUT_MARGIN = 1.2
"""A download may exceed its time-out by this factor: the timer checks it ten times per time-out."""

OLD = 8.0
"""Seconds after which the oldest fetch may be ended. Few files arrive later."""


class Permit:
    """The permit of one download."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.granted: Deferred[None] = Deferred()
        self._running: Deferred[Any] | None = None
        """The download; None if it has ended, or ends."""

    async def run(
        self,
        download: Coroutine[Any, Any, T],
        seconds: float,
        max_wait: float,
        is_waiting: Callable[[], bool],
    ) -> T:
        """Return the result of a download. Raises TimeoutError if it takes too long, or expires.

        This is for the handlers that do not keep ``download_timeout`` exactly. The time during
        which ``is_waiting`` is true does not count, up to ``max_wait`` seconds.
        """
        timer: CallLaterResult
        period = max(seconds / 10, 0.01)
        left, wait_left = seconds + period, max_wait

        def check() -> None:
            nonlocal left, wait_left, timer
            if is_waiting() and wait_left > 0:
                wait_left -= period
            else:
                left -= period
            if left < 0:
                self.expire()
            else:
                timer = self._clock.call_later(period, check)

        self._running = deferred_from_coro(download)
        timer = self._clock.call_later(period, check)
        try:
            result: T = await maybe_deferred_to_future(self._running)
        except (asyncio.CancelledError, CancelledError):
            if self._running is not None:  # it has not expired
                raise
            raise TimeoutError from None
        else:
            return result
        finally:
            timer.cancel()
            self._running = None

    def expire(self) -> None:
        """End the download, as if it had timed out, unless it ends already."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()


class FetchLimit:
    """The permits of one crawl.

    ``connections``: how many the download handler has at most, if it has a limit.
    """

    def __init__(self, limit: int, clock: Clock, engine: Engine, connections: int | None) -> None:
        self._most = limit if connections is None else min(limit, max(connections // 2, 1))
        self._has_pool = connections is not None
        self._clock = clock
        self._engine = engine
        self.in_progress: dict[Permit, float] = {}
        """The permits that were granted, the oldest first, and when."""
        self._waiting: dict[Permit, None] = {}

    def can_begin(self) -> bool:
        """Whether a fetch may begin now. If not, :meth:`end_oldest` may make room for one."""
        return self._is_free() and not self._waiting

    def _is_free(self) -> bool:
        return len(self.in_progress) < self._most

    @asynccontextmanager
    async def permit(self) -> AsyncIterator[Permit]:
        """Wait for a permit, and give it back at the end."""
        permit = Permit(self._clock)
        self._waiting[permit] = None
        self.update()
        try:
            await maybe_deferred_to_future(permit.granted)
            yield permit
        finally:
            self._waiting.pop(permit, None)
            self.in_progress.pop(permit, None)
            self.update()

    def update(self) -> None:
        """Begin the fetches that may begin now. Call this from time to time: fetches grow old."""
        while self._waiting and self._is_free():
            permit = next(iter(self._waiting))
            del self._waiting[permit]
            self.in_progress[permit] = self._clock.monotonic()
            fire(permit.granted, None)
        if self._waiting:
            self.end_oldest()
        elif self._is_free():
            self._engine.wake()

    def end_oldest(self) -> None:
        """End the oldest fetch if all permits are taken and it has taken :data:`OLD` seconds."""
        if self._is_free() or self._has_pool:
            return
        oldest, granted_at = next(iter(self.in_progress.items()))
        if granted_at <= self._clock.monotonic() - OLD:
            oldest.expire()
