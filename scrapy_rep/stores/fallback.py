"""A store that uses memory while another store fails.

When a call to the store fails, one warning is logged, and the call is made in memory. For the next
:data:`RETRY_INTERVAL` seconds, all calls are made in memory. Then one call tries the store again.
When the store works again, the entries in memory are copied to it, the rest of them at the end.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from twisted.internet.defer import CancelledError

from ..logs import get_logger
from ..protocol.printable import printable
from .base import Claim, Store, StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .entry import Entry

logger = get_logger(__name__)

T = TypeVar("T")

RETRY_INTERVAL = 30.0
"""Seconds between two attempts at a store that has failed: failed attempts cost little, and a store
that works again is soon in use."""

WARNING_INTERVAL = 3600.0
"""Seconds between two warnings, since a store may fail now and then for hours."""

MAX_ERROR_LENGTH = 500
"""The most characters of a store's error message that are logged."""

MAX_ENTRIES = 10_000
"""The most entries in memory: a failure that lasts 30 s at 300 new origins a second."""

MAX_OCTETS = 64 * 2**20
"""The most octets of the files in memory: some 16,000 files of average size."""

COPY_LEASE = 30.0
"""Seconds for which an entry is claimed while it is copied back: the limit of a call to a store."""

COPY_BATCH = 5
"""The most other entries that one call copies back to the store. The call waits for them."""

CLOSE_LIMIT = 10.0
"""Seconds after which :meth:`FallbackStore.close` copies no further entry: enough for thousands of
entries, since most calls to a store take about a millisecond."""


class _Put(NamedTuple):
    """What :meth:`FallbackStore.put` got while the store failed."""

    entry: Entry
    fence: int | None


class FallbackStore:
    """Calls ``store``, and uses memory if the call fails, whatever the error is.

    In memory, this crawler gets each claim and each reservation: other crawlers do not use it.
    """

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._puts: OrderedDict[str, _Put] = OrderedDict()
        self._octets = 0
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
        """Copy the entries in memory to the store, within :data:`CLOSE_LIMIT`, and close it."""
        for end in (self._copy_all, self._store.close):
            try:
                await end()
            except Exception as error:
                self.mark_failed(error)

    async def get(self, origin: str) -> Entry | None:
        async def get() -> Entry | None:
            for each in (origin, *islice(reversed(self._puts), COPY_BATCH)):
                await self._copy(each)
            return await self._store.get(origin)

        return await self._call(get, lambda: self._last_put(origin))

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        async def put() -> bool:
            if fence is None and self.shared:  # it was claimed in memory
                return await self._put_if_newer(origin, entry)
            return await self._store.put(origin, entry, fence)

        def put_in_memory() -> bool:
            self._remember(origin, _Put(entry, fence))
            return True

        return await self._call(put, put_in_memory)

    async def claim(self, origin: str, seconds: float) -> Claim:
        async def claim() -> Claim:
            # Copied later, it would need a claim of its own while this one is in use.
            await self._copy(origin)
            return await self._store.claim(origin, seconds)

        return await self._call(claim, lambda: Claim(True, self._last_put(origin), None))

    async def renew(self, origin: str, fence: int, seconds: float) -> bool:
        # While the store does not work, whether the claim still exists is unknown.
        return await self._call(lambda: self._store.renew(origin, fence, seconds), lambda: True)

    async def release(self, origin: str) -> None:
        await self._call(lambda: self._store.release(origin), lambda: None)

    async def reserve_host(self, host: str, lease: float) -> float:
        return await self._call(lambda: self._store.reserve_host(host, lease), lambda: 0.0)

    async def release_host(self, host: str, delay: float) -> None:
        await self._call(lambda: self._store.release_host(host, delay), lambda: None)

    def mark_failed(self, error: Exception) -> None:
        """Use memory until the next attempt, and log why.

        An error other than StoreError is one of the store's code. It is logged with its traceback.
        """
        now = self._clock()
        self._next_attempt_at = now + RETRY_INTERVAL
        self.failures += 1
        level = logging.DEBUG if now < self._next_warning_at else logging.WARNING
        if level is logging.WARNING:
            self._next_warning_at = now + WARNING_INTERVAL
        is_foreseen = isinstance(error, StoreError)
        text = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
        logger.log(
            level,
            "The store of robots.txt files does not work: %(error)s. The crawl goes on without it; "
            "it is tried again every %(seconds)d s.",
            {"error": printable(text.rstrip("."), MAX_ERROR_LENGTH), "seconds": RETRY_INTERVAL},
            exc_info=None if is_foreseen else error,
        )

    async def _call(self, call: Callable[[], Awaitable[T]], in_memory: Callable[[], T]) -> T:
        had_failed = self._next_attempt_at is not None
        if self._next_attempt_at is not None:
            now = self._clock()
            if now < self._next_attempt_at:
                return in_memory()
            # This call tries the store. Calls made in the meantime use memory.
            self._next_attempt_at = now + RETRY_INTERVAL
        try:
            result = await call()
        except CancelledError:  # on Twisted's event loops it is an Exception
            raise
        except Exception as error:
            self.mark_failed(error)
            return in_memory()
        if had_failed:
            self._next_attempt_at = None
            logger.info("The store of robots.txt files works again.")
        return result

    def _last_put(self, origin: str) -> Entry | None:
        return self._puts[origin].entry if origin in self._puts else None

    def _remember(self, origin: str, put: _Put) -> None:
        """Keep an entry in memory, and evict the oldest entries that exceed the limits."""
        self._forget(origin)
        self._puts[origin] = put
        self._octets += len(put.entry.body or b"")
        while len(self._puts) > MAX_ENTRIES or self._octets > MAX_OCTETS:
            self._forget(next(iter(self._puts)))

    def _forget(self, origin: str) -> _Put | None:
        put = self._puts.pop(origin, None)
        if put is not None:
            self._octets -= len(put.entry.body or b"")
        return put

    async def _copy_all(self) -> None:
        until = self._clock() + CLOSE_LIMIT
        while self._puts and self._clock() < until:
            await self._copy(next(reversed(self._puts)))

    async def _copy(self, origin: str) -> None:
        """Copy the entry of an origin to the store, unless the store has a newer one."""
        put = self._forget(origin)
        if put is None:
            return
        try:
            if put.fence is not None:
                await self._store.put(origin, put.entry, put.fence)
            else:
                await self._put_if_newer(origin, put.entry)
        except BaseException:  # a StoreError, or a cancellation
            if origin not in self._puts:
                self._remember(origin, put)
            raise

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
