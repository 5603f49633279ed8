"""A store that a crawl can go on without.

When a call to the store fails, one warning is logged. For the next second, the crawl continues as
if it were alone and its store were empty. Then one call tries the store again. Each such call that
fails doubles the time until the next one, to at most :data:`RETRY_INTERVAL`. When the store works
again, it gets what was fetched meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from twisted.internet.defer import CancelledError

from ..logs import get_logger
from ..protocol.printable import printable
from .base import Claim, Store, StoreError
from .entry import Entry

logger = get_logger(__name__)

T = TypeVar("T")

FIRST_RETRY = 1.0  # seconds after which a store that has failed is tried again (ours)
RETRY_INTERVAL = 30.0  # seconds between two such attempts, at most (ours)
WARNING_INTERVAL = 3600.0  # seconds between two warnings: a store may fail now and then for hours

MAX_MISSED = 1000
"""Entries that are kept while the store does not work, and put when it works again."""

NO_CLAIM = Claim(claimed=True, entry=None, fence=0)
"""The claim that this crawler gets while the store does not work. If the store works again before
the entry is put, an entry that was put under a real claim stays."""


class FallbackStore:
    """Calls ``store``, and goes on without it if the call fails, whatever the error is."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._clock = clock
        self._next_attempt_at: float | None = None
        """None while the store works."""
        self._interval = FIRST_RETRY
        """Seconds from a failure to the next attempt."""
        self._has_warned = False
        """Whether the log has a warning of the failure that lasts."""
        self._next_warning_at = clock()
        self._missed: dict[str, Entry] = {}
        """What was to be put while the store did not work."""

    @property
    def shared(self) -> bool:
        return self._store.shared

    def open(self) -> None:
        """Open the store. After a StoreError, call :meth:`mark_failed` to go on without it."""
        self._store.open()

    async def close(self) -> None:
        self._missed.clear()
        try:
            await self._store.close()
        except Exception as error:
            self.mark_failed(error)

    async def get(self, origin: str) -> Entry | None:
        return await self._call(lambda: self._store.get(origin), None)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        is_stored = await self._call(lambda: self._store.put(origin, entry, fence), None)
        if is_stored is None and len(self._missed) < MAX_MISSED:
            self._missed[origin] = entry
        return is_stored is not False

    async def claim(self, origin: str, seconds: float) -> Claim:
        return await self._call(lambda: self._store.claim(origin, seconds), NO_CLAIM)

    async def release(self, origin: str) -> None:
        await self._call(lambda: self._store.release(origin), None)

    async def reserve_host(self, host: str, lease: float) -> float:
        return await self._call(lambda: self._store.reserve_host(host, lease), 0.0)

    async def release_host(self, host: str, delay: float) -> None:
        await self._call(lambda: self._store.release_host(host, delay), None)

    def mark_failed(self, error: Exception) -> None:
        """Go on without the store until the next attempt, and log why.

        There is one warning until the store works again. An error other than StoreError is one of
        the store's code: its traceback is logged.
        """
        now = self._clock()
        self._next_attempt_at = now + self._interval
        level = logging.DEBUG
        if not self._has_warned and now >= self._next_warning_at:
            self._has_warned, self._next_warning_at = True, now + WARNING_INTERVAL
            level = logging.WARNING
        is_foreseen = isinstance(error, StoreError)
        text = str(error) if is_foreseen else f"{type(error).__name__}: {error}"
        logger.log(
            level,
            "The store of robots.txt files does not work: %(error)s. The crawl continues without "
            "it; it is tried again.",
            {"error": printable(text.rstrip("."))},
            exc_info=None if is_foreseen else error,
        )

    async def _call(self, call: Callable[[], Awaitable[T]], otherwise: T) -> T:
        due_at = self._next_attempt_at
        if due_at is not None:
            now = self._clock()
            if now < due_at:
                return otherwise
            # This call tries the store. Calls made in the meantime do not use it.
            self._interval = min(2 * self._interval, RETRY_INTERVAL)
            self._next_attempt_at = now + self._interval
        try:
            result = await call()
        except CancelledError:  # on Twisted's event loops it is an Exception
            raise
        except Exception as error:
            self.mark_failed(error)
            return otherwise
        if due_at is not None:
            if self._has_warned:
                logger.info("The store of robots.txt files works again.")
            self._next_attempt_at, self._interval, self._has_warned = None, FIRST_RETRY, False
            while self._missed and self._next_attempt_at is None:
                await self.put(*self._missed.popitem(), NO_CLAIM.fence)
        return result
