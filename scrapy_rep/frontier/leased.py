"""The requests that a worker has leased from a :class:`~.shared_queue.SharedQueue`.

:class:`LeasedQueues` are those of a crawl that obeys robots.txt: the frontier says which start, and
a host is returned when its turn is over. :class:`PlainQueue` is that of a crawl that does not: all
hosts are one, which belongs to no worker, and requests start in the order of their priority.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

from scrapy import Request

from ..policies.gate import Address, Place
from .frontier import Frontier
from .hosts import Host, Queue, Queues
from .reservation import Reservations
from .shared_queue import SharedQueue, Wanted

AHEAD = 4
"""How many times CONCURRENT_REQUESTS a worker leases, so that it need not wait for Redis."""

LONG_WAIT = 5.0
"""Seconds. A host that has to wait longer goes back, with its requests."""

SCAN_INTERVAL = 1.0
"""Seconds between two looks at all hosts. In between, only at those where something happened."""

NO_HOST = ""
"""The host of requests that belong to no host: each worker may lease them at any time."""


class LeasedQueue(Queue):
    """The requests of one address, each with its name. A request that Redis cannot store has none.

    Those start in the order of the names, which is that of the lease.
    """

    __slots__ = ("requests",)

    owner: LeasedQueues

    def __init__(self, owner: LeasedQueues, address: Address) -> None:
        super().__init__(owner, address, *owner.frontier.hosts.of(address))
        self.requests: deque[tuple[bytes, Request]] = deque()

    def peek(self) -> Request | None:
        return self.requests[0][1]

    def pop(self) -> Request | None:
        name, request = self.requests.popleft()
        self.size -= 1
        self.owner.note_start(name, request, self.host.name)
        self.owner.frontier.start(self, request)
        return request

    def take_all(self) -> list[bytes]:
        """Remove the requests that Redis has, and return their names."""
        names = [name for name, _ in self.requests if name]
        self.requests = deque(each for each in self.requests if not each[0])
        self.size = len(self.requests)
        self.owner.frontier.update(self)
        return names


class LeasedQueues(Queues):
    """The queues of the hosts that this worker has leased."""

    def __init__(self, frontier: Frontier, shared: SharedQueue) -> None:
        super().__init__()
        self.frontier = frontier
        self._shared = shared
        self.started: dict[Request, bytes] = {}
        """The names of the requests that have started and are not acknowledged."""
        self._queues: dict[Address, LeasedQueue] = {}
        self.hosts: set[str] = set()
        """The hosts that this worker has."""
        self._drained: set[str] = set()
        """Those of which Redis has no more requests."""
        self._touched: set[str] = set()
        """Those at which something has happened since the last call."""
        self._next_scan = 0.0
        self._ahead = AHEAD * (frontier.settings.concurrent_requests or 100)
        frontier.queues.append(self)
        frontier.reserve_with(Leases(self, frontier.clock, frontier))

    def add(self, name: bytes, request: Request) -> None:
        """Add a request that has been leased."""
        address = self.frontier.policies.address(request)
        queue = self._queues.get(address)
        if queue is None:
            queue = self._queues[address] = LeasedQueue(self, address)
        queue.requests.append((name, request))
        queue.size += 1
        self.frontier.update(queue)

    def has(self, host: str) -> bool:
        """Whether this worker has a host."""
        return host in self.hosts and self._shared.is_leased

    def note_turn(self, host: str, found: int) -> None:
        """Note that this worker has a host, and how many requests it has just leased of it."""
        if host != NO_HOST:
            self.hosts.add(host)
            self._touched.add(host)
            if not found:
                self._drained.add(host)

    def note_push(self, host: str) -> None:
        """Note that Redis gets a request to a host."""
        self._drained.discard(host)

    def note_start(self, name: bytes, request: Request, host: str) -> None:
        """Note that a request starts."""
        self._touched.add(host)
        if name:
            self.started[request] = name

    def pop(self) -> Request | None:
        """Return a request that may start; None if there is none at this time."""
        queue = self.frontier.next_queue(self)
        return queue.pop() if queue is not None else None

    def remove(self, queue: LeasedQueue) -> None:
        self._queues.pop(queue.address, None)

    def __len__(self) -> int:
        return self._shared.sizes.waiting + self._shared.kept + self.size

    @property
    def is_full(self) -> bool:
        """Whether the spider has to wait before it yields more requests."""
        return self._shared.is_full

    @property
    def size(self) -> int:
        """How many requests this worker has leased and not started."""
        return sum(each.size for each in self._queues.values())

    def take_all(self) -> list[bytes]:
        """Remove all requests that Redis has, return their names, and forget all hosts."""
        names = [name for each in tuple(self._queues.values()) for name in each.take_all()]
        for each in (self.hosts, self._drained, self._touched):
            each.clear()
        return names

    def waits(self) -> Iterator[tuple[str, float, float]]:
        """Yield the hosts that have to wait, the seconds that are left, and their delay."""
        for host in self.frontier.hosts.hosts.values():
            seconds = self._seconds_left(host, [])
            if seconds:  # infinity: a request is in progress
                left = max(host.delay, 1) if seconds == inf else seconds
                yield host.name, left, host.delay

    # The turns of hosts.

    def touch(self, host: str) -> None:
        """Look at a host before the next call."""
        self._touched.add(host)

    def settle(self, *, closing: bool = False) -> Wanted:
        """Return the hosts that are held or had their turn. Say what this worker could start."""
        held, now = self._shared.held, self.frontier.clock.monotonic()
        if closing or now > self._next_scan:
            self._next_scan = now + SCAN_INTERVAL
            self._touched |= self.hosts
        is_closing = closing or self.frontier.closing.has_begun
        ready = sum(queue.size for queue in self.ready)
        wanted = 0 if is_closing or ready > self._ahead // 2 else self._ahead - ready
        if self.drops.size > self._ahead:  # they start in between, and would fill the memory
            wanted = 0
        touched, self._touched = (self._touched | held) & self.hosts, set()
        more = {NO_HOST: wanted} if wanted and self._shared.sizes.hostless else {}
        for name in touched:
            host = self.frontier.hosts.host(name)
            own = [queue for queue in host.queues if queue.owner is self]
            if room := self._room(host, own) if wanted and name not in held else 0:
                more[name] = room
            else:
                self._end_turn(host, own, is_unwanted=closing or name in held)
        return Wanted(wanted, *self._new_wanted(wanted), more)

    def _room(self, host: Host, own: list[Queue]) -> int:
        """Return how many more requests of a host to lease, because its turn goes on.

        It does if there are fewer hosts that may be leased than workers.
        """
        sizes = self._shared.sizes
        is_alone = sizes.waiting and sizes.ready < sizes.workers
        if not is_alone or host.is_paced or host.name in self._drained:
            return 0
        if any(each.place not in (Place.READY, Place.WAITING) for each in own):
            return 0
        return max(self._shared.turn - sum(each.size for each in own), 0)

    def _end_turn(self, host: Host, own: list[Queue], *, is_unwanted: bool) -> None:
        """Return a host, unless it is needed."""
        if host.active and not is_unwanted:
            return
        seconds = self._seconds_left(host, own)
        if own and (is_unwanted or seconds > LONG_WAIT):
            for queue in own:
                assert isinstance(queue, LeasedQueue)
                self._shared.give_back(queue.take_all())
        if not host.active and next(host.queues, None) is None:
            self.hosts.discard(host.name)
            self._drained.discard(host.name)
            self._shared.release(host.name, seconds, host.delay)

    def _seconds_left(self, host: Host, own: list[Queue]) -> float:
        """Return the seconds for which no request to a host can start."""
        gates = (self.frontier.gate(queue) for queue in own)
        waits = [each.seconds if each.place is Place.WAITING else 0 for each in gates]
        policy = min(waits, default=0)
        pace = host.seconds_left(self.frontier.clock.monotonic())
        own_delay = self.frontier.own_delay_left(host)
        return max(policy if policy < inf else 0, pace, own_delay)

    def _new_wanted(self, wanted: int) -> tuple[int, int]:
        """Return how many requests of new hosts to lease, at most and at least."""
        limit = self.frontier.fetches.limit
        has_room = limit.can_begin()
        if wanted and not has_room:
            limit.end_oldest()
        if not wanted or not has_room:
            return 0, 0
        new = max(self._ahead // 2 - self.unknown.size, 0)
        return new, int(not self.unknown.size)

    async def reserve_host(self, host: str, lease: float) -> float:  # noqa: ARG002
        """Lease a host for another request. Return 0, or the seconds until the next attempt."""
        seconds = 0.0 if host in self.hosts else await self._shared.reserve(host)
        if not seconds:
            self.note_turn(host, 1)
        return seconds

    async def release_host(self, host: str, delay: float) -> None:  # noqa: ARG002
        """Let the next call return such a host, if its turn is over."""
        self.touch(host)


class Leases(Reservations):
    """The reservations of a worker. A host that it has leased is reserved, until that ends."""

    _store: LeasedQueues

    def is_reserved(self, host: Host) -> bool:
        return self._store.has(host.name) or super().is_reserved(host)

    def release(self, host: Host, delay: float) -> None:
        super().release(host, delay)
        self._store.touch(host.name)

    def note_sent(self, host: Host) -> None:
        super().note_sent(host)
        self._store.touch(host.name)


class PlainQueue:
    """Requests by priority, for a crawl without the frontier."""

    hosts: frozenset[str] = frozenset()
    """It has none."""

    def __init__(self, shared: SharedQueue, concurrent: int) -> None:
        self._shared = shared
        self._most = AHEAD * (concurrent or 100)
        self._heap: list[tuple[bytes, int, Request]] = []
        self.started: dict[Request, bytes] = {}
        """The names of the requests that have started and are not acknowledged."""

    def add(self, name: bytes, request: Request) -> None:
        """Add a request that has been leased."""
        heappush(self._heap, (name, id(request), request))

    def pop(self) -> Request | None:
        """Return the next request; None if there is none."""
        if not self._heap:
            return None
        name, _, request = heappop(self._heap)
        if name:
            self.started[request] = name
        return request

    def note_turn(self, host: str, found: int) -> None:  # noqa: ARG002
        """Return a host at once, which a crawl with the frontier has left."""
        self._shared.release(host, 0, 0)

    def note_push(self, host: str) -> None:
        """Nothing changes: each worker may lease the request."""

    def waits(self) -> Iterator[tuple[str, float, float]]:
        """Yield nothing: no host has a pace."""
        return iter(())

    @property
    def size(self) -> int:
        """How many requests this worker has leased and not started."""
        return len(self._heap)

    def take_all(self) -> list[bytes]:
        """Remove all requests that Redis has, and return their names."""
        names = [name for name, *_ in self._heap if name]
        self._heap = [each for each in self._heap if not each[0]]
        return names

    def settle(self, *, closing: bool = False) -> Wanted:
        """Say what this worker could start."""
        if closing or not self._shared.sizes.waiting or self.size > self._most // 2:
            return Wanted()
        wanted = self._most - self.size
        return Wanted(wanted, wanted, 0, {NO_HOST: wanted} if self._shared.sizes.hostless else {})
