"""A store that may fail in mid-crawl.

What it cannot do is done in memory, with one warning; now and again it is asked whether it can
again, and then it gets what was learnt meanwhile.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from .base import Store, StoreError
from .memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .entry import Entry

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_INTERVAL = 30.0
"""Seconds until a store that has failed is asked again."""

WARNING_INTERVAL = 3600.0
"""Seconds between two warnings: a store may fail, for what it is asked, now and then."""


RESTORE_BATCH = 20
"""Entries that are given back with one call, which waits for them."""

RESTORE_LIMIT = 1.0
"""Seconds after which that call gives back no more."""


class FallbackStore:
    """``store``, which never raises :class:`StoreError` once it is open."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._memory = MemoryStore()
        self._clock = clock
        self._next_attempt_at: float | None = None
        self._next_warning_at = clock()
        self.failures = 0

    @property
    def shared(self) -> bool:
        return self._store.shared

    def open(self) -> None:
        """Raises StoreError. Those who go on nevertheless say so with :meth:`mark_failed`."""
        self._store.open()

    async def close(self) -> None:
        await self._store.close()

    async def get(self, origin: str) -> Entry | None:
        async def get(store: Store) -> Entry | None:
            if store is self._store:
                await self._restore()
            return await store.get(origin)

        return await self._do(get)

    async def put(self, origin: str, entry: Entry) -> None:
        await self._do(lambda store: store.put(origin, entry))

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        return await self._do(lambda store: store.claim(origin, seconds))

    async def release(self, origin: str) -> None:
        await self._do(lambda store: store.release(origin))

    async def reserve_host(self, host: str, lease: float) -> float:
        return await self._do(lambda store: store.reserve_host(host, lease))

    async def release_host(self, host: str, delay: float) -> None:
        await self._do(lambda store: store.release_host(host, delay))

    def mark_failed(self, error: StoreError) -> None:
        """The store has failed."""
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

    async def _do(self, act: Callable[[Store], Awaitable[T]]) -> T:
        was_away = self._next_attempt_at is not None
        if self._next_attempt_at is not None:
            now = self._clock()
            if now < self._next_attempt_at:
                return await act(self._memory)
            self._next_attempt_at = now + RETRY_INTERVAL  # one call tries, the others go on
        try:
            result = await act(self._store)
        except StoreError as error:
            self.mark_failed(error)
            return await act(self._memory)
        if was_away:
            self._next_attempt_at = None
            logger.info("The store of robots.txt files works again.")
        return result

    async def _restore(self) -> None:
        """Let the store have some of what was learnt while it was away, unless it has newer."""
        until = monotonic() + RESTORE_LIMIT
        for _ in range(RESTORE_BATCH):
            kept = self._memory.take()
            if kept is None:
                return
            origin, entry = kept
            try:
                there = await self._store.get(origin)
                if there is None or there.fetched_at < entry.fetched_at:
                    await self._store.put(origin, entry)
            except BaseException:  # also where it is cancelled
                self._memory.take_back(origin, entry)
                raise
            if monotonic() > until:
                return
