"""A store that uses memory while another store fails.

When a call to the store fails, one warning is logged, and the call is made in memory. For the next
:data:`RETRY_INTERVAL` seconds, all calls are made in memory. Then one call tries the store again.
When the store works again, the entries in memory are copied to it.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from .base import Claim, Store, StoreError
from .memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .entry import Entry

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_INTERVAL = 30.0
"""Seconds between two attempts at a store that has failed: failed attempts cost little, and a store
that works again is soon in use."""

WARNING_INTERVAL = 3600.0
"""Seconds between two warnings, since a store may fail now and then for hours."""

COPY_LEASE = 30.0
"""Seconds for which an entry is claimed while it is copied back: the limit of a call to a store."""

COPY_BATCH = 20
"""The most entries that one call copies back to the store. The call waits for them."""

COPY_TIME_LIMIT = 1.0
"""Seconds after which that call copies no further entry."""


class FallbackStore:
    """Calls ``store``, and uses memory if the call fails. No async method raises StoreError."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._memory = MemoryStore()
        self._clock = clock
        self._next_attempt_at: float | None = None
        """None while the store works."""
        self._next_warning_at = clock()
        self.failures = 0
        """The number of calls that have failed."""

    @property
    def shared(self) -> bool:
        return self._store.shared

    def open(self) -> None:
        """Open the store.

        Raises StoreError. To use this object after that, call :meth:`mark_failed`.
        """
        self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def get(self, origin: str) -> Entry | None:
        async def get(store: Store) -> Entry | None:
            if store is self._store:
                await self._copy_back()
            return await store.get(origin)

        return await self._call(get)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        async def put(store: Store) -> bool:
            if store is self._store and fence is None and self.shared:  # it was claimed in memory
                return await self._put_if_newer(origin, entry)
            return await store.put(origin, entry, fence)

        return await self._call(put)

    async def claim(self, origin: str, seconds: float) -> Claim:
        async def claim(store: Store) -> Claim:
            if store is not self._store:
                return (await store.claim(origin, seconds))._replace(fence=None)
            # Copied later, it would need a claim of its own while this one is in use.
            await self._copy_one(origin)
            return await store.claim(origin, seconds)

        return await self._call(claim)

    async def renew(self, origin: str, fence: int, seconds: float) -> bool:
        async def renew(store: Store) -> bool:
            # While the store does not work, whether the claim still exists is unknown.
            return store is not self._store or await store.renew(origin, fence, seconds)

        return await self._call(renew)

    async def release(self, origin: str) -> None:
        await self._call(lambda store: store.release(origin))

    async def reserve_host(self, host: str, lease: float) -> float:
        return await self._call(lambda store: store.reserve_host(host, lease))

    async def release_host(self, host: str, delay: float) -> None:
        await self._call(lambda store: store.release_host(host, delay))

    def mark_failed(self, error: StoreError) -> None:
        """Use memory until the next attempt, and log why."""
        now = self._clock()
        self._next_attempt_at = now + RETRY_INTERVAL
        self.failures += 1
        level = logging.DEBUG if now < self._next_warning_at else logging.WARNING
        if level is logging.WARNING:
            self._next_warning_at = now + WARNING_INTERVAL
        logger.log(
            level,
            "The store of robots.txt files does not work: %(error)s. The crawl goes on without it; "
            "it is tried again every %(seconds)d s.",
            {"error": str(error).rstrip("."), "seconds": RETRY_INTERVAL},
        )

    async def _call(self, method: Callable[[Store], Awaitable[T]]) -> T:
        had_failed = self._next_attempt_at is not None
        if self._next_attempt_at is not None:
            now = self._clock()
            if now < self._next_attempt_at:
                return await method(self._memory)
            # This call tries the store. Calls made in the meantime use memory.
            self._next_attempt_at = now + RETRY_INTERVAL
        try:
            result = await method(self._store)
        except StoreError as error:
            self.mark_failed(error)
            return await method(self._memory)
        if had_failed:
            self._next_attempt_at = None
            logger.info("The store of robots.txt files works again.")
        return result

    async def _copy_back(self) -> None:
        """Copy some entries from memory to the store, unless the store has newer ones."""
        until = monotonic() + COPY_TIME_LIMIT
        for _ in range(COPY_BATCH):
            if not await self._copy_one() or monotonic() > until:
                return

    async def _copy_one(self, name: str | None = None) -> bool:
        """Copy the entry of an origin, or the last one. Returns whether there is one in memory."""
        found = self._memory.pop(name)
        if found is None:
            return False
        origin, entry, fence = found
        try:
            if fence is not None:
                await self._store.put(origin, entry, fence)
            else:
                await self._put_if_newer(origin, entry)
        except BaseException:  # a StoreError, or a cancellation
            self._memory.put_if_absent(origin, entry, fence)
            raise
        return True

    async def _put_if_newer(self, origin: str, entry: Entry) -> bool:
        """Put an entry that was fetched without a claim in the store.

        It is discarded if the store has a newer one, or if another crawler fetches the file now.
        """
        claim = await self._store.claim(origin, COPY_LEASE)
        if not claim.claimed:
            return False
        try:
            stored = claim.entry
            is_newer = stored is None or stored.fetched_at < entry.fetched_at
            return is_newer and await self._store.put(origin, entry, claim.fence)
        finally:
            await self._store.release(origin)
