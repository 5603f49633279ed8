"""The connections of download handlers that have a pool of their own.

Such a handler opens at most CONCURRENT_REQUESTS connections. A request beyond that waits inside of
the handler while its time-out runs. So the fetch of a robots.txt waits here, before it is given to
the downloader, until a connection is free. Meanwhile, no page is started in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import Timer, fire

if TYPE_CHECKING:
    from scrapy import Request

    from .clock import Clock
    from .engine import Engine

CHECK_INTERVAL = 0.5
"""Seconds between two checks of the connections in use. The package watches the engine at the same
interval. A fetch gets a connection that is free at two checks in a row: the page that could use it
waits for something else, perhaps for this very robots.txt."""


class ConnectionLimit:
    """The connections of one crawl. Without :attr:`Engine.connection_limit`, no fetch waits."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._open: set[Request] = set()
        """The fetches that have a connection, or are about to get it."""
        self._waiting: dict[Request, Deferred[None]] = {}
        self._check_timer = Timer(clock)
        self._fill_timer = Timer(clock)
        self._was_free = False
        engine.reserved_connections = self._reserved
        engine.on_capacity_check = self.notify

    async def acquire(self, request: Request) -> None:
        """Wait until there is a connection for the fetch of a robots.txt."""
        if not self._engine.connection_limit:
            return
        if not self._waiting and self._is_free:
            self._open.add(request)
            return
        waiter = self._waiting[request] = Deferred()
        if not self._check_timer.is_active:
            self._check_timer.start(CHECK_INTERVAL, self._check)
        try:
            await maybe_deferred_to_future(waiter)
        except BaseException:
            self._waiting.pop(request, None)
            self.release(request)
            raise

    def release(self, request: Request) -> None:
        """End the use of a connection."""
        self._open.discard(request)
        self._fill()

    def notify(self) -> None:
        """Give free connections to the fetches that wait, after the current step of the engine.

        The engine has ended a download, or is about to start one.
        """
        if self._waiting and not self._fill_timer.is_active:
            self._fill_timer.start(0, self._fill)

    @property
    def _is_free(self) -> bool:
        return len(self._engine.included | self._open) < self._engine.connection_limit

    def _reserved(self) -> int:
        """Return how many connections pages must leave free for fetches.

        These are the fetches that wait, and those that the downloader does not have yet.
        """
        return len(self._waiting) + sum(not self._engine.is_active(each) for each in self._open)

    def _fill(self) -> None:
        while self._waiting and self._is_free:
            self._grant()
        if not self._waiting:
            self._check_timer.cancel()
            self._fill_timer.cancel()
            self._was_free = False

    def _grant(self) -> None:
        request, waiter = next(iter(self._waiting.items()))
        del self._waiting[request]
        self._open.add(request)
        fire(waiter, None)

    def _check(self) -> None:
        """Grant a connection that no request has used since the last check."""
        in_use = len(self._engine.slots.transfers | self._open)
        is_free = in_use < self._engine.connection_limit
        if is_free and self._was_free and self._waiting:
            self._grant()
        self._was_free = is_free and bool(self._waiting)
        if self._waiting:
            self._check_timer.start(CHECK_INTERVAL, self._check)
