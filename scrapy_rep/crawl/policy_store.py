"""What earlier crawls and other crawlers know of an origin, before it is fetched; and what they get
to know of ours.

The way of one fetch: ask the store; if that does not settle it, claim the origin, so that of
several crawlers one fetches while the others wait for what it puts there.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..exceptions import SettingError
from ..fetch.fetcher import FIRST_RETRY_PAUSE, MAX_RETRY_PAUSE, status_policy
from ..protocol.access import AccessResult, Rules, access_result
from ..protocol.robotstxt import RobotsTxt
from ..scheduling.clock import sleep
from ..settings import without_password
from ..stores import Entry, StoreError, open_store
from ..stores.base import MAX_LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from scrapy.statscollectors import StatsCollector

    from ..origin import Origin
    from ..protocol.access import FetchResult
    from ..settings import Settings
    from ..stores import Store

FIRST_POLL = 0.05
MAX_POLL = 2.0
"""Seconds between two looks for what another crawler fetches, doubling from the first to the last.
Half of robots.txt files are there within a few tenths of a second."""

CLOSE_LIMIT = 30.0
CLAIM_CLOSE_LIMIT = 1.0
CLOSE_POLL = 0.02
"""Seconds that a store is kept open at most for what is being put, and for a fetch that has claimed
its origin; and between two looks."""

MAX_CLOCK_SKEW = 300.0
"""Seconds by which the clocks of two machines may differ. What comes from further ahead was written
before a clock was set right, and nothing that it says of time can be believed."""

DAY = 86_400


@dataclass(slots=True)
class StoreLookup:
    """What one fetch begins with."""

    settled: bool = False
    """Nothing needs to be fetched."""
    claimed: bool = False
    body: bytes | None = None
    """The good copy as it came; None where there is none in the store."""


class PolicyStore:
    """The use that one crawl makes of a store."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        stats: StatsCollector,
        now: Callable[[], float],
    ) -> None:
        self.store = store
        self._settings = settings
        self._stats = stats
        self._now = now
        # As long as a fetch may take that has to try again and again.
        pauses = (
            min(FIRST_RETRY_PAUSE * 2**n, MAX_RETRY_PAUSE) for n in range(settings.retry_times)
        )
        longest = settings.timeout * (settings.retry_times + 1) + sum(pauses)
        self._claim_seconds = min(longest, MAX_LEASE)
        self._saving = 0
        self._closed = False
        self._claims: set[str] = set()
        """The origins that we have claimed."""

    async def load(self, origin: Origin, found: StoreLookup) -> None:
        """Ask the store, and wait for another crawler's fetch if there is one.

        Not for longer than our own would take: then it is fetched, whoever else has claimed it.
        """
        entry = await self.store.get(origin.key)
        pause = FIRST_POLL
        until = monotonic() + self._claim_seconds
        while not self._use(origin, entry, found) and self.store.shared:
            found.claimed, entry = await self.store.claim(origin.key, self._claim_seconds)
            if found.claimed:
                self._claims.add(origin.key)
                if self._use(origin, entry, found):  # it came between the two questions
                    await self._release(origin.key)
                break
            left = until - monotonic()
            if left <= 0:
                self._stats.inc_value("robotstxt/store/wait_timeout_count")
                break
            self._stats.inc_value("robotstxt/store/wait_count")
            await sleep(min(pause, left))
            pause = min(2 * pause, MAX_POLL)
        self._stats.inc_value(f"robotstxt/store/{'hit' if found.settled else 'miss'}_count")
        if found.body is None and not found.settled:
            # Where a 304 is the answer again and again, the store would never have the file.
            origin.forget_validators()

    def save(
        self, origin: str, entry: Entry | None, found: StoreLookup
    ) -> Coroutine[Any, Any, None]:
        """Put what the fetch came to, if it came to anything, and let others fetch.

        It counts as begun from here on, not from when it is awaited: :meth:`close` waits for it.
        """
        self._saving += 1
        return self._save(origin, entry, found)

    async def _save(self, origin: str, entry: Entry | None, found: StoreLookup) -> None:
        try:
            if entry is not None and not self._closed:
                await self.store.put(origin, entry)
        finally:
            try:
                if found.claimed:
                    await self._release(origin)
            finally:
                self._saving -= 1

    async def _release(self, origin: str) -> None:
        try:
            if not self._closed:
                await self.store.release(origin)
        finally:
            self._claims.discard(origin)

    async def close(self) -> None:
        """Close the store, once everything is kept that is being kept, and no origin claimed."""
        began = monotonic()
        while True:
            # What has been cancelled may have to be told yet, and what it has claimed be released.
            limit = CLOSE_LIMIT if self._saving else CLAIM_CLOSE_LIMIT
            if not (self._saving or self._claims) or monotonic() - began >= limit:
                break
            await sleep(CLOSE_POLL)
        for origin in tuple(self._claims):
            await self._release(origin)
        self._closed = True
        await self.store.close()

    def entry(self, origin: Origin, event: FetchResult, found: StoreLookup) -> Entry | None:
        """What there is to keep after ``event``; None where others are better off without it."""
        if origin.from_cache:
            return None
        body = event.body if isinstance(event, Rules) else found.body
        if body is None and origin.robots is not None:
            return None  # half of what is known: the copy is in no store
        return origin.to_entry(body if origin.robots is not None else None)

    def _use(self, origin: Origin, entry: Entry | None, found: StoreLookup) -> bool:
        if entry is None or entry.fetched_at > self._now() + MAX_CLOCK_SKEW:
            return False
        entry = self._under_settings(origin, entry)
        robots = None
        if entry.fetched_at >= origin.fetched_at:
            found.body = entry.body
        if entry.body is not None and entry.fetched_at > origin.fetched_at:
            url = entry.copy.url if entry.copy is not None else None
            robots = RobotsTxt.parse(entry.body, strict=self._settings.strict, url=url)
        found.settled = origin.restore(entry, robots, self._now())
        return found.settled

    def _under_settings(self, origin: Origin, entry: Entry) -> Entry:
        """Return what an entry means to this crawl.

        The crawl that wrote it may have had other settings, and another clock.
        """
        if entry.unreachable_since is not None:
            entry = entry._replace(unreachable_since=min(entry.unreachable_since, entry.fetched_at))
        meant = [AccessResult.UNREACHABLE]
        if entry.result is not AccessResult.UNREACHABLE:
            meant = [AccessResult.UNAVAILABLE, AccessResult.DISALLOWED]
            latest = entry.fetched_at + self._settings.cache_max
            if entry.expires_at > latest:
                refresh_at = min(entry.refresh_at, latest)
                entry = entry._replace(expires_at=latest, refresh_at=refresh_at)
        if entry.status is None or entry.status < 400 or entry.result is AccessResult.RULES:
            return entry
        result = access_result(entry.status, status_policy(self._settings, origin))
        if result not in meant:
            return entry._replace(expires_at=0, refresh_at=0)
        return entry._replace(result=result)


def open_policy_store(
    settings: Settings,
    stats: StatsCollector,
    now: Callable[[], float],
) -> PolicyStore | None:
    """With the store that REP_STORE names; None where there is none.

    Raises :class:`SettingError` for one that cannot be used.
    """
    try:
        store = open_store(settings.store, jobdir=settings.jobdir, ttl=settings.store_days * DAY)
    except StoreError as error:
        raise SettingError(
            f"REP_STORE is {without_password(settings.store)!r}, which cannot be used: {error}"
        ) from None
    return None if store is None else PolicyStore(store, settings, stats, now)
