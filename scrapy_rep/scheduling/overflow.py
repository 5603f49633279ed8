"""Requests that wait beyond REP_MAX_WAITING.

They are kept as the crawl's scheduler kept them: in memory if that was its only place; in the
server of scrapy-redis (:mod:`.shared_overflow`); otherwise serialized, in a temporary file. So no
more memory is used than without this package. They come back in the order of their queue when that
queue has no other request and is not blocked.
"""

from __future__ import annotations

import logging
import pickle
import sqlite3
from heapq import heappop, heappush, merge
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.utils.request import request_from_dict

from .hosts import WaitingRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

CACHE_KIB = 8192
"""How much memory the temporary file uses at most."""


class Overflow(Protocol):
    """Requests by the name of their queue."""

    def push(self, queue: str, entry: WaitingRequest) -> None:
        """Add a request to a queue."""

    def pop(self, queue: str) -> WaitingRequest | None:
        """Remove the first request of a queue, and return it. None if the queue is empty."""

    def drain(self) -> Iterator[WaitingRequest]:
        """Remove the requests of all queues, and return them, the last one first."""

    def put_back(self, entries: list[WaitingRequest]) -> list[WaitingRequest]:
        """Give requests back to the crawl's scheduler. Return those that it has to store itself."""
        return entries

    def move_waiting(
        self,
        queue_of: Callable[[Mapping[str, Any]], str | None],  # noqa: ARG002
    ) -> list[str]:
        """Move requests that have to wait from the crawl's scheduler, without reading them here.

        ``queue_of`` returns the name of the queue for a stored request. It returns None for a
        request that has to be read. Returns the name of the queue of each request that was moved.
        """
        return []


class MemoryOverflow(Overflow):
    """Requests in memory."""

    def __init__(self) -> None:
        self._heaps: dict[str, list[WaitingRequest]] = {}

    def push(self, queue: str, entry: WaitingRequest) -> None:
        """Add a request to a queue."""
        heappush(self._heaps.setdefault(queue, []), entry)

    def first(self, queue: str) -> WaitingRequest | None:
        """Return the first request of a queue. None if the queue is empty."""
        heap = self._heaps.get(queue)
        return heap[0] if heap is not None else None

    def pop(self, queue: str) -> WaitingRequest | None:
        """Remove the first request of a queue, and return it. None if the queue is empty."""
        heap = self._heaps.get(queue)
        if heap is None:
            return None
        entry = heappop(heap)
        if not heap:
            del self._heaps[queue]
        return entry

    def drain(self) -> Iterator[WaitingRequest]:
        """Remove the requests of all queues, and return them, the last one first."""
        entries = sorted(entry for heap in self._heaps.values() for entry in heap)
        self._heaps.clear()
        while entries:
            yield entries.pop()


class DiskOverflow(Overflow):
    """Requests in a temporary file, serialized as Scrapy does it for its disk queues.

    Requests that cannot be serialized stay in memory, as in Scrapy's scheduler.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._memory = MemoryOverflow()
        self._connection: sqlite3.Connection | None = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            # A database without a name is a temporary file, which SQLite removes.
            self._connection = sqlite3.connect("", isolation_level=None)
            self._connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            self._connection.execute("PRAGMA journal_mode = OFF")
            self._connection.execute(
                "CREATE TABLE requests (queue TEXT, priority INTEGER, number INTEGER, "
                "request BLOB, PRIMARY KEY (queue, priority, number)) WITHOUT ROWID"
            )
        return self._connection

    def push(self, queue: str, entry: WaitingRequest) -> None:
        """Add a request to a queue."""
        try:
            content = entry.request.to_dict(spider=self._crawler.spider)
            data = pickle.dumps((entry.arrived, entry.for_policy, content), protocol=4)
            self._db.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?)", (queue, *entry.sort_key, data)
            )
        except Exception:  # of any object in its meta, or because the disk is full
            self._memory.push(queue, entry)

    def pop(self, queue: str) -> WaitingRequest | None:
        """Remove the first request of a queue, and return it. None if the queue is empty."""
        while True:
            found = self._db.execute(
                "SELECT priority, number, request FROM requests WHERE queue = ? "
                "ORDER BY priority, number LIMIT 1",
                (queue,),
            ).fetchone()
            in_memory = self._memory.first(queue)
            if found is None or (in_memory is not None and in_memory.sort_key < found[:2]):
                return self._memory.pop(queue)
            self._db.execute(
                "DELETE FROM requests WHERE queue = ? AND priority = ? AND number = ?",
                (queue, *found[:2]),
            )
            entry = self._entry(found)
            if entry is not None:
                return entry

    def drain(self) -> Iterator[WaitingRequest]:
        """Remove the requests of all queues, and return them, the last one first."""
        if self._connection is None:
            yield from self._memory.drain()
            return
        rows = self._connection.execute(
            "SELECT priority, number, request FROM requests ORDER BY priority DESC, number DESC"
        )
        serialized = (entry for row in rows if (entry := self._entry(row)) is not None)
        yield from merge(
            serialized, self._memory.drain(), key=lambda entry: entry.sort_key, reverse=True
        )
        self._connection.close()
        self._connection = None

    def _entry(self, row: tuple[int, int, bytes]) -> WaitingRequest | None:
        """Return a request as it was; None if it cannot be read."""
        priority, number, data = row
        try:
            arrived, for_policy, content = pickle.loads(data)
            request = request_from_dict(content, spider=self._crawler.spider)
        except Exception:  # of any object in its meta
            logger.exception("A waiting request cannot be read again. It is lost.")
            return None
        return WaitingRequest((priority, number), request, arrived=arrived, for_policy=for_policy)
