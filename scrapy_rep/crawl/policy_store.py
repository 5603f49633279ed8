"""Loads policies from the store before a fetch, and saves them after it.

Without a usable entry, a crawl claims the file, so that one of several crawlers makes the fetch,
while the others poll the store for its result. A claim lasts as long as the longest fetch, so that
another crawler replaces one that died.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from scrapy.statscollectors import StatsCollector

from ..exceptions import SettingError
from ..fetch.fetcher import access_policy, retry_pause
from ..frontier.clock import Clock
from ..origin import Origin
from ..protocol.access import AccessResult, FetchResult, Rules, access_result
from ..protocol.robotstxt import RobotsTxt
from ..settings import Settings, without_passwords
from ..stores import Entry, Store, StoreError
from ..stores.base import MAX_LEASE, TTL
from ..stores.registry import open_store
from ..stores.threaded import CALL_TIMEOUT

FIRST_POLL_INTERVAL, MAX_POLL_INTERVAL = 0.05, 2.0
"""Seconds between two polls for the result of another crawler's fetch. The interval doubles. Half
of all robots.txt files arrive within a few tenths of a second."""

WAIT_MARGIN = 5.0
"""Seconds that a crawler waits longer than the longest fetch, so that the owner of the claim can
store its result. A single call to SQLite or Redis fails after 5 s."""

MAX_CLOCK_SKEW = 300.0
"""Seconds by which the clocks of two machines may differ (ours; Kerberos has the same default). An
entry from further in the future was written on a wrong clock."""


@dataclass(slots=True)
class StoreLookup:
    """The result of :meth:`PolicyStore.load`."""

    entry: Entry | None = None
    """The entry that replaces the fetch, if there is one."""
    fence: int | None = None
    """The fencing token under which the result of the fetch is put."""
    body: bytes | None = None
    """The good copy in the store as it was received, if there is one."""


class PolicyStore:
    """The store, as one crawl uses it.

    The times of files are on the steady clock of the crawl, those of entries on the machine's.
    """

    def __init__(
        self, store: Store, settings: Settings, stats: StatsCollector, clock: Clock
    ) -> None:
        self.store = store
        self._settings = settings
        self._stats = stats
        self._clock = clock
        self._claim_seconds = min(_longest_fetch(settings) + WAIT_MARGIN, MAX_LEASE)
        """How long a claim lasts, and how long this crawl waits for that of another crawler."""
        self._saves = 0  # that are in progress
        self._closed = False
        self._claims: dict[str, StoreLookup] = {}
        """The lookups that have claimed an origin, by origin."""

    async def load(self, origin: Origin, lookup: StoreLookup) -> None:
        """Restore ``origin`` from the store, or claim it, and note the result in ``lookup``.

        While another crawler has the claim, this polls for its result for as long as a fetch takes.
        After that, this crawl makes the fetch without a claim.
        """
        key = origin.key
        entry = await self.store.get(key)
        interval = FIRST_POLL_INTERVAL
        until = self._clock.monotonic() + self._claim_seconds
        while not self._restore(origin, entry, lookup) and self.store.shared:
            claimed, entry, lookup.fence = await self.store.claim(key, self._claim_seconds)
            if claimed:
                self._claims[key] = lookup
                if self._restore(origin, entry, lookup):  # put between get and claim
                    await self._release(key)
                break
            remaining = until - self._clock.monotonic()
            if remaining <= 0:
                self._stats.inc_value("robotstxt/store/wait_timeout_count")
                break
            self._stats.inc_value("robotstxt/store/wait_count")
            await self._clock.sleep(min(interval, remaining))
            interval = min(2 * interval, MAX_POLL_INTERVAL)
        is_hit = lookup.entry is not None
        self._stats.inc_value(f"robotstxt/store/{'hit' if is_hit else 'miss'}_count")
        if lookup.body is None and not is_hit:
            # A 304 has no body, so the store would never get the file.
            origin.forget_validators()

    def save(
        self, origin: Origin, entry: Entry | None, lookup: StoreLookup
    ) -> Coroutine[Any, Any, None]:
        """Put the entry of a fetch, if there is one, and release the claim.

        :meth:`close` waits for the returned coroutine, even if it has not started.
        """
        self._saves += 1
        return self._save(origin, entry, lookup)

    async def _save(self, origin: Origin, entry: Entry | None, lookup: StoreLookup) -> None:
        key, fence = origin.key, lookup.fence
        try:
            if entry is None or self._closed or await self.store.put(key, entry, fence):
                return
            # 0 or None: without a claim, as while the store failed.
            if fence and not origin.in_flight:
                origin.mark_superseded(self._clock.steady())
            self._stats.inc_value("robotstxt/store/superseded_count")
        finally:  # also if the call was cancelled
            try:
                # The next fetch of this crawl may have claimed the file meanwhile.
                if self._claims.get(key) is lookup:
                    await self._release(key)
            finally:
                self._saves -= 1

    async def _release(self, key: str) -> None:
        self._claims.pop(key, None)
        if not self._closed:
            await self.store.release(key)

    async def close(self) -> None:
        """Close the store after all saves have ended and all claims are released."""
        until = self._clock.monotonic() + CALL_TIMEOUT
        while self._saves and self._clock.monotonic() < until:
            await self._clock.sleep(FIRST_POLL_INTERVAL)
        for key in tuple(self._claims):  # of fetches that were cancelled, and have not ended
            await self._release(key)
        self._closed = True
        await self.store.close()

    def entry(self, origin: Origin, event: FetchResult, lookup: StoreLookup) -> Entry | None:
        """Return the entry to save after ``event``, or None if there is nothing to save."""
        if origin.source == "http-cache":
            return None
        body = event.body if isinstance(event, Rules) else lookup.body
        if body is None and origin.content is not None:
            return None  # without the copy, which the store does not have, the entry is incomplete
        entry = origin.to_entry(body if origin.content is not None else None)
        return entry.moved(self._clock.step())

    def _restore(self, origin: Origin, entry: Entry | None, lookup: StoreLookup) -> bool:
        """Restore ``origin`` from ``entry``. Returns whether this replaces the fetch."""
        if entry is None or entry.fetched_at > self._clock.time() + MAX_CLOCK_SKEW:
            return False
        entry = self._interpret(origin, self._on_steady_clock(entry))
        content = None
        if entry.fetched_at >= origin.fetched_at:
            lookup.body = entry.body
        if entry.body is not None and entry.fetched_at > origin.fetched_at:
            url = entry.copy.url if entry.copy is not None else None
            content = RobotsTxt.parse(entry.body, url=url)
        if origin.restore(entry, content, self._clock.steady()):
            lookup.entry = entry
        return lookup.entry is not None

    def _on_steady_clock(self, entry: Entry) -> Entry:
        """Return an entry with its times on the steady clock.

        As nobody knows on which clock it was written, the next fetch may be earlier, and the end of
        the days of RFC 9309 §2.3.1.4 later.
        """
        moved = entry.moved(-self._clock.step())
        if entry.unreachable_since is None:
            return moved
        # The clock of the crawl that wrote the entry may have been set back.
        since = min(entry.unreachable_since, entry.fetched_at) - self._clock.least_step
        return moved._replace(unreachable_since=min(since, self._clock.steady()))

    def _interpret(self, origin: Origin, entry: Entry) -> Entry:
        """Return what an entry of a crawl with other settings means in this one."""
        if entry.result is not AccessResult.UNREACHABLE:
            latest = entry.fetched_at + self._settings.max_ttl
            times = min(entry.expires_at, latest), min(entry.refresh_at, latest)
            entry = entry._replace(expires_at=times[0], refresh_at=times[1])
        if entry.status is None or entry.result is AccessResult.SUCCESSFUL:
            return entry
        result: AccessResult = entry.result
        if entry.status >= 400:
            policy, challenge = access_policy(self._settings, origin), AccessResult.CHALLENGE
            result = access_result(entry.status, policy, challenge=result is challenge)
        elif result.is_unavailable and self._settings.not_robots == "unreachable":
            result = AccessResult.UNREACHABLE
        if result.is_unavailable != entry.result.is_unavailable:
            # The response has another meaning now: fetch again.
            return entry._replace(expires_at=0, refresh_at=0)
        return entry._replace(result=result)


def open_policy_store(
    settings: Settings, stats: StatsCollector, clock: Clock
) -> PolicyStore | None:
    """Open the store that the settings select. Returns None if they select none.

    Raises :class:`SettingError` for a REP_STORE that cannot be used.
    """
    try:
        store = open_store(settings.store, jobdir=settings.jobdir, ttl=TTL)
    except StoreError as error:
        raise SettingError(
            f"REP_STORE is {without_passwords(settings.store)!r}, which cannot be used: {error}"
        ) from None
    return None if store is None else PolicyStore(store, settings, stats, clock)


def _longest_fetch(settings: Settings) -> float:
    """Return the seconds that a fetch takes if each attempt times out.

    If it waits for the host of a redirect, which has a delay, another crawler may fetch the file
    as well.
    """
    pauses = map(retry_pause, range(settings.retry_times))
    return settings.timeout * (settings.retry_times + 1) + sum(pauses)
