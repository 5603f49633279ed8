"""The connections of download handlers that keep a pool of their own.

Such a handler opens no more than CONCURRENT_REQUESTS connections, and what it gets beyond that
waits in the handler, while the time-out runs. So the fetch of a robots.txt waits here, before it is
given to the downloader, until a connection is free. No page is begun meanwhile in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import fire

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from .clock import Clock
    from .engine import Engine

PERIOD = 0.5
"""Seconds between two looks at what is being transferred. A request that is not after two of them
waits for something else, maybe even for the robots.txt."""


class ConnectionLimit:
    """Those of one crawl. Without a limit (:attr:`Engine.connection_limit`) nobody waits."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._open: set[Request] = set()
        """The fetches that have a connection, or are on the way to it."""
        self._waiting: dict[Request, Deferred[None]] = {}
        self._timer: CallLaterResult | None = None
        self._was_idle = False
        engine.wanted_connections = self._wanted

    async def acquire(self, request: Request) -> None:
        """Wait until there is a connection for the fetch of a robots.txt."""
        if not self._engine.connection_limit:
            return
        if not self._waiting and self._is_free:
            self._open.add(request)
            return
        waiter = self._waiting[request] = Deferred()
        if self._timer is None:
            self._timer = self._clock.call_later(PERIOD, self._look)
        try:
            await maybe_deferred_to_future(waiter)
        except BaseException:
            self._waiting.pop(request, None)
            self.release(request)
            raise

    def release(self, request: Request) -> None:
        """The fetch is over."""
        self._open.discard(request)
        self._fill()

    @property
    def _is_free(self) -> bool:
        return len(self._engine.included | self._open) < self._engine.connection_limit

    def _wanted(self) -> int:
        """How many connections pages must leave to fetches that the downloader has not yet."""
        if self._waiting:  # the engine has ended a download, or is about to start one
            self._clock.call_later(0, self._fill)
        return len(self._waiting) + sum(not self._engine.is_active(each) for each in self._open)

    def _fill(self) -> None:
        while self._waiting and self._is_free:
            self._grant()

    def _grant(self) -> None:
        request, waiter = next(iter(self._waiting.items()))
        del self._waiting[request]
        self._open.add(request)
        fire(waiter, None)

    def _look(self) -> None:
        self._timer = None
        in_use = len(self._engine.transfers | self._open)
        is_idle = in_use < self._engine.connection_limit
        if is_idle and self._was_idle and self._waiting:
            self._grant()
        self._was_idle = is_idle and bool(self._waiting)
        if self._waiting:
            self._timer = self._clock.call_later(PERIOD, self._look)
