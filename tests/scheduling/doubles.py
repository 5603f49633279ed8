"""A clock that tests set, and an engine that only keeps what it is told."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scrapy.signalmanager import SignalManager
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.scheduling.clock import Clock, sleep
from scrapy_rep.scheduling.rendering import RenderingService
from scrapy_rep.scheduling.slots import Slots
from scrapy_rep.scheduling.throttle import Throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from scrapy import Request
    from twisted.internet.defer import Deferred


class Call:
    """A call that a fake clock makes later."""

    def __init__(self, call: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self.call = call
        self.arguments = arguments
        self.is_pending = True

    def cancel(self) -> None:
        assert self.is_pending, "a call is canceled once, before it is made"
        self.is_pending = False


class FakeClock(Clock):
    """A clock whose time passes only in :meth:`advance`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._calls: list[tuple[float, int, Call]] = []
        self._numbers = count()

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: object) -> Any:
        later = Call(call, arguments)
        heappush(self._calls, (self.now + seconds, next(self._numbers), later))
        return later

    @property
    def pending(self) -> list[float]:
        """The seconds until each call that is to be made."""
        return sorted(at - self.now for at, _, call in self._calls if call.is_pending)

    def _step(self, until: float) -> bool:
        """Make the next call, if it is due. Return whether there was one."""
        if not self._calls or self._calls[0][0] > until:
            return False
        at, _, later = heappop(self._calls)
        self.now = max(self.now, at)
        if later.is_pending:
            later.is_pending = False
            later.call(*later.arguments)
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


BEGUN: list[Deferred[Any]] = []


def begin(coroutine: Coroutine[Any, Any, Any]) -> Deferred[Any]:
    """Begin to run a coroutine, which is canceled at the end of the test."""
    deferred: Deferred[Any] = deferred_from_coro(coroutine)
    BEGUN.append(deferred)
    return deferred


async def settle() -> None:
    """Let the coroutines run as far as they can."""
    for _ in range(5):
        await sleep(0)


class FakeSlots(Slots):
    """The limits of a :class:`FakeEngine`."""

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__()
        self._engine = engine

    @property
    def transfers(self) -> set[Request]:
        return self._engine.transfers

    def limits(self, request: Request) -> tuple[int, float]:
        return self._engine.limits

    def count(self, request: Request) -> None:
        self._engine.counted.add(request)

    def uncount(self, request: Request) -> None:
        self._engine.counted.discard(request)

    def remove_queued(self, requests: Collection[Request]) -> list[Any]:
        taken = [each for each in self._engine.queued if each[0] in requests]
        self._engine.queued = [each for each in self._engine.queued if each not in taken]
        return taken


class FakeEngine:
    """What the package uses of :class:`~scrapy_rep.scheduling.engine.Engine`."""

    def __init__(self) -> None:
        self.in_downloader: set[Request] = set()
        self.excluded: set[Request] = set()
        self.counted: set[Request] = set()
        self.transfers: set[Request] = set()
        self.wakes = 0
        self.limits: tuple[int, float] = (8, 0)
        self.has_capacity = True
        self.is_closing = False
        self.is_downloading = False
        self.connection_limit = 0
        self.reserved_connections: Callable[[], int] = lambda: 0
        self.on_capacity_check: Callable[[], None] = lambda: None
        self.readable: Callable[[Collection[str]], Collection[str]] = lambda names: names
        self.queued: list[Any] = []
        self.slots = FakeSlots(self)

    @property
    def active(self) -> tuple[Request, ...]:
        return tuple(self.in_downloader)

    @property
    def included(self) -> set[Request]:
        return self.in_downloader - self.excluded

    def is_active(self, request: Request) -> bool:
        return request in self.in_downloader

    def has_reached_slot(self, request: Request) -> bool:
        return "download_slot" in request.meta

    def exclude(self, request: Request) -> None:
        self.excluded.add(request)

    def include_page(self, request: Request) -> None:
        self.excluded.discard(request)

    def wake(self) -> None:
        self.wakes += 1


def make_throttle(clock: Clock, engine: FakeEngine, *, capacity: int = 100) -> Throttle:
    """Return a throttle on these doubles."""
    crawler: Any = SimpleNamespace(signals=SignalManager())
    fake: Any = engine
    rendering = RenderingService("http://127.0.0.1:8050")
    return Throttle(crawler, fake, clock, rendering, capacity=capacity)
