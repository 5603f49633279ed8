"""All waiting requests of a crawl, and the limit of their number.

Most of them were taken from the scheduler, and are kept here ("queued") until the engine takes
them. When as many are queued as may be, more of them go to the overflow. The others wait inside of
the downloader: those of callers of ``engine.download_async``, and the first request of an origin if
another middleware comes before that of this package.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import merge
from typing import TYPE_CHECKING, Any

from ..meta_keys import DONT_OBEY, IS_ROBOTSTXT_REQUEST
from ..protocol.paths import host_of, origin_of
from .hosts import OVERDUE, BlockReason, Host, Limit, WaitingRequest, WaitQueue, add
from .overflow import MemoryOverflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy import Request

    from .clock import Clock
    from .engine import Engine
    from .overflow import Overflow

MAX_IDLE_HOSTS = 10_000
"""How many idle hosts keep their delay, about 1 KB for each. The delay of a host that was removed
applies again from its next request on, because the policy of its origin has it."""

MAX_PER_PASS = 100
"""How many idle hosts are checked in one call. With more, a call could block the event loop for
milliseconds."""

UNREAD_AFTER = 0.5
"""Seconds that a request has to have waited before others of its queue are moved without being
read. Most robots.txt files arrive within this time. Moving is quick: without this limit, one of
several workers would take all requests of a new site for itself."""

_SPECIAL = frozenset({DONT_OBEY, "_splash_processed"})
"""Keys of the meta of requests whose queue may not be that of the origin of their URL."""


class WaitQueues:
    """The queues of one crawl.

    ``capacity`` is how many requests may be queued. One more is for each queue that is not blocked,
    and an unreachable origin may always have its share.
    """

    def __init__(self, engine: Engine, clock: Clock, capacity: int) -> None:
        self._engine = engine
        self._clock = clock
        self.capacity = capacity
        self.queued = 0
        """How many requests are queued for the engine."""
        self._overdue = 0
        """How many requests are overdue. They do not wait any longer, and are not dropped yet."""
        self.overflow: Overflow = MemoryOverflow()
        self.overflowed = 0
        """How many requests are in the overflow."""
        self.busy: set[str] = set()
        """The hosts for which as many requests wait as they get at once, or one if its queue is
        blocked. No other request of theirs has to be read from the scheduler before one of these
        has started."""
        self.in_downloader: set[Request] = set()
        """The requests that wait inside of the downloader."""
        self.closed = False
        """Whether the crawl is over: no request starts."""
        self.hosts: dict[str, Host] = {}
        """The hosts that have requests or a delay, by name."""
        self._idle: OrderedDict[str, Host] = OrderedDict()
        """The hosts for which no request waits. The least recently used come first."""

    def __len__(self) -> int:
        return self.queued + len(self.in_downloader)

    def host(self, name: str) -> Host:
        """Return a host, which is created if there is none."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = Host(name, self._clock)
        self._idle.pop(name, None)
        return host

    def find(self, name: str, key: str) -> WaitQueue | None:
        """Return the queue of an origin, if there is one."""
        host = self.hosts.get(name)
        return host.queues.get(key) if host is not None else None

    def enqueue(self, host: Host, key: str, entry: WaitingRequest) -> bool:
        """Add a request of the scheduler. Return False if it is in the overflow."""
        queue = host.queue(key)
        last = queue.from_scheduler[-1] if queue.from_scheduler else None
        is_last = last is None or last.sort_key < entry.sort_key
        if is_last and queue.overflowed:
            is_queued = False
        elif self.is_full:
            # A queue that is not blocked needs a request that may start.
            is_first = last is None and not queue.blocks
            is_queued = not is_last or is_first or BlockReason.UNREACHABLE in queue.blocks
            if not is_last and last is not None and last.waiter is None:
                self.remove(host, last)
                self._push(queue, last, host.name)
        else:
            is_queued = True
        if is_queued:
            self.add(host, key, entry, from_scheduler=True)
        else:
            self._push(queue, entry, host.name)
        if host.name not in self.busy and self._is_busy(host, queue, entry):
            self.busy.add(host.name)
        return is_queued

    def _is_busy(self, host: Host, queue: WaitQueue, entry: WaitingRequest) -> bool:
        if queue.blocks and BlockReason.UNREACHABLE not in queue.blocks:
            return True  # none of its requests may start
        return host.waiting >= self._engine.slots.limits(entry.request)[0]

    def _push(self, queue: WaitQueue, entry: WaitingRequest, host: str) -> None:
        name = queue.key or host  # a key has a scheme, or is that of exempt requests
        self.overflow.push(name, entry)
        self._count_overflowed(queue, name)

    def _count_overflowed(self, queue: WaitQueue, name: str) -> None:
        queue.overflowed[name] = queue.overflowed.get(name, 0) + 1
        self.overflowed += 1

    def move_waiting(self) -> int:
        """Move requests of busy hosts from the crawl's scheduler to the overflow, as far as they
        can be moved without being read. Return how many were moved.
        """
        moved = self.overflow.move_waiting(self._overflow_of)
        for key in moved:
            self._count_overflowed(self.hosts[host_of(key)].queue(key), key)
        return len(moved)

    def _overflow_of(self, stored: Mapping[str, Any]) -> str | None:
        """Return the name of the queue of the overflow for a request, as Scrapy stores it.

        Returns None for a request that may start, or that has to be queued here.
        """
        if not self.busy or not stored["meta"].keys().isdisjoint(_SPECIAL):
            return None
        key = origin_of(stored["url"])
        if key is None or host_of(key) not in self.busy:
            return None
        queue = self.find(host_of(key), key)
        if queue is None or BlockReason.UNREACHABLE in queue.blocks:
            return None
        if not queue.from_scheduler:
            return key if queue.blocks and queue.overflowed else None
        first, last = queue.from_scheduler[0], queue.from_scheduler[-1]
        is_late = self._clock.monotonic() - first.arrived >= UNREAD_AFTER
        return key if is_late and last.sort_key[0] <= -stored["priority"] else None

    def load(self, host: Host) -> None:
        """Load the next request of each queue that has none left and is not blocked."""
        for queue in host.queues.values():
            if queue.overflowed and not queue.from_scheduler and not queue.blocks:
                self._load(host, queue)

    def load_all(self, host: Host, queue: WaitQueue) -> None:
        """Load the requests of a queue for which there is capacity."""
        for _ in range(self._room(queue)):
            if not queue.overflowed:
                break
            self._load(host, queue)

    def _load(self, host: Host, queue: WaitQueue) -> None:
        """Load the next request of a queue, if there is one."""
        while queue.overflowed:
            name, number = next(iter(queue.overflowed.items()))
            entry = self.overflow.pop(name)
            lost = number if entry is None else 1
            self.overflowed -= lost
            if number > lost:
                queue.overflowed[name] -= lost
            else:
                del queue.overflowed[name]
            if entry is not None:
                if queue.key == OVERDUE:
                    entry = entry._replace(limit=Limit.NUMBER)
                    self._overdue += 1
                self.add(host, queue.key, entry, from_scheduler=True)
                return
        self.busy.discard(host.name)

    def drain(self) -> Iterator[WaitingRequest]:
        """Remove all requests that are queued or in the overflow. Return them, the last one first.

        This must be the last call.
        """
        removed: list[WaitingRequest] = []
        for host in self.hosts.values():
            queued = [entry for entry in host.entries() if entry.waiter is None]
            removed += [entry for entry in queued if self.remove(host, entry)]
            for queue in host.queues.values():
                queue.overflowed.clear()
        self.overflowed = 0
        removed.sort(key=_sort_key, reverse=True)
        left = self.overflow.put_back(removed)
        return merge(left, self.overflow.drain(), key=_sort_key, reverse=True)

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
        removed = host.remove(entry)
        if removed is None:
            return False
        self._overdue -= removed.limit is not None
        self.busy.discard(host.name)
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
        return self.capacity // (len(self.hosts) - len(self._idle) + 1)

    def has_capacity(self, name: str, key: str) -> bool:
        """Whether one more request of an origin may wait."""
        queue = self.find(name, key)
        return len(self) < self.capacity or (len(queue) if queue else 0) < self.share

    def move_overdue(
        self, host: Host, queue: WaitQueue, earliest: float, is_excepted: Callable[[Request], bool]
    ) -> None:
        """Move the requests of a queue that do not wait any longer to the queue :data:`OVERDUE`.

        These are the requests that began to wait before ``earliest``, those for which there is no
        capacity, and those that are excepted, which have no limit.
        """
        limits = self._overdue_limits(queue, earliest, is_excepted)
        if limits:
            host.move_overdue(queue, limits)
            self._overdue += sum(limit is not None for limit in limits.values())
        host.move_overflow(queue)

    def _overdue_limits(
        self, queue: WaitQueue, earliest: float, is_excepted: Callable[[Request], bool]
    ) -> dict[tuple[int, int], Limit | None]:
        found: dict[tuple[int, int], Limit | None] = {}
        entries = queue.entries()
        capacity = len(entries) + self._room(queue)
        for entry in entries:
            if is_excepted(entry.request):
                found[entry.sort_key] = None
            elif entry.arrived < earliest:
                found[entry.sort_key] = Limit.TIME
            elif capacity <= 0:
                found[entry.sort_key] = Limit.NUMBER
            else:
                capacity -= 1
        return found

    def _room(self, queue: WaitQueue) -> int:
        """Return how many more requests of a queue may wait. Less than 0: too many wait."""
        number = len(queue.from_scheduler) + len(queue.from_callers)
        others = len(self) - self._overdue - number
        return max(self.capacity - others, self.share) - number

    def remove_if_idle(self, host: Host) -> bool:
        """Remove a host that has no requests and no delay. Return whether it was removed."""
        host.remove_empty_queues()
        if not host.is_idle or self.hosts.get(host.name) is not host:
            return False
        if host.delays:
            self._idle[host.name] = host
            self._idle.move_to_end(host.name)
            return False
        del self.hosts[host.name]
        self._idle.pop(host.name, None)
        self._engine.slots.remove_pace(host.name)
        host.timer.cancel()
        return True

    def remove_idle_hosts(self) -> None:
        """Remove the least recently used idle hosts beyond the limit, if their delay is over."""
        for _ in range(min(len(self._idle) - MAX_IDLE_HOSTS, MAX_PER_PASS)):
            host = next(iter(self._idle.values()))
            if host.is_idle and not host.seconds_left(self._clock.monotonic(), 1):
                host.delays.clear()
                self.remove_if_idle(host)
            else:
                self._idle.move_to_end(host.name)


def is_robots_request(request: Request) -> bool:
    """Whether a request is for a robots.txt."""
    return bool(request.meta.get(IS_ROBOTSTXT_REQUEST))


def _sort_key(entry: WaitingRequest) -> tuple[int, int]:
    return entry.sort_key
