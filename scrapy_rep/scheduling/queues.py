"""All waiting requests of a crawl, and the limit of their number.

Most of them were taken from the scheduler, and are kept here ("queued") until the engine takes
them. The others wait inside of the downloader: the first request of each origin, and those of
callers of ``engine.download_async``.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ..meta_keys import IS_ROBOTSTXT_REQUEST
from .hosts import Host, WaitingRequest, WaitQueue, add

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from .clock import Clock
    from .engine import Engine

MAX_PER_PASS = 100
"""How many hosts are checked in one call for one whose delay can be removed. With more, a call
could block the event loop for milliseconds."""


class WaitQueues:
    """The queues of one crawl.

    ``capacity`` is how many requests may be queued.
    """

    def __init__(self, engine: Engine, clock: Clock, capacity: int) -> None:
        self._engine = engine
        self._clock = clock
        self.capacity = capacity
        self.queued = 0
        """How many requests are queued for the engine."""
        self.in_downloader: set[Request] = set()
        """The requests that wait inside of the downloader."""
        self.closed = False
        """Whether the crawl is over: no request starts."""
        self.hosts: OrderedDict[str, Host] = OrderedDict()
        """The hosts that have requests or a delay, by name. The least recently used come first."""

    def __len__(self) -> int:
        return self.queued + len(self.in_downloader)

    def host(self, name: str) -> Host:
        """Return a host, which is created if there is none."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = Host(name, self._clock)
        return host

    def find(self, name: str, key: str) -> WaitQueue | None:
        """Return the queue of an origin, if there is one."""
        host = self.hosts.get(name)
        return host.queues.get(key) if host is not None else None

    def add(self, host: Host, key: str, entry: WaitingRequest, *, from_scheduler: bool) -> None:
        """Add a request to the queue ``key`` of a host."""
        if from_scheduler:
            add(host.queue(key).from_scheduler, entry)
        elif is_robots_request(entry.request):
            host.robots_txt.append(entry)
        else:
            add(host.queue(key).from_callers, entry)
        self._count(entry)
        self._engine.slots.count(entry.request)

    def add_counted(self, host: Host, key: str, entry: WaitingRequest) -> None:
        """Add a request to the callers of a queue that its download slot already counts."""
        add(host.queue(key).from_callers, entry)
        self._count(entry)

    def _count(self, entry: WaitingRequest) -> None:
        if entry.waiter is None:
            self.queued += 1
        else:
            self.in_downloader.add(entry.request)
            self._engine.exclude(entry.request)
            self._engine.slots.release(entry.request)

    def remove(self, host: Host, entry: WaitingRequest) -> bool:
        """Remove a request that waits. Return whether it waited."""
        if not host.remove(entry):
            return False
        self._engine.slots.uncount(entry.request)
        if entry.waiter is None:
            self.queued -= 1
        else:
            self.in_downloader.discard(entry.request)
            self._engine.include_page(entry.request)
        return True

    @property
    def is_full(self) -> bool:
        """Whether as many requests are queued as may be."""
        return self.queued >= self.capacity

    @property
    def share(self) -> int:
        """How many requests of one origin may wait, however many others wait."""
        return self.capacity // (len(self.hosts) + 1)

    def has_capacity(self, name: str, key: str) -> bool:
        """Whether one more request of an origin may wait."""
        queue = self.find(name, key)
        return len(self) < self.capacity or (len(queue) if queue else 0) < self.share

    def overdue(
        self, queue: WaitQueue, earliest: float, is_excepted: Callable[[Request], bool]
    ) -> set[tuple[int, int]]:
        """Return the sort keys of the requests of a queue that may not wait any longer.

        These are the requests that began to wait before ``earliest``, those that are excepted, and
        those for which there is no capacity.
        """
        entries = queue.entries()
        may_wait = [
            entry.sort_key
            for entry in entries
            if entry.arrived >= earliest and not is_excepted(entry.request)
        ]
        others = len(self) - len(entries)
        kept = set(may_wait[: max(self.capacity - others, self.share)])
        return {entry.sort_key for entry in entries} - kept

    def remove_if_idle(self, host: Host) -> bool:
        """Remove a host that has no requests and no delay. Return whether it was removed."""
        host.remove_empty_queues()
        if not host.is_idle or host.delays or self.hosts.get(host.name) is not host:
            return False
        del self.hosts[host.name]
        self._engine.slots.remove_pace(host.name)
        host.timer.cancel()
        return True

    def remove_idle_hosts(self, most: int) -> None:
        """Remove the least recently used idle hosts and their delays, beyond ``most`` hosts."""
        for _ in range(min(len(self.hosts) - most, MAX_PER_PASS)):
            host = next(iter(self.hosts.values()))
            if host.is_idle and not host.seconds_left(self._clock.monotonic(), 1):
                host.delays.clear()
                self.remove_if_idle(host)
            else:
                self.hosts.move_to_end(host.name)

    def evict(self, more_than: int) -> list[Request]:
        """Remove the queued requests of origins that have more than their share of the capacity.

        The share is what each origin has if all have the same, and at least ``more_than``. The
        requests are returned in their order.
        """
        found = [
            (host, queue)
            for host in self.hosts.values()
            for queue in host.queues.values()
            if queue.from_scheduler
        ]
        share = max(self.capacity // (len(found) + 1), more_than, 1)
        evicted: list[Request] = []
        for host, queue in found:
            if len(queue.from_scheduler) <= share:
                continue
            queued = [entry for entry in queue.from_scheduler if entry.waiter is None]
            for entry in reversed(queued[share:]):  # the lowest priority and the latest arrival
                self.remove(host, entry)
                evicted.append(entry.request)
        evicted.reverse()
        return evicted


def is_robots_request(request: Request) -> bool:
    """Whether a request is for a robots.txt."""
    return bool(request.meta.get(IS_ROBOTSTXT_REQUEST))
