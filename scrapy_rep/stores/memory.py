"""Entries in memory: for the crawlers of one process, and for as long as a store cannot be reached.

A single crawl without a store needs none of this: what it knows are its origins.

A named memory stays until the process ends. Spiders that run one after the other share it so,
though between two of them no crawler has it open. It is bounded instead: what was put first goes
first.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from .base import MAX_LEASE, MAX_RETRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

MAX_ENTRIES = 10_000
"""Entries, claims and hosts that are kept while a store cannot be reached."""

MOST_NAMED = 100_000
"""The same in a named memory. It is REP_CACHE_SIZE as it is by default."""

OCTETS = 64 * 2**20
"""Octets of files that are kept in one memory: some 16,000 of average size."""

ENTRY_OCTETS = 100
"""Octets that an entry counts as, besides its file."""

SHORTEST_RETRY = 0.001
"""Seconds, at least, after which to ask again for a host."""


class _Kept(NamedTuple):
    entry: Entry
    since: float

    @property
    def octets(self) -> int:
        return ENTRY_OCTETS + len(self.entry.body or b"")


class _Lease(NamedTuple):
    """A claim, a reservation, or a delay."""

    owner: object
    """The store that has made it; None for a delay, which is over for nobody before its time."""
    until: float


class Memory:
    """What the stores of one process have in common. ``clock``: seconds that only ever grow.

    The crawlers of a process may run in several threads.
    """

    def __init__(
        self, most: int = MAX_ENTRIES, octets: int = OCTETS, clock: Callable[[], float] = monotonic
    ) -> None:
        self.most = most
        self.clock = clock
        self.lock = Lock()
        self.entries: OrderedDict[str, _Kept] = OrderedDict()
        self.claims: OrderedDict[str, _Lease] = OrderedDict()
        self.hosts: OrderedDict[str, _Lease] = OrderedDict()
        self._most_octets = octets
        self._octets = 0

    def put(self, origin: str, entry: Entry) -> None:
        """Keep an entry, and forget the oldest that there is no room for."""
        if origin in self.entries:
            self.remove(origin)
        kept = self.entries[origin] = _Kept(entry, self.clock())
        self._octets += kept.octets
        while len(self.entries) > self.most or self._octets > self._most_octets:
            self.remove(next(iter(self.entries)))

    def remove(self, origin: str) -> Entry:
        kept = self.entries.pop(origin)
        self._octets -= kept.octets
        return kept.entry

    def lease(
        self, leases: OrderedDict[str, _Lease], name: str, owner: object, seconds: float
    ) -> float:
        """Lease a name for so many seconds. Returns 0, or the seconds for which it is taken."""
        now = self.clock()
        there = leases.get(name)
        if there is not None and there.owner is not owner and there.until > now:
            return there.until - now
        self.set_lease(leases, name, owner, seconds)
        return 0

    def set_lease(
        self, leases: OrderedDict[str, _Lease], name: str, owner: object, seconds: float
    ) -> None:
        """Lease a name, whoever has it."""
        until = self.clock() + min(seconds, MAX_LEASE)
        leases[name] = _Lease(owner, until)
        leases.move_to_end(name)
        if len(leases) > self.most:
            leases.popitem(last=False)

    def holds(self, leases: OrderedDict[str, _Lease], name: str, owner: object) -> bool:
        """Whether a lease is that of ``owner`` and not over."""
        there = leases.get(name)
        return there is not None and there.owner is owner and there.until > self.clock()


class MemoryStore:
    """The store of one crawler in a memory, a new one unless ``memory`` is given.

    ``ttl``: seconds after which an entry is forgotten.
    """

    shared = False

    def __init__(self, memory: Memory | None = None, *, ttl: float = inf) -> None:
        self._memory = memory or Memory()
        self._ttl = ttl

    def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: what is kept is for others, too."""

    async def get(self, origin: str) -> Entry | None:
        with self._memory.lock:
            return self._get(origin)

    async def put(self, origin: str, entry: Entry) -> None:
        with self._memory.lock:
            self._memory.put(origin, entry)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        memory = self._memory
        with memory.lock:
            taken = memory.lease(memory.claims, origin, self, seconds)
            return not taken, self._get(origin)

    async def release(self, origin: str) -> None:
        memory = self._memory
        with memory.lock:
            if memory.holds(memory.claims, origin, self):
                del memory.claims[origin]

    async def reserve_host(self, host: str, lease: float) -> float:
        memory = self._memory
        with memory.lock:
            wait = memory.lease(memory.hosts, host, self, lease)
        return min(max(wait, SHORTEST_RETRY), MAX_RETRY) if wait else 0

    async def release_host(self, host: str, delay: float) -> None:
        memory = self._memory
        with memory.lock:
            if memory.holds(memory.hosts, host, self):
                memory.set_lease(memory.hosts, host, None, delay)

    def take(self) -> tuple[str, Entry] | None:
        """One of the entries, which is not kept any longer; None when there is none left."""
        memory = self._memory
        with memory.lock:
            if not memory.entries:
                return None
            origin = next(reversed(memory.entries))
            return origin, memory.remove(origin)

    def take_back(self, origin: str, entry: Entry) -> None:
        """Keep what was taken, unless there is something newer by now."""
        with self._memory.lock:
            if origin not in self._memory.entries:
                self._memory.put(origin, entry)

    def _get(self, origin: str) -> Entry | None:
        kept = self._memory.entries.get(origin)
        if kept is not None and self._memory.clock() - kept.since > self._ttl:
            self._memory.remove(origin)
            return None
        return kept.entry if kept is not None else None


class NamedMemoryStore(MemoryStore):
    """The store of one of the crawlers that share the memory ``name`` of this process."""

    shared = True

    def __init__(self, name: str, *, ttl: float = inf) -> None:
        with _lock:
            if name not in _memories:
                _memories[name] = Memory(MOST_NAMED)
        super().__init__(_memories[name], ttl=ttl)


_memories: dict[str, Memory] = {}
_lock = Lock()
