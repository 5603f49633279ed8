"""The time and its timers, on each of Scrapy's event loops.

Each part that measures time or waits gets a :class:`Clock`: tests have another one.
"""

from __future__ import annotations

import time
from typing import TypeVar

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

T = TypeVar("T")

MIN_CLOCK_STEP = 5.0
"""Seconds. A smaller difference is drift: the clock was not set."""


class Clock:
    """The clock of this machine."""

    def __init__(self) -> None:
        self._began = self.time() - self.monotonic()
        self.least_step = 0.0
        """The least result of :meth:`step`: how far the clock was behind, if negative."""

    # Each request reads both several times: the functions themselves cost a third of a method.
    monotonic = staticmethod(time.monotonic)
    """Return the seconds of a clock that never goes back, to measure durations."""
    time = staticmethod(time.time)
    """Return the seconds since 1970. The clock may be set while the crawl runs."""
    call_later = staticmethod(call_later)
    """Call a function after so many seconds. The result has a method ``cancel``."""

    def steady(self) -> float:
        """Return the seconds since 1970, as if the clock had not been set since the crawl began.

        The lifetimes of files are measured on it.
        """
        return self.monotonic() + self._began

    def step(self, now: float | None = None) -> float:
        """Return how far :meth:`time` is ahead of :meth:`steady`, because the clock was set.

        ``now`` is the time that the caller has just read: the clock may be set at any moment.
        """
        step = (self.time() if now is None else now) - self.steady()
        if abs(step) < MIN_CLOCK_STEP:
            return 0
        self.least_step = min(self.least_step, step)
        return step

    async def sleep(self, seconds: float, done: Deferred[None] | None = None) -> None:
        """Return after ``seconds``, or when the caller fires ``done``."""
        done = done or Deferred()
        timer = self.call_later(seconds, fire, done, None)
        try:
            await maybe_deferred_to_future(done)
        finally:
            timer.cancel()


def fire(deferred: Deferred[T], result: T) -> None:
    """Give a Deferred its result, unless it was cancelled or has one."""
    if not deferred.called:
        deferred.callback(result)
