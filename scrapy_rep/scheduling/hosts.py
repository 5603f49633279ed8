"""The requests that wait for one host, in their order, and the pace of the host. No I/O.

Requests of one origin wait in one :class:`WaitQueue`, the highest priority first and, among equals,
in the order of arrival. A host has a queue for each of its origins: their policies differ, but the
pace is that of the host. Times are seconds on a monotonic clock.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from enum import Enum
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred


class BlockReason(Enum):
    """Why nobody in a line may go on, whatever the pace of the host."""

    POLICY = "the robots.txt of the origin is being fetched"
    FETCH_LIMIT = "too many others are being fetched"
    VISIT_TIME = "the site wants no visits at this time of day"


class WaitingRequest(NamedTuple):
    """One request that waits."""

    sort_key: tuple[int, int]
    """The priority times -1, and a number that grows with each arrival."""
    request: Request
    waiting: Deferred[bool] | None = None
    """Fires when the request may go on: True, or False because the spider is closing. None for a
    request that is parked: it is not in the downloader, but kept for the engine to ask for."""


class WaitQueue:
    """The requests of one origin that wait."""

    __slots__ = ("blocks", "from_callers", "from_scheduler", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.blocks: set[BlockReason] = set()
        self.from_scheduler: list[WaitingRequest] = []
        """From the scheduler: they go on when the engine asks for its next request."""
        self.from_callers: list[WaitingRequest] = []
        """From callers of ``engine.download_async``: they go on as soon as the host allows it. The
        engine itself may wait for such a caller, so these never wait for the engine."""

    def __len__(self) -> int:
        return len(self.from_scheduler) + len(self.from_callers)


class Host:
    """One host: who waits for it, what is under way to it, and how fast it may be asked."""

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

    def __init__(self, name: str) -> None:
        self.name = name
        self.queues: dict[str, WaitQueue] = {}
        """By origin. ``""`` is the line of requests that need no robots.txt."""
        self.robots_txt: deque[WaitingRequest] = deque()
        """Requests for a robots.txt: they come before all others."""
        self.delays: dict[str, float] = {}
        """The seconds between two requests that each of its origins asks for."""
        self.delay = 0.0
        self.last_end = -inf
        """When the last request to it ended."""
        self.in_progress: dict[Request, WaitingRequest] = {}
        self.timer: CallLaterResult | None = None
        """Looks again when the delay is over."""

    def queue(self, key: str) -> WaitQueue:
        """The line of an origin, a new one if there is none."""
        line = self.queues.get(key)
        if line is None:
            line = self.queues[key] = WaitQueue(key)
        return line

    def entries(self) -> Iterator[WaitingRequest]:
        """Everything that waits."""
        lines = self.queues.values()
        return chain(
            self.robots_txt, *((*line.from_callers, *line.from_scheduler) for line in lines)
        )

    def discard(self, request: Request) -> None:
        """Remove what waits with a request."""
        for entries in (self.robots_txt, *(_lists(self.queues.values()))):
            for entry in entries:
                if entry.request is request:
                    entries.remove(entry)
                    return

    def remove_empty_queues(self) -> None:
        """Remove the lines in which nothing waits and which are not held."""
        for line in tuple(self.queues.values()):
            if not line and not line.blocks:
                del self.queues[line.key]

    def set_delay(self, key: str, seconds: float) -> None:
        """Note what an origin asks for; 0 takes it back. The slowest of a host's origins counts."""
        if seconds:
            self.delays[key] = seconds
        else:
            self.delays.pop(key, None)
        self.delay = max(self.delays.values(), default=0.0)

    def seconds_left(self, now: float, concurrency: int, delay: float = 0) -> float:
        """The seconds until one more request may start.

        0: it may start now; infinite: when one that is under way has ended. ``concurrency``: how
        many may be under way where no origin asks for a pace. ``delay``: the seconds between two
        requests that the crawl itself asks for.
        """
        if not self.delay:
            return 0 if len(self.in_progress) < concurrency else inf
        if self.in_progress:
            return inf
        return max(self.last_end + max(self.delay, delay) - now, 0)

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits and nothing is under way."""
        return not (self.queues or self.robots_txt or self.in_progress)

    def first_from_callers(self) -> tuple[WaitQueue, WaitingRequest] | None:
        """The first of those that a caller waits for."""
        return _first((line, line.from_callers) for line in self.queues.values())

    def first_from_scheduler(self) -> tuple[WaitQueue, WaitingRequest] | None:
        """The first of those that go on when the engine asks."""
        return _first((line, line.from_scheduler) for line in self.queues.values())


def add(entries: list[WaitingRequest], entry: WaitingRequest) -> None:
    """Add an entry in its place."""
    insort(entries, entry, key=lambda one: one.sort_key)


def _lists(lines: Iterable[WaitQueue]) -> Iterator[list[WaitingRequest]]:
    for line in lines:
        yield line.from_callers
        yield line.from_scheduler


def _first(
    lines: Iterable[tuple[WaitQueue, list[WaitingRequest]]],
) -> tuple[WaitQueue, WaitingRequest] | None:
    """The first entry of the lines that are not held."""
    heads = [(line, entries[0]) for line, entries in lines if entries and not line.blocks]
    return min(heads, key=lambda head: head[1].sort_key) if heads else None
