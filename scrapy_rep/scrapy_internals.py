"""Scrapy's engine, downloader and queues. Only this module uses what is not public there.

:data:`ATTRIBUTES` lists it. :meth:`Engine.open` checks the list when a crawl starts, and logs one
warning of what is missing. Only ``total_concurrency`` is changed, while robots.txt files are
fetched and while requests wait in the downloader. Nothing of Scrapy is replaced.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from math import inf
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import scrapy
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.pqueues import QueueProtocol, ScrapyPriorityQueue
from scrapy.squeues import FifoMemoryQueue

from .logs import get_logger

logger = get_logger(__name__)

ATTRIBUTES = {
    "engine._slot.nextcall": "a request that becomes ready starts up to 5 s later",
    "engine._slot.closing": "a crawl that is stopped ends only when no request waits",
    "engine.downloader.active": (
        "a host with a delay may stay busy after another middleware has dropped a request"
    ),
    "engine.downloader.slots": (
        "the wait for DOWNLOAD_DELAY is a part of REP_TIMEOUT, and neither a back-off, nor a "
        "robots.txt or a local rule that is new, holds for requests that wait for it"
    ),
    "engine.downloader.total_concurrency": (
        "robots.txt files, and requests that wait in the downloader, occupy CONCURRENT_REQUESTS "
        "slots"
    ),
    "queue._start_queues": (
        "start requests that an earlier crawl stored in JOBDIR stay there, and a robots.txt that "
        "only start requests need is fetched without their proxy"
    ),
}
"""The attributes that are not public, and what happens without each."""

WATCH_INTERVAL = 0.5
"""Seconds between two checks for what Scrapy has no signal: whether the spider closes, and whether
another middleware has dropped a request."""

MIN_LOOK = 0.005
"""Seconds until the next look at a request that waits for DOWNLOAD_DELAY, which Scrapy varies."""

MAX_EXTRA = 1000
"""How many requests may wait or be sent beyond CONCURRENT_REQUESTS. Without a limit, a scheduler
that does not know which requests may start would be read into memory."""

MAX_WAITING_BYTES = 5_000_000
"""Bytes of responses that may wait beyond CONCURRENT_REQUESTS. Scrapy's
SCRAPER_SLOT_MAX_ACTIVE_SIZE has the same value."""

MIN_RESPONSE_BYTES = 1024
"""Bytes that a smaller response counts as. Scrapy's scraper uses the same number."""


class Engine:
    """The engine and the downloader of one crawl, as this package uses them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._engine: Any = None  # before open() is called, nothing is used
        self._downloader: Any = None
        self.extra: dict[Request, int] = {}
        """The requests that do not occupy CONCURRENT_REQUESTS slots, each with the bytes of its
        response if that waits."""
        self._limit = self._enlarged = 0
        """CONCURRENT_REQUESTS, and the limit with the requests in ``extra``."""

    def open(self) -> None:
        """Check the attributes. Log one warning about those that are missing."""
        self._engine = getattr(self._crawler, "engine", None)
        self._downloader = getattr(self._engine, "downloader", None)
        queue = ScrapyPriorityQueue(self._crawler, FifoMemoryQueue, "")
        missing = dict(ATTRIBUTES)
        for path in ATTRIBUTES:
            with suppress(AttributeError):
                attrgetter(path)(SimpleNamespace(engine=self._engine, queue=queue))
                del missing[path]
        if missing:
            names = "; ".join(f"{path} ({effect})" for path, effect in missing.items())
            logger.warning(
                "The engine or the downloader of this crawl differs from those of Scrapy 2.14 to "
                "2.19 (this is %(version)s). Missing: %(missing)s.",
                {"version": scrapy.__version__, "missing": names},
                extra={"spider": self._crawler.spider},
            )

    def wake(self) -> None:
        """Schedule the next step of the engine, which takes requests from the scheduler."""
        slot = getattr(self._engine, "_slot", None)  # None after the spider has closed
        nextcall = getattr(slot, "nextcall", None)
        if nextcall is not None and not self.is_closing:
            nextcall.schedule()

    @property
    def is_closing(self) -> bool:
        """Whether the spider closes. The engine then waits until all downloads have ended."""
        return getattr(getattr(self._engine, "_slot", None), "closing", None) is not None

    @property
    def active(self) -> Collection[Request]:
        """The requests that the downloader has, at whatever stage; empty if it does not say."""
        return getattr(self._downloader, "active", ())

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has a request, at whatever stage; True if it does not say."""
        return request in getattr(self._downloader, "active", (request,))

    def seconds_unsent(self, request: Request) -> float:
        """Return the seconds until a request may leave its download slot; 0 if it has left it.

        Infinity means that it has not reached the slot: other middlewares have it. The signal that
        it does comes before the wait for DOWNLOAD_DELAY.
        """
        slots = getattr(self._downloader, "slots", None)
        if slots is None:
            return 0
        slot = slots.get(request.meta.get("download_slot"))
        if slot is None or request not in slot.active:
            return inf
        if request in slot.transferring:
            return 0
        # The next request is not late: it waits for at least half of a delay that Scrapy varies.
        return max(float(slot.delay) / 4, MIN_LOOK)

    def active_in(self, slot: str) -> int:
        """Return how many requests a download slot has; 0 if it is not known."""
        found = getattr(self._downloader, "slots", {}).get(slot)
        return 0 if found is None else len(found.active)

    def waits_in_slot(self, request: Request) -> bool:
        """Whether a request waits in its download slot."""
        return 0 < self.seconds_unsent(request) < inf

    def exclude(self, request: Request, response: Response | None = None) -> bool:
        """Stop counting a request in CONCURRENT_REQUESTS. Returns whether this call has done so.

        ``response`` is its response if that waits: many bytes must not.
        """
        if request in self.extra or len(self.extra) >= MAX_EXTRA:
            return False
        if response is not None and sum(self.extra.values()) >= MAX_WAITING_BYTES:
            return False
        size = 0 if response is None else max(len(response.body), MIN_RESPONSE_BYTES)
        self.extra[request] = size
        self._set_capacity()
        self.wake()
        return True

    def include(self, request: Request) -> None:
        """End what :meth:`exclude` began."""
        self.extra.pop(request, None)
        self._set_capacity()

    def _set_capacity(self) -> None:
        limit = getattr(self._downloader, "total_concurrency", 0)
        if limit != self._enlarged:  # the crawl itself has set it
            self._limit = limit
        if self._limit > 0:  # 0 means no limit
            self._enlarged = self._downloader.total_concurrency = self._limit + len(self.extra)


def start_queues(queue: ScrapyPriorityQueue) -> dict[int, QueueProtocol]:
    """Return the queues of start requests in one of Scrapy's priority queues, by priority."""
    return queue._start_queues if hasattr(queue, "_start_queues") else {}
