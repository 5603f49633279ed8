"""When the requests of a crawl may start: the place of each queue, and the pace of each host.

Each queue is in one place at a time (:class:`~scrapy_rep.policies.gate.Place`). It moves when
something happens: a robots.txt arrives, a request ends, or a time comes. So
:meth:`Frontier.next_queue` takes the first queue that is ready, and searches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from math import inf
from operator import attrgetter

from scrapy import Request
from scrapy.http import Response
from twisted.internet.defer import Deferred

from ..clock import Clock, fire
from ..closing import Closing
from ..fetch.fetches import Fetches
from ..logs import get_logger
from ..policies.gate import EMPTY, READY, Address, Gate, Kind, Place, Wait
from ..policies.policies import Policies
from ..protocol.access import retry_after
from ..protocol.paths import host_of
from ..recorder import Recorder
from ..scrapy_internals import Engine
from ..settings import CACHED_FLAG, IS_ROBOTSTXT_REQUEST, ROBOTSTXT, Settings
from .backoff import SLOW_DOWN, Backoff
from .hosts import MAX_IDLE_HOSTS, Host, Hosts, InProgress, Queue, Queues, Rank, Ranked, Slot
from .look_ahead import LookAhead, Readers
from .reservation import Reservations

logger = get_logger(__name__)
_order = attrgetter("order")

MIN_WAIT = 0.01
"""Seconds. A shorter wait is not counted: it is only a turn of the event loop."""


class Frontier:
    """The queues and the hosts of one crawl.

    ``fetches`` and ``reservations`` make what fetches its robots.txt files, and what reserves its
    hosts if several crawlers share their pace.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        clock: Clock,
        closing: Closing,
        policies: Policies,
        recorder: Recorder,
        fetches: Callable[[Frontier], Fetches],
        reservations: Callable[[Frontier], Reservations] | None = None,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.clock = clock
        self.closing = closing
        self.policies = policies
        self.recorder = recorder
        self.hosts = Hosts(settings, policies.last_delay)
        """The hosts and download slots of the crawl."""
        self._backoff = Backoff(settings, clock, recorder)
        self.queues: list[Queues] = []
        """The scheduler's priority queues: for memory, and for a disk."""
        self.readers = Readers(lambda: self.queue_size, closing)
        """What waits until fewer requests are queued."""
        self.in_progress: dict[Request, InProgress] = {}
        """The requests that have started and have not ended."""
        self.waiters: dict[Request, Deferred[bool]] = {}
        """The requests that wait in the downloader, and what they await."""
        self.dropped = Host("dropped requests", 1, is_paced=True)
        """The host of those that will be dropped: they use nothing of their own host."""
        self.fetches = fetches(self)
        self._look_ahead = LookAhead(settings.concurrent_requests or MAX_IDLE_HOSTS, self.fetches)
        self._reservations = reservations(self) if reservations is not None else None

    def reserve_with(self, reservations: Reservations) -> None:
        """Reserve hosts with the leases of a queue that several crawlers share."""
        self._reservations = reservations

    # Hosts.

    def delay_of(self, host: str) -> float:
        """Return the delay of a host in seconds; 0 if it has none."""
        found = self.hosts.hosts.get(host)
        return 0 if found is None else found.delay

    def set_delay(self, host: str, origin: str, seconds: float) -> None:
        """Set the seconds between two requests to a host that one of its origins asks for."""
        found = self.hosts.host(host)
        if seconds != found.delays.get(origin, 0):
            found.set_delay(origin, seconds)
            self.update_host(found)

    # Queues.

    def accept(self, request: Request) -> Address:
        """Return the address of a request that the scheduler stores now."""
        if self.closing.returned:
            request.dont_filter = self.closing.returned.get(request, request.dont_filter)
        address = self.policies.address(request)
        if self._has_ended_requests:
            self._log_replacement(request, address.host)
        return address

    def _log_replacement(self, request: Request, host: str) -> None:
        """Log, once, a request that a middleware has returned in place of one to another host.

        The replaced request has just ended, and was not sent. The new one has a copy of its meta,
        or its host in the URL. So has a request after a redirect that came from a cache, but that
        has ``redirect_urls``.
        """
        verdict = request.meta.get(ROBOTSTXT)
        for old, started in self.in_progress.items():
            name = started.host.name
            if (
                not self.engine.is_active(old)
                and name not in ("", host)
                and "download_slot" not in old.meta
                and "redirect_urls" not in request.meta
                and (old.meta.get(ROBOTSTXT, old) is verdict or name in request.url)
            ):
                if "replacement" not in self.recorder.logged:
                    self.recorder.logged.add("replacement")
                    logger.info(
                        "A middleware has replaced %(request)s with a request to %(host)s. If that "
                        "is a gateway to other sites, their delays and their back-off do not "
                        "apply: one site that asks for fewer requests makes all of them wait. To "
                        "avoid this, see Gateways in the documentation of scrapy-rep.",
                        {"request": old, "host": host},
                    )
                return

    def next_queue(self, owner: Queues) -> Queue | None:
        """Return the queue whose next request starts now, or None. Begins fetches needed soon."""
        if self.closing.has_begun:
            return None
        if self._has_ended_requests:
            self.collect_ended()
        for each in self.queues:
            if each.unknown.size:
                self._begin_fetches(each.unknown)
        may_drop = owner.drops.size and self._look_ahead.may_drop(self._ready, self.dropped.active)
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

    @property
    def is_full(self) -> bool:
        """Whether the spider has to wait before it yields more requests."""
        return any(each.is_full for each in self.queues) and not self.closing.has_begun

    @property
    def _ready(self) -> int:
        """How many queues are ready."""
        return sum(each.ready.size for each in self.queues)

    def _begin_fetches(self, unknown: Ranked) -> None:
        """Begin fetches for the first queues that need one, as far as the crawl needs them soon."""
        while unknown.size and self._look_ahead.needs_fetch(self._ready):
            if not self.fetches.limit.can_begin():
                self.fetches.limit.end_oldest()
                return
            queue = unknown.first()
            self._look_ahead.note_fetch()
            self.update(queue)
            if queue.place is Place.UNKNOWN:
                self.fetch(queue)
            if queue.place is Place.UNKNOWN:  # it cannot be fetched now
                return

    def fetch(self, queue: Queue) -> None:
        """Begin to fetch the robots.txt that the requests of a queue need."""
        origin = queue.address.origin
        assert origin is not None
        try:
            request = queue.peek()
        except Exception:
            logger.exception("The next request for %(origin)s cannot be read", {"origin": origin})
            request = None
        self.fetches.begin(origin, request or Request(origin + "/"))
        self.update(queue)

    # Places.

    def gate(self, queue: Queue) -> Gate:
        """Return where a queue has to be, and why. Changes nothing."""
        if not queue.size:
            return EMPTY
        gate = self.policies.gate(queue.address, queue.host.delay)
        return self.pace_gate(queue.host, queue.slot) if gate.place is Place.READY else gate

    def pace_of(self, request: Request, address: Address) -> Gate:
        """Return where a request has to be that its policy lets start. Changes nothing.

        It is not in a queue: the downloader has it.
        """
        started = self.in_progress.get(request)
        if started is not None and started.host is not self.dropped:
            return self.pace_gate(started.host, started.slot, request)
        host, slot = self.hosts.of(address)
        for queue in host.origins.get(address.origin, ()):
            if queue.address == address and not queue.owner.is_scheduled:
                return host.behind_others
        return self.pace_gate(host, slot)

    def pace_gate(self, host: Host, slot: Slot, started: Request | None = None) -> Gate:
        """Return what the pace means for one more request, or for one that is in progress."""
        takes_turns = self._reservations is not None and slot is host and host.takes_turns
        is_free = not (host.is_paced or takes_turns)
        if slot.unsent is None and is_free and slot.active < slot.limit:
            return READY  # the usual case
        if slot.unsent is not None and slot.unsent is not started:
            seconds = self.engine.seconds_unsent(slot.unsent)
            if seconds:
                return Gate(Place.WAITING, seconds, Wait.UNSENT)
        if not host.is_paced and started is None and slot.active >= slot.limit:
            return host.behind_others
        if is_free or (takes_turns and started is not None):
            return READY
        gate = host.gate(self.clock.monotonic(), has_started=started is not None)
        reservations = self._reservations
        if gate is not READY or reservations is None or reservations.is_reserved(host):
            return gate
        return Gate(Place.WAITING, wait=Wait.RESERVATION)

    def update_host(self, host: Slot) -> None:
        """Find the places again of the queues that the pace or the end of a request may move."""
        if self._reservations is not None and host.unsent is not None:
            seconds = self.engine.seconds_unsent(host.unsent)
            if not seconds:
                self._note_sent(host)
            elif seconds < inf:
                host.set_alarm(self.clock, seconds, self._ring)
        queues = tuple(host.ready)
        if isinstance(host, Host) and host.was_paced is not host.is_paced:
            # What applies now is the host or the slot of each queue.
            host.was_paced, queues = host.is_paced, tuple(host.queues)
        for queue in sorted(queues, key=_order) if len(queues) > 1 else queues:
            self.update(queue)
        self._let_in(host)
        self._release_unwanted(host)

    def _let_in(self, host: Slot) -> None:
        """Let the queues that wait for a host or slot move, in turn, until one has to stay."""
        while (queue := host.first_blocked) is not None:
            self.update(queue)
            if queue is host.first_blocked:
                return

    def update_origin(self, host: str, origin: str) -> None:
        """Find the places of the queues of an origin again: its policy has changed."""
        found = self.hosts.hosts.get(host)
        if found is not None:
            for queue in sorted(found.origins.get(origin, ()), key=_order):
                self.update(queue)
            self.update_host(found)

    def update(self, queue: Queue) -> None:
        """Find the place of a queue."""
        if not self._is_served(queue):
            return
        gate, keeper = self.gate(queue), queue.keeper
        if gate.wait is Wait.RESERVATION and self._reservations is not None:
            self._reservations.request(queue.host)
        if gate.place is Place.READY and queue.owner.is_capped and not queue.is_next:
            gate = queue.host.behind_others  # it is the turn of others
        if gate.place is Place.WAITING and gate.seconds < inf:
            (queue.waits_for(gate) or queue.host).set_alarm(self.clock, gate.seconds, self._ring)
        was_ready = queue.group is keeper.ready
        self._move(queue, gate)
        if was_ready and queue.group is not keeper.ready:
            self._let_in(keeper)

    def _move(self, queue: Queue, gate: Gate) -> None:
        """Bring a queue to its place."""
        place, old, owner = gate.place, queue.place, queue.owner
        queue.keep(gate)
        ranked = owner.ranked.get(place)
        rank = self._rank(queue, place) if ranked is not None else ()
        if place is old and rank == queue.rank:
            return
        if old is Place.EMPTY:
            queue.attach()
        elif (old_ranked := owner.ranked.get(old)) is not None:
            old_ranked.remove(queue)
        if place is not old:
            self._count_wait(queue, place)
        queue.place, queue.rank = place, rank
        if ranked is not None:
            ranked.add(queue)
            if old is not Place.EMPTY:  # else the engine asks for a request: it has just stored one
                self.engine.wake()
        elif place is Place.EMPTY:
            owner.remove(queue)
            queue.detach()
            self._release_unwanted(queue.host)
        else:
            owner.serve(queue)

    def _count_wait(self, queue: Queue, place: Place) -> None:
        """Count the wait of a queue that comes to another place."""
        old, now = queue.place, self.clock.monotonic()
        kind = "robots_txt" if old is Place.UNKNOWN or old is Place.FETCHING else ""
        if kind and (place is Place.UNKNOWN or place is Place.FETCHING):
            return  # it has not ended
        if old is Place.WAITING and queue.host.is_paced:
            kind = "pace" if queue.address.kind is not Kind.ROBOTS_TXT else ""
        seconds, queue.since = now - queue.since, now
        if kind and seconds >= MIN_WAIT:
            self.recorder.waited(queue.address.origin, kind, seconds)

    def _rank(self, queue: Queue, place: Place) -> Rank:
        """Return the rank of a queue in a place. Its last part says whether its host is paced."""
        if place is Place.READY:
            rank: Rank = (queue.slot.active, queue.host.is_paced)
        elif place is Place.UNKNOWN:  # expired ones first
            rank = queue.address.origin not in self.policies.origins, False
        else:
            return (False,)
        return (queue.priority, *rank) if queue.owner.by_priority else rank

    def _is_served(self, queue: Queue) -> bool:
        """Whether a queue gives requests: when the spider closes, those of the scheduler do not."""
        return not (self.closing.has_begun and queue.owner.is_scheduled)

    def _ring(self, host: Slot) -> None:
        host.alarm_at = inf
        for queue in tuple(host.timed):
            self.update(queue)
        self.update_host(host)

    # What others ask.

    def is_wanted(self, host: Host) -> bool:
        """Whether something waits for a host, for which it is worth while to reserve it."""
        return any(
            self.policies.gate(queue.address, host.delay).place is Place.READY
            for queue in chain(host.ready, *host.blocked.values())
            if self._is_served(queue)
        )

    def _release_unwanted(self, host: Slot) -> None:
        """Release the reservation of a host that nothing waits for."""
        if self._reservations is None or not isinstance(host, Host):
            return
        is_in_use = host.unsent is not None if host.takes_turns else host.active > 0
        if not (is_in_use or self.is_wanted(host)):
            self._reservations.release(host, 0)

    def needs(self, origin: str) -> bool:
        """Whether the queues have requests to an origin."""
        return next(self._places(origin), None) is not None

    def uses(self, origin: str) -> bool:
        """Whether an origin has to stay in memory."""
        is_queued = any(place is not Place.UNKNOWN for place in self._places(origin))
        return is_queued or any(each.origin == origin for each in self.in_progress.values())

    def _places(self, origin: str) -> Iterator[Place]:
        """Yield where the requests to an origin wait, but for those for its robots.txt."""
        host = self.hosts.hosts.get(host_of(origin))
        for queue in host.origins.get(origin, ()) if host is not None else ():
            if queue.address.kind is not Kind.ROBOTS_TXT and self._is_served(queue):
                yield queue.place

    def own_delay_left(self, host: Host) -> float:
        """Return the seconds until the crawl's own delay lets it request a host again."""
        return self.engine.own_delay_left(host.name) if host.own_delay else 0

    # Requests in progress.

    def start(self, queue: Queue, request: Request) -> None:
        """Note that the engine gets a request of a queue."""
        if request in self.in_progress:  # another middleware has sent it back to the scheduler
            self.finish(request)
        host, slot, address = queue.host, queue.slot, queue.address
        if is_dropped := queue.place is Place.DROPS:
            host = slot = self.dropped
        if address.kind is not Kind.ROBOTS_TXT:
            self._look_ahead.note_start(is_dropped=is_dropped)
        is_capped = queue.place is Place.READY and queue.size and queue.owner.is_capped
        if is_capped and queue.keeper.first_blocked is not None:  # whose turn is next
            self._move(queue, queue.host.behind_others)
        self.readers.call()
        self._begin(request, host, slot, address.origin, queue.owner.is_scheduled)
        self.update(queue)

    def enter(self, request: Request, address: Address) -> None:
        """Start a request whose gate is open, unless its queue has started it."""
        started = self.in_progress.get(request)
        if started is None or started.host is self.dropped:
            self.end(request, sent=False)
            self._begin(request, *self.hosts.of(address), address.origin, False)

    def _begin(
        self, request: Request, host: Host, slot: Slot, origin: str | None, is_from_queue: bool
    ) -> None:
        self.in_progress[request] = InProgress(host, slot, origin, is_from_queue, host.backoffs)
        host.active += 1
        if slot.own_delay:
            slot.unsent = request
        if slot is not host:
            slot.active += 1
            self.update_host(slot)
        self.update_host(host)

    def note_reached(self, request: Request) -> None:
        """Note that a request has reached its download slot, where it waits for the delay."""
        started = self.in_progress.get(request)
        if started is not None and started.slot.unsent is request:
            self.update_host(started.slot)

    def finish(self, request: Request) -> None:
        """End a request, if it is in progress. It was sent if it has reached its download slot."""
        self.end(request, sent="download_slot" in request.meta)

    def end(self, request: Request, *, sent: bool) -> None:
        """End a request, if it is in progress. If it was ``sent``, the delay of its host begins."""
        started = self.in_progress.pop(request, None)
        if started is None:
            return
        host, slot, reservations = started.host, started.slot, self._reservations
        host.active -= 1
        if slot.unsent is request:
            self._note_sent(slot)
        # The first page need not wait after the robots.txt from which the delay becomes known,
        # unless other crawlers may have requested a page.
        is_first = host.last_end == -inf and not host.is_paced and reservations is None
        if sent and not (is_first and request.meta.get(IS_ROBOTSTXT_REQUEST)):
            host.last_end = self.clock.monotonic()
        if reservations is not None and not host.active and not host.takes_turns:
            reservations.release(host, host.seconds_left(self.clock.monotonic()))
        if slot is not host:
            slot.active -= 1
            self.update_host(slot)
        self.update_host(host)

    def _note_sent(self, slot: Slot) -> None:
        """Note that the last request has left its download slot, or does not go there."""
        slot.unsent = None
        if self._reservations is not None and isinstance(slot, Host):
            self._reservations.note_sent(slot)

    @property
    def _has_ended_requests(self) -> bool:
        """Whether the downloader no longer has a request that is in progress."""
        return len(self.in_progress) + len(self.waiters) > len(self.engine.active)

    def collect_ended(self) -> None:
        """End the requests that the downloader no longer has. Forget idle hosts if there are many.

        Scrapy has no signal for a request that another middleware drops, answers or replaces.
        """
        self.readers.call()
        for request in [each for each in self.in_progress if not self.engine.is_active(each)]:
            self.finish(request)
        self.hosts.forget_idle(self.clock.monotonic())

    # Back-off.

    def note_response(self, request: Request, response: Response) -> None:
        """Hold the host of a request if its response asks for fewer requests.

        A further call for the same request changes no more than the first one has.
        """
        started, status = self.in_progress.get(request), response.status
        if started is None or request.meta.get(IS_ROBOTSTXT_REQUEST) or not self.settings.backoff:
            return
        host = started.host
        matters = status >= 500 or status in SLOW_DOWN or host.backoffs or host.failed_urls
        if matters and CACHED_FLAG not in response.flags:
            header = (response.headers.get(b"Retry-After") or b"").decode("latin-1")
            seconds = retry_after(header, self.clock.time())
            self.note_answer(started, status, seconds, request.url)

    def note_answer(
        self, started: InProgress, status: int, seconds: float | None, url: str = ""
    ) -> None:
        """Hold the host of a request, or end that, as the answer says. See :meth:`.Backoff.note`"""
        host = started.host
        if self._backoff.note(started, status, seconds, url):
            self._update_held(host)

    def _update_held(self, host: Host) -> None:
        if host.backoffs and self._reservations is not None:
            self._reservations.request(host, host.held_until - self.clock.monotonic())
        self.update_host(host)

    def hold(self, host: str, origin: str, seconds: float, status: int | None) -> float:
        """Start no request to a host, because a robots.txt asks for that. Returns for how long.

        That is at most REP_MAX_BACKOFF, and 0 without REP_BACKOFF. ``status`` is that of the
        robots.txt of ``origin``.
        """
        seconds = min(seconds, self.settings.max_backoff) if self.settings.backoff else 0
        if seconds:
            found = self.hosts.host(host)
            self._backoff.hold_for(found, origin, seconds, status)
            self._update_held(found)
        return seconds

    def hold_again(self, held: dict[str, float]) -> None:
        """See :meth:`.Backoff.hold_again`."""
        for host in self._backoff.hold_again(held, self.hosts.host):
            self.update_host(host)

    # The end.

    def close(self, seconds: float = 0) -> None:
        """Give no more requests, and end the waiting in the downloader: the spider closes.

        Callers may wait for so many seconds from the first call on.
        """
        self.closing.begin(seconds)
        self.collect_ended()
        for request, waiter in tuple(self.waiters.items()):
            if not self.closing.may_wait(request):
                fire(waiter, False)
        for host in self.hosts:
            if not any(map(self._is_served, host.queues)):
                host.cancel_alarm()
            self._release_unwanted(host)
