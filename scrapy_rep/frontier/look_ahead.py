"""How far a crawl looks ahead: whose robots.txt it fetches, and how many requests it reads."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..clock import fire
from ..closing import Closing
from ..fetch.fetches import Fetches

LOOK_AHEAD = 4
"""If fewer queues than CONCURRENT_REQUESTS are ready, fetches begin until this multiple of it is
ready or waits for a fetch that has just begun. So robots.txt files are fetched for pages that are
requested soon, and the crawl does not wait for them."""

PAGES_IN_BETWEEN = 16
"""While enough queues are ready, one fetch begins after so many pages, so that new sites get their
turn, and one request starts that will be dropped."""


class LookAhead:
    """Counts the pages that start between two fetches, and between two requests to be dropped."""

    def __init__(self, concurrency: int, fetches: Fetches) -> None:
        self._concurrency = concurrency
        self._fetches = fetches
        self._since_drop = self._since_fetch = 0

    def note_start(self, *, is_dropped: bool) -> None:
        self._since_drop = 0 if is_dropped else self._since_drop + 1
        self._since_fetch += not is_dropped

    def note_fetch(self) -> None:
        self._since_fetch = 0

    def may_drop(self, ready: int, dropping: int) -> bool:
        """Whether a request may start that will be dropped, beside those that are.

        They start between pages if queues are ready, and else one at a time.
        """
        return self._since_drop >= PAGES_IN_BETWEEN if ready else not dropping

    def needs_fetch(self, ready: int) -> bool:
        """Whether a fetch is due: another queue is needed soon, or a new site has its turn."""
        coming, most = len(self._fetches.recent), LOOK_AHEAD * self._concurrency
        is_soon = ready < self._concurrency and ready + coming < most
        return is_soon or self._since_fetch >= PAGES_IN_BETWEEN


class Readers:
    """What waits until fewer requests are queued. ``queue_size`` returns how many are."""

    def __init__(self, queue_size: Callable[[], int], closing: Closing) -> None:
        self._queue_size = queue_size
        self._closing = closing
        self._readers: dict[Deferred[None], int] = {}

    async def wait(self, n: int) -> None:
        """Return when fewer than ``n`` requests are queued.

        Raises CancelledError if the spider closes first.
        """
        while self._queue_size() >= n or self._closing.has_begun:
            if self._closing.has_begun:
                raise CancelledError
            reader = Deferred[None]()
            self._readers[reader] = n
            try:
                await maybe_deferred_to_future(reader)
            finally:
                del self._readers[reader]

    def call(self) -> None:
        """Call those whose number is reached."""
        if self._readers:
            size = self._queue_size()
            for reader, n in tuple(self._readers.items()):
                if size < n or self._closing.has_begun:
                    fire(reader, None)
