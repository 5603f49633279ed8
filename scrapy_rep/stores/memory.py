"""Entries in memory, for the crawlers of one process, and as the fallback of another store.

A single crawl without a store does not use this module: its policy cache is enough.

The data of a named memory store stays until the process ends, so that spiders which run one after
another share it. Its size is limited: the entry that was put first is evicted first.
"""

from __future__ import annotations

from collections import OrderedDict
from math import inf
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from .base import MAX_LEASE, MAX_RETRY, MIN_RETRY, Claim

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

MAX_ENTRIES = 10_000
"""The most entries, claims and hosts that the fallback of another store keeps: a failure that lasts
30 s at 300 new origins a second."""

MAX_NAMED_ENTRIES = 100_000
"""The most entries, claims and hosts of a named memory store (ours)."""

MAX_OCTETS = 64 * 2**20
"""The most octets of robots.txt files in one memory: some 16,000 files of average size."""

ENTRY_OCTETS = 100
"""The octets that an entry counts in addition to its file."""


class _StoredEntry(NamedTuple):
    entry: Entry
    put_at: float
    fence: int | None

    @property
    def octets(self) -> int:
        return ENTRY_OCTETS + len(self.entry.body or b"")


class _Lease(NamedTuple):
    """A claim, a reservation, or a delay."""

    owner: object
    """The store that made it; None for a delay, which applies to all stores."""
    until: float
    fence: int = 0
    """The fencing token of a claim."""


class MemoryData:
    """The data that memory stores share. ``clock`` returns seconds and never goes backward.

    The crawlers of a process may run in several threads: hold ``lock`` while you use this object.
    """

    def __init__(
        self,
        max_entries: int = MAX_ENTRIES,
        max_octets: int = MAX_OCTETS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.clock = clock
        self.lock = Lock()
        self.entries: OrderedDict[str, _StoredEntry] = OrderedDict()
        self.claims: OrderedDict[str, _Lease] = OrderedDict()
        self.hosts: OrderedDict[str, _Lease] = OrderedDict()
        self._max_entries = max_entries
        self._max_octets = max_octets
        self._octets = 0
        self._last_fence = 0

    def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        """Store an entry, and evict the oldest entries that exceed the limits.

        Returns False if the previous entry has a greater fencing token.
        """
        if origin in self.entries:
            previous = self.entries[origin].fence
            if fence is None:
                fence = previous
            elif previous is not None and previous > fence:
                return False
            self.remove(origin)
        stored = self.entries[origin] = _StoredEntry(entry, self.clock(), fence)
        self._octets += stored.octets
        while len(self.entries) > self._max_entries or self._octets > self._max_octets:
            self.remove(next(iter(self.entries)))
        return True

    def remove(self, origin: str) -> tuple[Entry, int | None]:
        """Remove and return an entry and its fencing token."""
        stored = self.entries.pop(origin)
        self._octets -= stored.octets
        return stored.entry, stored.fence

    def next_fence(self) -> int:
        """Return a fencing token that is greater than all before it."""
        self._last_fence += 1
        return self._last_fence

    def lease(
        self, leases: OrderedDict[str, _Lease], name: str, owner: object, seconds: float
    ) -> float:
        """Lease a name for ``seconds``.

        Returns 0, or the seconds that remain of another owner's lease.
        """
        now = self.clock()
        current = leases.get(name)
        if current is not None and current.owner is not owner and current.until > now:
            return current.until - now
        self.set_lease(leases, name, owner, seconds)
        return 0

    def set_lease(
        self,
        leases: OrderedDict[str, _Lease],
        name: str,
        owner: object,
        seconds: float,
        fence: int = 0,
    ) -> None:
        """Lease a name, and replace any current lease."""
        until = self.clock() + min(seconds, MAX_LEASE)
        leases[name] = _Lease(owner, until, fence)
        leases.move_to_end(name)
        if len(leases) > self._max_entries:
            leases.popitem(last=False)

    def has_lease(self, leases: OrderedDict[str, _Lease], name: str, owner: object) -> bool:
        """Return whether ``owner`` has a lease that has not expired."""
        current = leases.get(name)
        return current is not None and current.owner is owner and current.until > self.clock()


class MemoryStore:
    """One crawler's view of a :class:`MemoryData`, a new one unless ``data`` is given.

    ``ttl``: seconds after which an entry expires.
    """

    def __init__(
        self, data: MemoryData | None = None, *, ttl: float = inf, shared: bool = False
    ) -> None:
        self.shared = shared
        self._data = data or MemoryData()
        self._ttl = ttl

    @classmethod
    def named(cls, name: str, *, ttl: float = inf) -> MemoryStore:
        """Return a store that shares its data with the stores of this process by this name."""
        with _named_data_lock:
            if name not in _named_data:
                _named_data[name] = MemoryData(MAX_NAMED_ENTRIES)
        return cls(_named_data[name], ttl=ttl, shared=True)

    def open(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing: other stores may use the data."""

    async def get(self, origin: str) -> Entry | None:
        with self._data.lock:
            return self._get(origin)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        with self._data.lock:
            return self._data.put(origin, entry, fence)

    async def claim(self, origin: str, seconds: float) -> Claim:
        data = self._data
        with data.lock:
            claimed = not data.lease(data.claims, origin, self, seconds)
            if claimed:
                data.set_lease(data.claims, origin, self, seconds, data.next_fence())
            return Claim(claimed, self._get(origin), data.claims[origin].fence)

    async def renew(self, origin: str, fence: int, seconds: float) -> bool:
        data = self._data
        with data.lock:
            current = data.claims.get(origin)
            if current is None or current.owner is not self or current.fence != fence:
                return False
            data.set_lease(data.claims, origin, self, seconds, fence)
            return True

    async def release(self, origin: str) -> None:
        data = self._data
        with data.lock:
            if data.has_lease(data.claims, origin, self):
                del data.claims[origin]

    async def reserve_host(self, host: str, lease: float) -> float:
        data = self._data
        with data.lock:
            remaining = data.lease(data.hosts, host, self, lease)
        return min(max(remaining, MIN_RETRY), MAX_RETRY) if remaining else 0

    async def release_host(self, host: str, delay: float) -> None:
        data = self._data
        with data.lock:
            if data.has_lease(data.hosts, host, self):
                data.set_lease(data.hosts, host, None, delay)

    def pop(self, origin: str | None = None) -> tuple[str, Entry, int | None] | None:
        """Remove and return the entry of an origin; without one, the entry that was put last.

        The result is the origin, the entry and its fencing token. None if there is no entry.
        """
        data = self._data
        with data.lock:
            if origin is None:
                origin = next(reversed(data.entries), None)
            if origin is None or origin not in data.entries:
                return None
            return (origin, *data.remove(origin))

    def put_if_absent(self, origin: str, entry: Entry, fence: int | None) -> None:
        """Store an entry, unless the origin has one."""
        with self._data.lock:
            if origin not in self._data.entries:
                self._data.put(origin, entry, fence)

    def _get(self, origin: str) -> Entry | None:
        stored = self._data.entries.get(origin)
        if stored is None:
            return None
        if self._data.clock() - stored.put_at > self._ttl:
            self._data.remove(origin)
            return None
        return stored.entry


_named_data: dict[str, MemoryData] = {}
_named_data_lock = Lock()
