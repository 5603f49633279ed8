"""The priority queue of Scrapy's scheduler: one queue of requests for each origin.

:class:`OriginPriorityQueue` is a class for SCHEDULER_PRIORITY_QUEUE, beside Scrapy's
DownloaderAwarePriorityQueue. It keeps the requests of each origin in queues of Scrapy's own, in
memory or in the files of JOBDIR. The :class:`~.frontier.Frontier` of the crawl says which of these
queues gives the next request.

The files and the state are those of Scrapy's queue: a crawl that was stopped with one of the two
classes continues with the other. The first origin of a host has the directory that Scrapy gives to
the host; further origins have one each. Beside them is an index, so that a crawl with many origins
continues at once. Without an index that fits, the queues are read while the crawl goes on.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain, count
from pathlib import Path
from typing import Any

from queuelib import LifoDiskQueue
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol, ScrapyPriorityQueue
from scrapy.utils.misc import build_from_crawler

from ..logs import spider_logger
from ..policies.gate import Address, Kind
from ..scrapy_internals import Bucket, directory_of, state_of, stored_buckets
from .frontier import Frontier
from .hosts import Queue, Queues
from .queued import find_frontier
from .repair import repair

MAX_OPEN = 200
"""How many of Scrapy's queues have open files, each one or two."""

OTHER_FILES = 100
"""The files that a process needs besides those of its queues and its connections."""

INDEX = "scrapy_rep.pickle"
"""The file in JOBDIR with the address and the sizes of each queue."""

SAVE_INTERVAL = 1.0
"""Seconds, at least, between two times at which changes are written to the disk."""

READ_SECONDS = 0.02
"""Seconds for which queues on a disk are read before other work has its turn."""

MAX_NAME = 150
"""Bytes. A file system may have 255 for the name of a directory, which also has a hash."""


Stored = tuple[Address | None, dict[Bucket, int]]
"""The address of a stored queue, if it is known, and the sizes of its buckets."""


class OriginQueue(Queue):
    """The requests of one address. A single one in memory needs no queue of Scrapy's."""

    __slots__ = ("_first", "buckets", "name")

    owner: OriginPriorityQueue

    def __init__(self, owner: OriginPriorityQueue, address: Address, name: str) -> None:
        super().__init__(owner, address, *owner.frontier.hosts.of(address))
        self.name = name
        """The name of its directory; empty for requests in memory."""
        self.buckets: dict[Bucket, int] = {}
        """How many requests each of Scrapy's queues has."""
        self._first: Request | None = None

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be stored on disk."""
        if not (self.size or self.owner.key):
            self._first = request
        else:
            requests, self._first = (self._first, request), None
            for each in filter(None, requests):
                self._store(each, self.owner.bucket(each))
        self.size += 1

    def _store(self, request: Request, bucket: Bucket) -> None:
        try:
            self.owner.open(self, bucket).push(request)
            self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        except OSError as error:  # no room on the disk: Scrapy keeps it in memory
            raise ValueError(f"it cannot be stored: {error}") from error
        finally:
            if bucket not in self.buckets:
                self.owner.close_bucket(self, bucket)

    def pop(self) -> Request | None:
        request, self._first = self._first, None
        if request is None and self.buckets:
            request = self.pop_stored(min(self.buckets))
        self.size = sum(self.buckets.values())
        return request

    def pop_stored(self, bucket: Bucket) -> Request | None:
        """Remove the next request of a bucket. One that cannot be read is skipped."""
        left, request = 0, None
        try:
            queue = self.owner.open(self, bucket)
            left = len(queue) - 1
            request = queue.pop()
            left = left if request is not None else 0
        except Exception as error:  # the file is damaged, or the callback has another name now
            self.owner.log_unreadable(self.name, bucket, error)
        if left > 0:
            self.buckets[bucket] = left
        else:
            del self.buckets[bucket]
            self.owner.close_bucket(self, bucket)
        return request

    def peek(self) -> Request | None:
        request = self._first
        if request is None and self.buckets:
            bucket = min(self.buckets)
            request = _peek(self.owner.open(self, bucket))
            if self.name:  # in queuelib, the next push to a LIFO file would overwrite this request
                self.owner.close_bucket(self, bucket)
        return request

    @property
    def priority(self) -> int:
        if self._first is not None:
            return -self._first.priority
        return min(self.buckets).priority if self.buckets else 0


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
        self._crawler = crawler
        self._logger = spider_logger(__name__, crawler.spider)
        self._classes: tuple[Any, Any] = downstream_queue_cls, start_queue_cls
        self._queues: dict[Address, OriginQueue] = {}
        self.opened: OrderedDict[tuple[OriginQueue, Bucket], Any] = OrderedDict()
        """Those of Scrapy's queues that are open. The least recently used come first."""
        settings = frontier.settings
        connections = settings.concurrent_requests + settings.concurrent_robotstxt_requests
        free = _open_files_limit() - OTHER_FILES - connections
        self._most_open = max(min(MAX_OPEN, free // 2), 4)
        self._has_changed = False
        """Whether one on a disk was used since :meth:`save` was called, which closes all."""
        self._state: dict[str, list[int]] = {}
        self._next_save = 0.0
        self._size = 0
        self._unread: dict[str, Stored] = {}
        """What is known of the queues on the disk that are not read yet, by name."""
        if key:
            self._unread = self._find_stored(startprios)
            self.names.update(self._unread)
            self._size = sum(sum(sizes.values()) for _, sizes in self._unread.values())
            self._read_some()

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

    def close(self) -> Any:
        """Close all files, and write the index. Returns the state, which the next crawl gets."""
        self.frontier.queues.remove(self)
        self._close_all()
        stored, self._unread = self._stored(), {}
        if self.key and stored:
            Path(self.key, INDEX).write_bytes(pickle.dumps(stored))
        return state_of({name: buckets for name, (_, buckets) in stored.items()})

    def save(self) -> None:
        """Bring what has changed to the disk, so that a crawl that is killed loses little of it."""
        clock = self.frontier.clock
        began = clock.monotonic()
        if not self._has_changed or began < self._next_save:  # never in memory
            return
        self._close_all()  # queuelib writes its buffers and its size
        self._has_changed = False
        state = state_of({name: buckets for name, (_, buckets) in self._stored().items()})
        if state != self._state:
            self._state, path = state, Path(self.key, "active.json")
            path.with_suffix(".new").write_text(json.dumps(state), "utf-8")
            path.with_suffix(".new").replace(path)
        self._next_save = began + max(SAVE_INTERVAL, 20 * (clock.monotonic() - began))

    def _close_all(self) -> None:
        for queue, bucket in tuple(self.opened):
            self.close_bucket(queue, bucket)

    def _stored(self) -> dict[str, Stored]:
        read = {queue.name: (queue.address, queue.buckets) for queue in self._queues.values()}
        return {**read, **self._unread}

    def remove(self, queue: OriginQueue) -> None:
        """Forget a queue without requests, and remove its directory."""
        self._queues.pop(queue.address, None)
        self._forget(queue.name)

    def _forget(self, name: str) -> None:
        self.names.discard(name)
        if name:
            with suppress(OSError):
                Path(self.key, directory_of(name)).rmdir()

    def bucket(self, request: Request) -> Bucket:
        """Return which of Scrapy's queues has a request."""
        is_start = request.meta.get("is_start_request") and self._classes[True] is not None
        return Bucket(-request.priority, bool(is_start))

    def open(self, queue: OriginQueue, bucket: Bucket) -> Any:
        """Return one of Scrapy's queues. Close the one that was not used for the longest time."""
        found = self.opened.pop((queue, bucket), None)
        if found is None:
            found = self._make(queue.name, bucket)
        self.opened[queue, bucket] = found
        if self.key:
            self._has_changed = True
            if len(self.opened) > self._most_open:
                self.close_bucket(*next(iter(self.opened)))
        return found

    def close_bucket(self, queue: OriginQueue, bucket: Bucket) -> None:
        """Close one of Scrapy's queues, if it is open. One without requests removes its files."""
        found = self.opened.pop((queue, bucket), None)
        if found is not None:
            found.close()

    def _make(self, name: str, bucket: Bucket) -> Any:
        return build_from_crawler(
            self._classes[bucket.is_start], self._crawler, str(self._path(name, bucket))
        )

    def _path(self, name: str, bucket: Bucket) -> Path:
        return Path(self.key, directory_of(name) if name else "", str(bucket))

    def log_unreadable(self, name: str, bucket: Bucket, error: Exception) -> None:
        """Log that a request, or the file with all requests of a bucket, cannot be read."""
        self._logger.error(
            "A stored request cannot be read, and is skipped (%(path)s): %(error)s",
            {"path": self._path(name, bucket), "error": error},
            exc_info=error,
        )

    def _new_name(self, address: Address) -> str:
        """Return the name for the directory of a queue: that of its host if it is free."""
        if not self.key:
            return ""
        host = str(address.slot or address.host).encode()[:MAX_NAME].decode(errors="ignore")
        names = chain([host], (f"{host} {number}" for number in count(2)))
        name = next(each for each in names if each not in self.names)
        self.names.add(name)
        return name

    # What an earlier crawl has stored.

    def _find_stored(self, state: Any) -> dict[str, Stored]:
        """Return the queues that an earlier crawl has stored, by name.

        Without an index, no address is known, and each bucket counts as one request.
        """
        buckets = stored_buckets(self.key, state)
        index = _index(Path(self.key, INDEX))
        found: dict[str, Stored] = {}
        for name, own in buckets.items():
            address, sizes = index.get(name, (None, {}))
            usable = [bucket for bucket in own if self._classes[bucket.is_start] is not None]
            if sizes.keys() != {*usable}:
                address, sizes = None, dict.fromkeys(usable, 1)
            if sizes:
                found[name] = address, sizes
        return found

    def _read_some(self) -> None:
        """Read some of the queues on the disk, and go on later if there are more."""
        clock = self.frontier.clock
        until = clock.monotonic() + READ_SECONDS
        while self._unread and clock.monotonic() < until:
            self._read_next()
        if self._unread:
            clock.call_later(0, self._read_some)

    def _read_next(self) -> None:
        """Add the next queue of an earlier crawl."""
        name = next(iter(self._unread))
        address, sizes = self._unread.pop(name)
        if address is None:
            self._size -= sum(sizes.values())
            address, sizes = self._look_into(name, sizes)
            self._size += sum(sizes.values())
        if not sizes:
            self._forget(name)
            return
        if address is None or address in self._queues:
            # A queue that is always ready: pop() moves its requests.
            address = Address("", None, Kind.EXEMPT, name)
        queue = self._queues[address] = OriginQueue(self, address, name)
        queue.buckets, queue.size = sizes, sum(sizes.values())
        self.frontier.update(queue)

    def _look_into(self, name: str, buckets: Iterable[Bucket]) -> Stored:
        sizes, first = {}, None
        for bucket in sorted(buckets):
            try:
                repair(self._classes[bucket.is_start], self._path(name, bucket))
                requests = self._make(name, bucket)
                if requests:
                    sizes[bucket] = len(requests)
                    first = first or _peek(requests)
                requests.close()
            except Exception as error:  # it is damaged
                self.log_unreadable(name, bucket, error)
        address = None
        if name and first is not None:
            address = self.frontier.policies.address(first)
        return address, sizes


class PriorityFirstQueue(OriginPriorityQueue):
    """Gives requests of a higher priority first, whatever their host: as ScrapyPriorityQueue.

    When it closes, it brings all stored requests to where that class expects them.
    """

    by_priority = True
    is_capped = False

    def close(self) -> Any:
        together = OriginQueue(self, Address("", None, Kind.EXEMPT, ""), "")
        if self.key:
            while self._unread:
                self._read_next()
            together = self._queues.pop(together.address, together)
            for queue in tuple(self._queues.values()):
                for bucket in tuple(queue.buckets):
                    self._bring(queue, bucket, together)
                self.remove(queue)
            self._queues = {together.address: together} if together.size else {}
        return super().close().get("", [])

    def _bring(self, queue: OriginQueue, bucket: Bucket, together: OriginQueue) -> None:
        """Bring the requests of a bucket to another queue, in their order."""
        requests = []
        while bucket in queue.buckets:
            requests.append(queue.pop_stored(bucket))
        if issubclass(self._classes[bucket.is_start], LifoDiskQueue):
            requests.reverse()
        for request in filter(None, requests):
            together.push(request)


def _peek(requests: Any) -> Request | None:
    """Return the next request of one of Scrapy's queues; None if the queue does not tell it."""
    with suppress(Exception):  # some do not have it, and some requests cannot be read
        return requests.peek()  # type: ignore[no-any-return]
    return None


def _index(path: Path) -> dict[str, Stored]:
    """Return what an index says, which is removed; nothing if it cannot be read."""
    try:
        found = pickle.loads(path.read_bytes())  # as the requests beside it
        path.unlink()
        return {name: (address, {**sizes}) for name, (address, sizes) in found.items()}
    except Exception:  # there is none, it is damaged, or of another version
        return {}


def _open_files_limit() -> int:
    with suppress(ImportError):  # on Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return limit if limit != resource.RLIM_INFINITY else sys.maxsize
    return 512
