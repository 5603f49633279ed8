"""Entries in memory: for as long as a store cannot be reached.

A crawl without a store needs none of this: what it knows are its origins.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from .base import MAX_LEASE, MAX_RETRY

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

_T = TypeVar("_T")

MAX_ENTRIES = 10_000
"""Entries, and hosts, that are kept; the oldest go first."""


class MemoryStore:
    """A store for one crawler. ``clock``: seconds that only ever grow."""

    shared = False

    def __init__(self, most: int = MAX_ENTRIES, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._hosts: OrderedDict[str, float | None] = OrderedDict()
        """When the delay of each is over; None for those that are reserved."""

    def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do."""

    async def get(self, origin: str) -> Entry | None:
        return self._entries.get(origin)

    async def put(self, origin: str, entry: Entry) -> None:
        _keep(self._entries, origin, entry, self._most)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:  # noqa: ARG002
        """There is nobody else."""
        return True, self._entries.get(origin)

    async def release(self, origin: str) -> None:
        """Nobody waits for it."""

    async def reserve_host(self, host: str, lease: float) -> float:  # noqa: ARG002
        """There is nobody else, but the delay holds for us, too."""
        until = self._hosts.get(host)
        wait = 0.0 if until is None else until - self._clock()
        if wait > 0:
            return min(wait, MAX_RETRY)
        _keep(self._hosts, host, None, self._most)
        return 0

    async def release_host(self, host: str, delay: float) -> None:
        if host in self._hosts and self._hosts[host] is None:
            self._hosts[host] = self._clock() + min(delay, MAX_LEASE)

    def take(self) -> tuple[str, Entry] | None:
        """One of the entries, which is not kept any longer; None when there is none left."""
        return self._entries.popitem() if self._entries else None

    def take_back(self, origin: str, entry: Entry) -> None:
        """Keep what was taken, unless there is something newer by now."""
        if origin not in self._entries:
            _keep(self._entries, origin, entry, self._most)


def _keep(kept: OrderedDict[str, _T], key: str, value: _T, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
