"""The requests that wait in the downloader."""

from __future__ import annotations

from math import inf

from scrapy import Request
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..clock import fire
from ..policies.gate import Address, Kind, Place
from .frontier import Frontier
from .hosts import SLOT_WAITS, Queue, Queues


class WaitingQueue(Queue):
    """Requests of one address that wait in the downloader."""

    __slots__ = ("order", "requests")

    def __init__(self, owner: Waiting, address: Address) -> None:
        super().__init__(owner, address, *owner.frontier.hosts.of(address))
        self.order = 0 if address.kind is Kind.ROBOTS_TXT else 1
        self.requests: dict[Request, None] = {}

    def peek(self) -> Request:
        return next(iter(self.requests))

    def pop(self, request: Request | None = None) -> Request:
        """Remove a request, by default the next one, and return it."""
        request = request or self.peek()
        del self.requests[request]
        self.size -= 1
        return request


class Waiting(Queues):
    """The requests that wait in the downloader. They did not come from a queue of the scheduler, or
    what is known of their site has changed since. Each starts as soon as it may.
    """

    is_capped = False
    is_scheduled = False

    def __init__(self, frontier: Frontier) -> None:
        super().__init__()
        self.frontier = frontier
        self._waiters = frontier.waiters
        self._queues: dict[Address, WaitingQueue] = {}
        self._moved: list[WaitingQueue] = []
        """The queues that :meth:`serve` has to look at."""

    async def wait(self, request: Request) -> bool:
        """Wait until a request may start, which then has started.

        Meanwhile it does not occupy a CONCURRENT_REQUESTS slot. Returns False if the spider closes,
        and no caller waits for the request: see :meth:`.Closing.may_wait`.
        """
        frontier, waiter = self.frontier, Deferred[bool]()
        address, started = frontier.policies.address(request), frontier.in_progress.get(request)
        if started is not None and started.host is frontier.dropped:
            address = address._replace(kind=Kind.EXEMPT)  # allowed by a subclass or a new policy
        frontier.end(request, sent=False)
        if not frontier.closing.may_wait(request):
            return False
        queue = self._queues.get(address)
        if queue is None:
            queue = self._queues[address] = WaitingQueue(self, address)
        self._waiters[request] = waiter
        is_excluded = frontier.engine.exclude(request)
        try:
            queue.requests[request] = None
            queue.size += 1
            if queue.size == 1:
                frontier.update(queue)
            return await maybe_deferred_to_future(waiter)
        except BaseException:  # it was canceled
            frontier.end(request, sent=False)
            raise
        finally:
            left = self._waiters.pop(request, None)
            if left is not None:
                queue.pop(request)
                frontier.update(queue)
            if is_excluded:
                frontier.engine.include(request)

    def serve(self, queue: WaitingQueue) -> None:
        """Start the requests of a queue if they may, or begin the fetch that it needs.

        A request that starts or ends may move other queues: the outermost call serves these, too.
        """
        self._moved.append(queue)
        if len(self._moved) > 1:
            return
        try:
            for each in self._moved:
                if each.place is Place.UNKNOWN:
                    self.frontier.fetch(each)
                while each.place is Place.READY or each.place is Place.DROPS:
                    self._start_next(each)
        finally:
            self._moved.clear()

    def _start_next(self, queue: WaitingQueue) -> None:
        request = queue.pop()
        waiter = self._waiters.pop(request)
        may_start = self.frontier.closing.may_wait(request)
        if may_start:
            self.frontier.start(queue, request)
        else:
            self.frontier.update(queue)
        fire(waiter, may_start)

    def start_beside_kept(self) -> None:
        """Start a request for each slot whose requests in progress are kept by other middlewares.

        They may wait for this very request, such as one that signs in before a page is requested.
        """
        for queue in tuple(self._queues.values()):
            gate, slot = self.frontier.gate(queue), queue.slot
            is_full = gate.wait in SLOT_WAITS and gate.seconds == inf and not queue.host.is_paced
            if is_full and self.frontier.engine.active_in(slot.name) < slot.limit:
                self._start_next(queue)

    def remove(self, queue: Queue) -> None:
        del self._queues[queue.address]

    def __len__(self) -> int:
        return len(self._waiters)
