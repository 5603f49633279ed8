"""The requests that wait for one host, in their order, and the pace of the host. No I/O.

Requests of one origin wait in one :class:`Line`, the highest priority first and, among equals, in
the order of arrival. A host has a line for each of its origins: their policies differ, but the pace
is that of the host. Times are seconds on a monotonic clock.
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


class Hold(Enum):
    """Why nobody in a line may go on, whatever the pace of the host."""

    POLICY = "the robots.txt of the origin is being fetched"
    FETCH_LIMIT = "too many others are being fetched"
    VISIT_TIME = "the site wants no visits at this time of day"


class Entry(NamedTuple):
    """One request that waits."""

    order: tuple[int, int]
    """The priority times -1, and a number that grows with each arrival."""
    request: Request
    waiter: Deferred[bool] | None = None
    """Fires when the request may go on: True, or False because the spider is closing. None for a
    request that is parked: it is not in the downloader, but kept for the engine to ask for."""


class Line:
    """The requests of one origin that wait."""

    __slots__ = ("called", "holds", "key", "scheduled")

    def __init__(self, key: str) -> None:
        self.key = key
        self.holds: set[Hold] = set()
        self.scheduled: list[Entry] = []
        """From the scheduler: they go on when the engine asks for its next request."""
        self.called: list[Entry] = []
        """From callers of ``engine.download_async``: they go on as soon as the host allows it. The
        engine itself may wait for such a caller, so these never wait for the engine."""

    def __len__(self) -> int:
        return len(self.scheduled) + len(self.called)


class Host:
    """One host: who waits for it, what is under way to it, and how fast it may be asked."""

    __slots__ = ("delay", "delays", "last_end", "lines", "name", "robots", "timer", "under_way")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: dict[str, Line] = {}
        """By origin. ``""`` is the line of requests that need no robots.txt."""
        self.robots: deque[Entry] = deque()
        """Requests for a robots.txt: they come before all others."""
        self.delays: dict[str, float] = {}
        """The seconds between two requests that each of its origins asks for."""
        self.delay = 0.0
        self.last_end = -inf
        """When the last request to it ended."""
        self.under_way: dict[Request, Entry] = {}
        self.timer: CallLaterResult | None = None
        """Looks again when the delay is over."""

    def line(self, key: str) -> Line:
        """The line of an origin, a new one if there is none."""
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = Line(key)
        return line

    def entries(self) -> Iterator[Entry]:
        """Everything that waits."""
        lines = self.lines.values()
        return chain(self.robots, *((*line.called, *line.scheduled) for line in lines))

    def discard(self, request: Request) -> None:
        """Remove what waits with a request."""
        for entries in (self.robots, *(_lists(self.lines.values()))):
            for entry in entries:
                if entry.request is request:
                    entries.remove(entry)
                    return

    def remove_empty_lines(self) -> None:
        """Remove the lines in which nothing waits and which are not held."""
        for line in tuple(self.lines.values()):
            if not line and not line.holds:
                del self.lines[line.key]

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
            return 0 if len(self.under_way) < concurrency else inf
        if self.under_way:
            return inf
        return max(self.last_end + max(self.delay, delay) - now, 0)

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody waits and nothing is under way."""
        return not (self.lines or self.robots or self.under_way)

    def first_called(self) -> tuple[Line, Entry] | None:
        """The first of those that a caller waits for."""
        return _first((line, line.called) for line in self.lines.values())

    def first_scheduled(self) -> tuple[Line, Entry] | None:
        """The first of those that go on when the engine asks."""
        return _first((line, line.scheduled) for line in self.lines.values())


def add(entries: list[Entry], entry: Entry) -> None:
    """Add an entry in its place."""
    insort(entries, entry, key=lambda one: one.order)


def _lists(lines: Iterable[Line]) -> Iterator[list[Entry]]:
    for line in lines:
        yield line.called
        yield line.scheduled


def _first(lines: Iterable[tuple[Line, list[Entry]]]) -> tuple[Line, Entry] | None:
    """The first entry of the lines that are not held."""
    heads = [(line, entries[0]) for line, entries in lines if entries and not line.holds]
    return min(heads, key=lambda head: head[1].order) if heads else None
