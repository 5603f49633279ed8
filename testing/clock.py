"""The clock of tests: no test has one of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from math import inf
from typing import Any, TypeVar

from scrapy.utils.asyncio import CallLaterResult
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet import task

from scrapy_rep.clock import Clock

T = TypeVar("T")


class FakeClock(Clock):
    """A clock that a test moves, by ``now`` or in :meth:`advance` and :meth:`run`.

    It stands still otherwise, unless it ``runs``: that function returns the seconds that it has
    run.
    """

    def __init__(self, now: float = 1000, runs: Callable[[], float] = lambda: 0) -> None:
        self._calls, self._runs = task.Clock(), runs
        self.set_forward = 0.0
        """Seconds by which the wall clock was set."""
        self.now = now
        super().__init__()

    @property
    def now(self) -> float:
        """The time of both clocks, apart from ``set_forward``."""
        return float(self._calls.seconds()) + self._runs()

    @now.setter
    def now(self, now: float) -> None:
        self._calls.rightNow = now - self._runs()

    def time(self) -> float:
        return self.now + self.set_forward

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: object) -> Any:
        return CallLaterResult.from_twisted(self._calls.callLater(seconds, call, *arguments))

    @property
    def pending(self) -> list[float]:
        """The times of the calls that are to be made."""
        calls: list[Any] = [*self._calls.getDelayedCalls()]
        return sorted(call.getTime() for call in calls)

    def _step(self, until: float) -> bool:
        """Make the next calls, if they are due. Return whether there were some."""
        if not self.pending or self.pending[0] > until:
            return False
        self.now = max(self.now, self.pending[0])
        self._calls.advance(0)
        return True

    def advance(self, seconds: float) -> None:
        """Let time pass, for code without coroutines."""
        until = self.now + seconds
        while self._step(until):
            pass
        self.now = until

    async def run(self, seconds: float = 0) -> None:
        """Let time pass, and coroutines run as far as they can after each call."""
        until = self.now + seconds
        await settle()
        while self._step(until):
            await settle()
        self.now = until

    async def wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Let as much time pass as a coroutine sleeps. Return its result."""
        deferred = deferred_from_coro(coroutine)
        while not deferred.called:  # it may wait for a thread, too
            await settle()
            self._step(inf)
        return await maybe_deferred_to_future(deferred)


async def settle() -> None:
    """Let the coroutines run as far as they can."""
    for _ in range(5):
        await Clock().sleep(0)
