"""The pace of a host that several crawlers share through a store.

A crawler reserves the host before each request, renews the reservation while the request is in
progress, and then releases the host with the delay: no crawler can reserve it before the delay is
over. If a crawler dies, its reservation ends with the lease.

If the crawl itself has the delay, it is from start to start: Scrapy's downloader keeps it. So a
crawler reserves the host for a turn of several requests, which the store does not slow down. It
releases the host with the rest of the delay after the last of them was sent.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Protocol

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ..clock import Clock, fire
from ..logs import get_logger
from ..stores.base import LEASE
from .backoff import FIRST_BACKOFF
from .hosts import Host, Slot

logger = get_logger(__name__)

MIN_RETRY_INTERVAL = 0.1
"""Seconds between two attempts to reserve a host, at least: ten calls to the store a second."""

TURN = 10
"""How many requests a crawler sends before it releases a host with a delay of the crawl itself. A
single crawler then waits for the store once in so many delays."""

MAX_TURNS = 1000
"""How many hosts are reserved for turns at once: 100 renewals a second. If more hosts wait, a turn
is one request."""

MAX_RESERVATION_WAIT = 3600.0
"""Seconds after which a crawler continues without a reservation. They are twelve times the default
REP_MAX_CRAWL_DELAY, so a longer wait means that the store does not work."""


@dataclass(slots=True)
class Reservation:
    """A host from the first attempt to reserve it until its release has ended."""

    host: Host
    """Another one of the same name, if the frontier has forgotten it meanwhile."""
    delay: float | None = None
    """The delay of the release; None until the host is to be released."""
    is_granted: bool = False
    sent: int = 0
    """How many requests were sent."""
    pause: Deferred[None] = field(default_factory=Deferred)
    """What ends the pause between two calls."""


class Reservable(Protocol):
    """What reserves hosts: a store, or a queue that several crawlers share."""

    async def reserve_host(self, host: str, lease: float) -> float:
        """See :meth:`.Store.reserve_host`."""

    async def release_host(self, host: str, delay: float) -> None:
        """See :meth:`.Store.release_host`."""


class Wanted(Protocol):
    """What knows the requests that wait for hosts, which is the frontier."""

    def is_wanted(self, host: Host) -> bool:
        """Whether something waits for a host."""

    def update_host(self, host: Slot) -> None:
        """Look at the queues of a host again."""

    def own_delay_left(self, host: Host) -> float:
        """Return the seconds until the crawl's own delay lets it request a host again."""


class Reservations:
    """The reservations of one crawler. It updates a host in the frontier when it is reserved."""

    def __init__(self, store: Reservable, clock: Clock, frontier: Wanted) -> None:
        self._store = store
        self._clock = clock
        self._frontier = frontier
        self._hosts: dict[str, Reservation] = {}
        """The hosts that have a task, by name."""
        self._later: OrderedDict[Host, None] = OrderedDict()
        """The hosts that are reserved when others have been released."""

    def is_reserved(self, host: Host) -> bool:
        """Whether a host is reserved for this crawler."""
        found = self._hosts.get(host.name)
        return found is not None and found.is_granted and found.delay is None

    def request(self, host: Host, hold: float | None = None) -> None:
        """Begin to reserve a host. If it has a task, the frontier asks again at the end of that.

        With ``hold``, release it at once, so that no crawler can reserve it for so many seconds. If
        it is reserved for this crawler, the release after the request says so.
        """
        if self.is_reserved(host):
            return
        if host.name in self._hosts:
            self._hosts[host.name].host = host
            return
        if hold is None and host.takes_turns and len(self._hosts) >= MAX_TURNS:
            self._later[host] = None
        else:
            found = self._hosts[host.name] = Reservation(host, hold)
            deferred_from_coro(self._keep(host, found)).addErrback(_log)

    def release(self, host: Host, delay: float) -> None:
        """Release a host, which no crawler can reserve for ``delay`` seconds. End an attempt."""
        found = self._hosts.get(host.name)
        if found is not None and found.delay is None:
            found.delay = delay
            fire(found.pause, None)

    def note_sent(self, host: Host) -> None:
        """Note that a request to a host was sent, which may have been the last one of a turn."""
        found = self._hosts.get(host.name)
        if found is not None and host.takes_turns:
            found.sent += 1
            if found.sent >= TURN or self._later:
                self.release(host, 0)

    async def _keep(self, host: Host, found: Reservation) -> None:
        """Reserve a host, renew the reservation until it is to be released, and release it.

        The threads of a store may execute calls in another order. So one task makes all calls for
        a host: a release that comes after the next reservation of this crawler would end it.
        """
        try:
            if found.delay is None:
                await self._clock.sleep(0)  # until the caller has completed its update of the host
            else:
                found.is_granted = not await self._store.reserve_host(host.name, LEASE)
            until = self._clock.monotonic() + MAX_RESERVATION_WAIT
            while found.delay is None and (found.is_granted or self._frontier.is_wanted(host)):
                found.pause = Deferred()
                call = deferred_from_coro(self._store.reserve_host(host.name, LEASE))
                seconds = await maybe_deferred_to_future(call.addErrback(_log)) or 0
                pause = LEASE / 3  # so that one renewal may fail
                if seconds > 0 and not found.is_granted and self._clock.monotonic() < until:
                    # The crawler that has the reservation may release it before the lease ends.
                    interval = FIRST_BACKOFF if host.backoffs else MIN_RETRY_INTERVAL
                    pause = min(seconds, max(host.delay, host.own_delay, interval))
                elif found.delay is None:
                    if seconds > 0 and not found.is_granted:
                        logger.warning(
                            "Other crawlers have kept %(host)s reserved for %(seconds)d s: this "
                            "crawler continues without a reservation.",
                            {"host": host.name, "seconds": MAX_RESERVATION_WAIT},
                        )
                    found.is_granted = True
                    self._frontier.update_host(host)
                await self._clock.sleep(pause, found.pause)
            if found.is_granted and found.delay is not None:
                delay = max(found.delay, self._frontier.own_delay_left(host))
                await self._store.release_host(host.name, delay)
        finally:
            del self._hosts[host.name]
            while self._later and len(self._hosts) < MAX_TURNS:
                self.request(self._later.popitem(last=False)[0])
            self._frontier.update_host(found.host)


def _log(failure: Failure) -> None:
    if not failure.check(CancelledError):
        logger.error(
            "Could not reserve a host in the store; the crawl continues without a shared delay.",
            exc_info=failure.value,
        )
