"""Who waits for a robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Collection


class WaitingRoom:
    """The requests that wait, by origin.

    Each has a Deferred of its own: one that is cancelled takes no other with it, and every one of
    them gets the call.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[Deferred[None]]] = {}

    def __contains__(self, origin: str) -> bool:
        return origin in self._waiting

    @property
    def origins(self) -> Collection[str]:
        """The origins that somebody waits for."""
        return self._waiting.keys()

    async def wait(self, origin: str) -> None:
        """Wait until :meth:`call` is told that the origin's robots.txt is known."""
        waiter: Deferred[None] = Deferred()
        waiting = self._waiting.setdefault(origin, set())
        waiting.add(waiter)
        try:
            await maybe_deferred_to_future(waiter)
        finally:
            waiting.discard(waiter)
            if not waiting and self._waiting.get(origin) is waiting:
                del self._waiting[origin]

    def call(self, origin: str) -> None:
        """Let everyone go who waits for this origin."""
        for waiter in tuple(self._waiting.pop(origin, ())):
            if not waiter.called:  # a cancelled one has been called already
                waiter.callback(None)


async def sleep(seconds: float) -> None:
    """Sleep on any of Scrapy's loops (Scrapy has its own from 2.18 on)."""
    pause: Deferred[None] = Deferred()
    timer = call_later(seconds, pause.callback, None)
    try:
        await maybe_deferred_to_future(pause)
    finally:
        timer.cancel()
