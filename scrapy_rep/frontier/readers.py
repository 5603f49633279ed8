"""Callers that wait until a crawl has fewer requests in its queue."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..clock import fire
from ..closing import Closing


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
