"""The pace of a host that several crawlers share through a store.

A crawler reserves the host before each request, renews the reservation while the request is in
progress, and then releases the host with the delay: no crawler can reserve it before the delay is
over. If a crawler dies, its reservation ends with the lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred, DeferredLock
from twisted.python.failure import Failure

from ..logs import get_logger
from .clock import Timer
from .hosts import FIRST_BACKOFF, Host

if TYPE_CHECKING:
    from .frontier import Frontier

logger = get_logger(__name__)

T = TypeVar("T")

LEASE = 30.0
"""Seconds that a reservation lasts. It is renewed three times within them, so that one renewal may
fail. After a crawler dies, others wait this long."""

MIN_RETRY_INTERVAL = 0.1
"""Seconds between two attempts to reserve a host, at least: ten calls to the store a second."""

MAX_RESERVATION_WAIT = 3600.0
"""Seconds after which a crawler continues without a reservation. They are twelve times the default
REP_MAX_CRAWL_DELAY, so a longer wait means that the store does not work."""


class HostStore(Protocol):
    """What reservations need of a store."""

    async def reserve_host(self, host: str, lease: float) -> float:
        """Reserve a host for ``lease`` seconds. Return 0, or the seconds until the next attempt."""

    async def release_host(self, host: str, delay: float) -> None:
        """Release a host. It cannot be reserved for ``delay`` seconds."""


class Reservations:
    """The reservations of one crawler. It updates a host in the frontier when it is reserved."""

    def __init__(self, store: HostStore, frontier: Frontier) -> None:
        self._store = store
        self._clock = frontier.clock
        self._frontier = frontier
        self._attempts: dict[str, Deferred[None]] = {}
        """The attempts to reserve that have not ended, by host."""
        self._renewals: dict[str, Timer] = {}
        """The timers that renew the reservations, by host."""
        self._locks: dict[str, DeferredLock] = {}
        """The hosts for which a call to the store is in progress."""

    def is_reserved(self, host: Host) -> bool:
        """Whether a host is reserved for this crawler."""
        return host.name in self._renewals

    def request(self, host: Host) -> None:
        """Begin to reserve a host, unless that has begun."""
        if host.name not in self._attempts and host.name not in self._renewals:
            attempt: Deferred[None] = deferred_from_coro(self._reserve(host))
            self._attempts[host.name] = attempt
            attempt.addBoth(self._end_attempt, attempt, host)

    def release(self, host: Host, delay: float) -> None:
        """Release a host. No crawler can reserve it for ``delay`` seconds."""
        renewal = self._renewals.pop(host.name, None)
        if renewal is not None:
            renewal.cancel()
            _run(self._in_order(self._store.release_host, host, delay))

    def hold(self, host: Host, seconds: float) -> None:
        """Have no crawler reserve a host for so many seconds, unless another one has reserved it.

        If it is reserved for this crawler, the release after the request says so.
        """
        if not self.is_reserved(host):
            _run(self._in_order(self._hold, host, seconds))

    async def _hold(self, name: str, seconds: float) -> None:
        if not await self._store.reserve_host(name, LEASE):
            await self._store.release_host(name, seconds)

    def cancel(self, host: Host) -> None:
        """End the attempt to reserve a host."""
        attempt = self._attempts.pop(host.name, None)
        if attempt is not None:
            attempt.cancel()

    async def _reserve(self, host: Host) -> None:
        began = self._clock.monotonic()
        await self._clock.sleep(0)  # until the caller has completed its update of the host
        while self._frontier.is_wanted(host):
            seconds = await self._in_order(self._store.reserve_host, host, LEASE)
            if seconds > 0 and self._clock.monotonic() - began < MAX_RESERVATION_WAIT:
                # The crawler that has the reservation may release it before the lease ends.
                interval = FIRST_BACKOFF if host.backoffs else MIN_RETRY_INTERVAL
                await self._clock.sleep(min(seconds, max(host.delay, interval)))
                continue
            if seconds > 0:
                logger.warning(
                    "Other crawlers have kept %(host)s reserved for %(seconds)d s: this crawler "
                    "continues without a reservation.",
                    {"host": host.name, "seconds": MAX_RESERVATION_WAIT},
                )
            if not self.is_reserved(host):  # by another way meanwhile
                self._renew_later(host)
            break

    def _end_attempt(self, result: Failure | None, attempt: Deferred[None], host: Host) -> None:
        if self._attempts.get(host.name) is not attempt:  # it was cancelled
            return
        del self._attempts[host.name]
        if isinstance(result, Failure):
            _log(result)
            self._renew_later(host)  # the crawl continues without a reservation
        self._frontier.update_host(host)

    def _renew_later(self, host: Host) -> None:
        renewal = self._renewals.setdefault(host.name, Timer(self._clock))
        renewal.start(LEASE / 3, self._renew, host)

    def _renew(self, host: Host) -> None:
        _run(self._in_order(self._store.reserve_host, host, LEASE))
        self._renew_later(host)

    async def _in_order(
        self, call: Callable[[str, float], Awaitable[T]], host: Host, seconds: float
    ) -> T:
        """Make a call for a host after the calls for it that were made before have ended.

        The threads of a store may execute calls in another order. A release that comes after the
        next reservation of this crawler would end it.
        """
        lock = self._locks.setdefault(host.name, DeferredLock())
        acquired: list[DeferredLock] = []
        turn = lock.acquire().addCallback(acquired.append)
        try:
            await maybe_deferred_to_future(turn)
            return await call(host.name, seconds)
        finally:
            if acquired:  # else it was cancelled before
                lock.release()
            if not lock.locked and self._locks.get(host.name) is lock:
                del self._locks[host.name]


def _run(call: Coroutine[Any, Any, object]) -> None:
    deferred_from_coro(call).addErrback(_log)


def _log(failure: Failure) -> None:
    if not isinstance(failure.value, (asyncio.CancelledError, CancelledError)):
        logger.error(
            "Could not reserve a host in the store; the crawl continues without a shared delay.",
            exc_info=failure.value,
        )
