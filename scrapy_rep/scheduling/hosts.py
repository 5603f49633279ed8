"""One host: the requests that wait for it, in their order, and its pace. No I/O.

Requests of one origin wait in one :class:`WaitQueue`: the highest priority first, then in the order
of arrival. A host has a queue for each of its origins, because each origin has its own policy. All
of them share the pace of the host. Times are seconds on a monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from enum import Enum
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from .clock import Timer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy import Request
    from twisted.internet.defer import Deferred

    from .clock import Clock

EXEMPT = ""
"""The key of the queue of requests that need not obey robots.txt, but keep the pace of the host."""

OVERDUE = "overdue"
"""The key of the queue of requests that may not wait for an unreachable origin any longer."""


class BlockReason(Enum):
    """Why no request of a queue may start, whatever the pace of the host."""

    POLICY = "the robots.txt of the origin is being fetched"
    FETCH_LIMIT = "too many other robots.txt files are being fetched"
    UNREACHABLE = "the robots.txt of the origin is unreachable, and is fetched again later"
    VISIT_TIME = "the Visit-time of the site does not include this time of day"


class Limit(Enum):
    """Why a request may not wait for the next attempt at an unreachable origin. It is *overdue*."""

    TIME = "time"
    NUMBER = "number"

    def __str__(self) -> str:
        return self.value


class WaitingRequest(NamedTuple):
    """One request that waits."""

    sort_key: tuple[int, int]
    """The priority times -1, and a number that grows with each arrival."""
    request: Request
    waiter: Deferred[bool] | None = None
    """Fires when the request may continue: True, or False because the spider closes. None for a
    request that is not in the downloader: it is queued until the engine takes it."""
    arrived: float = 0
    """When it began to wait."""
    for_policy: bool | None = None
    """Whether it waits for a robots.txt, and not only for the pace of its host. None if this is not
    known."""
    limit: Limit | None = None
    """Why the request is overdue, if it is."""


class WaitQueue:
    """The requests of one origin that wait."""

    __slots__ = ("blocks", "from_callers", "from_scheduler", "key", "overflowed")

    def __init__(self, key: str) -> None:
        self.key = key
        self.blocks: dict[BlockReason, Timer | None] = {}
        """Why no request may start, each reason with the timer that ends it, if there is one."""
        self.from_scheduler: list[WaitingRequest] = []
        """Requests from the scheduler. They start when the engine takes its next request."""
        self.from_callers: list[WaitingRequest] = []
        """Requests of callers of ``engine.download_async``. They start as soon as the host allows
        it: the engine itself may wait for such a caller, so they never wait for the engine."""
        self.overflowed: dict[str, int] = {}
        """How many more requests of the scheduler are in the overflow, by name. They come after
        those of ``from_scheduler``."""

    def __len__(self) -> int:
        here = len(self.from_scheduler) + len(self.from_callers)
        return here + sum(self.overflowed.values()) if self.overflowed else here

    def entries(self) -> list[WaitingRequest]:
        """Return the requests of the queue that are not in the overflow, in their order."""
        return sorted((*self.from_callers, *self.from_scheduler), key=_sort_key)

    def first(self) -> Request | None:
        """Return the first of these requests, if there is one."""
        entries = (*self.from_callers[:1], *self.from_scheduler[:1])
        return min(entries, key=_sort_key).request if entries else None

    def unblock(self, reason: BlockReason) -> None:
        """Remove a reason, and cancel its timer."""
        timer = self.blocks.pop(reason, None)
        if timer is not None:
            timer.cancel()

    def unblock_all(self) -> None:
        """Remove every reason, and cancel the timers."""
        for reason in tuple(self.blocks):
            self.unblock(reason)


class Host:
    """One host: its queues, its requests in progress and its delay."""

    __slots__ = (
        "delay",
        "delays",
        "in_progress",
        "last_end",
        "name",
        "queues",
        "robots_txt",
        "timer",
    )

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.queues: dict[str, WaitQueue] = {}
        """By origin, or by :data:`EXEMPT` or :data:`OVERDUE`."""
        self.robots_txt: list[WaitingRequest] = []
        """Requests for a robots.txt. They start before all others."""
        self.delays: dict[str, float] = {}
        """The delays of the origins, in seconds between two requests."""
        self.delay = 0.0
        """The longest of these delays."""
        self.last_end = -inf
        """When the last request to the host ended."""
        self.in_progress: dict[Request, WaitingRequest] = {}
        self.timer = Timer(clock)
        """Updates the host when its delay is over."""

    @property
    def waiting(self) -> int:
        """How many requests wait in the queues, those in the overflow included."""
        return sum(map(len, self.queues.values()))

    def queue(self, key: str) -> WaitQueue:
        """Return the queue of an origin, which is created if there is none."""
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = WaitQueue(key)
        return queue

    def entries(self) -> Iterator[WaitingRequest]:
        """Return every request that waits, but for those in the overflow."""
        return chain(self.robots_txt, *self._lists())

    def _lists(self) -> Iterator[list[WaitingRequest]]:
        for queue in self.queues.values():
            yield queue.from_callers
            yield queue.from_scheduler

    def move_overdue(
        self, queue: WaitQueue, limits: Mapping[tuple[int, int], Limit | None]
    ) -> None:
        """Move the requests with these sort keys to the queue :data:`OVERDUE`."""
        overdue = self.queue(OVERDUE)
        for source, target in (
            (queue.from_callers, overdue.from_callers),
            (queue.from_scheduler, overdue.from_scheduler),
        ):
            for entry in source:
                if entry.sort_key in limits:
                    add(target, entry._replace(limit=limits[entry.sort_key]))
            source[:] = [entry for entry in source if entry.sort_key not in limits]

    def move_overflow(self, queue: WaitQueue) -> None:
        """Move the requests of a queue that are in the overflow to the queue :data:`OVERDUE`."""
        if queue.overflowed:
            overflowed = self.queue(OVERDUE).overflowed
            for name, number in queue.overflowed.items():
                overflowed[name] = overflowed.get(name, 0) + number
            queue.overflowed.clear()

    def remove(self, entry: WaitingRequest) -> WaitingRequest | None:
        """Remove a request that waits, and return it as it waited. Return None if it did not."""
        if entry in self.robots_txt:
            self.robots_txt.remove(entry)
            return entry
        for entries in self._lists():
            if (removed := _remove(entries, entry)) is not None:
                return removed
        return None

    def overdue(self) -> Iterator[WaitingRequest]:
        """Return the requests that have waited for too long, of all origins."""
        queue = self.queues.get(OVERDUE)
        return iter(()) if queue is None else chain(queue.from_callers, queue.from_scheduler)

    def has_overdue_overflow(self, key: str) -> bool:
        """Whether requests of an origin that have waited for too long are in the overflow."""
        queue = self.queues.get(OVERDUE)
        return queue is not None and key in queue.overflowed

    def remove_empty_queues(self) -> None:
        """Remove the queues that have no requests and are not blocked."""
        for queue in tuple(self.queues.values()):
            if not queue and not queue.blocks:
                del self.queues[queue.key]

    def cancel_timers(self) -> None:
        """Cancel the timer of the delay, and those of the queues. Nothing is blocked any longer."""
        self.timer.cancel()
        for queue in self.queues.values():
            queue.unblock_all()

    def set_delay(self, key: str, seconds: float) -> None:
        """Set the delay of an origin; 0 removes it. The longest delay counts."""
        if seconds:
            self.delays[key] = seconds
        else:
            self.delays.pop(key, None)
        self.delay = max(self.delays.values(), default=0.0)

    def seconds_left(self, now: float, concurrency: int, delay: float = 0) -> float:
        """Return the seconds until one more request may start.

        0 means now. Infinity means when a request that is in progress has ended. ``concurrency`` is
        the limit of requests in progress if no origin has a delay. ``delay`` is the delay
        in seconds that the crawl itself keeps.
        """
        if not self.delay:
            return 0 if len(self.in_progress) < concurrency else inf
        if self.in_progress:
            return inf
        return max(self.last_end + max(self.delay, delay) - now, 0)

    @property
    def is_idle(self) -> bool:
        """Whether no request waits and none is in progress."""
        return not (self.queues or self.robots_txt or self.in_progress)

    def first_immediate(self) -> WaitingRequest | None:
        """Return the first request that starts as soon as the host allows it."""
        if self.robots_txt:
            return self.robots_txt[0]
        return self.first_from_callers()

    def first_from_callers(self) -> WaitingRequest | None:
        """Return the first request of a caller in a queue that is not blocked."""
        first = None
        for queue in self.queues.values():
            if queue.from_callers and not queue.blocks:
                first = _earlier(first, queue.from_callers[0])
        return first

    def first_from_scheduler(self) -> WaitingRequest | None:
        """Return the first request from the scheduler in a queue that is not blocked."""
        first = None
        for queue in self.queues.values():
            if queue.from_scheduler and not queue.blocks:
                first = _earlier(first, queue.from_scheduler[0])
        return first


def add(entries: list[WaitingRequest], entry: WaitingRequest) -> None:
    """Add a request to a sorted list."""
    insort(entries, entry, key=_sort_key)


def _remove(entries: list[WaitingRequest], entry: WaitingRequest) -> WaitingRequest | None:
    """Remove a request from a sorted list, and return it. Return None if it was not there."""
    index = bisect_left(entries, entry.sort_key, key=_sort_key)
    if index == len(entries) or entries[index].sort_key != entry.sort_key:
        return None
    return entries.pop(index)


def _sort_key(entry: WaitingRequest) -> tuple[int, int]:
    return entry.sort_key


def _earlier(one: WaitingRequest | None, other: WaitingRequest) -> WaitingRequest:
    return other if one is None or other.sort_key < one.sort_key else one
