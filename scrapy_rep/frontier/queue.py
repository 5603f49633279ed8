"""The priority queue of Scrapy's scheduler: one queue of requests for each origin.

:class:`OriginPriorityQueue` is a class for SCHEDULER_PRIORITY_QUEUE, beside Scrapy's
DownloaderAwarePriorityQueue. It keeps the requests of each origin in queues of Scrapy's own, in
memory or in the files of JOBDIR. The :class:`~.frontier.Frontier` of the crawl says which of these
queues gives the next request.

The files and the state are those of DownloaderAwarePriorityQueue: a crawl that was stopped with one
of the two classes continues with the other. The first origin of a host has the directory that
Scrapy gives to the host; further origins have one each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol, ScrapyPriorityQueue
from scrapy.utils.misc import build_from_crawler

from ..policies.gate import Address, Kind
from ..scrapy_internals import Bucket, buckets_in, directory_of, state_of
from .frontier import Frontier
from .hosts import Queue, Queues
from .queued import find_frontier

MAX_OPEN = 200
"""How many queues on disk have open files. Each of them has one or a few, and a process may often
have no more than 1,024."""


class OriginQueue(Queue):
    """The requests of one address. A single one in memory needs no queue of Scrapy's."""

    __slots__ = ("_first", "buckets", "name")

    owner: OriginPriorityQueue

    def __init__(self, owner: OriginPriorityQueue, address: Address, name: str) -> None:
        super().__init__(owner, address, *owner.frontier.hosts.of(address))
        self.name = name
        """The name of its directory; empty for requests in memory."""
        self.buckets: dict[Bucket, QueueProtocol | None] = {}
        """Scrapy's queue for each bucket with requests; None if its files are closed."""
        self._first: Request | None = None

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be stored on disk."""
        if not (self.size or self.owner.key):
            self._first = request
        else:
            requests, self._first = (self._first, request), None
            for each in filter(None, requests):
                with self._use(self.owner.bucket(each)) as queue:
                    queue.push(each)
        self.size += 1

    def pop(self) -> Request | None:
        request, self._first = self._first, None
        for bucket in sorted(self.buckets):
            if request is None:
                with self._use(bucket) as queue:
                    request = queue.pop()
        self.size = self.size - 1 if request is not None else 0
        return request

    def peek(self) -> Request | None:
        request = self._first
        if request is None and self.buckets:
            with self._use(min(self.buckets)) as queue:
                request = _peek(queue)
        if self.name:  # in queuelib, the next push to a LIFO file would overwrite this request
            self.owner.close_files(self)
        return request

    @property
    def priority(self) -> int:
        if self._first is not None:
            return -self._first.priority
        return min(self.buckets).priority if self.buckets else 0

    @contextmanager
    def _use(self, bucket: Bucket) -> Iterator[Any]:
        """Open one of Scrapy's queues, which is removed if it has no requests afterwards."""
        queue = self.buckets.get(bucket)
        if queue is None:
            queue = self.buckets[bucket] = self.owner.open(self, bucket)
        try:
            yield queue
        finally:
            if not queue:
                del self.buckets[bucket]
                queue.close()


class OriginPriorityQueue(Queues):
    """A class for SCHEDULER_PRIORITY_QUEUE that gives the requests which may start.

    The requests of the hosts with the fewest requests in progress come first, and hosts take turns.
    In a crawl that does not obey robots.txt, Scrapy's DownloaderAwarePriorityQueue is used.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *arguments: Any, **options: Any) -> Any:
        """Called by Scrapy."""
        frontier = find_frontier(crawler)
        if frontier is None:
            scrapys: Any = ScrapyPriorityQueue if cls.by_priority else DownloaderAwarePriorityQueue
            return scrapys.from_crawler(crawler, *arguments, **options)
        return cls(crawler, frontier, *arguments, **options)

    def __init__(
        self,
        crawler: Crawler,
        frontier: Frontier,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        startprios: Any = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
    ) -> None:
        super().__init__()
        self.frontier = frontier
        frontier.queues.append(self)
        self.key = key
        """The directory of its files; empty for requests in memory."""
        self.names: set[str] = set()
        """The names of the directories in use."""
        self._crawler = crawler
        self._classes: tuple[Any, Any] = downstream_queue_cls, start_queue_cls
        self._queues: dict[Address, OriginQueue] = {}
        self._opened: dict[OriginQueue, None] = {}
        """Those with open files. The least recently opened come first."""
        self._size = 0
        if startprios:
            self._read_state(startprios)

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be stored."""
        self._push(self.frontier.accept(request), request)

    def _push(self, address: Address, request: Request) -> None:
        queue = self._queues.get(address)
        if queue is None:
            queue = OriginQueue(self, address, self._new_name(address))
        try:
            queue.push(request)
        finally:
            if not queue.size:
                self.remove(queue)
        self._size += 1
        if queue.size == 1:
            self._queues[address] = queue
        if queue.size == 1 or self.by_priority:
            self.frontier.update(queue)

    def pop(self) -> Request | None:
        """Remove a request that may start, and return it; None if there is none at this time."""
        queue = self.frontier.next_queue(self)
        if queue is None:
            return None
        size = queue.size
        request = queue.pop()
        self._size += queue.size - size
        if request is not None:
            # An earlier crawl may have stored it by its slot, or without slots.
            address = self.frontier.policies.address(request) if self.key else queue.address
            if address == queue.address:
                self.frontier.start(queue, request)
                return request
            self._push(address, request)
        ranked = self.ranked[queue.place]
        ranked.remove(queue)
        ranked.add(queue)  # the next turn is that of another queue
        self.frontier.update(queue)
        self.frontier.engine.wake()
        return None

    def peek(self) -> Request | None:
        """Return the request that :meth:`pop` would return, without removing it."""
        queue = self.frontier.next_queue(self)
        return queue.peek() if queue is not None else None

    def __len__(self) -> int:
        return self._size

    def close(self) -> dict[str, list[int]]:
        """Close all files. Return the state, which the next crawl gets back."""
        self.frontier.queues.remove(self)
        for queue in tuple(self._opened):
            self.close_files(queue)
        return state_of({queue.name: queue.buckets for queue in self._queues.values()})

    def remove(self, queue: OriginQueue) -> None:
        """Forget a queue without requests, and remove its directory."""
        self._queues.pop(queue.address, None)
        self.names.discard(queue.name)
        self.close_files(queue)
        if queue.name:
            with suppress(OSError):
                Path(self.key, directory_of(queue.name)).rmdir()

    def bucket(self, request: Request) -> Bucket:
        """Return which of Scrapy's queues has a request."""
        is_start = request.meta.get("is_start_request") and self._classes[True] is not None
        return Bucket(-request.priority, bool(is_start))

    def open(self, queue: OriginQueue, bucket: Bucket) -> Any:
        """Open the files of a bucket. Close those that were opened before all others."""
        self._opened[queue] = None
        if self.key and len(self._opened) > MAX_OPEN:
            self.close_files(next(iter(self._opened)))
        return self._make(queue.name, bucket)

    def _make(self, name: str, bucket: Bucket) -> Any:
        key = f"{self.key}/{directory_of(name)}" if name else self.key  # ScrapyPriorityQueue's
        queue_class = self._classes[bucket.is_start]
        return build_from_crawler(queue_class, self._crawler, f"{key}/{bucket}")

    def close_files(self, queue: OriginQueue) -> None:
        """Close the files of a queue, if they are open."""
        self._opened.pop(queue, None)
        for bucket, opened in queue.buckets.items():
            if opened is not None:
                opened.close()
                queue.buckets[bucket] = None

    def _new_name(self, address: Address) -> str:
        """Return the name for the directory of a queue: that of its host if it is free."""
        if not self.key:
            return ""
        host = address.slot or address.host
        names = chain([host], (f"{host} {number}" for number in count(2)))
        name = next(each for each in names if each not in self.names)
        self.names.add(name)
        return name

    def _read_state(self, state: Any) -> None:
        """Read the state of this class, or of one of Scrapy's two priority queues."""
        for name, buckets in buckets_in(state).items():
            sizes, first = {}, None
            for bucket in sorted(each for each in buckets if self._classes[each.is_start]):
                requests = self._make(name, bucket)
                if requests:
                    sizes[bucket] = len(requests)
                    first = first or _peek(requests)
                requests.close()
            if not sizes:
                continue
            self.names.add(name)
            address = self.frontier.policies.address(first) if name and first is not None else None
            if address is None or address in self._queues:
                # A queue that is always ready: pop() moves its requests.
                address = Address("", None, Kind.EXEMPT, name)
            queue = self._queues[address] = OriginQueue(self, address, name)
            queue.buckets.update(dict.fromkeys(sizes))
            queue.size = sum(sizes.values())
            self._size += queue.size
            self.frontier.update(queue)


class PriorityFirstQueue(OriginPriorityQueue):
    """Gives requests of a higher priority first, whatever their host: as ScrapyPriorityQueue."""

    by_priority = True
    is_capped = False


def _peek(requests: Any) -> Request | None:
    """Return the next request of one of Scrapy's queues; None if the queue does not tell it."""
    with suppress(AttributeError, NotImplementedError):
        return requests.peek()  # type: ignore[no-any-return]
    return None
