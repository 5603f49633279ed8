"""The store as one crawl uses it: loads policies before a fetch, and saves them after it.

Of several crawlers that share a store, one claims each fetch, and the others poll the store for its
result. The claim of a fetch in progress is renewed, so that it lasts as long as that, and another
crawler soon replaces one that died. An entry may be of a crawl with another clock and other
settings.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from ..clock import Clock
from ..exceptions import SettingError
from ..origin import Origin
from ..protocol.access import Cancelled, FetchResult, Rules, Unreachable
from ..recorder import Recorder
from ..settings import Settings, without_passwords
from ..stores import Entry, Store, StoreError
from ..stores.base import LEASE, MAX_LEASE, TTL
from ..stores.entry import reinterpreted
from ..stores.registry import open_store
from ..stores.threaded import CALL_TIMEOUT
from .fetcher import access_policy, longest_fetch

FIRST_POLL_INTERVAL, MAX_POLL_INTERVAL = 0.05, 2.0
"""Seconds between two polls for the result of another crawler's fetch. The interval doubles. Half
of all robots.txt files arrive within a few tenths of a second."""

WAIT_MARGIN = 5.0
"""Seconds that a crawler waits longer than the longest fetch, so that the owner of the claim can
store its result. A single call to SQLite or Redis fails after 5 s."""

MAX_CLOCK_SKEW = 300.0
"""Seconds by which the clocks of two machines may differ (ours; Kerberos has the same default). An
entry from further in the future was written on a wrong clock."""


@dataclass(slots=True, eq=False)
class Load:
    """What a fetch in progress has from the store."""

    body: bytes | None = None
    """The good copy as it was received, if there is one."""
    is_claimed: bool = False
    fence: int | None = None
    """The fencing token under which the result of the fetch is put."""
    claimed_at: float = 0
    """When the claim was last made or renewed, on the monotonic clock."""


class PolicyStore:
    """The store of one crawl.

    The times of files are on the steady clock of the crawl, those of entries on the machine's.
    """

    def __init__(self, store: Store, settings: Settings, clock: Clock, recorder: Recorder) -> None:
        self.store = store
        self._settings = settings
        self._clock = clock
        self._count = recorder.count
        self._max_wait = min(longest_fetch(settings) + WAIT_MARGIN, MAX_LEASE)
        self._loads: dict[str, Load] = {}
        self._saves = 0  # that are in progress
        self._asks_sites = False
        self._is_closed = False

    def ask_sites(self) -> None:
        """Let no entry replace a fetch from now on, and save only answers of sites.

        Entries still validate a copy, and it is used while a site is down.
        """
        self._asks_sites = True

    async def load(self, origin: Origin) -> Entry | None:
        """Return the entry that replaces a fetch of ``origin``, or claim the fetch."""
        load = self._loads[origin.key] = Load()
        entry = await self._find(origin, load)
        if entry is not None:
            self._count("robotstxt/store/hit_count")
            del self._loads[origin.key]
            return entry
        self._count("robotstxt/store/miss_count")
        if load.body is None:
            # A 304 has no body, so the store would never get the file.
            origin.forget_validators()
        return None

    async def _find(self, origin: Origin, load: Load) -> Entry | None:
        """Read the entry of an origin until one replaces the fetch, or the fetch is claimed.

        While another crawler has the claim, this polls for its entry, for as long as a fetch takes.
        """
        found = self._restored(origin, load, await self.store.get(origin.key))
        interval, until = FIRST_POLL_INTERVAL, self._clock.monotonic() + self._max_wait
        while found is None and self.store.shared:
            load.claimed_at = self._clock.monotonic()
            load.is_claimed, entry, load.fence = await self.store.claim(origin.key, LEASE)
            found = self._restored(origin, load, entry)
            if found is not None and load.is_claimed:  # put between get and claim
                await self._release(origin.key)
            if found is not None or load.is_claimed or self._asks_sites:
                break
            remaining = until - load.claimed_at
            if remaining <= 0:  # the fetch is made without a claim
                self._count("robotstxt/store/wait_timeout_count")
                break
            self._count("robotstxt/store/wait_count")
            await self._clock.sleep(min(interval, remaining))
            interval = min(2 * interval, MAX_POLL_INTERVAL)
        return found

    def _restored(self, origin: Origin, load: Load, entry: Entry | None) -> Entry | None:
        """Restore ``origin`` from an entry. Returns the entry if it replaces the fetch."""
        if entry is None or entry.fetched_at > self._clock.time() + MAX_CLOCK_SKEW:
            return None
        entry = reinterpreted(self._on_steady_clock(entry), access_policy(self._settings, origin))
        if entry.fetched_at >= origin.fetched_at:
            load.body = entry.body
        is_usable = origin.restore(entry, self._clock.steady())
        return entry if is_usable and not self._asks_sites else None

    def _on_steady_clock(self, entry: Entry) -> Entry:
        """Return an entry with its times on the steady clock.

        As nobody knows on which clock it was written, a fetch may be earlier, and days be longer.
        """
        moved = entry.moved(-self._clock.step())
        if entry.unreachable_since is None:
            return moved
        # The clock of the crawl that wrote the entry may have been set back.
        since = min(entry.unreachable_since, entry.fetched_at) - self._clock.least_step
        return moved._replace(unreachable_since=min(since, self._clock.steady()))

    async def renew(self) -> None:
        """Renew the claims that have lasted for half of their time. Call this often.

        Each keeps its fencing token: another crawler may have had the claim meanwhile.
        """
        now = self._clock.monotonic()
        claimed = {key: load for key, load in self._loads.items() if load.is_claimed}
        due = {key: load for key, load in claimed.items() if load.claimed_at <= now - LEASE / 2}
        for load in due.values():  # before the first call: this is called again meanwhile
            load.claimed_at = now
        for key in due:
            await self.store.claim(key, LEASE)
            if key not in self._loads:  # it was released meanwhile
                await self._release(key)

    def entry(self, origin: Origin, result: FetchResult) -> Entry | None:
        """Return the entry to save after a fetch, or None if there is nothing to save."""
        is_failure = isinstance(result, Unreachable) and self._asks_sites
        if is_failure or isinstance(result, Cancelled) or origin.source == "http-cache":
            return None
        load = self._loads.get(origin.key, Load())
        body = result.body if isinstance(result, Rules) else load.body
        if origin.content is None:
            body = None
        elif body is None:  # without the copy, the entry would be incomplete
            return None
        return origin.to_entry(body).moved(self._clock.step())

    def save(self, origin: Origin, entry: Entry | None) -> Coroutine[Any, Any, None]:
        """End a fetch: put its entry, if there is one, and release the claim."""
        self._saves += 1
        return self._save(origin, entry, self._loads.pop(origin.key, Load()))

    async def _save(self, origin: Origin, entry: Entry | None, load: Load) -> None:
        try:
            if entry is None or self._is_closed:
                return
            if not await self.store.put(origin.key, entry, load.fence):
                # 0 or None: without a claim, as while the store failed.
                if load.fence and not origin.in_flight:
                    origin.mark_superseded(self._clock.steady())
                self._count("robotstxt/store/superseded_count")
        finally:  # also if the call was cancelled
            try:
                newer = self._loads.get(origin.key)
                if load.is_claimed and not (newer is not None and newer.is_claimed):
                    await self._release(origin.key)
            finally:
                self._saves -= 1

    async def _release(self, key: str) -> None:
        if not self._is_closed:
            await self.store.release(key)

    async def close(self) -> None:
        """Close the store after all saves have ended and all claims are released."""
        until = self._clock.monotonic() + CALL_TIMEOUT
        while self._saves and self._clock.monotonic() < until:
            await self._clock.sleep(FIRST_POLL_INTERVAL)
        for key, load in tuple(self._loads.items()):  # of fetches that were cancelled
            if load.is_claimed:
                await self._release(key)
        self._is_closed = True
        await self.store.close()


def open_policy_store(settings: Settings, clock: Clock, recorder: Recorder) -> PolicyStore | None:
    """Open the store that the settings select. Returns None if they select none.

    Raises :class:`SettingError` for a REP_STORE that cannot be used.
    """
    try:
        store = open_store(settings.store, jobdir=settings.jobdir, ttl=TTL)
    except StoreError as error:
        why = str(error).rstrip(".")
        raise SettingError(
            f"REP_STORE is {without_passwords(settings.store)!r}, which cannot be used: {why}"
        ) from None
    return None if store is None else PolicyStore(store, settings, clock, recorder)
