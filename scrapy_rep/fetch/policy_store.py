"""Loads policies from the store before a fetch, and saves them after it.

An entry may be of a crawl with another clock and other settings.
"""

from __future__ import annotations

from functools import partial

from scrapy.statscollectors import StatsCollector

from ..clock import Clock
from ..exceptions import SettingError
from ..origin import Origin
from ..protocol.access import FetchResult, Rules
from ..settings import Settings, without_passwords
from ..stores import Entry, Store, StoreError
from ..stores.base import TTL
from ..stores.claims import Claims, Lookup
from ..stores.entry import reinterpreted
from ..stores.registry import open_store
from .fetcher import access_policy, longest_fetch

MAX_CLOCK_SKEW = 300.0
"""Seconds by which the clocks of two machines may differ (ours; Kerberos has the same default). An
entry from further in the future was written on a wrong clock."""


class PolicyStore:
    """The store, as one crawl uses it.

    The times of files are on the steady clock of the crawl, those of entries on the machine's.
    """

    def __init__(
        self, store: Store, settings: Settings, stats: StatsCollector, clock: Clock
    ) -> None:
        self.store = store
        self.claims = Claims(store, longest_fetch(settings), clock)
        self._settings = settings
        self._stats = stats
        self._clock = clock

    async def load(self, origin: Origin, lookup: Lookup) -> None:
        """Restore ``origin`` from the store, or claim it, and note the result in ``lookup``."""
        await self.claims.load(origin.key, lookup, partial(self._restore, origin, lookup))
        if lookup.polls:
            self._stats.inc_value("robotstxt/store/wait_count", lookup.polls)
        if lookup.is_late:
            self._stats.inc_value("robotstxt/store/wait_timeout_count")
        if lookup.entry is not None:
            self._stats.inc_value("robotstxt/store/hit_count")
            return
        self._stats.inc_value("robotstxt/store/miss_count")
        if lookup.body is None:
            # A 304 has no body, so the store would never get the file.
            origin.forget_validators()

    async def save(self, origin: Origin, entry: Entry | None, lookup: Lookup) -> None:
        """Put the entry of a fetch, if there is one, and release the claim."""
        if not await self.claims.save(origin.key, entry, lookup):
            # 0 or None: without a claim, as while the store failed.
            if lookup.fence and not origin.in_flight:
                origin.mark_superseded(self._clock.steady())
            self._stats.inc_value("robotstxt/store/superseded_count")

    def entry(self, origin: Origin, event: FetchResult, lookup: Lookup) -> Entry | None:
        """Return the entry to save after ``event``, or None if there is nothing to save."""
        if origin.source == "http-cache":
            return None
        body = event.body if isinstance(event, Rules) else lookup.body
        if body is None and origin.content is not None:
            return None  # without the copy, which the store does not have, the entry is incomplete
        entry = origin.to_entry(body if origin.content is not None else None)
        return entry.moved(self._clock.step())

    def _restore(self, origin: Origin, lookup: Lookup, entry: Entry | None) -> bool:
        """Restore ``origin`` from ``entry``. Returns whether this replaces the fetch."""
        if entry is None or entry.fetched_at > self._clock.time() + MAX_CLOCK_SKEW:
            return False
        policy = access_policy(self._settings, origin)
        entry = reinterpreted(self._on_steady_clock(entry), policy)
        if entry.fetched_at >= origin.fetched_at:
            lookup.body = entry.body
        if origin.restore(entry, self._clock.steady()):
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


def open_policy_store(
    settings: Settings, stats: StatsCollector, clock: Clock
) -> PolicyStore | None:
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
    return None if store is None else PolicyStore(store, settings, stats, clock)
