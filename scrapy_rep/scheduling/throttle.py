"""Which requests wait, and which may go on: one queue for each host.

A request waits in the line of its origin while its robots.txt is being fetched (the line is held),
while its site wants no visits, or until the pace of its host lets it go. Most of those that wait
were taken from the scheduler and are kept here ("parked"). The first ones of an origin, and those
of callers of ``engine.download_async``, wait inside of the downloader.

What leaves a line is judged afterwards, by the middleware: what was known when it came counts no
more.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import count
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from ..protocol.paths import host_of, origin_of
from .clock import fire
from .hosts import BlockReason, Host, Limit, WaitingRequest, add
from .reservation import Reservations

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from .clock import Clock
    from .engine import Engine
    from .rendering import RenderingService
    from .reservation import HostStore

EXEMPT = ""
"""The line of requests that need no robots.txt, but keep the pace of their host."""

MAX_PER_PASS = 100
"""Hosts that are looked at for one whose pace can be forgotten."""


class Throttle:
    """The queues of one crawl.

    ``capacity``: how many requests may be parked. ``most_hosts``: how many hosts that ask for a
    pace are remembered while nothing is under way to them.
    """

    def __init__(
        self,
        crawler: Crawler,
        engine: Engine,
        clock: Clock,
        rendering: RenderingService,
        *,
        capacity: int,
        most_hosts: int,
    ) -> None:
        self._rendering = rendering
        self._crawler = crawler
        self._engine = engine
        self._clock = clock
        self._most_hosts = most_hosts
        self.capacity = capacity
        self.queued = 0
        """How many requests are kept for the engine."""
        self.hosts: OrderedDict[str, Host] = OrderedDict()
        """The hosts that somebody waits for, or that ask for a pace, by name."""
        self._ready: OrderedDict[str, Host] = OrderedDict()
        """Those that may have a request for the engine, the one that waited longest first."""
        self.from_scheduler: set[Request] = set()
        """The requests that the engine has from the scheduler. The others that the downloader has
        are those of callers of ``engine.download_async``."""
        self._arrivals = count()
        self._waiting: set[Request] = set()
        """The requests that wait inside of the downloader."""
        self._in_progress: dict[Request, Host] = {}
        self._unjudged: set[Request] = set()
        """Those that were let go and have not come to the middleware since."""
        self._reservations: Reservations | None = None
        self.can_reschedule: Callable[[Request], bool] = lambda _: False
        """Whether a request that a downloader middleware returns goes back to the scheduler."""
        self._listens = False
        self._closed = False

    def share(self, store: HostStore) -> None:
        """Keep the pace of hosts together with the other crawlers that use a store."""
        self._reservations = Reservations(
            store, self._clock, wanted=self._is_wanted, granted=self._update
        )

    # For the middleware.

    def try_start(self, request: Request, name: str) -> bool:
        """Whether a request may go on to the host ``name`` now; if so, it is under way."""
        host = self.hosts.get(name)
        if host is None or (not host.delay and _is_robots_request(request)):
            return True
        # One that was let go may have to wait again: only now is it known what its origin asks for.
        self._unjudged.discard(request)
        own = host.in_progress.pop(request, None)
        may_start = not host.delay or (
            (own is not None or not self._is_preceded(host, request))
            and self._may_start(host, request)
        )
        if may_start or own is not None:
            self._start(host, own or self._entry(request))
        return may_start

    async def wait(self, request: Request, name: str, key: str) -> bool:
        """Wait for the host ``name`` in its line ``key``. False: the spider is closing.

        The line is that of an origin, or :data:`EXEMPT`. A request that was under way gets its
        old place in the line.
        """
        host = self._host(name)
        entry = self._withdraw(request) or self._entry(request)
        if self._closed:
            self._update(host)
            return False
        waiter: Deferred[bool] = Deferred()
        self._enter(host, key, entry._replace(waiting=waiter))
        try:
            return await maybe_deferred_to_future(waiter)
        finally:
            if request in self._waiting:  # the download was cancelled
                self._remove(host, request)

    def is_in_progress(self, request: Request) -> bool:
        """Whether a request was let go after it had waited."""
        return request in self._in_progress

    def finish(self, request: Request, *, sent: bool) -> None:
        """A request that was let go has ended, or goes no further. ``sent``: its host may have had
        it, so that the next one keeps the distance.
        """
        host = self._in_progress.get(request)
        if host is None:
            return
        self._withdraw(request)
        if sent:
            host.last_end = self._clock.monotonic()
        if self._reservations is not None and not host.in_progress:
            self._reservations.release(host, host.delay if sent else 0)
        self._update(host)

    def block(self, name: str, key: str, reason: BlockReason) -> None:
        """Let nobody in a line go on until :meth:`unblock` is called."""
        self._host(name).queue(key).blocks.add(reason)

    def block_for(
        self,
        name: str,
        key: str,
        seconds: float,
        reason: BlockReason,
        then: Callable[[str, str, BlockReason], None] | None = None,
    ) -> None:
        """Let nobody of an origin go on for so many seconds.

        They go on then, or when ``then`` says so, which is called with the host, the line and the
        reason.
        """
        line = self._host(name).queue(key)
        if reason not in line.blocks:
            line.blocks.add(reason)
            self._clock.call_later(seconds, then or self.unblock, name, key, reason)

    def postpone(
        self,
        name: str,
        key: str,
        seconds: float,
        *,
        most: float,
        then: Callable[[str, str, BlockReason], None],
        may_start: Callable[[Request], bool] = lambda _: False,
    ) -> None:
        """Let those who wait for an unreachable origin wait for so many seconds more.

        Those who would wait for more than ``most`` seconds in all, and those for whom there is no
        room, go on now, as if they were in a line of their own. So do those that ``may_start``.
        """
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        if host is None or line is None:
            return
        earliest = self._clock.monotonic() + seconds - most
        entries = sorted(
            (*line.from_callers, *line.from_scheduler), key=lambda entry: entry.sort_key
        )
        may_wait = [
            entry.sort_key
            for entry in entries
            if entry.arrived >= earliest and not may_start(entry.request)
        ]
        others = self.queued + len(self._waiting) - len(entries)
        kept = set(may_wait[: max(self.capacity - others, self._share)])
        overdue = {entry.sort_key for entry in entries} - kept
        if overdue:
            host.set_aside(line, overdue)
        if kept:
            self.block_for(name, key, seconds, BlockReason.UNREACHABLE, then)
        self._update(host)

    def limit(
        self, request: Request, name: str, key: str, seconds: float, most: float
    ) -> Limit | None:
        """What keeps a request from waiting for an unreachable origin for so many seconds.

        It may wait for ``most`` seconds in all. None if it may wait.
        """
        now = self._clock.monotonic()
        host = self._in_progress.get(request)
        arrived = host.in_progress[request].arrived if host is not None else now
        if now + seconds > arrived + most:
            return Limit.TIME
        return None if self._has_room(name, key) else Limit.NUMBER

    def is_full(self, name: str, key: str) -> bool:
        """Whether no more requests of an unreachable origin may wait."""
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        held = line is not None and BlockReason.UNREACHABLE in line.blocks
        return held and not self._has_room(name, key)

    def first_in_line(self, name: str, key: str) -> Request | None:
        """The first request that waits for an origin; None if there is none."""
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        if line is None or not line:
            return None
        heads = (entries[0] for entries in (line.from_callers, line.from_scheduler) if entries)
        return min(heads, key=lambda entry: entry.sort_key).request

    def unblock(self, name: str, key: str, reason: BlockReason) -> None:
        """A reason for which a line was held is gone."""
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        if host is not None and line is not None and reason in line.blocks:
            line.blocks.discard(reason)
            self._update(host)

    def set_delay(self, name: str, key: str, seconds: float, last_end: float | None) -> None:
        """Let no request to a host start within so many seconds after the last one's end.

        This is what the origin ``key`` on it asks for; 0 takes it back. ``last_end``: when the last
        request to it ended that the caller knows of, on the monotonic clock.
        """
        host = self.hosts.get(name)
        if host is None:
            if not seconds:
                return
            host = self._host(name)
        self.hosts.move_to_end(name)
        if host.delays.get(key, 0) == seconds:
            return
        had_delay = bool(host.delay)
        host.set_delay(key, seconds)
        if host.timer is not None:  # which may be for a longer delay
            host.timer.cancel()
            host.timer = None
        if not had_delay:
            if last_end is not None:
                host.last_end = max(host.last_end, last_end)
            self._begin_pace(host)
        self._update(host)
        self._drop_oldest()

    def delay(self, name: str) -> float:
        """The seconds between two requests that the origins on a host ask for."""
        host = self.hosts.get(name)
        return host.delay if host else 0

    def is_in_use(self, name: str, key: str) -> bool:
        """Whether somebody waits for an origin, or was let go and is not judged yet."""
        host = self.hosts.get(name)
        if host is None:
            return False
        return key in host.queues or any(
            origin_of(self._rendering.page_url(request)) == key
            for request in host.in_progress
            if request in self._unjudged
        )

    def is_waiting(self, request: Request) -> bool:
        """Whether a request waits inside of the downloader."""
        return request in self._waiting

    def has_waiting(self, name: str, key: str) -> bool:
        """Whether anybody waits for an origin."""
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        return line is not None and len(line) > 0

    def close(self) -> None:
        """The spider is closing: nobody waits inside of the downloader any longer."""
        self._closed = True
        for host in tuple(self.hosts.values()):
            for entry in tuple(host.entries()):
                if entry.waiting is not None:
                    host.discard(entry.request)
                    self._left(entry)
                    fire(entry.waiting, False)
            self._update(host)

    def collect_finished(self) -> None:
        """Notice requests that have ended without a signal."""
        for request in tuple(self._in_progress):
            if not self._engine.is_active(request):
                # A middleware before or after ours may have dropped, answered or replaced it.
                is_judged = request not in self._unjudged
                sent = is_judged and self._engine.has_reached_slot(request)
                self.finish(request, sent=sent and not self._rendering.is_replaced(request))

    def prune(self) -> None:
        """Forget what is over: requests from the scheduler, and the paces of hosts at rest."""
        self.from_scheduler.intersection_update(self._engine.active)
        self._drop_oldest()

    # For the scheduler.

    def has_queue(self, name: str, key: str) -> bool:
        """Whether a request of an origin that comes now has to wait behind others, or for them."""
        host = self.hosts.get(name)
        return host is not None and key in host.queues

    def is_throttled(self, name: str, request: Request) -> bool:
        """Whether the pace of a host, or who waits for it, keeps a request from it for now."""
        host = self.hosts.get(name)
        return (
            host is not None
            and bool(host.delay)
            and (self._is_wanted(host) or not self._may_start(host, request))
        )

    def start(self, request: Request) -> None:
        """A request goes to the engine that does not have to wait."""
        key = origin_of(self._rendering.page_url(request))
        host = self.hosts.get(host_of(key)) if key else None
        if host is not None and host.delay and self._may_start(host, request):
            self._let_go(host, self._entry(request))

    def enqueue(self, request: Request, name: str, key: str) -> tuple[bool, list[Request]]:
        """Keep a request until it may go on. Whether there is room for it; and the requests for
        which there is none any longer, because their origins have more than their share.
        """
        host = self._host(name)
        evicted: list[Request] = []
        if self.queued >= self.capacity:
            evicted = self._evict(len(host.queue(key)) + 1)
            if not evicted:
                self._forget_if_over(host)
                return False, []
        self._enter(host, key, self._entry(request))
        return True, evicted

    def peek(self) -> WaitingRequest | None:
        """The entry whose request the engine may have next."""
        while self._ready:
            host = next(iter(self._ready.values()))
            found = host.first_from_scheduler()
            if found is not None and self._may_start(host, found[1].request):
                return found[1]
            del self._ready[host.name]
        return None

    def pop(self) -> Request | None:
        """Let the request go on that :meth:`peek` has shown.

        None where it waits in the downloader already.
        """
        host = next(iter(self._ready.values()))
        self._ready.move_to_end(host.name)
        found = host.first_from_scheduler()
        assert found is not None
        line, entry = found
        del line.from_scheduler[0]
        self._leave(host, entry)
        return entry.request if entry.waiting is None else None

    def drain(self) -> list[Request]:
        """All requests that are parked, in their order. They are so no longer."""
        found = [
            (entry, host)
            for host in self.hosts.values()
            for entry in host.entries()
            if entry.waiting is None
        ]
        for entry, host in found:
            host.discard(entry.request)
            self._left(entry)
        for host in tuple(self.hosts.values()):
            for line in host.queues.values():
                line.blocks.clear()
            self._forget_if_over(host)
        return [entry.request for entry, _ in sorted(found, key=lambda one: one[0].sort_key)]

    # Lines.

    def _host(self, name: str) -> Host:
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = Host(name)
            self._listen()
        return host

    def _entry(self, request: Request) -> WaitingRequest:
        order = (-request.priority, next(self._arrivals))
        return WaitingRequest(order, request, arrived=self._clock.monotonic())

    @property
    def _share(self) -> int:
        """How many requests of one origin may wait, however many others do."""
        return self.capacity // (len(self.hosts) + 1)

    def _has_room(self, name: str, key: str) -> bool:
        host = self.hosts.get(name)
        line = host.queues.get(key) if host else None
        if self.queued + len(self._waiting) < self.capacity:
            return True
        return (len(line) if line is not None else 0) < self._share

    def _enter(self, host: Host, key: str, entry: WaitingRequest) -> None:
        """An entry begins to wait."""
        request = entry.request
        if entry.waiting is None or request in self.from_scheduler:
            add(host.queue(key).from_scheduler, entry)
        elif _is_robots_request(request):
            host.robots_txt.append(entry)
        else:
            add(host.queue(key).from_callers, entry)
        if entry.waiting is None:
            self.queued += 1
        else:
            self._waiting.add(request)
            self._engine.exclude(request)
        self._engine.count_in_slot(request)
        self._update(host)

    def _left(self, entry: WaitingRequest) -> None:
        """An entry waits no more."""
        request = entry.request
        self._engine.discount_in_slot(request)
        if entry.waiting is None:
            self.queued -= 1
        else:
            self._waiting.discard(request)
            self._engine.include_page(request)

    def _remove(self, host: Host, request: Request) -> None:
        for entry in tuple(host.entries()):
            if entry.request is request:
                host.discard(request)
                self._left(entry)
        self._update(host)

    def _leave(self, host: Host, entry: WaitingRequest) -> None:
        """An entry waits no more, and goes on."""
        self._left(entry)
        self._let_go(host, entry)
        host.remove_empty_queues()

    def _let_go(self, host: Host, entry: WaitingRequest) -> None:
        self._unjudged.add(entry.request)
        self._start(host, entry)
        if entry.waiting is not None:
            fire(entry.waiting, True)

    def _update(self, host: Host) -> None:
        """Let those go who may, and have the engine ask for the others."""
        while (found := self._first_called(host)) is not None:
            entries, entry = found
            # A caller depends on the pace of the host, and on nothing else that is under way.
            if host.delay and not self._may_start(host, entry.request):
                break
            entries.remove(entry)
            self._leave(host, entry)
        scheduled = None if self._closed else host.first_from_scheduler()
        if scheduled is not None and self._may_start(host, scheduled[1].request):
            self._ready.setdefault(host.name, host)
            self._engine.wake()
        if self._reservations is not None and not host.in_progress and not self._is_wanted(host):
            self._reservations.cancel(host)
            self._reservations.release(host, 0)
        self._forget_if_over(host)

    @staticmethod
    def _first_called(host: Host) -> tuple[Any, WaitingRequest] | None:
        """The first that does not wait for the engine, and where it is."""
        if host.robots_txt:
            return host.robots_txt, host.robots_txt[0]
        found = host.first_from_callers()
        return (found[0].from_callers, found[1]) if found else None

    def _may_start(self, host: Host, request: Request) -> bool:
        """Whether a request may start now; if not, :meth:`_update` is called in time."""
        limits = self._engine.slot_limits(request)
        left = host.seconds_left(self._clock.monotonic(), *limits)
        if left:
            if left < inf and host.timer is None:
                host.timer = self._clock.call_later(left, self._delay_is_over, host)
            return False
        if self._reservations is None or not host.delay or self._reservations.is_held(host):
            return True
        self._reservations.request(host)
        return False

    def _delay_is_over(self, host: Host) -> None:
        host.timer = None
        self._update(host)

    def _is_wanted(self, host: Host) -> bool:
        """Whether somebody waits for a host who might go on."""
        return not self._closed and bool(
            host.robots_txt or host.first_from_callers() or host.first_from_scheduler()
        )

    def _is_preceded(self, host: Host, request: Request) -> bool:
        """Whether somebody waits for a host who comes before a request that came just now."""
        if _is_robots_request(request):
            return bool(host.robots_txt)
        if request not in self.from_scheduler:
            return bool(host.robots_txt or host.first_from_callers())
        return self._is_wanted(host)

    def _evict(self, more_than: int) -> list[Request]:
        """Take back what some origins have parked beyond their share of the capacity.

        The share is what each has if all have the same, and at least ``more_than``.
        """
        lines = [
            line
            for host in self.hosts.values()
            for line in host.queues.values()
            if line.from_scheduler
        ]
        share = max(self.capacity // (len(lines) + 1), more_than, 1)
        evicted: list[Request] = []
        for line in lines:
            if len(line.from_scheduler) <= share:
                continue
            parked = [entry for entry in line.from_scheduler if entry.waiting is None]
            for entry in reversed(parked[share:]):  # of the lowest priority, and the last to come
                line.from_scheduler.remove(entry)
                self._left(entry)
                evicted.append(entry.request)
        evicted.reverse()
        return evicted

    def _forget_if_over(self, host: Host) -> None:
        """Remove what there is nothing to remember of."""
        host.remove_empty_queues()
        if host.is_idle and not host.delays and self.hosts.get(host.name) is host:
            del self.hosts[host.name]
            self._ready.pop(host.name, None)
            if host.timer is not None:
                host.timer.cancel()
                host.timer = None

    def _drop_oldest(self) -> None:
        """Forget the pace of the host that has not been asked for the longest time."""
        for _ in range(min(len(self.hosts) - self._most_hosts, MAX_PER_PASS)):
            host = next(iter(self.hosts.values()))
            if host.is_idle and not host.seconds_left(self._clock.monotonic(), 1):
                host.delays.clear()
                self._forget_if_over(host)
            else:
                self.hosts.move_to_end(host.name)

    # What is under way.

    def _start(self, host: Host, entry: WaitingRequest) -> None:
        host.in_progress[entry.request] = entry
        self._in_progress[entry.request] = host

    def _withdraw(self, request: Request) -> WaitingRequest | None:
        self._unjudged.discard(request)
        host = self._in_progress.pop(request, None)
        return host.in_progress.pop(request, None) if host is not None else None

    def _begin_pace(self, host: Host) -> None:
        """A host begins to ask for a pace, which holds for what the downloader has already, too."""

        def is_to_host(request: Request) -> bool:
            key = origin_of(self._rendering.page_url(request))
            return key is not None and host_of(key) == host.name

        for request in self._engine.active:
            # Those that have not come to the middleware yet are let go, or wait, when they come.
            if request not in self._waiting and is_to_host(request):
                self._start(host, host.in_progress.get(request) or self._entry(request))
        for request, download, put_back in self._engine.take_queued(is_to_host):
            entry = self._withdraw(request) or self._entry(request)
            waiter: Deferred[bool] = Deferred()
            waiter.addCallback(self._leave_queue, request, download, put_back)
            self._waiting.add(request)
            self._engine.exclude(request)
            add(host.queue(EXEMPT).from_callers, entry._replace(waiting=waiter))

    def _leave_queue(
        self, goes_on: bool, request: Request, download: Deferred[Any], put_back: Callable[[], None]
    ) -> None:
        """A request that was taken from the queue of its slot waits no more."""
        if download.called:  # it was cancelled
            self.finish(request, sent=False)
        elif goes_on:
            put_back()
        elif self.can_reschedule(request):
            download.callback(request)
        else:
            download.errback(IgnoreRequest("the spider is closing"))

    # What Scrapy tells.

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            connect = self._crawler.signals.connect
            connect(self._left_downloader, signal=signals.request_left_downloader)
            connect(self._response_received, signal=signals.response_received)

    def _left_downloader(self, request: Request) -> None:
        self.finish(request, sent=True)

    def _response_received(self, request: Request, response: Response) -> None:
        # What a cache has answered was not sent.
        self.finish(request, sent="cached" not in response.flags)


def _is_robots_request(request: Request) -> bool:
    return bool(request.meta.get("is_robotstxt_request"))
