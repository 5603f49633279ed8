"""The time, and its timers, on any of Scrapy's loops.

Tests replace it by a clock of their own.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.utils.asyncio import CallLaterResult

T = TypeVar("T")


class Clock:
    """The clock of this machine."""

    def time(self) -> float:
        """Seconds since 1970. Somebody may set this clock while the crawl runs."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on a clock that only goes forward, for durations."""
        return time.monotonic()

    def call_later(
        self, seconds: float, call: Callable[..., object], *arguments: object
    ) -> CallLaterResult:
        """Call ``call`` after so many seconds; the result has a method ``cancel``."""
        return call_later(seconds, call, *arguments)

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds (Scrapy has a function for it from 2.18 on)."""
        done: Deferred[None] = Deferred()
        timer = self.call_later(seconds, fire, done, None)
        try:
            await maybe_deferred_to_future(done)
        finally:
            timer.cancel()


def fire(deferred: Deferred[T], result: T) -> None:
    """Give a Deferred its result, unless it was cancelled or has one."""
    if not deferred.called:
        deferred.callback(result)


sleep = Clock().sleep
