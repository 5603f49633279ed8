"""Requests that wait beyond REP_MAX_WAITING, in the Redis server of scrapy-redis.

They are beside the queue of the workers, in queues of the same class. So they are not lost if a
worker is killed: the next worker that starts puts them back.
"""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from hashlib import sha1
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from .hosts import WaitingRequest
from .overflow import DiskOverflow, MemoryOverflow, Overflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from .clock import Clock

logger = logging.getLogger(__name__)

MAX_UNSENT = 100
"""How many requests are sent to the server at once. Fewer are lost if the worker is killed."""

FIRST_NUMBER = -(10**15)
"""Requests from the server come before those that began to wait in this worker."""

MAX_MOVED = 100
MAX_PUT_BACK = 1000
"""How many requests one call moves to the overflow, and how many it puts back."""

_PUT_BACK = """
local count = tonumber(ARGV[2])
if redis.call('TYPE', KEYS[1]).ok == 'zset' then
  local found = redis.call('ZRANGE', KEYS[1], 0, count - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    redis.call('ZADD', KEYS[2], found[i + 1], found[i])
  end
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, count - 1)
else
  while count > 0 and redis.call('RPOPLPUSH', KEYS[1], KEYS[2]) do count = count - 1 end
end
local is_left = redis.call('EXISTS', KEYS[1])
if is_left == 0 then redis.call('SREM', KEYS[3], ARGV[1]) end
return is_left
"""
"""Moves the first requests of a queue to the queue of the workers. Returns whether it has others.

KEYS: the queue, the queue of the workers, the set of the names. ARGV: the name of the queue, the
number of requests."""

_MOVE_WAITING = """
local source, names, count = KEYS[1], KEYS[2], (#ARGV - 1) / 3
local stored
if ARGV[1] == 'set' then
  stored = redis.call('ZRANGE', source, 0, count - 1)
elseif ARGV[1] == 'head' then
  stored = redis.call('LRANGE', source, 0, count - 1)
else
  stored = redis.call('LRANGE', source, -count, -1)
  for i = 1, math.floor(#stored / 2) do
    stored[i], stored[#stored + 1 - i] = stored[#stored + 1 - i], stored[i]
  end
end
local taken, moved, is_named = 0, 0, {}
for i = 0, count - 1 do
  local digest, target, score = ARGV[3 * i + 2], KEYS[tonumber(ARGV[3 * i + 3])], ARGV[3 * i + 4]
  local request = stored[moved + 1]
  if request and redis.sha1hex(request) == digest then
    moved = moved + 1
    if not is_named[target] then
      redis.call('SADD', names, string.sub(target, #names + 2))
      is_named[target] = true
    end
    if ARGV[1] == 'set' then
      redis.call('ZADD', target, score, request)
    elseif ARGV[1] == 'head' then
      redis.call('RPUSH', target, request)
    else
      redis.call('LPUSH', target, request)
    end
  elseif moved > 0 then
    break
  else
    taken = taken + 1
  end
end
if moved > 0 then
  if ARGV[1] == 'set' then
    redis.call('ZREMRANGEBYRANK', source, 0, moved - 1)
  elseif ARGV[1] == 'head' then
    redis.call('LTRIM', source, moved, -1)
  else
    redis.call('LTRIM', source, 0, -moved - 1)
  end
end
return {taken, moved}
"""
"""Moves the first requests of the queue of the workers to the overflow.

Another worker may have taken some of them. Returns how many of the first ones were taken, and how
many after those were moved: up to the first one that is not where it was.

KEYS: the queue of the workers, the set of the names, the queues of the overflow. ARGV: where the
first request is (the ``head`` or the ``tail`` of a list, or a sorted ``set``); then for each
request its SHA-1, the number of the key of its new queue, and its score."""


class SharedOverflow(Overflow):
    """Requests in queues of the class of ``queue``, which is the queue of the workers."""

    def __init__(self, queue: Any, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._names_key = f"{queue.key}:waiting"
        """The key of a set: the names of all queues of the overflow."""
        self._memory = MemoryOverflow()
        """Requests that the server did not accept."""
        self._unsent: list[tuple[str, Request]] = []
        """Requests that are not sent yet, each with the name of its queue."""
        self._arrivals: defaultdict[str, _Arrivals] = defaultdict(_Arrivals)
        """When the requests of each queue of this worker began to wait."""
        self._moves = True
        """Whether requests are moved without being read."""
        self._numbers = count(FIRST_NUMBER)
        # Requests of a worker that was killed. One that still runs has to read its own again.
        self._put_back_all(queue.server.smembers(self._names_key))

    def push(self, queue: str, entry: WaitingRequest) -> None:
        """Add a request to a queue."""
        self._unsent.append((queue, entry.request))
        self._arrivals[queue].add(entry.arrived)
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
            self._arrivals[queue] = _Arrivals()
            return None
        return self._entry(queue, request) if request is not None else None

    def drain(self) -> Iterator[WaitingRequest]:
        """Put all requests back on the server. Return those that it does not accept."""
        if self._unsent:
            self._send()
        self._put_back_all(self._arrivals)
        yield from self._memory.drain()

    def put_back(self, entries: list[WaitingRequest]) -> list[WaitingRequest]:
        """Put requests into the queue of the workers. Return those that it does not accept."""
        refused: list[WaitingRequest] = []
        for first in range(0, len(entries), MAX_PUT_BACK):
            some = entries[first : first + MAX_PUT_BACK]
            try:
                pipeline = self._queue.server.pipeline()
                queue = self._queue_with(self._queue.key, pipeline)
                for entry in some:
                    queue.push(entry.request)
                pipeline.execute()
            except Exception:  # of the client of the server, or of any object in the meta
                refused += some
        return refused

    def move_waiting(self, queue_of: Callable[[Mapping[str, Any]], str | None]) -> list[str]:
        """Move the first requests of the workers' queue, up to one that has to be read.

        They do not leave the server. So no call is made for each, and a worker that is killed loses
        none of them.
        """
        if not self._moves:
            return []
        if self._unsent:
            self._send()
        moves: list[tuple[str, Any, float]] = []
        try:
            place, stored = _first_stored(self._queue)
            for data, score in stored:
                name = self._stored_queue(data, queue_of)
                if name is None:
                    break
                moves.append((name, data, score))
            taken, moved = self._move(moves, place) if moves else (0, 0)
        except Exception:  # of the client of the server
            logger.exception("Requests that have to wait are read one by one from now on.")
            self._moves = False
            # It may have moved them. If not, the overflow has fewer.
            taken, moved = 0, len(moves)
        names = [name for name, _, _ in moves[taken : taken + moved]]
        now = self._clock.monotonic()
        for name in names:
            self._arrivals[name].add(now)
        return names

    def _stored_queue(
        self, data: Any, queue_of: Callable[[Mapping[str, Any]], str | None]
    ) -> str | None:
        try:
            return queue_of(self._queue.serializer.loads(data))
        except Exception:  # of a request that is stored in another way, which is read as usual
            return None

    def _move(self, moves: list[tuple[str, Any, float]], place: str) -> tuple[int, int]:
        """Move requests to the queues of these names, but for those that another worker has taken.

        Return how many were taken, and how many after those were moved.
        """
        names = list(dict.fromkeys(name for name, _, _ in moves))
        numbers = {name: number for number, name in enumerate(names, 3)}
        keys = [self._queue.key, self._names_key]
        keys += [self._queue_of(name, None).key for name in names]
        arguments = [
            each
            for name, data, score in moves
            for each in (sha1(data, usedforsecurity=False).hexdigest(), numbers[name], score)
        ]
        taken, moved = self._queue.server.eval(_MOVE_WAITING, len(keys), *keys, place, *arguments)
        return taken, moved

    def _send(self) -> None:
        """Send the unsent requests. If the server does not accept them, they stay in memory."""
        unsent, self._unsent = self._unsent, []
        try:
            pipeline = self._queue.server.pipeline()
            for name in {name for name, _ in unsent}:
                pipeline.sadd(self._names_key, name)
            for name, request in unsent:
                self._queue_of(name, pipeline).push(request)
            pipeline.execute()
        except Exception:  # of the client of the server, or of any object in the meta of a request
            for name, request in unsent:
                self._memory.push(name, self._entry(name, request))

    def _put_back_all(self, names: Iterable[str | bytes]) -> None:
        """Move the requests of these queues to the queue of the workers."""
        try:
            for each in names:
                name = each.decode() if isinstance(each, bytes) else each
                keys = (self._queue_of(name, None).key, self._queue.key, self._names_key)
                while self._queue.server.eval(_PUT_BACK, len(keys), *keys, name, MAX_PUT_BACK):
                    pass
        except Exception:  # of the client of the server
            logger.exception("Waiting requests stay in Redis until the next worker starts.")

    def _queue_of(self, name: str, server: Any) -> Any:
        """Return a queue of the overflow, which uses the client ``server``, or a pipeline of it."""
        return self._queue_with(f"{self._queue.key}:waiting:{name}", server)

    def _queue_with(self, key: str, server: Any) -> Any:
        queue = self._queue
        return type(queue)(server, queue.spider, key.replace("%", "%%"), queue.serializer)

    def _entry(self, name: str, request: Request) -> WaitingRequest:
        sort_key = (-request.priority, next(self._numbers))
        arrived = self._arrivals[name].pop(self._clock.monotonic())
        return WaitingRequest(sort_key, request, arrived=arrived)


class _Arrivals:
    """When the requests of one queue began to wait, to the second. The first one is the next.

    The server stores only the requests, and does not always return them in the order of arrival.
    """

    __slots__ = ("_times",)

    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = []
        """Times in seconds, each with the number of the requests."""

    def add(self, at: float) -> None:
        """Add a request."""
        first, number = self._times[-1] if self._times else (-inf, 0)
        if at - first < 1:
            self._times[-1] = first, number + 1
        else:
            self._times.append((at, 1))

    def pop(self, now: float) -> float:
        """Remove a request, and return when it began to wait: ``now`` if that is not known."""
        if not self._times:
            return now
        first, number = self._times[0]
        if number > 1:
            self._times[0] = first, number - 1
        else:
            del self._times[0]
        return first


def _first_stored(queue: Any) -> tuple[str, list[tuple[Any, float]]]:
    """Return the first requests of a queue as they are stored, each with its score.

    Also returns the place of the first one, as for :data:`_MOVE_WAITING`. Returns no requests of a
    queue that is not one of scrapy-redis, or that reads requests in another way.
    """
    classes: Any = sys.modules.get("scrapy_redis.queue")
    pop = type(queue).pop
    server, key, last = queue.server, queue.key, MAX_MOVED - 1
    if classes is not None and pop is classes.PriorityQueue.pop:
        return "set", server.zrange(key, 0, last, withscores=True)
    if classes is not None and pop is classes.FifoQueue.pop:
        return "tail", [(data, 0) for data in reversed(server.lrange(key, -MAX_MOVED, -1))]
    if classes is not None and pop is classes.LifoQueue.pop:
        return "head", [(data, 0) for data in server.lrange(key, 0, last)]
    return "", []


def overflow_for(scheduler: Any, crawler: Crawler, clock: Clock) -> Overflow:
    """Return the overflow of a crawl: in memory if its scheduler is known to be there only."""
    # Attributes of Scrapy's scheduler: its queues in memory and on disk.
    is_in_memory = hasattr(scheduler, "mqs") and getattr(scheduler, "dqs", None) is None
    # Attributes of the queues of scrapy-redis.
    queue = getattr(scheduler, "queue", None)
    if all(hasattr(queue, name) for name in ("server", "spider", "key", "serializer", "push")):
        return SharedOverflow(queue, clock)
    return MemoryOverflow() if is_in_memory else DiskOverflow(crawler)
