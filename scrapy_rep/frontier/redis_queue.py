"""The queues of a crawl in Redis, which workers share by scrapy-redis (SCHEDULER_QUEUE_CLASS).

A worker *leases* the first host whose time has come, and gets the queues of the host. With the
next request it returns the host: at once, or after the request and the delay if the host has one.
So the delay holds for all workers together. A worker keeps a host while it fetches its robots.txt,
or waits for something else. A lease is longer than the delay of its host, and ends by itself if the
worker dies.

====================  ==========  =================================================================
key                   type        value
====================  ==========  =================================================================
``{KEY}:hosts``       sorted set  hosts, by the time in milliseconds from which each may be leased
``{KEY}:new``         sorted set  hosts whose robots.txt nobody has fetched, in the order of time
``{KEY}:leases``      hash        the worker that has leased a host, by host
``{KEY}:queues``      sorted set  the queues with requests: their addresses in JSON
``{KEY}:counts``      hash        ``size``: the requests in all queues; ``added``: those ever added
``{KEY}:queue:NAME``  sorted set  requests, by priority; each begins with its number of 16 digits
====================  ==========  =================================================================

KEY is SCHEDULER_QUEUE_KEY of scrapy-redis. The braces are a hash tag: all keys are in one slot of a
cluster. The server tells the time, so that the clocks of the workers need not agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any
from uuid import uuid4

from redis import RedisError
from scrapy import Request, Spider, signals
from scrapy_redis.queue import Base, PriorityQueue  # type: ignore[import-untyped]

from ..logs import get_logger
from ..policies.gate import Address, Place
from ..scrapy_internals import WATCH_INTERVAL
from ..stores.base import LEASE
from .hosts import Host, Queue, Queues
from .queued import find_frontier
from .reservation import Reservations

logger = get_logger(__name__)

MAX_LEASED = 10_000
"""How many hosts one worker has at most. To renew so many leases takes Redis some 10 ms."""

_SCRIPT = Path(__file__).with_suffix(".lua").read_text("utf-8")


class LeasedQueue(Queue):
    """The requests of one address, while this worker has leased the host."""

    __slots__ = ("name",)

    owner: RedisQueue

    def __init__(self, owner: RedisQueue, name: str) -> None:
        address = Address.from_json(name)
        super().__init__(owner, address, *owner.frontier.hosts.of(address))
        self.name = name
        self.size = 1
        """0 if there are no requests, or if the lease has ended."""

    def peek(self) -> Request | None:
        return self.owner.decoded(self.owner.call("peek", queue=self.name))

    def pop(self) -> Request | None:
        """Remove the next request, which starts. None if the lease has ended.

        Returns the host to the other workers, unless it is needed for more than this request.
        """
        owner, host = self.owner, self.host.name
        places = {each.place for each in owner.leased[host].values()}
        is_kept = self.host.is_paced or not places.isdisjoint({Place.DROPS, Place.FETCHING})
        seconds = LEASE + self.host.delay if is_kept else 0
        self.size, *found = owner.call("pop", host, self.name, seconds, queue=self.name)
        if not is_kept:
            owner.forget(host)
        request = owner.decoded(found)
        if request is not None:
            owner.frontier.start(self, request)
        return request


class Leases(Reservations):
    """The reservations of a worker. A host that it has leased is reserved."""

    _store: RedisQueue

    def is_reserved(self, host: Host) -> bool:
        return host.name in self._store.leased or super().is_reserved(host)

    def release(self, host: Host, delay: float) -> None:
        super().release(host, delay)
        queues = self._store.leased.get(host.name)
        if queues is None or (queues and not delay):
            return
        if all(each.place is not Place.FETCHING for each in queues.values()):
            self._store.return_host(host.name)


class RedisQueue(Queues, Base):  # type: ignore[misc]
    """A class for SCHEDULER_QUEUE_CLASS that gives the requests which may start.

    Hosts take turns. In each queue, requests of a higher priority come first. In a crawl that does
    not obey robots.txt, the PriorityQueue of scrapy-redis is used, with a key of its own.
    """

    is_capped = False

    def __new__(cls, server: Any, spider: Spider, key: str, serializer: Any = None) -> Any:
        if find_frontier(spider.crawler) is None:
            return PriorityQueue(server, spider, key, serializer)
        return super().__new__(cls)

    def __init__(self, server: Any, spider: Spider, key: str, serializer: Any = None) -> None:
        Base.__init__(self, server, spider, key, serializer)
        frontier = find_frontier(spider.crawler)
        assert frontier is not None
        Queues.__init__(self)
        self.frontier = frontier
        frontier.queues.append(self)
        self._worker = uuid4().hex
        self.leased: dict[str, dict[str, LeasedQueue]] = {}
        """The queues of each leased host, by name; none if its last request is in progress."""
        names = ("hosts", "new", "leases", "queues", "counts")
        self._keys = {name: f"{{{self.key}}}:{name}" for name in names}
        self._prefix = f"{{{self.key}}}:queue:"
        self._script = server.register_script(_SCRIPT)
        self._poll = frontier.clock.call_later(0, frontier.engine.wake)
        self._renewal = frontier.clock.call_later(LEASE / 3, self._renew)
        frontier.reserve_with(Leases(self, frontier.clock, frontier))
        spider.crawler.signals.connect(self.close, signal=signals.spider_closed)

    # What scrapy-redis calls.

    def push(self, request: Request) -> None:
        address = self.frontier.accept(request)
        host, name = address.host, json.dumps(address)
        is_new = self.frontier.policies.gate(address, 0).place is Place.UNKNOWN
        encoded = self._encode_request(request)
        self.call("push", host, int(is_new), name, -request.priority, encoded, queue=name)
        if host in self.leased:
            self._add(name)

    def pop(self, timeout: float = 0) -> Request | None:  # noqa: ARG002
        """Remove a request that may start, and return it; None if there is none at this time."""
        has_leased = self._lease()
        queue = self.frontier.next_queue(self)
        request = queue.pop() if queue is not None else None
        if request is None and (queue or has_leased):
            self.frontier.engine.wake()  # the next host may be ready
        return request

    def __len__(self) -> int:
        return int(self.server.hget(self._keys["counts"], "size") or 0)

    def clear(self) -> None:
        """Remove all requests, those of other workers included."""
        names = json.loads(self.call("names"))
        self.server.delete(*self._keys.values(), *(self._prefix + name for name in names))

    def close(self) -> None:
        """Return all hosts: the spider is closed. The requests stay in Redis."""
        self._poll.cancel()
        self._renewal.cancel()
        for host in tuple(self.leased):
            self.return_host(host)
        self.frontier.queues.remove(self)

    # What the frontier and its queues call.

    def remove(self, queue: LeasedQueue) -> None:
        self.leased.get(queue.host.name, {}).pop(queue.name, None)

    async def reserve_host(self, host: str, lease: float) -> float:
        """Lease a host for another request. Return 0, or the seconds until the next attempt."""
        leases = [(host, lease + self.frontier.delay_of(host), 0)]
        refused, _ = json.loads(self.call("renew", json.dumps(leases)))
        return float(refused.get(host, 0))

    async def release_host(self, host: str, delay: float) -> None:
        """Return such a host. It cannot be leased for ``delay`` seconds."""
        self.call("release", host, delay)

    def _lease(self) -> bool:
        """Lease as many hosts as this worker could use now. Return whether there was one."""
        missing = self.frontier.missing(self)
        if not any(missing) or len(self.leased) >= MAX_LEASED:
            return False
        in_progress = self.frontier.in_progress.values()
        full = {each.host.name for each in in_progress if each.slot.active >= each.slot.limit}
        seconds, names = json.loads(self.call("lease", LEASE, *missing, *full))
        self._add(*names)
        if not names:  # another worker may add a request, or return a host
            self._poll.cancel()
            wake = self.frontier.engine.wake
            self._poll = self.frontier.clock.call_later(min(seconds, WATCH_INTERVAL), wake)
        return bool(names)

    def _add(self, *names: str) -> None:
        """Add queues of leased hosts, unless this worker has them."""
        for name in names:
            queue = LeasedQueue(self, name)
            queues = self.leased.setdefault(queue.host.name, {})
            if name not in queues:
                queues[name] = queue
                self.frontier.update(queue)

    def _renew(self) -> None:
        """Renew the leases. Return the hosts that are not in use, so that all take turns."""
        self._renewal = self.frontier.clock.call_later(LEASE / 3, self._renew)
        unused = {Place.READY, Place.DROPS} if len(self.leased) >= MAX_LEASED else {Place.READY}
        for host, queues in tuple(self.leased.items()):
            if queues and unused.issuperset(each.place for each in queues.values()):
                self.return_host(host)
        delay = self.frontier.delay_of
        leases = [(host, LEASE + delay(host), len(own)) for host, own in self.leased.items()]
        found = self._try_call("renew", json.dumps(leases))
        refused, names = json.loads(found or "[{}, []]")
        for host in refused:
            self.forget(host)
        self._add(*names)

    def return_host(self, name: str) -> None:
        """Return a host, which may be leased again after its delay."""
        host = self.frontier.hosts.host(name)
        self.forget(name)
        seconds = host.seconds_left(self.frontier.clock.monotonic())
        if seconds < inf:  # else a request is in progress
            self._try_call("release", name, seconds)

    def forget(self, host: str) -> None:
        """Remove the queues of a host that this worker no longer has."""
        for queue in self.leased.pop(host, {}).values():
            queue.size = 0
            self.frontier.update(queue)

    def call(self, function: str, *arguments: object, queue: str = "") -> Any:
        """Call a function of the script. It uses the queue with this name, if it uses one."""
        keys = (*self._keys.values(), self._prefix + queue)
        return self._script(keys=keys, args=(function, self._worker, *arguments))

    def _try_call(self, function: str, *arguments: object) -> Any:
        """Call a function of the script. Returns None if Redis cannot be reached."""
        try:
            return self.call(function, *arguments)
        except RedisError as error:
            logger.warning(
                "The queue in Redis cannot be reached (%(error)s). Other workers may wait up to "
                "%(seconds)d s for the hosts of this one.",
                {"error": error, "seconds": LEASE},
                extra={"spider": self.spider},
            )

    def decoded(self, found: Sequence[bytes | str]) -> Request | None:
        """Return the request that was found, if there is one."""
        return self._decode_request(found[0]) if found else None
