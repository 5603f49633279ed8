"""Loads policies from the store before a fetch, and saves them after it.

Before a fetch, the policy store looks the file up. Without a usable entry, it claims the file, so
that one of several crawlers makes the fetch, while the others poll the store for its result. A
claim is short, so that another crawler soon replaces one that died. A crawl that fetches renews its
claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import failure_to_exc_info

from ..exceptions import SettingError
from ..fetch.fetcher import FIRST_RETRY_PAUSE, MAX_RETRY_PAUSE, status_policy
from ..frontier.clock import Timer
from ..logs import get_logger
from ..protocol.access import AccessResult, Rules, access_result
from ..settings import without_passwords
from ..stores import Entry, StoreError
from ..stores.base import MAX_LEASE, TTL
from ..stores.registry import open_store

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from scrapy.statscollectors import StatsCollector
    from twisted.python.failure import Failure

    from ..frontier.clock import Clock
    from ..origin import OriginFile
    from ..protocol.access import FetchResult
    from ..settings import Settings
    from ..stores import Claim, Store

logger = get_logger(__name__)

FIRST_POLL_INTERVAL = 0.05
MAX_POLL_INTERVAL = 2.0
"""Seconds between two polls for the result of another crawler's fetch. The interval doubles from
the first value to the second. Half of all robots.txt files arrive within a few tenths of a second.
"""

WAIT_MARGIN = 5.0
"""Seconds that a crawler waits longer than the longest fetch, so that the owner of the claim can
store the result of a fetch that times out. A single call to SQLite or Redis fails after 5 s."""

SAVE_TIMEOUT = 30.0
"""Seconds that :meth:`PolicyStore.close` waits at most for entries that are being saved: the limit
of one call to a store."""

RELEASE_TIMEOUT = 1.0
"""Seconds that it waits at most for cancelled fetches to release their claims. Then it releases the
claims itself."""

CLOSE_POLL_INTERVAL = 0.02
"""Seconds between two checks in :meth:`PolicyStore.close`."""

CLAIM_SECONDS = 8.0
"""Seconds after which a claim expires that is not renewed. Another crawler polls every 2 s, and so
replaces one that died within 10 s."""

RENEWAL_INTERVAL = 2.0
"""Seconds between two renewals of a claim. If a call to the store fails after its 5 s, the next one
is still in time."""

MAX_CLOCK_SKEW = 300.0
"""Seconds by which the clocks of two machines may differ (ours; Kerberos has the same default). An
entry from further in the future was written on a wrong clock, so that its times mean nothing."""


@dataclass(slots=True)
class StoreLookup:
    """The result of :meth:`PolicyStore.load`."""

    entry: Entry | None = None
    """The entry that replaces the fetch; None if the store has no usable one."""
    claimed: bool = False
    """This crawl has claimed the file."""
    fence: int | None = None
    """The fencing token under which the result of the fetch is put."""
    body: bytes | None = None
    """The good copy in the store as it was received; None if the store has none."""

    @property
    def is_hit(self) -> bool:
        """Whether the store had a usable entry."""
        return self.entry is not None


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
        self._wait_seconds = min(_longest_fetch(settings) + WAIT_MARGIN, MAX_LEASE)
        self._saves = 0
        """The number of calls to :meth:`save` in progress."""
        self._closed = False
        self._claims = Claims(store, clock)

    async def load(self, file: OriginFile[Any], lookup: StoreLookup) -> None:
        """Restore ``file`` from the store, or claim it.

        While another crawler has the claim, this polls for its result for as long as a fetch takes.
        After that, this crawl makes the fetch without a claim. The result is written to ``lookup``
        step by step, so that it is complete even if this call is cancelled.
        """
        key, stats = file.store_key, f"{file.resource.stats}/store"
        entry = await self.store.get(key)
        interval = FIRST_POLL_INTERVAL
        until = self._clock.monotonic() + self._wait_seconds
        while not self._restore(file, entry, lookup) and self.store.shared:
            lookup.claimed, entry, lookup.fence = await self._claims.claim(key)
            if lookup.claimed:
                if self._restore(file, entry, lookup):  # put between get and claim
                    await self._release(key)
                break
            remaining = until - self._clock.monotonic()
            if remaining <= 0:
                self._stats.inc_value(f"{stats}/wait_timeout_count")
                break
            self._stats.inc_value(f"{stats}/wait_count")
            await self._clock.sleep(min(interval, remaining))
            interval = min(2 * interval, MAX_POLL_INTERVAL)
        self._stats.inc_value(f"{stats}/{'hit' if lookup.is_hit else 'miss'}_count")
        if lookup.body is None and not lookup.is_hit:
            # A 304 has no body, so the store would never get the file.
            file.forget_validators()

    def save(
        self, file: OriginFile[Any], entry: Entry | None, lookup: StoreLookup
    ) -> Coroutine[Any, Any, None]:
        """Put the entry of a fetch, if there is one, and release the claim.

        :meth:`close` waits for the returned coroutine, even if it has not started.
        """
        self._saves += 1
        return self._save(file, entry, lookup)

    async def _save(self, file: OriginFile[Any], entry: Entry | None, lookup: StoreLookup) -> None:
        key = file.store_key
        try:
            if entry is not None and not self._closed:
                is_stored = await self.store.put(key, entry, lookup.fence)
                if not is_stored:
                    if lookup.fence is not None and not file.in_flight:
                        file.mark_superseded(self._clock.steady())
                    self._stats.inc_value(f"{file.resource.stats}/store/superseded_count")
        finally:
            try:
                # The next fetch of this crawl may have claimed the file meanwhile.
                if lookup.claimed and self._claims.is_latest(key, lookup.fence):
                    await self._release(key)
            finally:
                self._saves -= 1

    async def _release(self, key: str) -> None:
        try:
            if not self._closed:
                await self.store.release(key)
        finally:
            self._claims.remove(key)

    async def close(self) -> None:
        """Close the store after all saves have ended and all claims are released."""
        started_at = self._clock.monotonic()
        while self._saves or self._claims or self._claims.is_renewing:
            # A cancelled fetch still has to run in order to release its claim.
            timeout = SAVE_TIMEOUT if self._saves else RELEASE_TIMEOUT
            if self._clock.monotonic() - started_at >= timeout:
                break
            await self._clock.sleep(CLOSE_POLL_INTERVAL)
        for key in self._claims:
            await self._release(key)
        self._closed = True
        await self.store.close()

    def entry(self, file: OriginFile[Any], event: FetchResult, lookup: StoreLookup) -> Entry | None:
        """Return the entry to save after ``event``, or None if there is nothing to save."""
        if file.from_cache:
            return None
        body = event.body if isinstance(event, Rules) else lookup.body
        if body is None and file.content is not None:
            return None  # without the copy, which the store does not have, the entry is incomplete
        entry = file.to_entry(body if file.content is not None else None)
        return entry.moved(self._clock.step())

    def _restore(self, file: OriginFile[Any], entry: Entry | None, lookup: StoreLookup) -> bool:
        """Restore ``file`` from ``entry``. Returns whether this replaces the fetch."""
        if entry is None or entry.fetched_at > self._clock.time() + MAX_CLOCK_SKEW:
            return False
        entry = self._interpret(file, self._on_steady_clock(entry))
        content = None
        if entry.fetched_at >= file.fetched_at:
            lookup.body = entry.body
        if entry.body is not None and entry.fetched_at > file.fetched_at:
            url = entry.copy.url if entry.copy is not None else None
            content = file.resource.parse(entry.body, strict=self._settings.strict, url=url)
        if file.restore(entry, content, self._clock.steady()):
            lookup.entry = entry
        return lookup.is_hit

    def _on_steady_clock(self, entry: Entry) -> Entry:
        """Return an entry with its times on the steady clock.

        Nobody knows on which clock an entry was written. At worst, this leads to an earlier fetch,
        and to a later end of the days of RFC 9309 §2.3.1.4.
        """
        moved = entry.moved(-self._clock.step())
        if entry.unreachable_since is None:
            return moved
        # The clock of the crawl that wrote the entry may have been set back.
        since = min(entry.unreachable_since, entry.fetched_at) - self._clock.least_step
        return moved._replace(unreachable_since=min(since, self._clock.steady()))

    def _interpret(self, file: OriginFile[Any], entry: Entry) -> Entry:
        """Return the entry under the settings of this crawl.

        The crawl that wrote it may have had other settings.
        """
        if entry.result is not AccessResult.UNREACHABLE:
            latest = entry.fetched_at + self._settings.cache_max
            if entry.expires_at > latest:
                refresh_at = min(entry.refresh_at, latest)
                entry = entry._replace(expires_at=latest, refresh_at=refresh_at)
        if entry.status is None or entry.result is AccessResult.RULES:
            return entry
        result: AccessResult = entry.result
        if entry.status >= 400:
            is_challenge = result is AccessResult.CHALLENGE
            policy = status_policy(self._settings, file)
            result = access_result(entry.status, policy, challenge=is_challenge)
        elif result.is_unavailable and self._settings.not_robots == "unreachable":
            result = AccessResult.UNREACHABLE
        if result.is_unavailable != entry.result.is_unavailable:
            # The response has another meaning now: fetch again.
            return entry._replace(expires_at=0, refresh_at=0)
        return entry._replace(result=result)


class Claims:
    """The claims that a crawl has, by the keys of their files in ``store``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._fences: dict[str, int | None] = {}
        """The fencing token of each claim. None: the claim is not renewed."""
        self._timer = Timer(clock)
        self._in_progress = 0

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._fences))

    def __len__(self) -> int:
        return len(self._fences)

    @property
    def is_renewing(self) -> bool:
        """Whether a renewal is in progress."""
        return self._in_progress > 0

    async def claim(self, key: str) -> Claim:
        """Claim a file. A claim without a fencing token is not renewed."""
        claim = await self._store.claim(key, CLAIM_SECONDS)
        if claim.claimed:
            self._fences[key] = claim.fence
            if not self._timer.is_active:
                self._timer.start(RENEWAL_INTERVAL, self._renew_all)
        return claim

    def is_latest(self, key: str, fence: int | None) -> bool:
        """Whether this crawl has not claimed a file again since the claim with this token."""
        return self._fences.get(key) in (None, fence)

    def remove(self, key: str) -> None:
        """Remove a claim, if there is one."""
        self._fences.pop(key, None)
        if not self._fences:
            self._timer.cancel()

    def _renew_all(self) -> None:
        """Start to renew all claims, if the last renewals have ended."""
        for key, fence in tuple(self._fences.items()) if not self._in_progress else ():
            if fence is not None:
                self._in_progress += 1
                deferred_from_coro(self._renew(key, fence)).addErrback(_log_failure)
        self._timer.start(RENEWAL_INTERVAL, self._renew_all)

    async def _renew(self, key: str, fence: int) -> None:
        try:
            is_renewed = await self._store.renew(key, fence, CLAIM_SECONDS)
        finally:
            self._in_progress -= 1
        if not is_renewed and self._fences.get(key) == fence:
            # This crawl did not run for some time, and another crawler has the claim now.
            self._fences[key] = None


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

    The time-out does not include the wait for the host of a redirect, which may have a delay.
    """
    attempt = settings.timeout + settings.max_delay
    longest = attempt
    for retry in range(settings.retry_times):
        longest += min(FIRST_RETRY_PAUSE * 2**retry, MAX_RETRY_PAUSE) + attempt
    return longest


def _log_failure(failure: Failure) -> None:
    logger.error(
        "Error in scrapy-rep while it renewed a claim in the store. Please report this bug.",
        exc_info=failure_to_exc_info(failure),
    )
