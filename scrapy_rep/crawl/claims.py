"""The claims of a crawl in a store, which are renewed while the fetches go on.

A claim is short, so that another crawler soon replaces one that died. A crawl that fetches renews
its claim every :data:`RENEWAL_INTERVAL` seconds.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import failure_to_exc_info

from ..scheduling.clock import Timer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twisted.python.failure import Failure

    from ..scheduling.clock import Clock
    from ..stores import Claim, Store

logger = logging.getLogger(__name__)

CLAIM_SECONDS = 8.0
"""Seconds after which a claim expires that is not renewed. Another crawler polls every 2 s, and so
replaces one that died within 10 s."""

RENEWAL_INTERVAL = 2.0
"""Seconds between two renewals of a claim. If a call to the store fails after its 5 s, the next one
is still in time."""

RENEWALS_AT_ONCE = 8
"""The most renewals in progress: the number of connections to Redis."""


class Claims:
    """The claims that a crawl has, by the keys of their files in ``store``."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._fences: dict[str, int | None] = {}
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
                self._timer.start(RENEWAL_INTERVAL, self._start)
        return claim

    def is_latest(self, key: str, fence: int | None) -> bool:
        """Whether this crawl has not claimed a file again since the claim with this token."""
        return self._fences.get(key) in (None, fence)

    def remove(self, key: str) -> None:
        """Remove a claim, if there is one."""
        self._fences.pop(key, None)
        if not self._fences:
            self._timer.cancel()

    def _start(self) -> None:
        """Start to renew all claims, a few at the same time."""
        due = deque(self._fences)
        for _ in range(min(RENEWALS_AT_ONCE - self._in_progress, len(due))):
            self._in_progress += 1
            deferred_from_coro(self._renew(due)).addErrback(_log_failure)
        if self._fences:
            self._timer.start(RENEWAL_INTERVAL, self._start)

    async def _renew(self, due: deque[str]) -> None:
        try:
            while due:
                key = due.popleft()
                fence = self._fences.get(key)
                if fence is None or await self._store.renew(key, fence, CLAIM_SECONDS):
                    continue
                # This crawl did not run for some time, and another crawler has the claim now.
                if self._fences.get(key) == fence:
                    self._fences[key] = None
        finally:
            self._in_progress -= 1


def _log_failure(failure: Failure) -> None:
    logger.error(
        "Error in scrapy-rep while it renewed a claim in the store. Please report this bug.",
        exc_info=failure_to_exc_info(failure),
    )
