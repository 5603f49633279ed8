"""The priority queue of Scrapy's scheduler: one queue of requests for each origin.

:class:`OriginPriorityQueue` is a class for SCHEDULER_PRIORITY_QUEUE, beside Scrapy's
DownloaderAwarePriorityQueue. It keeps the requests of each origin in a queue of Scrapy's own, in
memory or in the files of JOBDIR. The :class:`~.frontier.Frontier` of the crawl says which of these
queues gives the next request.

The files and the state are those of DownloaderAwarePriorityQueue: a crawl that was stopped with one
of the two classes continues with the other. The first origin of a host has the directory that
Scrapy gives to the host; further origins have one each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import md5
from itertools import islice
from os import SEEK_END
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.pqueues import DownloaderAwarePriorityQueue, QueueProtocol, ScrapyPriorityQueue
from scrapy.utils.misc import build_from_crawler

from .engine import start_queues
from .frontier import Address, Frontier, Queue, Queues, find_frontier

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_OPEN = 200
"""How many queues on disk have open files. Each of them has one or a few, and a process may often
have no more than 1,024."""

MAX_MOVED = 100
"""How many requests that an earlier crawl stored by slot, or without slots, are moved to the queues
of their origins at each :meth:`OriginPriorityQueue.pop`."""


class OriginQueue(Queue):
    """The requests of one address. A single one in memory needs no queue of Scrapy's."""

    __slots__ = ("_first", "_name", "_prios", "_requests")

    owner: OriginPriorityQueue

    def __init__(
        self,
        owner: OriginPriorityQueue,
        address: Address,
        name: str = "",
        requests: ScrapyPriorityQueue | None = None,
    ) -> None:
        super().__init__(owner, address)
        self.size = len(requests) if requests is not None else 0
        self._first: Request | None = None
        self._requests, self._name = requests, name
        """What an earlier crawl stored, and its directory."""
        self._prios: Iterable[int] = ()
        """The priorities of the requests whose files are closed."""

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be stored on disk."""
        if not self.owner.key and self._requests is None:
            if self._first is None:
                self._first = request
                self.size = 1
                return
            self._requests = self.owner.make("")
            self._requests.push(self._first)
            self._first = None
        try:
            self._open().push(request)
        except Exception:
            if not self.size:
                self._close_empty()
            raise
        self.size += 1

    def pop(self) -> Request | None:
        first, self._first = self._first, None
        if first is not None:
            self.size = 0
            return first
        request = self._open().pop()
        self.size = self.size - 1 if request is not None else 0
        if not self.size:
            self._close_empty()
        return request

    def peek(self) -> Request | None:
        if self._first is not None or not self.size:
            return self._first
        return _peek(self._open())

    @property
    def priority(self) -> int:
        if self._first is not None:
            return -self._first.priority
        queues = self._open()
        return min((*queues.queues, *start_queues(queues)), default=0)

    def close(self) -> tuple[str, list[int]]:
        """Close the files. Return the name of the directory, and the priorities in it."""
        if self._requests is not None:
            self._prios, self._requests = self._requests.close(), None
        return self._name, list(self._prios)

    def _open(self) -> ScrapyPriorityQueue:
        if self._requests is None:
            if self.owner.key and not self._name:
                self._name = self.owner.new_name(self)
            self._requests = self.owner.make(self._name, self._prios)
        if self.owner.key:
            self.owner.count_open(self)
        return self._requests

    def _close_empty(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests, self._prios = None, ()
        if self._name:
            self.owner.remove_name(self, self._name)
            self._name = ""


class OriginPriorityQueue(Queues):
    """A class for SCHEDULER_PRIORITY_QUEUE that gives the requests which may start.

    The requests of the hosts with the fewest requests in progress come first, and hosts take turns.
    In a crawl that does not obey robots.txt, Scrapy's DownloaderAwarePriorityQueue is used.
    """

    @classmethod
    def from_crawler(
        cls,
        crawler: Crawler,
        downstream_queue_cls: type[QueueProtocol],
        key: str,
        startprios: Any = None,
        *,
        start_queue_cls: type[QueueProtocol] | None = None,
    ) -> Self:
        """Called by Scrapy."""
        frontier = find_frontier(crawler)
        if frontier is None:
            scrapys: Any = ScrapyPriorityQueue if cls.by_priority else DownloaderAwarePriorityQueue
            return scrapys.from_crawler(  # type: ignore[no-any-return]
                crawler, downstream_queue_cls, key, startprios, start_queue_cls=start_queue_cls
            )
        return cls(crawler, frontier, key, (downstream_queue_cls, start_queue_cls), startprios)

    def __init__(
        self, crawler: Crawler, frontier: Frontier, key: str, classes: tuple[Any, Any], state: Any
    ) -> None:
        super().__init__(frontier)
        self.key = key
        """The directory of its files; empty for requests in memory."""
        self.names: set[str] = set()
        """The names of the directories in use."""
        self._crawler = crawler
        self._classes = classes
        self._queues: dict[Address, OriginQueue] = {}
        self._opened: OrderedDict[OriginQueue, None] = OrderedDict()
        self._size = 0
        self._unsorted: list[tuple[str, ScrapyPriorityQueue]] = []
        """What an earlier crawl stored in another order, by the name of the directory."""
        self._is_sorted = not state
        """Whether no queue has requests of another origin, as a crawl with Scrapy's queue leaves
        them."""
        if state:
            self._read_state(state)

    def push_to(self, address: Address, request: Request) -> None:
        """Add a request with this address."""
        queue = self._queues.get(address)
        if queue is None:
            queue = OriginQueue(self, address)
            queue.push(request)
            self._queues[address] = queue
            self.frontier.added(queue)
        else:
            queue.push(request)
            if self.by_priority:
                self.frontier.update(queue)
        self._size += 1

    def pop(self) -> Request | None:
        """Remove a request that may start, and return it; None if there is none at this time."""
        if self._unsorted:
            self._sort()
        for _ in range(MAX_MOVED):
            queue = self.frontier.next_queue(self)
            if queue is None:
                return None
            request = queue.pop()
            if request is None:
                self._size = sum(each.size for each in self._queues.values())
                self.frontier.update(queue)
                continue
            self._size -= 1
            if not self._is_sorted:
                address = self.frontier.policies.address(request)
                if address != queue.address:
                    self.push_to(address, request)
                    self.frontier.update(queue)
                    continue
            self.frontier.start(queue, request)
            return request
        self.frontier.engine.wake()
        return None

    def peek(self) -> Request | None:
        """Return the request that :meth:`pop` would return, without removing it."""
        queue = self.frontier.next_queue(self)
        return queue.peek() if queue is not None else None

    def __len__(self) -> int:
        return self._size + sum(len(requests) for _, requests in self._unsorted)

    def close(self) -> dict[str, list[int]]:
        """Close all files. Return the state, which the next crawl gets back."""
        self.frontier.queues.remove(self)
        state = dict(queue.close() for queue in tuple(self._queues.values()))
        for name, requests in self._unsorted:
            state[name] = requests.close()
        return state

    def remove(self, queue: OriginQueue) -> None:
        """Forget a queue without requests."""
        if self._queues.get(queue.address) is queue:
            del self._queues[queue.address]
        self._opened.pop(queue, None)

    # Files.

    def make(self, name: str, startprios: Iterable[int] = ()) -> ScrapyPriorityQueue:
        """Return Scrapy's queue of a directory. ScrapyPriorityQueue has one without a name."""
        downstream, start = self._classes
        key = f"{self.key}/{_directory(name)}" if name else self.key
        requests = ScrapyPriorityQueue(self._crawler, downstream, key, start_queue_cls=start)
        # Not Scrapy's init_prios(), which leaves the files of empty queues open before 2.15.
        for priority in startprios:
            opened = [(requests.queues, requests.qfactory(priority))]
            if start is not None:
                queue = build_from_crawler(start, self._crawler, f"{key}/{priority}s")
                opened.append((start_queues(requests), queue))
            for queues, queue in opened:
                if queue:
                    queues[priority] = queue
                else:
                    queue.close()
        requests.curprio = min((*requests.queues, *start_queues(requests)), default=None)
        return requests

    def count_open(self, queue: OriginQueue) -> None:
        """Note that the files of a queue are in use. Close those that were not used lately."""
        self._opened[queue] = None
        self._opened.move_to_end(queue)
        while len(self._opened) > MAX_OPEN:
            self._opened.popitem(last=False)[0].close()

    def new_name(self, queue: OriginQueue) -> str:
        """Return the name for the directory of a queue: that of its host if it is free."""
        host, origin, kind, slot = queue.address
        name = slot or host
        if name in self.names:
            name = " ".join(part for part in (origin or host, kind, slot) if part)
        self.names.add(name)
        return name

    def remove_name(self, queue: OriginQueue, name: str) -> None:
        """Remove the directory of a queue that has no requests left."""
        self._opened.pop(queue, None)
        self.names.discard(name)
        with suppress(OSError):
            Path(self.key, _directory(name)).rmdir()

    # What an earlier crawl has stored.

    def _read_state(self, state: Any) -> None:
        """Read the state of this class, or of one of Scrapy's two priority queues."""
        if not isinstance(state, Mapping):  # of ScrapyPriorityQueue, which has one directory
            state = {"": state}
        for name, prios in state.items():
            requests = self.make(name, prios)
            if not len(requests):
                continue
            self.names.add(name)
            first = _peek(requests) if name else None
            address = self.frontier.policies.address(first) if first is not None else None
            if address is None or address in self._queues:
                self._unsorted.append((name, requests))
                continue
            queue = self._queues[address] = OriginQueue(self, address, name, requests)
            self.count_open(queue)
            self._size += queue.size
            self.frontier.added(queue)

    def _sort(self) -> None:
        """Move some requests to the queues of their origins."""
        name, requests = self._unsorted[-1]
        for request in islice(iter(requests.pop, None), MAX_MOVED):
            self.push_to(self.frontier.policies.address(request), request)
        if not len(requests):
            self._unsorted.pop()
            requests.close()
            self.names.discard(name)
        self.frontier.engine.wake()


class PriorityFirstQueue(OriginPriorityQueue):
    """Gives requests of a higher priority first, whatever their host: as ScrapyPriorityQueue."""

    by_priority = True


def _peek(queues: ScrapyPriorityQueue) -> Request | None:
    """Return the next request of a queue.

    This is not ``queues.peek()``, which may raise KeyError if there are start requests.
    """
    starts = start_queues(queues)
    for priority in sorted({*queues.queues, *starts}):
        queue = queues.queues.get(priority) or starts.get(priority)
        if queue:
            try:
                request: Request | None = cast("Any", queue).peek()
            except (AttributeError, NotImplementedError):
                return None
            # In queuelib, the next push to a LIFO file would overwrite the end of this request.
            file = getattr(queue, "f", None)
            if file is not None:
                file.seek(0, SEEK_END)
            return request
    return None


def _directory(name: str) -> str:
    """Return the name of a directory, as Scrapy's DownloaderAwarePriorityQueue has it."""
    safe = "".join(each if each.isalnum() or each in "-._" else "_" for each in name)
    return f"{safe}-{md5(name.encode(), usedforsecurity=False).hexdigest()}"
