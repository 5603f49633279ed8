"""A scheduler between the engine and the crawl's scheduler, which queues requests that must wait.

The engine gets requests that may start: those that have waited, and those of the crawl's scheduler
that do not have to. A request that has to wait is queued in the :class:`~.throttle.Throttle`, where
it uses up nothing but memory. Requests go back to the scheduler unchanged when the spider closes.
"""

from __future__ import annotations

import logging
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from ..meta_keys import PAGE_DIRECTIVES, ROBOTSTXT, USAGE, USAGE_SOURCES
from ..protocol.pages import PageDirectives
from ..protocol.verdict import Verdict
from .clock import Timer, sleep
from .drop_pace import DropPace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from scrapy import Request, Spider
    from twisted.internet.defer import Deferred

    from .clock import Clock
    from .engine import Engine
    from .hosts import WaitingRequest
    from .throttle import Throttle

logger = logging.getLogger(__name__)

MAX_PER_PASS = 100
MAX_PASS_SECONDS = 0.002
"""How many requests of the scheduler are read in one pass, in search of one that may start, and for
how long. After a pass the event loop runs, so that other requests proceed."""

MAX_PER_STEP = 2
"""How many requests start before the event loop runs, in a crawl in which requests wait. Without
this limit, pages that end together are followed by others that end together again. Then each of
them waits until all are processed."""

PAUSE = 0.5
MIN_PAUSE = 0.02
"""Seconds for which the scheduler is not read when as many requests wait as REP_MAX_WAITING allows.
The shorter pause applies after a new request."""

BACKOFF_READS = 100_000
"""After how many requests that all have to wait a pause is as long as a pass. So these are read
quickly, and a scheduler with millions of requests of slow sites does not go to the overflow at
once."""

REST = 49
"""For how long the requests of busy hosts stay in the scheduler after a pass that may read them, in
multiples of the duration of that pass. Most of them have to wait. Some may start: those that need
not obey robots.txt, and those of another origin of the host."""

MIN_IN_A_ROW = 5
"""After so many requests that all have to wait, the next ones are moved to the overflow without
being read, where that is possible."""

MAX_AT_ONCE = 1000
"""How many requests go back to the scheduler at once when the spider closes. After that the event
loop runs."""


class WaitingScheduler(BaseScheduler):
    """The scheduler that the engine uses. It passes other attributes on to ``scheduler``.

    ``queue_for`` returns the host and the key of the queue in which a request has to wait, or None.
    ``enqueue`` puts it there.
    """

    def __init__(
        self,
        scheduler: Any,
        throttle: Throttle,
        engine: Engine,
        clock: Clock,
        queue_for: Callable[[Request], tuple[str, str] | None],
        enqueue: Callable[[Request, tuple[str, str]], object],
    ) -> None:
        self._scheduler = scheduler
        self._throttle = throttle
        self._engine = engine
        self._clock = clock
        self._queue_for = queue_for
        self._enqueue = enqueue
        self._next: Request | None = None
        """The next request of the scheduler that does not have to wait."""
        self._prefers_waiting = True
        """Whether a request that has waited comes before one of the scheduler of its priority."""
        self._ahead_timer = Timer(clock)
        self._has_read_ahead = False
        """Whether the scheduler was read ahead, and had no request that may start."""
        self._pause_timer = Timer(clock)
        self._paused_until: float | None = None
        """When the scheduler is read again after a pass that found no request that may start."""
        self._was_full = False
        """Whether there was no capacity for its requests when the pause began."""
        self._reads_in_excess = 0
        """How many requests were read, beyond the capacity, since the last one that may start."""
        self._rests_until = -inf
        """Until when the requests of busy hosts stay in the scheduler."""
        self._passes_over = False
        """Whether they stay there in this pass."""
        self._has_passed_over = False
        """Whether there were such requests in this pass."""
        self._rest_timer = Timer(clock)
        self._in_a_row = 0
        """How many requests were read, since the last one that may start."""
        self._steps = 0
        """How many requests were started since the event loop ran."""
        self._step_timer = Timer(clock)
        self._drop_pace = DropPace(engine, clock)
        self._pass_ended = -inf
        self._pass_seconds = 0.0
        self._unstored: list[Request] = []
        """Requests for which the scheduler raised an exception when they were stored again."""
        # An attribute of the scheduler of scrapy-redis (SCHEDULER_IDLE_BEFORE_CLOSE).
        self._blocks = bool(getattr(scheduler, "idle_before_close", 0))
        """Whether the scheduler blocks for seconds if it is read while it has no requests."""
        self._rescheduling: set[Request] = set()
        throttle.try_reschedule = self.try_reschedule
        throttle.blocks.on_queue_change = self._shorten_pause
        engine.readable = self._readable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + self._kept

    @property
    def _kept(self) -> int:
        """How many requests were taken from the scheduler and not given to the engine."""
        queues = self._throttle.queues
        here = len(self._unstored) + (self._next is not None)
        return queues.queued + queues.overflowed + here

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Open the scheduler. The engine calls this before any request waits."""
        opened: Deferred[None] | None = self._scheduler.open(spider)
        return opened

    def close(self, reason: str) -> Deferred[None] | None:
        """Give all requests back to the scheduler, and close it."""
        self._ahead_timer.cancel()
        self._pause_timer.cancel()
        self._rest_timer.cancel()
        self._step_timer.cancel()
        self._drop_pace.cancel()
        first, self._unstored = self._unstored[::-1], []
        if self._next is not None:
            first.append(self._next)
            self._next = None
        # Scrapy's default queues return the latest request first.
        requests = chain(first, self._throttle.drain())
        if self._return(requests):
            return self._close(reason)
        return deferred_from_coro(self._close_later(requests, reason))

    def _return(self, requests: Iterator[Request]) -> bool:
        """Give some requests back to the scheduler. Return whether these were all."""
        for number, request in enumerate(requests, 1):
            self._reschedule(request)
            if number == MAX_AT_ONCE:
                return False
        return True

    async def _close_later(self, requests: Iterator[Request], reason: str) -> None:
        """Give requests back to the scheduler while the event loop runs, and close it."""
        while not self._return(requests):
            await sleep(0)
        closed = self._close(reason)
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def _close(self, reason: str) -> Deferred[None] | None:
        if self._unstored:
            logger.error(
                "The scheduler could not store %(count)d waiting requests again. They are lost, "
                "such as %(request)s.",
                {"count": len(self._unstored), "request": self._unstored[0]},
            )
        # This method is optional for Scrapy.
        close = getattr(self._scheduler, "close", None)
        closed: Deferred[None] | None = close(reason) if close is not None else None
        return closed

    def has_pending_requests(self) -> bool:
        """Whether there are requests, in the scheduler or in a queue of this package."""
        return bool(self._kept or self._scheduler.has_pending_requests())

    def enqueue_request(self, request: Request) -> bool:
        """Store a request. Return False if it is dropped, for instance as a duplicate."""
        if request.meta:
            remove_annotations(request.meta)
        if request in self._rescheduling:
            self._rescheduling.discard(request)
            self._reschedule(request)
            return True
        stored: bool = self._scheduler.enqueue_request(request)
        self._has_read_ahead = False
        if self._paused_until is not None:
            self._pause(MIN_PAUSE)
        return stored

    def next_request(self) -> Request | None:
        """Return the next request that may start, if there is one."""
        throttle = self._throttle
        must_choose = throttle.hosts or throttle.has_disallowed
        if must_choose or self._next is not None or self._unstored:
            request = self._choose()
        else:
            request = self._scheduler.next_request()
        if request is not None:
            throttle.from_scheduler.add(request)
        return request

    def try_reschedule(self, request: Request) -> bool:
        """Prepare to store a request again, which a downloader middleware is about to return.

        Returns whether the middleware may return it. The request is then stored unchanged, and is
        not a duplicate. Returns False for a request that did not come from the scheduler: a caller
        of ``engine.download_async`` waits for it, and the engine would download it at once.
        """
        if request not in self._throttle.from_scheduler or request in self._rescheduling:
            return False
        self._rescheduling.add(request)
        return True

    def _choose(self) -> Request | None:
        """Return a request that has waited, or one of the scheduler.

        The higher priority comes first. With equal priorities they alternate. Requests that are
        dropped when they start get their part of the time, or start when there are no others.
        """
        while True:
            if self._drop_pace.may_start() and (dropped := self._throttle.peek(drop=True)):
                request = self._start_drop(dropped)
                if request is not None or not self._engine.has_capacity:
                    return request
            # A request that has waited starts without a delay.
            needs_read = not self._has_read_ahead or self._throttle.peek() is None
            unthrottled = self._read() if needs_read else None
            self._has_read_ahead = False
            entry = self._throttle.peek()
            if entry is None and unthrottled is None:
                self._throttle.recheck()
                entry = self._throttle.peek()
                if entry is None:
                    dropped = self._throttle.peek(drop=True)
                    if dropped is None or not self._drop_pace.may_start_alone():
                        return None
                    return self._start_drop(dropped)
            if self._steps >= MAX_PER_STEP:
                return None  # the engine is woken when the event loop has run
            if entry is None or (
                unthrottled is not None and self._comes_first(unthrottled, -entry.sort_key[0])
            ):
                assert unthrottled is not None
                self._next = None
                self._prefers_waiting = True
                self._throttle.start(unthrottled)
                self._count_step()
                self._read_ahead_later()
                return unthrottled
            self._prefers_waiting = False
            self._count_step()
            request = self._throttle.pop()
            if request is not None or not self._engine.has_capacity:
                self._read_ahead_later()
                return request

    def _start_drop(self, entry: WaitingRequest) -> Request | None:
        if self._throttle.is_dropped(entry):  # still
            self._drop_pace.start(entry.request)
        else:
            self._count_step()
        return self._throttle.pop(drop=True)

    def _read_ahead_later(self) -> None:
        if not self._ahead_timer.is_active:
            self._ahead_timer.start(0, self._read_ahead)

    def _read_ahead(self) -> None:
        """Look for the next request that may start, while the engine cannot start it."""
        if not (self._engine.has_capacity or self._engine.is_closing):
            self._has_read_ahead = self._read() is None

    def _count_step(self) -> None:
        self._steps += 1
        if not self._step_timer.is_active:
            self._step_timer.start(0, self._end_step)

    def _end_step(self) -> None:
        self._steps = 0
        self._engine.wake()

    def _comes_first(self, request: Request, priority: int) -> bool:
        if request.priority != priority:
            return request.priority > priority
        return not self._prefers_waiting

    def _read(self) -> Request | None:
        """Read the scheduler up to a request that does not have to wait. Queue the others."""
        began = self._clock.monotonic()
        self._passes_over = began < self._rests_until
        self._has_passed_over = False
        request = self._read_on(began)
        now = self._clock.monotonic()
        if not self._passes_over:
            self._rests_until = now + REST * (now - began)
        elif self._has_passed_over and request is None and not self._rest_timer.is_active:
            self._rest_timer.start(max(self._rests_until - now, MIN_PAUSE), self._engine.wake)
        return request

    def _readable(self, names: Collection[str]) -> Collection[str]:
        """Return those of these hosts whose requests may be read in this pass."""
        busy = self._throttle.queues.busy
        if not (busy and self._passes_over):
            return names
        if busy.issuperset(names):  # the usual case
            self._has_passed_over = True
            return ()
        readable = [name for name in names if name not in busy]
        if len(readable) < len(names):
            self._has_passed_over = True
        return readable

    def _read_on(self, began: float) -> Request | None:
        for number in range(1, MAX_PER_PASS + 1):
            request, self._next = self._next or self._pull(), None
            if request is None:
                return None
            queue = self._queue_for(request)
            if queue is None:
                self._next = request
                self._reads_in_excess = self._in_a_row = 0
                return request
            self._enqueue(request, queue)
            self._in_a_row += 1
            if (
                number % 10 == 0 or self._in_a_row > MIN_IN_A_ROW
            ) and self._clock.monotonic() - began > MAX_PASS_SECONDS:
                break
        self._end_pass(began, number)
        return None

    def _end_pass(self, began: float, number: int) -> None:
        """Arrange for the next pass after one that has found no request that may start."""
        self._pass_ended = self._clock.monotonic()
        self._pass_seconds = self._pass_ended - began
        self._was_full = self._throttle.queues.is_full
        if self._was_full:
            self._reads_in_excess += number
            self._pause(min(self._pass_seconds * self._reads_in_excess / BACKOFF_READS, PAUSE))
        elif self._engine.is_downloading:
            self._pause(self._pass_seconds)  # passes take half of the time at most
        else:
            self._engine.wake()

    def _pause(self, seconds: float) -> None:
        """Read the scheduler again after so many seconds, or when no pause is needed any more."""
        until = self._clock.monotonic() + seconds
        if self._paused_until is None or until < self._paused_until:
            self._paused_until = until
            self._pause_timer.start(seconds, self._resume)

    def _needs_pause(self) -> bool:
        """Whether the reason of the pause still holds."""
        return self._throttle.queues.is_full if self._was_full else self._engine.is_downloading

    def _resume(self) -> None:
        self._paused_until = None
        self._engine.wake()

    def _shorten_pause(self) -> None:
        """Read the scheduler soon: some of its requests may no longer have to wait.

        A pause is then as long as the last pass, so that passes take half of the time at most.
        """
        if self._paused_until is not None:
            shortest = self._pass_ended + max(self._pass_seconds, MIN_PAUSE)
            self._pause(max(shortest - self._clock.monotonic(), 0))

    def _pull(self) -> Request | None:
        if self._paused_until is not None:
            if self._clock.monotonic() < self._paused_until and self._needs_pause():
                return None
            self._paused_until = None
            self._pause_timer.cancel()
        if self._unstored:
            return self._unstored.pop()
        if self._blocks and self._kept and not self._scheduler.has_pending_requests():
            return None
        if self._in_a_row >= MIN_IN_A_ROW:
            moved = self._throttle.queues.move_waiting()
            self._reads_in_excess += moved
            if moved < MAX_PER_PASS // 2:
                self._in_a_row = 0
        request: Request | None = self._scheduler.next_request()
        return request

    def _reschedule(self, request: Request) -> None:
        """Store a request of the scheduler again, unchanged."""
        try:
            self._store(request)
        except Exception:
            self._unstored.append(request)
            logger.exception(
                "The scheduler could not store %(request)s again", {"request": request}
            )

    def _store(self, request: Request) -> None:
        duplicates = getattr(self._scheduler, "df", None)
        if duplicates is not None:
            self._scheduler.df = BaseDupeFilter()  # it finds no duplicates
            try:
                self._scheduler.enqueue_request(request)
            finally:
                self._scheduler.df = duplicates
        elif not self._scheduler.enqueue_request(request) and not request.dont_filter:
            # The scheduler has a duplicate filter at another place.
            request.dont_filter = True
            try:
                self._scheduler.enqueue_request(request)
            finally:
                request.dont_filter = False


def remove_annotations(meta: dict[str, Any]) -> None:
    """Remove what this package has noted in ``meta`` about one request, or about its response.

    A spider or a middleware may have copied it to another request. Values of other components under
    the same keys stay.
    """
    if isinstance(meta.get(ROBOTSTXT), Verdict):
        del meta[ROBOTSTXT]
    if isinstance(meta.get(PAGE_DIRECTIVES), PageDirectives):
        del meta[PAGE_DIRECTIVES]
        meta.pop(USAGE, None)
        meta.pop(USAGE_SOURCES, None)
