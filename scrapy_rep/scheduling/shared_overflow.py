"""Requests that wait beyond REP_MAX_WAITING, in the Redis server of scrapy-redis.

They are beside the queue of the workers, in queues of the same class. So they are not lost if a
worker is killed: the next worker that starts puts them back.
"""

from __future__ import annotations

import logging
from itertools import count
from typing import TYPE_CHECKING, Any

from .hosts import WaitingRequest
from .overflow import DiskOverflow, MemoryOverflow, Overflow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

MAX_UNSENT = 100
"""How many requests are sent to the server at once. Fewer are lost if the worker is killed."""

FIRST_NUMBER = -(10**15)
"""Requests from the server come before those that began to wait in this worker."""

_MOVE = """
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  redis.call('ZUNIONSTORE', KEYS[2], 2, KEYS[2], KEYS[1], 'AGGREGATE', 'MIN')
  redis.call('DEL', KEYS[1])
else
  while redis.call('RPOPLPUSH', KEYS[1], KEYS[2]) do end
end
redis.call('SREM', KEYS[3], ARGV[1])
"""
"""Moves all requests of a queue to the queue of the workers."""


class SharedOverflow:
    """Requests in queues of the class of ``queue``, which is the queue of the workers."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._names_key = f"{queue.key}:waiting"
        """The key of a set: the names of all queues of the overflow."""
        self._memory = MemoryOverflow()
        """Requests that the server did not accept."""
        self._unsent: list[tuple[str, Request]] = []
        self._names: set[str] = set()
        self._numbers = count(FIRST_NUMBER)
        # Requests of a worker that was killed. One that still runs has to read its own again.
        self._put_back_all(queue.server.smembers(self._names_key))

    def push(self, queue: str, entry: WaitingRequest) -> None:
        """Add a request to a queue."""
        self._unsent.append((queue, entry.request))
        if len(self._unsent) >= MAX_UNSENT:
            self._send()

    def pop(self, queue: str) -> WaitingRequest | None:
        """Remove the first request of a queue, and return it. None if the queue is empty."""
        if self._unsent:
            self._send()
        in_memory = self._memory.pop(queue)
        if in_memory is not None:
            return in_memory
        try:
            request = self._queue_of(queue, self._queue.server).pop()
        except Exception:  # of the client of the server, or of a request that cannot be read
            logger.exception(
                "The waiting requests of %(queue)s cannot be read again. They stay in Redis.",
                {"queue": queue},
            )
            return None
        return self._entry(request) if request is not None else None

    def drain(self) -> Iterator[WaitingRequest]:
        """Put all requests back on the server. Return those that it does not accept."""
        if self._unsent:
            self._send()
        self._put_back_all(self._names)
        yield from self._memory.drain()

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        try:
            pipeline = self._queue.server.pipeline()
            for name in {name for name, _ in unsent}:
                pipeline.sadd(self._names_key, name)
                self._names.add(name)
            for name, request in unsent:
                self._queue_of(name, pipeline).push(request)
            pipeline.execute()
        except Exception:  # of the client of the server, or of any object in the meta of a request
            for name, request in unsent:
                self._memory.push(name, self._entry(request))

    def _put_back_all(self, names: Iterable[str | bytes]) -> None:
        try:
            for each in names:
                name = each.decode() if isinstance(each, bytes) else each
                keys = (self._queue_of(name, None).key, self._queue.key, self._names_key)
                self._queue.server.eval(_MOVE, len(keys), *keys, name)
        except Exception:  # of the client of the server
            logger.exception("Waiting requests stay in Redis until the next worker starts.")

    def _queue_of(self, name: str, server: Any) -> Any:
        queue = self._queue
        key = f"{queue.key}:waiting:{name}".replace("%", "%%")
        return type(queue)(server, queue.spider, key, queue.serializer)

    def _entry(self, request: Request) -> WaitingRequest:
        return WaitingRequest((-request.priority, next(self._numbers)), request)


def overflow_for(scheduler: Any, crawler: Crawler) -> Overflow:
    """Return the overflow of a crawl: in memory if its scheduler is known to be there only."""
    # Attributes of Scrapy's scheduler: its queues in memory and on disk.
    is_in_memory = hasattr(scheduler, "mqs") and getattr(scheduler, "dqs", None) is None
    # Attributes of the queues of scrapy-redis.
    queue = getattr(scheduler, "queue", None)
    if all(hasattr(queue, name) for name in ("server", "spider", "key", "serializer", "push")):
        return SharedOverflow(queue)
    return MemoryOverflow() if is_in_memory else DiskOverflow(crawler)
