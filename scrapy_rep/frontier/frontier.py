"""When the requests of a crawl may start: the place of each queue, and the pace of each host.

Each queue of :mod:`.queue` is in one place at a time (:class:`Place`). It moves when something
happens: a robots.txt arrives, a request ends, or a time comes. So :meth:`Frontier.next_queue` takes
the first queue that is ready, and searches nothing.

The place is never stored without its reason: :meth:`Frontier.update` asks the gate (:mod:`.gate`),
which computes it from what is known of the origin and of the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..clock import Clock, fire
from ..logs import get_logger
from ..policies.gate import EMPTY, READY, WAITING, Address, Gate, Kind, Place, pace_gate
from ..scrapy_internals import Engine
from ..settings import IS_ROBOTSTXT_REQUEST, ROBOTSTXT, Settings
from .hosts import FIRST_BACKOFF, Host
from .reservation import Reservations

if TYPE_CHECKING:
    from ..policies.policies import PolicyCache
    from ..reports.event_log import CrawlLog

logger = get_logger(__name__)

Rank = tuple[int, ...]
InTurn = OrderedDict["Queue", None]

LOOK_AHEAD = 4
"""If fewer queues than CONCURRENT_REQUESTS are ready, fetches begin until this multiple of it is
ready or waits for a fetch that has just begun. So robots.txt files are fetched for pages that are
requested soon, and the crawl does not wait for them."""

PAGES_IN_BETWEEN = 16
"""While enough queues are ready, one fetch begins after so many pages, so that new sites get their
turn, and one request starts that will be dropped."""

MAX_IDLE_HOSTS = 10_000
"""After so many new hosts, the idle ones are removed, each with about 1 KB. The delay of such a
host applies again from its next request on, because the policy of its origin has it."""

SLOW_DOWN = frozenset({429, 503})
"""The statuses of pages that ask for fewer requests (PROTOCOL §4)."""

MIN_WAIT = 0.01
"""Seconds. A shorter wait is not counted: it is only a turn of the event loop."""


class InProgress(NamedTuple):
    """A request that has started and has not ended."""

    host: Host
    slot: Host
    """The host or download slot whose concurrency applies to it."""
    origin: str | None
    is_from_queue: bool
    """Whether Scrapy's scheduler gave it, from a queue of this package."""
    backoffs: int
    """The ``backoffs`` of the host when the request started."""


class Ranked:
    """Queues by rank. The lowest rank comes first, and queues of one rank take turns.

    So do those of paced hosts and all others: a host that is due does not wait for many live ones.
    """

    def __init__(self) -> None:
        self._ranks: dict[Rank, tuple[InTurn, InTurn]] = {}
        """For each rank, the queues of other hosts and those of paced ones."""
        self._heap: list[Rank] = []
        self._is_turn_of_paced = False
        self.size = 0
        """How many queues there are."""

    def add(self, queue: Queue) -> None:
        """Add a queue behind the others of its rank."""
        *rank, is_paced = queue.rank
        key = tuple(rank)
        queues = self._ranks.get(key)
        if queues is None:
            queues = self._ranks[key] = OrderedDict(), OrderedDict()
            heappush(self._heap, key)
        queues[is_paced][queue] = None
        self.size += 1

    def remove(self, queue: Queue) -> None:
        """Remove a queue."""
        *rank, is_paced = queue.rank
        del self._ranks[tuple(rank)][is_paced][queue]
        self._is_turn_of_paced = not is_paced
        self.size -= 1

    def first(self) -> Queue:
        """Return the queue whose turn it is. There must be one."""
        while not any(queues := self._ranks[self._heap[0]]):
            del self._ranks[heappop(self._heap)]
        return next(iter(queues[self._is_turn_of_paced] or queues[not self._is_turn_of_paced]))

    def __iter__(self) -> Iterator[Queue]:
        return chain.from_iterable(chain.from_iterable(self._ranks.values()))


class Queue(ABC):
    """The requests of one address. Where they are stored is up to a subclass."""

    __slots__ = (
        "address", "group", "host", "keeper", "owner", "place", "rank", "since", "size", "slot"
    )  # fmt: skip

    order = 2
    """Of the queues of a host that becomes free, those with the lowest number come first."""

    def __init__(self, owner: Queues, address: Address) -> None:
        self.owner = owner
        self.address = address
        self.host, self.slot = owner.frontier.hosts_of(address)
        """The host whose pace the requests keep, and the host or slot whose concurrency applies."""
        self.place = Place.EMPTY
        self.rank: Rank = ()
        self.keeper = self.host
        self.group: dict[Queue, None] | None = None
        """Where a host or slot, which is the keeper, has it; None if nothing there can move it."""
        self.since = 0.0
        """When the queue came to its place, on the monotonic clock."""
        self.size = 0

    @property
    def priority(self) -> int:
        """The priority of the next request. As in Scrapy's queues, lower numbers come first."""
        return 0

    @abstractmethod
    def peek(self) -> Request | None:
        """Return the next request; None if it cannot be looked at."""

    @abstractmethod
    def pop(self) -> Request | None:
        """Remove the next request, and return it; None if it cannot be read."""


class Queues(ABC):
    """All queues of one kind: in memory, on a disk, or in Redis."""

    by_priority = False
    """Whether a request of a higher priority comes first, whatever its host is."""
    is_capped = True
    """Whether no more queues of a host are ready than may start, and the others wait in turn."""

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.ranked = {place: Ranked() for place in (Place.READY, Place.UNKNOWN, Place.DROPS)}
        """The places in which queues take turns."""
        self.ready, self.unknown, self.drops = self.ranked.values()
        frontier.queues.append(self)

    def push(self, request: Request) -> None:
        """Add a request. Raises ValueError if it cannot be stored."""
        if self.frontier.returned:
            request.dont_filter = self.frontier.returned.get(request, request.dont_filter)
        address = self.frontier.policies.address(request)
        if self.frontier.has_ended_requests:
            self.frontier.note_replacement(request, address.host)
        self.push_to(address, request)

    @abstractmethod
    def push_to(self, address: Address, request: Request) -> None:
        """Add a request with this address."""

    @abstractmethod
    def remove(self, queue: Any) -> None:
        """Forget a queue without requests."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests."""


class WaitingQueue(Queue):
    """Requests of one address that wait in the downloader."""

    __slots__ = ("order", "requests")

    def __init__(self, owner: Waiting, address: Address) -> None:
        super().__init__(owner, address)
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

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self.ranked = {}  # these queues take no turns
        self.queues: dict[Address, WaitingQueue] = {}
        self.waiters: dict[Request, Deferred[bool]] = {}
        """What the requests await."""
        self._moved: list[WaitingQueue] = []
        """The queues that :meth:`serve` has to look at."""

    async def wait(self, request: Request) -> bool:
        """Wait until a request may start, which then has started.

        Meanwhile it does not occupy a CONCURRENT_REQUESTS slot. Returns False if the spider closes,
        and no caller waits for the request: see :meth:`Frontier.may_wait`.
        """
        address, waiter = self.frontier.policies.address(request), Deferred[bool]()
        found = self.frontier.in_progress.get(request)
        if found is not None and found.host is self.frontier.dropped:
            address = address._replace(kind=Kind.EXEMPT)  # allowed by a subclass or a new policy
        self.frontier.finish(request, sent=False)
        if not self.frontier.may_wait(request):
            return False
        self.waiters[request] = waiter
        is_excluded = self.frontier.engine.exclude(request)
        try:
            self.push_to(address, request)
            return await maybe_deferred_to_future(waiter)
        except BaseException:  # it was canceled
            self.frontier.finish(request, sent=False)
            raise
        finally:
            if self.waiters.pop(request, None) is not None:
                queue = self.queues[address]
                queue.pop(request)
                self.frontier.update(queue)
            if is_excluded:
                self.frontier.engine.include(request)

    def push_to(self, address: Address, request: Request) -> None:
        """Add a request with this address."""
        queue = self.queues.get(address)
        if queue is None:
            queue = self.queues[address] = WaitingQueue(self, address)
        queue.requests[request] = None
        queue.size += 1
        if queue.size == 1:
            self.frontier.update(queue)

    def serve(self, queue: Any) -> None:
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
        waiter = self.waiters.pop(request)
        may_start = self.frontier.may_wait(request)
        if may_start:
            self.frontier.start(queue, request)
        else:
            self.frontier.update(queue)
        fire(waiter, may_start)

    def start_beside_kept(self) -> None:
        """Start a request for each slot whose requests in progress are kept by other middlewares.

        They may wait for this very request, such as one that signs in before a page is requested.
        """
        for queue in tuple(self.queues.values()):
            gate, slot = self.frontier.gate(queue), queue.slot
            is_full = gate.blocker is slot and gate.seconds == inf and not queue.host.is_paced
            if is_full and self.frontier.engine.active_in(slot.name.lstrip()) < slot.limit:
                self._start_next(queue)

    def remove(self, queue: Queue) -> None:
        """Forget a queue without requests."""
        del self.queues[queue.address]

    def __len__(self) -> int:
        return len(self.waiters)


class FrontierOwner:
    """The downloader middleware of a crawl, from which the scheduler's queues get the frontier."""

    frontier: Frontier


class Queued(NamedTuple):
    """How many requests are in the queue of a crawl."""

    all: int
    ready: int
    """Those that may start now, as far as their sites are concerned."""
    waiting: int
    """Those that wait for their robots.txt or for their host."""


def find_frontier(crawler: Crawler) -> Frontier | None:
    """Return the frontier of a crawl; None if the crawl does not obey robots.txt."""
    owner = crawler.get_downloader_middleware(FrontierOwner)
    return owner.frontier if owner is not None else None


def queued(crawler: Crawler) -> Queued:
    """Return how many requests are in the queue of a crawl.

    Requests in progress are not in the queue. Raises RuntimeError if the crawl does not use the
    queue of scrapy-rep, for example because ROBOTSTXT_OBEY is off.
    """
    frontier = find_frontier(crawler)
    if frontier is None or not frontier.queues:
        raise RuntimeError("the scheduler of this crawl does not use the queue of scrapy-rep")
    places = (ranked for each in frontier.queues for ranked in (each.ready, each.drops))
    ready = sum(queue.size for ranked in places for queue in ranked)
    size = frontier.queue_size
    return Queued(size, ready, size - ready)


async def until_queued_below(crawler: Crawler, n: int) -> None:
    """Return when fewer than ``n`` requests are in the queue of a crawl.

    This is for a ``start()`` that reads many requests from elsewhere, so that they do not all wait
    in memory:

        for url in urls:
            await scrapy_rep.until_queued_below(self.crawler, 1000)
            yield Request(url)

    If the crawl does not use the queue of scrapy-rep, this waits until the downloader has room.
    Raises asyncio.CancelledError while the spider closes, which ends ``start()``, and ValueError if
    ``n`` is less than 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}: it must be 1 or more")
    frontier = find_frontier(crawler)
    if frontier is not None and frontier.queues:
        await frontier.until_queued_below(n)
    elif crawler.engine is not None and crawler.engine.needs_backout():
        await crawler.signals.wait_for(signals.scheduler_empty)


class Frontier:
    """The queues and the hosts of one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        clock: Clock,
        policies: PolicyCache,
        events: CrawlLog | None,
    ) -> None:
        assert crawler.stats is not None
        self._events = events
        self._stats = crawler.stats
        self.engine = engine
        self.clock = clock
        self.policies = policies
        self._settings = settings
        self._concurrency = settings.concurrent_requests or MAX_IDLE_HOSTS
        self._held: dict[str, float] = {}
        """Until when hosts are held, on the wall clock. A crawl with JOBDIR keeps it."""
        self.hosts: dict[str, Host] = {}
        """The hosts that have requests, or had some; a name after a space is a slot's."""
        self._max_hosts = MAX_IDLE_HOSTS
        """With more of them, the idle ones are removed."""
        self.queues: list[Queues] = []
        """The scheduler's priority queues: for memory, and for a disk."""
        self._readers: dict[Deferred[None], int] = {}
        """What waits until the scheduler's queues have fewer requests than a number."""
        self.in_progress: dict[Request, InProgress] = {}
        """The requests that have started and have not ended."""
        self.dropped = Host("dropped requests", 1, is_paced=True)
        """The host of those that will be dropped: they use nothing of their own host."""
        self._pages_since_drop = self._pages_since_fetch = 0
        """How many pages have started since the last request that was to be dropped, and since the
        last fetch began."""
        self.waiting = Waiting(self)
        """The requests that wait in the downloader."""
        self.is_closing = False
        self._callers_until = inf
        """Until when callers of the engine may wait, on the monotonic clock."""
        self.returned: WeakKeyDictionary[Request, bool] = WeakKeyDictionary()
        """The requests that went back to a scheduler because the spider is closing, each with its
        ``dont_filter``, which is True on the way."""
        self.reservations: Reservations | None = None
        """The reservations of hosts, if several crawlers share their pace."""
        self._has_noted_replacement = False

    # Queues.

    def host(self, name: str, origin: str | None = None) -> Host:
        """Return a host. A new one gets the delay that is known for its origin."""
        host = self.hosts.get(name)
        if host is None:
            slot, settings = name.lstrip(), self._settings
            host = Host(name, settings.concurrency_of(slot), has_delay=settings.delays(slot))
            self.hosts[name] = host
            host.set_delay(origin or "", self.policies.delay(origin))
        return host

    def known_host(self, name: str) -> Host:
        """Return a host. If it is not known, that is one without delay, requests and queues."""
        return self.hosts.get(name) or Host(name, 0)

    def next_queue(self, owner: Queues) -> Queue | None:
        """Return the queue whose next request starts now, or None. Begins fetches needed soon."""
        if self.is_closing:
            return None
        if self.has_ended_requests:
            self.collect_ended()
        for each in self.queues:
            if each.unknown.size:
                self._begin_fetches(each.unknown)
        # Requests that will be dropped start one at a time, and between pages if there are some.
        may_drop = owner.drops.size and not self.dropped.active
        if owner.drops.size and self._ready:
            may_drop = self._pages_since_drop >= PAGES_IN_BETWEEN
        for ranked in (owner.drops, owner.ready) if may_drop else (owner.ready,):
            while ranked.size:
                queue = ranked.first()
                # Since it came here, its policy may have expired, and a time may have passed.
                if self.gate(queue).place is queue.place:
                    return queue
                self.update(queue)
        return None

    @property
    def queue_size(self) -> int:
        """How many requests the scheduler's queues have."""
        return sum(map(len, self.queues))

    async def until_queued_below(self, n: int) -> None:
        """Return when the scheduler's queues have fewer than ``n`` requests.

        Raises CancelledError if the spider closes first.
        """
        while self.queue_size >= n or self.is_closing:
            if self.is_closing:
                raise CancelledError
            reader = Deferred[None]()
            self._readers[reader] = n
            try:
                await maybe_deferred_to_future(reader)
            finally:
                del self._readers[reader]

    def _call_readers(self) -> None:
        """Call what waits until fewer requests are queued."""
        size = self.queue_size if self._readers else 0
        for reader, n in tuple(self._readers.items()):
            if size < n or self.is_closing:
                fire(reader, None)

    @property
    def _ready(self) -> int:
        """How many queues are ready."""
        return sum(each.ready.size for each in self.queues)

    def missing(self, owner: Queues) -> tuple[int, int, int]:
        """Return how many more queues an owner needs that has most of them elsewhere.

        Also returns how many of them may be new ones if there are no others, and how many have to
        be. No worker has fetched the robots.txt of a new one.
        """
        if self.is_closing:
            return 0, 0, 0
        downloads = len(self.engine.active) - len(self.engine.extra)
        free = max(self._concurrency - downloads - owner.ready.size, 0)
        if not self.policies.can_fetch():  # queues that are unknown here are of no use now
            is_full = owner.unknown.size >= LOOK_AHEAD * self._concurrency
            return 0 if is_full else min(free, 1), 0, 0
        free = max(free - owner.unknown.size, 0)
        is_turn = self._pages_since_fetch >= PAGES_IN_BETWEEN and not owner.unknown.size
        return free, free if self._needs_fetch() else 0, int(is_turn)

    def start(self, queue: Queue, request: Request) -> None:
        """Note that the engine gets a request of a queue."""
        if request in self.in_progress:  # another middleware has sent it back to the scheduler
            self.finish(request)
        host, slot, address = queue.host, queue.slot, queue.address
        if queue.place is Place.DROPS:
            self._pages_since_drop = 0
            host = slot = self.dropped
        elif address.kind is not Kind.ROBOTS_TXT:
            self._pages_since_drop += 1
            self._pages_since_fetch += 1
        if queue.place is Place.READY and queue.size and queue.owner.is_capped:
            keeper = queue.keeper
            if keeper.first_blocked is not None:  # the next turn is that of another queue
                self._move(queue, Gate(Place.WAITING, blocker=keeper))
        is_from_queue, backoffs = queue.owner is not self.waiting, host.backoffs
        if self._readers:
            self._call_readers()
        entry = InProgress(host, slot, address.origin, is_from_queue, backoffs)
        self._begin(request, entry, queue.host)
        self.update(queue)

    def _begin(self, request: Request, entry: InProgress, host: Host) -> None:
        self.in_progress[request] = entry
        entry.host.active += 1
        if entry.slot.has_delay:
            entry.slot.unsent = request
        if entry.slot is not entry.host:
            entry.slot.active += 1
            self.update_host(entry.slot)
        self.update_host(host)

    def finish(self, request: Request, *, sent: bool | None = None) -> None:
        """End a request, if it is in progress. If it was sent, the delay of its host begins now.

        By default, a request was sent if it has reached its download slot.
        """
        found = self.in_progress.pop(request, None)
        if found is None:
            return
        host, slot = found.host, found.slot
        host.active -= 1
        if slot.unsent is request:
            slot.unsent = None
        # The first page need not wait after the robots.txt from which the delay becomes known,
        # unless other crawlers may have requested a page.
        is_first = host.last_end == -inf and not host.is_paced and self.reservations is None
        if sent is None:
            sent = "download_slot" in request.meta
        if sent and not (is_first and request.meta.get(IS_ROBOTSTXT_REQUEST)):
            host.last_end = self.clock.monotonic()
        if self.reservations is not None and not host.active:
            self.reservations.release(host, host.seconds_left(self.clock.monotonic()))
        if slot is not host:
            slot.active -= 1
            self.update_host(slot)
        self.update_host(host)

    @property
    def has_ended_requests(self) -> bool:
        """Whether the downloader no longer has a request that is in progress."""
        return len(self.in_progress) + len(self.waiting.waiters) > len(self.engine.active)

    def note_replacement(self, request: Request, host: str) -> None:
        """Log, once, a request that a middleware has returned in place of one to another host.

        The replaced request has just ended, and was not sent. The new one has a copy of its meta,
        or its host in the URL. So has a request after a redirect that came from a cache, but that
        has ``redirect_urls``.
        """
        if self._has_noted_replacement:
            return
        verdict = request.meta.get(ROBOTSTXT)
        for old, entry in self.in_progress.items():
            name = entry.host.name
            if (
                not self.engine.is_active(old)
                and name not in ("", host)
                and "download_slot" not in old.meta
                and "redirect_urls" not in request.meta
                and (old.meta.get(ROBOTSTXT, old) is verdict or name in request.url)
            ):
                self._has_noted_replacement = True
                logger.info(
                    "A middleware has replaced %(request)s with a request to %(host)s. If that is "
                    "a gateway to other sites, their delays and their back-off do not apply: one "
                    "site that asks for fewer requests makes all of them wait. To avoid this, see "
                    "Gateways in the documentation of scrapy-rep.",
                    {"request": old, "host": host},
                )
                return

    def collect_ended(self) -> None:
        """End the requests that the downloader no longer has. Forget idle hosts if there are many.

        Scrapy has no signal for a request that another middleware drops, answers or replaces.
        """
        self._call_readers()
        is_active = self.engine.is_active
        for request in [each for each in self.in_progress if not is_active(each)]:
            self.finish(request)
        if len(self.hosts) > self._max_hosts:
            now = self.clock.monotonic()
            for name, host in tuple(self.hosts.items()):
                if not (host.origins or host.active or host.seconds_left(now)):
                    del self.hosts[name]
            self._max_hosts = len(self.hosts) + MAX_IDLE_HOSTS

    def _begin_fetches(self, unknown: Ranked) -> None:
        """Begin fetches for the first queues that need one, as far as the crawl needs them soon."""
        while unknown.size and self._needs_fetch() and self.policies.can_fetch():
            queue = unknown.first()
            self._pages_since_fetch = 0
            self.update(queue)
            if queue.place is Place.UNKNOWN:
                self.fetch(queue)
            if queue.place is Place.UNKNOWN:  # it cannot be fetched now
                return

    def _needs_fetch(self) -> bool:
        """Whether the crawl needs one more queue soon, or a new site gets its turn."""
        if self._pages_since_fetch >= PAGES_IN_BETWEEN:
            return True
        ready, most = self._ready, LOOK_AHEAD * self._concurrency
        return ready < self._concurrency and ready + len(self.policies.recent_fetches) < most

    def fetch(self, queue: Queue) -> None:
        """Begin to fetch the robots.txt that the requests of a queue need."""
        origin = queue.address.origin
        assert origin is not None
        try:
            request = queue.peek()
        except Exception:
            logger.exception("The next request for %(origin)s cannot be read", {"origin": origin})
            request = None
        self.policies.fetch(origin, request or Request(origin + "/"))
        self.update(queue)

    # Places.

    def update_host(self, host: Host) -> None:
        """Find the places again of the queues that the pace or the end of a request may move."""
        queues = tuple(host.ready)
        if host.was_paced is not host.is_paced:  # what applies is the host or the slot of each
            host.was_paced, queues = host.is_paced, tuple(host.queues)
        for queue in sorted(queues, key=lambda queue: queue.order):
            self.update(queue)
        self._admit(host)
        self._release_unwanted(host)

    def _admit(self, host: Host) -> None:
        """Let the queues that wait for a host or slot move, in turn, until one has to stay."""
        while (queue := host.first_blocked) is not None:
            self.update(queue)
            if queue is host.first_blocked:
                return

    def update_origin(self, name: str, key: str) -> None:
        """Find the places of the queues of an origin again: its policy has changed."""
        host = self.known_host(name)
        for queue in sorted(host.origins.get(key, ()), key=lambda queue: queue.order):
            self.update(queue)
        self.update_host(host)

    def _release_unwanted(self, host: Host) -> None:
        """Release the reservation of a host that nothing waits for."""
        if self.reservations is not None and not (host.active or self.is_wanted(host)):
            self.reservations.release(host, 0)

    def update(self, queue: Queue) -> None:
        """Find the place of a queue."""
        if not self._is_served(queue):
            return
        gate, host = self.gate(queue), queue.host
        if gate.is_unreserved and self.reservations is not None:
            self.reservations.request(host)
        if gate.place is Place.READY and queue.owner.is_capped:
            keeper = host if host.is_paced else queue.slot
            room = 1 if host.is_paced else keeper.limit - keeper.active
            if len(keeper.ready) - (queue in keeper.ready) >= room:  # it is the turn of others
                gate = Gate(Place.WAITING, blocker=keeper)
        if gate.place is Place.WAITING and gate.seconds < inf:
            self._set_alarm(gate.blocker or host, gate.seconds)
        keeper, was_ready = queue.keeper, queue.group is queue.keeper.ready
        self._move(queue, gate)
        if was_ready and queue.group is not keeper.ready:
            self._admit(keeper)

    def _move(self, queue: Queue, gate: Gate) -> None:
        """Bring a queue to its place."""
        place, old, host, slot = gate.place, queue.place, queue.host, queue.slot
        self._keep(queue, gate)
        ranked = queue.owner.ranked.get(place)
        rank = self._rank(queue, place) if ranked is not None else ()
        if place is old and rank == queue.rank:
            return
        if old is Place.EMPTY:
            for each in {host, slot}:
                each.add(queue)
        elif (old_ranked := queue.owner.ranked.get(old)) is not None:
            old_ranked.remove(queue)
        if place is not old:
            self._count_wait(queue, place)
        queue.place, queue.rank = place, rank
        if ranked is not None:
            ranked.add(queue)
            if old is not Place.EMPTY:  # else the engine asks for a request: it has just stored one
                self.engine.wake()
        elif place is Place.EMPTY:
            queue.owner.remove(queue)
            for each in {host, slot}:
                each.remove(queue)
                if not each.origins:
                    self._cancel_alarm(each)
            self._release_unwanted(host)
        elif queue.owner is self.waiting:
            self.waiting.serve(queue)

    @staticmethod
    def _keep(queue: Queue, gate: Gate) -> None:
        """Put a queue where its host or slot finds it again when something has happened there."""
        keeper, group = queue.host, None
        if gate.place is Place.READY and queue.owner.ranked:
            keeper = queue.host if queue.host.is_paced else queue.slot
            group = keeper.ready
        elif gate.place is Place.WAITING and gate.blocker is not None:
            keeper = gate.blocker
            group = keeper.blocked[queue.order]
        elif gate.place is Place.WAITING:
            group = keeper.timed
        if group is not queue.group:
            if queue.group is not None:
                del queue.group[queue]
            if group is not None:
                group[queue] = None
            queue.keeper, queue.group = keeper, group

    def _count_wait(self, queue: Queue, place: Place) -> None:
        """Count the wait of a queue that comes to another place."""
        old, origin, now = queue.place, queue.address.origin, self.clock.monotonic()
        kind = "robots_txt" if old is Place.UNKNOWN or old is Place.FETCHING else ""
        if kind and (place is Place.UNKNOWN or place is Place.FETCHING):
            return  # it has not ended
        if (
            old is Place.WAITING
            and queue.host.is_paced
            and queue.address.kind is not Kind.ROBOTS_TXT
        ):
            kind = "pace"
        seconds, queue.since = now - queue.since, now
        if kind and seconds >= MIN_WAIT:
            if self._events is not None and origin is not None:
                self._events.waited(origin, kind, seconds)
            self._stats.inc_value(f"robotstxt/wait_count/{kind}")
            self._add_seconds(f"robotstxt/wait_seconds/{kind}", seconds)

    def _add_seconds(self, stat: str, seconds: float) -> None:
        self._stats.set_value(stat, round(self._stats.get_value(stat, 0) + seconds, 3))

    def gate(self, queue: Queue) -> Gate:
        """Return where a queue has to be, and why. Changes nothing."""
        if not queue.size:
            return EMPTY
        gate = self.policies.gate(queue.address)
        return self._pace_gate(queue.host, queue.slot) if gate.place is Place.READY else gate

    def pace_of(self, request: Request, address: Address) -> Gate:
        """Return where a request has to be that its policy lets start. Changes nothing.

        It is not in a queue: the downloader has it.
        """
        found = self.in_progress.get(request)
        if found is not None and found.host is not self.dropped:
            return self._pace_gate(found.host, found.slot, request)
        if address in self.waiting.queues:  # it is their turn
            return WAITING
        return self._pace_gate(*self.hosts_of(address))

    def _pace_gate(self, host: Host, slot: Host, started: Request | None = None) -> Gate:
        """Return what the pace means for one more request, or for one that is in progress."""
        if slot.unsent is None and not host.is_paced and slot.active < slot.limit:
            return READY  # the usual case
        return pace_gate(
            host,
            slot,
            has_started=started is not None,
            is_reserved=self.reservations is None or self.reservations.is_reserved(host),
            seconds_unsent=self._seconds_unsent(slot, started),
            now=self.clock.monotonic(),
        )

    def _seconds_unsent(self, slot: Host, started: Request | None) -> float:
        """Return the seconds until the last request of a slot with a delay may have been sent.

        Returns 0 if there is none, or if it is the one that has ``started``.
        """
        if slot.unsent is None or slot.unsent is started:
            return 0
        return self.engine.seconds_unsent(slot.unsent)

    def note_reached(self, request: Request) -> None:
        """Note that a request has reached its download slot, where it waits for the delay."""
        found = self.in_progress.get(request)
        if found is not None and found.slot.unsent is request:
            self.update_host(found.slot)

    def hosts_of(self, address: Address) -> tuple[Host, Host]:
        """Return the host whose pace applies, and the host or slot whose concurrency does."""
        host = self.host(address.host, address.origin)
        return host, host if address.slot is None else self.host(" " + address.slot)

    def _rank(self, queue: Queue, place: Place) -> Rank:
        """Return the rank of a queue in a place. Its last part says whether its host is paced."""
        rank: Rank = ()
        if place is Place.READY:
            rank = queue.slot.active, queue.host.is_paced
        elif place is Place.UNKNOWN:  # expired ones first
            rank = queue.address.origin not in self.policies.files, False
        else:
            return (False,)
        return (queue.priority, *rank) if queue.owner.by_priority else rank

    def is_wanted(self, host: Host) -> bool:
        """Whether something waits for a host, for which it is worth while to reserve it."""
        return any(
            self.policies.gate(queue.address).place is Place.READY
            for queue in chain(host.ready, *host.blocked)
            if self._is_served(queue)
        )

    # Hosts.

    def set_delay(self, name: str, origin: str, seconds: float) -> None:
        """Set the seconds between two requests to a host that one of its origins asks for."""
        if seconds != self.known_host(name).delays.get(origin, 0):
            host = self.host(name)
            host.set_delay(origin, seconds)
            self.update_host(host)

    def note_answer(self, found: InProgress, status: int, retry_after: float | None) -> None:
        """Hold the host of a request if the answer asks for fewer requests (PROTOCOL §4).

        ``retry_after`` is the time that the answer names, in seconds. Any other answer ends the
        back-off of the host. The answer to a request that started before the back-off neither ends
        it nor doubles it.
        """
        host, now = found.host, self.clock.monotonic()
        is_in_flight = found.backoffs != host.backoffs
        if status not in SLOW_DOWN:
            if host.backoffs and not is_in_flight:
                host.end_backoff()
                self._held.pop(host.name, None)
                self.update_host(host)
            return
        doubled = FIRST_BACKOFF * 2.0 ** min(host.backoffs, 30)  # some 34 years
        seconds = min(retry_after or doubled, self._settings.max_backoff)
        added = seconds - max(host.held_until - now, 0)
        if is_in_flight and (retry_after is None or added < FIRST_BACKOFF):
            if retry_after is not None:  # a little later: not counted as one more
                host.held_until = max(host.held_until, now + seconds)
            return
        if not host.backoffs:
            logger.info(
                "%(host)s asks for fewer requests: it answered with status %(status)d. No request "
                "to it starts for %(seconds)s s (REP_BACKOFF), and then one at a time until it "
                "gives another answer.",
                {"host": host.name, "status": status, "seconds": f"{seconds:.3g}"},
            )
        self._stats.inc_value("robotstxt/backoff_count")
        self._add_seconds("robotstxt/backoff_seconds", added)
        if self._events is not None and found.origin is not None:
            self._events.waited(found.origin, "backoff", added)
        if self.reservations is not None:
            self.reservations.request(host, hold=seconds)
        self._hold(host, seconds)

    def _hold(self, host: Host, seconds: float) -> None:
        """Start no request to a host for so many seconds."""
        host.back_off(seconds, self.clock.monotonic())
        self._held[host.name] = self.clock.time() + seconds
        while len(self._held) > MAX_IDLE_HOSTS:
            del self._held[next(iter(self._held))]
        self.update_host(host)

    def hold_again(self, held: dict[str, float]) -> None:
        """Hold hosts, each until a time on the wall clock. From now on ``held`` is up to date."""
        self._held = held
        for name, until in tuple(held.items()):
            seconds = min(until - self.clock.time(), self._settings.max_backoff)
            if seconds > 0:
                self._hold(self.host(name), seconds)
            else:
                del held[name]

    def places(self, name: str, origin: str) -> set[Place]:
        """Return where the requests of an origin wait, but for those for its robots.txt."""
        own = filter(self._is_served, self.known_host(name).origins.get(origin, ()))
        return {each.place for each in own if each.address.kind is not Kind.ROBOTS_TXT}

    def _is_served(self, queue: Queue) -> bool:
        """Whether a queue gives requests: when the spider closes, those of the scheduler do not."""
        return not self.is_closing or queue.owner is self.waiting

    def _set_alarm(self, host: Host, seconds: float) -> None:
        """Look at a host again after so many seconds, or earlier."""
        at = self.clock.monotonic() + seconds
        if at < host.alarm_at:
            self._cancel_alarm(host)
            host.alarm_at, host.alarm = at, self.clock.call_later(seconds, self._ring, host)

    def _cancel_alarm(self, host: Host) -> None:
        if host.alarm is not None:
            host.alarm.cancel()
        host.alarm_at = inf

    def _ring(self, host: Host) -> None:
        host.alarm_at = inf
        for queue in tuple(host.timed):
            self.update(queue)
        self.update_host(host)

    # Requests in the downloader.

    def enter(self, request: Request, address: Address) -> None:
        """Start a request whose gate is open, unless its queue has started it."""
        found = self.in_progress.get(request)
        if found is None or found.host is self.dropped:
            self.finish(request, sent=False)
            host, slot = self.hosts_of(address)
            self._begin(request, InProgress(host, slot, address.origin, False, host.backoffs), host)

    def may_wait(self, request: Request) -> bool:
        """Whether a request may wait for its robots.txt and its host.

        While the spider closes, only a request of a caller may: a scheduler keeps any other one.
        """
        return not self.is_closing or (self.is_called(request) and self.may_callers_wait)

    def is_called(self, request: Request) -> bool:
        """Whether a caller of ``engine.download_async`` waits for a request, if the spider closes.

        A caller may not set NO_CALLBACK, but then the engine sends its request again after it has
        been returned.
        """
        return request.callback is NO_CALLBACK or request in self.returned

    @property
    def may_callers_wait(self) -> bool:
        """Whether callers may wait: for REP_MAX_WAIT after the spider has begun to close."""
        return self.clock.monotonic() < self._callers_until

    def close(self, seconds: float = 0) -> None:
        """Give no more requests, and end the waiting in the downloader: the spider closes.

        That of callers may last for so many seconds from the first call on.
        """
        self.is_closing = True
        self._callers_until = min(self._callers_until, self.clock.monotonic() + seconds)
        self.collect_ended()
        for request, waiter in tuple(self.waiting.waiters.items()):
            if not self.may_wait(request):
                fire(waiter, False)
        for host in tuple(self.hosts.values()):
            if not any(map(self._is_served, host.queues)):
                self._cancel_alarm(host)
            self._release_unwanted(host)
