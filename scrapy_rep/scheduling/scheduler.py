"""Stands between the engine and the scheduler of a crawl, and keeps the requests that have to wait.

When the engine asks for its next request, it gets one that can go on: one that has waited and whose
time has come, or the next one from the scheduler. A request from the scheduler that has to wait is
parked, so that it uses up nothing but a little memory. Requests go back to the scheduler when the
spider closes, and when more are parked than there is room for. They are then the same as before.
"""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Any

from scrapy.core.scheduler import BaseScheduler
from scrapy.dupefilters import BaseDupeFilter

from ..meta_keys import PAGE_DIRECTIVES, ROBOTSTXT, USAGE
from ..protocol.pages import PageDirectives
from ..protocol.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request, Spider
    from twisted.internet.defer import Deferred

    from .clock import Clock
    from .engine import Engine
    from .throttle import Throttle

logger = logging.getLogger(__name__)

MAX_PER_PASS = 100
"""Requests that are looked at, one after the other, for one that can go on. Then the loop turns."""

PAUSE = 0.5
SHORTEST_PAUSE = 0.02
"""Seconds for which the scheduler is not asked, once there is no room for what it gives. The
shorter one while it may have requests that were not looked at."""

PAUSE_FACTOR = 10
"""A pause is at least so many times as long as the look at the requests before it."""


class WaitingScheduler(BaseScheduler):
    """The scheduler that the engine sees. Whatever is not defined here is that of ``scheduler``.

    ``queue_for`` tells the host and the line in which a request has to wait, None if it has not to.
    ``park`` keeps it there, as :meth:`~scrapy_rep.scheduling.throttle.Throttle.park`.
    """

    def __init__(
        self,
        scheduler: Any,
        throttle: Throttle,
        engine: Engine,
        clock: Clock,
        queue_for: Callable[[Request], tuple[str, str] | None],
        park: Callable[[Request, tuple[str, str]], tuple[bool, list[Request]]],
    ) -> None:
        self._scheduler = scheduler
        self._throttle = throttle
        self._engine = engine
        self._clock = clock
        self._queue_for = queue_for
        self._enqueue_waiting = park
        self._lookahead: Request | None = None
        """The next request from the scheduler, which does not have to wait."""
        self._prefers_waiting = True
        self._resumes_at: float | None = None
        """When the scheduler is asked again, while there is no room for what it gives."""
        self._unseen = inf
        """How many requests the scheduler may have that were not looked at."""
        self._unstored: list[Request] = []
        """Requests that the scheduler has given and could not take back."""
        # That of scrapy-redis (SCHEDULER_IDLE_BEFORE_CLOSE).
        self._blocks = bool(getattr(scheduler, "idle_before_close", 0))
        """Whether the scheduler blocks for seconds if it is asked while it has no requests."""
        self._rescheduling: set[Request] = set()
        throttle.can_reschedule = self.can_reschedule

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def __len__(self) -> int:
        return len(self._scheduler) + self._kept

    @property
    def _kept(self) -> int:
        return self._throttle.queued + len(self._unstored) + (self._lookahead is not None)

    def open(self, spider: Spider) -> Deferred[None] | None:
        """Called by the engine, before there is anything to wait for."""
        opened: Deferred[None] | None = self._scheduler.open(spider)
        return opened

    def close(self, reason: str) -> Deferred[None] | None:
        """Called by the engine at the end: everything goes back to the scheduler."""
        requests = self._throttle.drain()
        if self._lookahead is not None:
            requests.append(self._lookahead)
            self._lookahead = None
        requests += self._unstored
        self._unstored = []
        # Scrapy's queues give back first what came last.
        for request in reversed(requests):
            self._reschedule(request)
        if self._unstored:
            logger.error(
                "The scheduler did not take back %(count)d requests that were waiting: they are "
                "lost, such as %(request)s.",
                {"count": len(self._unstored), "request": self._unstored[0]},
            )
        # Scrapy does without it where a scheduler has none.
        close = getattr(self._scheduler, "close", None)
        closed: Deferred[None] | None = close(reason) if close is not None else None
        return closed

    def has_pending_requests(self) -> bool:
        """Whether there are requests, in the scheduler or here."""
        return bool(self._kept or self._scheduler.has_pending_requests())

    def enqueue_request(self, request: Request) -> bool:
        """Store a request. False if it is dropped, as a duplicate for instance."""
        if request.meta:
            remove_annotations(request.meta)
        if request in self._rescheduling:
            self._rescheduling.discard(request)
            self._reschedule(request)
            return True
        stored: bool = self._scheduler.enqueue_request(request)
        self._unseen = inf
        if self._resumes_at is not None:
            self._pause(SHORTEST_PAUSE)
        return stored

    def next_request(self) -> Request | None:
        """The next request that can go on; None if there is none at the moment."""
        if self._throttle.hosts or self._lookahead is not None or self._unstored:
            request = self._choose()
        else:
            request = self._scheduler.next_request()
        if request is not None:
            self._throttle.from_scheduler.add(request)
        return request

    def can_reschedule(self, request: Request) -> bool:
        """Whether a request that a downloader middleware returns goes back to the scheduler.

        If so, it is stored unchanged, and is no duplicate. If not, the caller of
        ``engine.download_async`` would have it downloaded at once.
        """
        if request not in self._throttle.from_scheduler or request in self._rescheduling:
            return False
        self._rescheduling.add(request)
        return True

    def _choose(self) -> Request | None:
        """A request that has waited, or one from the scheduler: the more urgent, or in turn."""
        while True:
            ahead = self._look_ahead()
            entry = self._throttle.peek()
            if entry is None and ahead is None:
                self._throttle.collect_finished()
                entry = self._throttle.peek()
                if entry is None:
                    return None
            if entry is None or (
                ahead is not None and self._comes_first(ahead, -entry.sort_key[0])
            ):
                assert ahead is not None
                self._lookahead = None
                self._prefers_waiting = True
                self._throttle.start(ahead)
                return ahead
            self._prefers_waiting = False
            request = self._throttle.pop()
            if request is not None or not self._engine.has_capacity:
                return request

    def _comes_first(self, ahead: Request, priority: int) -> bool:
        if ahead.priority != priority:
            return ahead.priority > priority
        return not self._prefers_waiting

    def _look_ahead(self) -> Request | None:
        """The next request from the scheduler that does not have to wait. The others are parked."""
        began = self._clock.monotonic()
        refused: list[Request] = []
        full: set[tuple[str, str]] = set()
        try:
            for _ in range(MAX_PER_PASS):
                request, self._lookahead = self._lookahead or self._pull(), None
                if request is None:
                    break
                line = self._queue_for(request)
                if line is None:
                    self._lookahead = request
                    break
                if line in full or not self._enqueue(request, line):
                    full.add(line)
                    refused.append(request)
            else:
                self._engine.wake()
        finally:  # the scheduler may raise
            for request in reversed(refused):
                self._reschedule(request)
        if refused:
            if self._unseen == inf:
                self._unseen = self._size
            self._unseen -= len(refused)
            if self._lookahead is None:
                took = self._clock.monotonic() - began
                shortest = SHORTEST_PAUSE if self._unseen > 0 else PAUSE
                self._pause(max(PAUSE_FACTOR * took, shortest))
        return self._lookahead

    @property
    def _size(self) -> int:
        """How many requests the scheduler has; 0 where it does not say."""
        return len(self._scheduler) if hasattr(self._scheduler, "__len__") else 0

    def _pause(self, seconds: float) -> None:
        """Ask the scheduler in so many seconds, unless there is room before."""
        resumes_at = self._clock.monotonic() + seconds
        if self._resumes_at is None or resumes_at < self._resumes_at:
            self._clock.call_later(seconds, self._engine.wake)
            self._resumes_at = resumes_at

    def _pull(self) -> Request | None:
        if self._resumes_at is not None:
            is_full = self._throttle.queued >= self._throttle.capacity
            if is_full and self._clock.monotonic() < self._resumes_at:
                return None
            self._resumes_at = None
        if self._unstored:
            return self._unstored.pop()
        if self._blocks and self._kept and not self._scheduler.has_pending_requests():
            return None
        request: Request | None = self._scheduler.next_request()
        return request

    def _enqueue(self, request: Request, line: tuple[str, str]) -> bool:
        """Keep a request until it can go on. Whether there is room for it."""
        kept, evicted = self._enqueue_waiting(request, line)
        for other in reversed(evicted):
            self._reschedule(other)
        return kept

    def _reschedule(self, request: Request) -> None:
        """Store a request that the scheduler has given, as it is."""
        try:
            self._store(request)
        except Exception:
            self._unstored.append(request)
            logger.exception("The scheduler does not take back %(request)s", {"request": request})

    def _store(self, request: Request) -> None:
        duplicates = getattr(self._scheduler, "df", None)
        if duplicates is not None:
            self._scheduler.df = BaseDupeFilter()  # which knows no duplicates
            try:
                self._scheduler.enqueue_request(request)
            finally:
                self._scheduler.df = duplicates
        elif not self._scheduler.enqueue_request(request) and not request.dont_filter:
            # It has a filter that is not known here.
            request.dont_filter = True
            try:
                self._scheduler.enqueue_request(request)
            finally:
                request.dont_filter = False


def remove_annotations(meta: dict[str, Any]) -> None:
    """Remove what this package has noted about one request, or about its response.

    It is not for another request to which a spider or a middleware copies it. What somebody else
    keeps under these names stays.
    """
    if isinstance(meta.get(ROBOTSTXT), Verdict):
        del meta[ROBOTSTXT]
    if isinstance(meta.get(PAGE_DIRECTIVES), PageDirectives):
        del meta[PAGE_DIRECTIVES]
        meta.pop(USAGE, None)
