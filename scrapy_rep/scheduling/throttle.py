"""When a request may start: one set of queues for each host.

A request waits in the queue of its origin while its robots.txt is being fetched or its Visit-time
has not begun (the queue is blocked), and until the delay of its host is over.

When a request leaves its queue, the middleware checks it against the policy of that time.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from itertools import count
from math import inf
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .blocks import Blocks
from .clock import fire
from .hosts import EXEMPT, Host, WaitingRequest
from .in_progress import RequestsInProgress, waiter_of
from .queues import WaitQueues, is_robots_request
from .reservation import Reservations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

    from .clock import Clock
    from .engine import Engine
    from .rendering import RenderingService
    from .reservation import HostStore


class Throttle:
    """The queues, the delays and the requests in progress of one crawl.

    ``capacity`` is how many requests may be queued.
    """

    def __init__(
        self,
        crawler: Crawler,
        engine: Engine,
        clock: Clock,
        rendering: RenderingService,
        *,
        capacity: int,
    ) -> None:
        self._rendering = rendering
        self._crawler = crawler
        self._engine = engine
        self._clock = clock
        self.queues = WaitQueues(engine, clock, capacity)
        self.hosts = self.queues.hosts
        self.in_progress = RequestsInProgress(engine, rendering)
        self.blocks = Blocks(self.queues, self.in_progress, clock, self._host, self._update)
        self._ready: OrderedDict[str, Host] = OrderedDict()
        """The hosts that have a request for the engine; the one that waits longest comes first."""
        self._ready_drops: OrderedDict[str, Host] = OrderedDict()
        """The same for hosts whose next request is dropped when it starts."""
        self.is_dropped: Callable[[WaitingRequest], bool] = lambda _: False
        """Returns whether a queued request is dropped when it starts."""
        self.has_disallowed = False
        """Whether an origin was found that disallows all requests."""
        self.from_scheduler: set[Request] = set()
        """The requests that the engine has from the scheduler. The downloader has others, too:
        those of callers of ``engine.download_async``."""
        self.on_start: Callable[[WaitingRequest], object] = lambda _: None
        """Called with a queued request when it starts."""
        self._arrivals = count()
        self._reservations: Reservations | None = None
        self.try_reschedule: Callable[[Request], bool] = lambda _: False
        """Prepares the scheduler for a request that a downloader middleware is about to return.
        Returns whether the middleware may return it."""

    def share(self, store: HostStore) -> None:
        """Share the pace of hosts with the other crawlers that use a store."""
        self._reservations = Reservations(
            store, self._clock, wanted=self._is_wanted, granted=self._update
        )

    # For the middleware.

    def try_start(self, request: Request, name: str) -> bool:
        """Start a request to the host ``name``, if it may start now. Return whether it has."""
        host = self.hosts.get(name)
        if host is None or (not host.delay and is_robots_request(request)):
            return True
        # A request that has left a queue may have to wait again: the delay is known only now.
        own = self.in_progress.remove(request)
        may_start = not host.delay or (
            (own is not None or not self._is_preceded(host, request))
            and self._may_start(host, request)
        )
        if may_start or own is not None:
            self.in_progress.start(host, own or self._entry(request), checked=True)
        return may_start

    async def wait(self, request: Request, name: str, key: str) -> bool:
        """Wait in the queue ``key`` of the host ``name``. Return False if the spider closes.

        ``key`` is an origin or :data:`~.hosts.EXEMPT`. A request that was in progress waits where
        it was in the order before.
        """
        host = self._host(name)
        entry = self.in_progress.remove(request) or self._entry(request)
        if self.queues.closed:
            self._update(host)
            return False
        waiter: Deferred[bool] = Deferred()
        entry = entry._replace(waiter=waiter, limit=None)
        from_scheduler = request in self.from_scheduler
        self.queues.add(host, key, entry, from_scheduler=from_scheduler)
        self._update(host)
        try:
            may_start = await maybe_deferred_to_future(waiter)
            if may_start:
                await self._engine.slots.acquire(request)
            return may_start
        finally:
            if self.queues.remove(host, entry):  # the download was cancelled
                self._update(host)

    def is_in_progress(self, request: Request) -> bool:
        """Whether a request has started and has not ended."""
        return request in self.in_progress

    def finish(self, request: Request, *, sent: bool) -> None:
        """End a request that is in progress.

        ``sent`` says whether the host may have received it: then the delay begins now.
        """
        host = self.in_progress.host(request)
        if host is None:
            return
        self.in_progress.remove(request)
        if sent:
            host.last_end = self._clock.monotonic()
        else:
            self._engine.slots.release(request)
        if self._reservations is not None and not host.in_progress:
            self._reservations.release(host, host.delay if sent else 0)
        self._update(host)

    def set_delay(self, name: str, key: str, seconds: float, last_end: float | None) -> None:
        """Start no request to a host within so many seconds after the last one ended.

        This is the delay of the origin ``key`` on the host; 0 removes it. ``last_end`` is when the
        last known request ended, on the monotonic clock.
        """
        host = self.hosts.get(name)
        if host is None:
            if not seconds:
                return
            host = self._host(name)
        if host.delays.get(key, 0) == seconds:
            return
        had_delay = bool(host.delay)
        host.set_delay(key, seconds)
        host.timer.cancel()  # it may be for a longer delay
        if not had_delay:
            if last_end is not None:
                host.last_end = max(host.last_end, last_end)
            self._apply_to_active(host)
        self._update(host)
        self.queues.remove_idle_hosts()

    def delay(self, name: str) -> float:
        """Return the delay of a host: the longest of its origins."""
        host = self.hosts.get(name)
        return host.delay if host else 0

    def is_in_use(self, name: str, key: str) -> bool:
        """Whether a request of an origin waits, or has started and is not checked."""
        host = self.hosts.get(name)
        return host is not None and (
            key in host.queues
            or self.in_progress.has_unchecked(host, key)
            or host.has_overdue_overflow(key)
            or any(self._rendering.origin(entry.request) == key for entry in host.overdue())
        )

    def is_waiting(self, request: Request) -> bool:
        """Whether a request waits inside of the downloader."""
        return request in self.queues.in_downloader

    def has_waiting(self, name: str, key: str) -> bool:
        """Whether a request of an origin waits."""
        return bool(self.queues.find(name, key))

    def collect_finished(self) -> None:
        """End the requests in progress that have ended without a signal."""
        for request, sent in self.in_progress.ended():
            self.finish(request, sent=sent)

    def prune(self) -> None:
        """Forget requests that have ended, and the delays of idle hosts that exceed the limit."""
        self.from_scheduler.intersection_update(self._engine.active)
        self.queues.remove_idle_hosts()

    def close(self) -> None:
        """End the waiting of all requests inside of the downloader: the spider closes.

        Call it again while the spider closes: a host may get its first delay meanwhile.
        """
        if self.queues.closed and not self.queues.in_downloader:
            return
        self.queues.closed = True
        for host in tuple(self.hosts.values()):
            host.cancel_timers()
            for entry in tuple(host.entries()):
                if entry.waiter is not None and self.queues.remove(host, entry):
                    fire(entry.waiter, False)
            self._update(host)

    # For the scheduler.

    def has_queue(self, name: str, key: str) -> bool:
        """Whether an origin has a queue, in which a new request has to wait."""
        return self.queues.find(name, key) is not None

    def is_throttled(self, name: str, request: Request) -> bool:
        """Whether the delay of a host, or other requests that wait for it, keep a request."""
        host = self.hosts.get(name)
        return (
            host is not None
            and bool(host.delay)
            and (self._is_wanted(host) or not self._may_start(host, request))
        )

    def start(self, request: Request) -> None:
        """Start a request that does not have to wait, before the engine gets it."""
        host = self.hosts.get(self._rendering.host(request) or "")
        # The delay of its slot may be longer. The middleware checks it.
        if host is None or not host.delay or self._needs_reservation(host):
            return
        if not host.seconds_left(self._clock.monotonic(), 1):
            self.in_progress.start(host, self._entry(request), checked=False)

    def enqueue(
        self, request: Request, name: str, key: str, *, for_policy: bool | None = None
    ) -> bool:
        """Queue a request until it may start. Return False if it is in the overflow.

        ``for_policy`` is that of :class:`~.hosts.WaitingRequest`.
        """
        host = self._host(name)
        is_queued = self.queues.enqueue(host, key, self._entry(request, for_policy))
        if is_queued and not host.queues[key].blocks:
            self._update(host)
        return is_queued

    def peek(self, *, drop: bool = False) -> WaitingRequest | None:
        """Return what :meth:`pop` would start, if there is a request that may start.

        Requests that are dropped when they start are returned with ``drop``, and only then.
        """
        found = self._first_ready(drop)
        return found[1] if found is not None else None

    def pop(self, *, drop: bool = False) -> Request | None:
        """Start the request that :meth:`peek` returns, and return it.

        Returns None if the request waits inside of the downloader, and continues there.
        """
        found = self._first_ready(drop)
        assert found is not None
        host, entry = found
        (self._ready_drops if drop else self._ready).move_to_end(host.name)
        self._start_entry(host, entry)
        self._update_ready(host)
        return entry.request if entry.waiter is None else None

    def recheck(self) -> None:
        """Check whether requests may start now, after a change for which Scrapy sends no signal.

        A request may have ended. The concurrency or the delay of a download slot may have changed.
        """
        self.collect_finished()
        for host in tuple(self._ready.values()):
            self._update(host)

    def drain(self) -> Iterator[Request]:
        """Remove all queued requests, and return them, the last one first: the crawl is over."""
        self.queues.closed = True
        self.collect_finished()
        removed = self.queues.drain()
        for host in tuple(self.hosts.values()):
            host.cancel_timers()
            self._update(host)
        return (entry.request for entry in removed)

    # Which request may start.

    def _host(self, name: str) -> Host:
        self.in_progress.listen(self._crawler.signals, self.finish)
        return self.queues.host(name)

    def _entry(self, request: Request, for_policy: bool | None = None) -> WaitingRequest:
        sort_key = (-request.priority, next(self._arrivals))
        arrived = self._clock.monotonic()
        return WaitingRequest(sort_key, request, arrived=arrived, for_policy=for_policy)

    def _seconds_left(self, host: Host, request: Request) -> float:
        # In these cases, the limits of the slot make no difference.
        if not host.delay and not host.in_progress:
            return 0
        if host.delay and host.in_progress:
            return inf
        limits = self._engine.slots.limits(request)
        return host.seconds_left(self._clock.monotonic(), *limits)

    def _may_start(self, host: Host, request: Request) -> bool:
        """Whether a request may start now."""
        return not self._seconds_left(host, request) and not self._needs_reservation(host)

    def _needs_reservation(self, host: Host) -> bool:
        return (
            self._reservations is not None
            and bool(host.delay)
            and not self._reservations.is_reserved(host)
        )

    def _is_wanted(self, host: Host) -> bool:
        """Whether a request waits for a host in a queue that is not blocked."""
        return not self.queues.closed and bool(
            host.first_immediate() or host.first_from_scheduler()
        )

    def _is_preceded(self, host: Host, request: Request) -> bool:
        """Whether a request that waits for a host comes before one that has just arrived."""
        if is_robots_request(request):
            return bool(host.robots_txt)
        if request not in self.from_scheduler:
            return host.first_immediate() is not None
        return self._is_wanted(host)

    def _first_ready(self, drop: bool) -> tuple[Host, WaitingRequest] | None:
        for host in (self._ready_drops if drop else self._ready).values():
            entry = host.first_from_scheduler()
            if entry is not None and self._may_start(host, entry.request):
                return host, entry
        return None

    # Changes.

    def _update(self, host: Host) -> None:
        """Start the requests that may start, and arrange for the others to start in time."""
        self.queues.load(host)
        while (entry := host.first_immediate()) is not None:
            # A caller waits for the pace of the host, and for nothing else that is in progress.
            if host.delay and not self._may_start(host, entry.request):
                break
            self._start_entry(host, entry)
        if self._reservations is not None and not host.in_progress and not self._is_wanted(host):
            self._reservations.cancel(host)
            self._reservations.release(host, 0)
        self._update_ready(host)
        self._forget_if_idle(host)

    def _update_ready(self, host: Host) -> None:
        """Offer the first request from the scheduler to the engine, or wait until it may start."""
        if self.queues.closed:
            self._remove_ready(host)
            return
        entry = host.first_from_scheduler()
        if entry is not None and not self._update_later(host, entry.request):
            ready, other = self._ready, self._ready_drops
            if self.is_dropped(entry):
                ready, other = other, ready
            ready[host.name] = host
            other.pop(host.name, None)
            self._engine.wake()
        else:
            self._remove_ready(host)
        immediate = host.first_immediate()
        if immediate is not None:
            self._update_later(host, immediate.request)

    def _update_later(self, host: Host, request: Request) -> bool:
        """Update the host when a request may start. Return False if it may start now.

        While another request is in progress, its end is what updates the host.
        """
        seconds = self._seconds_left(host, request)
        if seconds:
            if seconds < inf and not host.timer.is_active:
                host.timer.start(seconds, self._update, host)
        elif self._reservations is not None and self._needs_reservation(host):
            self._reservations.request(host)
        else:
            return False
        return True

    def _start_entry(self, host: Host, entry: WaitingRequest) -> None:
        """Start a request that waits."""
        self.queues.remove(host, entry)
        self.in_progress.start(host, entry, checked=False)
        if entry.waiter is not None:
            fire(entry.waiter, True)
        else:
            self.on_start(entry)
        self.queues.load(host)
        host.remove_empty_queues()

    def _forget_if_idle(self, host: Host) -> None:
        """Remove a host that has no requests and no delay."""
        if self.queues.remove_if_idle(host):
            self._remove_ready(host)

    def _remove_ready(self, host: Host) -> None:
        self._ready.pop(host.name, None)
        self._ready_drops.pop(host.name, None)

    # Requests that the downloader has when a host gets its first delay.

    def _apply_to_active(self, host: Host) -> None:
        """Apply the first delay of a host to the requests that the downloader has already."""
        active = [each for each in self._engine.active if self._rendering.host(each) == host.name]
        for request in active:
            # A request that has not come to the middleware yet starts or waits when it comes.
            if request not in self.queues.in_downloader:
                entry = host.in_progress.get(request) or self._entry(request)
                self.in_progress.start(host, entry, checked=True)
        for request, download, put_back in self._engine.slots.remove_queued(active):
            entry = self.in_progress.remove(request) or self._entry(request)
            cancelled = partial(self.finish, request, sent=False)
            waiter = waiter_of(request, download, put_back, self.try_reschedule, cancelled)
            self.queues.add_counted(host, EXEMPT, entry._replace(waiter=waiter))
