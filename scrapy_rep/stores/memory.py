"""Entries in memory: for as long as a store cannot be reached.

A crawl without a store needs none of this: what it knows are its origins.
"""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

_T = TypeVar("_T")

MOST = 10_000
"""Entries, and turns, that are kept; the oldest go first."""


class MemoryStore:
    """A store for one crawler. ``clock``: seconds that only ever grow."""

    shared = False

    def __init__(self, most: int = MOST, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._turns: OrderedDict[str, float] = OrderedDict()

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

    async def turn(self, host: str, seconds: float) -> float:
        now = self._clock()
        wait = self._turns.get(host, now) - now
        if wait > 0:
            return wait
        _keep(self._turns, host, now + seconds, self._most)
        return 0

    def take(self) -> tuple[str, Entry] | None:
        """One of the entries, which is not kept any longer; None when there is none left."""
        return self._entries.popitem() if self._entries else None


def _keep(kept: OrderedDict[str, _T], key: str, value: _T, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
