"""The claims of one crawler: of several crawlers that share a store, one makes each fetch.

The others poll the store for its result. The claim of a fetch in progress is renewed, so that it
lasts as long as that, and another crawler soon replaces one that died.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .base import LEASE, MAX_LEASE, Store
from .entry import Entry
from .threaded import CALL_TIMEOUT

FIRST_POLL_INTERVAL, MAX_POLL_INTERVAL = 0.05, 2.0
"""Seconds between two polls for the result of another crawler's fetch. The interval doubles. Half
of all robots.txt files arrive within a few tenths of a second."""

WAIT_MARGIN = 5.0
"""Seconds that a crawler waits longer than the longest fetch, so that the owner of the claim can
store its result. A single call to SQLite or Redis fails after 5 s."""


class Clock(Protocol):
    """What claims need of a clock."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""

    async def sleep(self, seconds: float) -> None:
        """Return after ``seconds``."""


@dataclass(slots=True, eq=False)
class Lookup:
    """One search for the result of a fetch, and what it found."""

    entry: Entry | None = None
    """The entry that replaces the fetch, if there is one."""
    body: bytes | None = None
    """The good copy in the store as it was received, if there is one."""
    fence: int | None = None
    """The fencing token under which the result of the fetch is put."""
    claimed_at: float = 0
    """When the claim was last made or renewed, on the monotonic clock."""
    polls: int = 0
    """How often the claim of another crawler was waited for."""
    is_late: bool = False
    """Whether such a claim has lasted too long: the fetch is made without a claim."""


class Claims:
    """The claims of one crawler on the origins in a store.

    ``longest_fetch``: the seconds that a fetch takes at most.
    """

    def __init__(self, store: Store, longest_fetch: float, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._max_wait = min(longest_fetch + WAIT_MARGIN, MAX_LEASE)
        """How long this crawler waits for the claim of another one, in seconds."""
        self._claimed: dict[str, Lookup] = {}
        """The lookups that have claimed an origin, by origin."""
        self._saves = 0  # that are in progress
        self._is_closed = False

    async def load(
        self, origin: str, lookup: Lookup, is_usable: Callable[[Entry | None], bool]
    ) -> None:
        """Read the entry of an origin until it replaces the fetch, or else claim the fetch.

        ``is_usable`` says whether an entry replaces it. While another crawler has the claim, this
        polls for its entry, for as long as a fetch takes.
        """
        entry = await self._store.get(origin)
        interval = FIRST_POLL_INTERVAL
        until = self._clock.monotonic() + self._max_wait
        while not is_usable(entry) and self._store.shared:
            lookup.claimed_at = self._clock.monotonic()
            claimed, entry, lookup.fence = await self._store.claim(origin, LEASE)
            if claimed:
                self._claimed[origin] = lookup
                if is_usable(entry):  # put between get and claim
                    await self._release(origin)
                return
            remaining = until - self._clock.monotonic()
            if remaining <= 0:
                lookup.is_late = True
                return
            lookup.polls += 1
            await self._clock.sleep(min(interval, remaining))
            interval = min(2 * interval, MAX_POLL_INTERVAL)

    async def renew(self) -> None:
        """Renew the claims that have lasted for half of their time. Call this often.

        Each keeps its fencing token: another crawler may have had the claim meanwhile.
        """
        now = self._clock.monotonic()
        latest = now - LEASE / 2
        due = {key: each for key, each in self._claimed.items() if each.claimed_at <= latest}
        for lookup in due.values():  # before the first call: this is called again meanwhile
            lookup.claimed_at = now
        for origin in due:
            await self._store.claim(origin, LEASE)
            if origin not in self._claimed:  # it was released meanwhile
                await self._release(origin)

    async def save(self, origin: str, entry: Entry | None, lookup: Lookup) -> bool:
        """Put the entry of a fetch, if there is one, and release the claim.

        Returns False if the store refused the entry: another crawler has put a later one.
        """
        self._saves += 1
        try:
            if entry is None or self._is_closed:
                return True
            return await self._store.put(origin, entry, lookup.fence)
        finally:  # also if the call was cancelled
            try:
                # The next fetch of this crawler may have claimed the origin meanwhile.
                if self._claimed.get(origin) is lookup:
                    await self._release(origin)
            finally:
                self._saves -= 1

    async def _release(self, origin: str) -> None:
        self._claimed.pop(origin, None)
        if not self._is_closed:
            await self._store.release(origin)

    async def close(self) -> None:
        """Close the store after all saves have ended and all claims are released."""
        until = self._clock.monotonic() + CALL_TIMEOUT
        await self._clock.sleep(0)  # a save that was called may not have started
        while self._saves and self._clock.monotonic() < until:
            await self._clock.sleep(FIRST_POLL_INTERVAL)
        for origin in tuple(self._claimed):  # of fetches that were cancelled, and have not ended
            await self._release(origin)
        self._is_closed = True
        await self._store.close()
