"""The pace of a host, where several crawlers share it through a store.

A crawler reserves the host before each request, keeps it reserved while the request is under way,
and releases it with the delay, which so begins when the request has ended. A crawler that dies
loses its reservation when the lease runs out.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from .clock import Clock
    from .hosts import Host

logger = logging.getLogger(__name__)

LEASE = 30.0
"""Seconds that a reservation lasts. It is renewed while the request is under way."""

SHORTEST_PAUSE = 0.1
"""Seconds between two attempts to reserve a host, at least, where its delay is shorter."""

MAX_RESERVATION_WAIT = 3600.0
"""Seconds that a crawler waits for a reservation, before it goes on without one."""


class HostStore(Protocol):
    """What is needed of a store."""

    async def reserve_host(self, host: str, lease: float) -> float:
        """0 if the host is ours for so many seconds, else the seconds after which to ask again."""

    async def release_host(self, host: str, delay: float) -> None:
        """Nobody can reserve it for so many seconds."""


class Reservations:
    """The reservations of one crawler.

    ``wanted`` tells whether a request waits for a host. ``granted`` is called when it is reserved.
    """

    def __init__(
        self,
        store: HostStore,
        clock: Clock,
        *,
        wanted: Callable[[Host], bool],
        granted: Callable[[Host], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._wanted = wanted
        self._granted = granted
        self._asking: dict[str, Deferred[None]] = {}
        self._held: dict[str, CallLaterResult] = {}
        """The timers that renew, by host."""

    def is_held(self, host: Host) -> bool:
        """Whether a host is reserved for this crawler."""
        return host.name in self._held

    def request(self, host: Host) -> None:
        """Reserve a host, unless that is under way. ``granted`` is called afterwards."""
        if host.name not in self._asking and host.name not in self._held:
            asking: Deferred[None] = deferred_from_coro(self._reserve(host))
            self._asking[host.name] = asking
            asking.addBoth(self._asked, asking, host)

    def release(self, host: Host, delay: float) -> None:
        """Let other crawlers have the host after so many seconds."""
        renewal = self._held.pop(host.name, None)
        if renewal is not None:
            renewal.cancel()
            _run(self._store.release_host(host.name, delay))

    def cancel(self, host: Host) -> None:
        """Ask for a host no longer."""
        asking = self._asking.pop(host.name, None)
        if asking is not None:
            asking.cancel()

    async def _reserve(self, host: Host) -> None:
        began = self._clock.monotonic()
        await self._clock.sleep(0)  # the caller is in the middle of a look at its queue
        while self._wanted(host):
            seconds = await self._store.reserve_host(host.name, LEASE)
            if seconds > 0 and self._clock.monotonic() - began < MAX_RESERVATION_WAIT:
                # Whoever has it may release it before its lease runs out.
                await self._clock.sleep(min(seconds, max(host.delay, SHORTEST_PAUSE)))
                continue
            if seconds > 0:
                logger.warning(
                    "Other crawlers have kept %(host)s reserved for %(seconds)d s: this one "
                    "goes on without a reservation.",
                    {"host": host.name, "seconds": MAX_RESERVATION_WAIT},
                )
            self._renew_later(host)
            break

    def _asked(self, result: Failure | None, asking: Deferred[None], host: Host) -> None:
        """Asking for a host has come to its end: of one that was cancelled only later."""
        failed = isinstance(result, Failure) and _log(result)
        if self._asking.get(host.name) is not asking:
            return
        del self._asking[host.name]
        if failed:
            self._clock.call_later(host.delay, self._granted, host)
        else:
            self._granted(host)

    def _renew_later(self, host: Host) -> None:
        self._held[host.name] = self._clock.call_later(LEASE / 3, self._renew, host)

    def _renew(self, host: Host) -> None:
        _run(self._store.reserve_host(host.name, LEASE))
        self._renew_later(host)


def _run(call: Coroutine[Any, Any, object]) -> None:
    deferred_from_coro(call).addErrback(_log)


def _log(failure: Failure) -> bool:
    """Log what went wrong, if anything did: what was cancelled did not."""
    error = failure.value
    assert error is not None
    if isinstance(error, (asyncio.CancelledError, CancelledError)):
        return False
    logger.error("Reserving a host failed", exc_info=(type(error), error, error.__traceback__))
    return True
