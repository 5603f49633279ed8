"""The pace that a robots.txt asks of one crawler: how far apart, and at what time of day.

Crawl-delay, Request-rate and Visit-time are in no RFC; where a delay and a rate are both given the
slower holds.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import RequestRate, Window
    from .robotstxt import RobotsTxt

MAX_NAMED_RATES = 3
"""Rates that are named in words."""

_DAY = 86_400
_MINUTES = 24 * 60


class Pacing(NamedTuple):
    """What one group asks for. Times are seconds since 1970; a time of day is UTC."""

    delay: float = 0
    """The seconds between two requests where no rate asks for more."""
    changes: tuple[int, ...] = ()
    """The minutes of the day at which another rate begins to hold, the first of them 0."""
    seconds: tuple[float, ...] = ()
    """The seconds between two requests from each of these on, by the slowest rate."""
    hours: Window | None = None

    @classmethod
    def of(cls, robots: RobotsTxt, agents: tuple[str, ...]) -> Pacing | None:
        """What the group of these product tokens asks for; None where it asks for nothing."""
        changes, seconds = _of_the_day(robots.request_rates(agents))
        delay = robots.crawl_delay(agents) or 0
        pacing = cls(delay, changes, seconds, robots.visit_time(agents))
        return pacing if any(pacing) else None

    def seconds_between(self, now: float) -> float:
        """The seconds that are to lie between two requests at this time."""
        if not self.changes:
            return self.delay
        minute = now % _DAY / 60
        return max(self.delay, self.seconds[bisect_right(self.changes, minute) - 1])

    def seconds_until_visit_time(self, now: float) -> float:
        """The seconds until the Visit-time begins; 0 within it, and where there is none."""
        if self.hours is None or self.hours.contains(now % _DAY / 60):
            return 0
        return (self.hours.start * 60 - now) % _DAY


def describe(robots: RobotsTxt, agents: tuple[str, ...]) -> str:
    """What the group of these product tokens asks for, in words; empty where it asks for nothing.

    Of many rates the first few are named.
    """
    wishes = []
    if delay := robots.crawl_delay(agents):
        wishes.append(f"Crawl-delay: {delay:g}")
    rates = robots.request_rates(agents)
    wishes += [f"Request-rate: {rate}" for rate in rates[:MAX_NAMED_RATES]]
    if len(rates) > MAX_NAMED_RATES:
        wishes.append(f"and {len(rates) - MAX_NAMED_RATES} more")
    if hours := robots.visit_time(agents):
        wishes.append(f"Visit-time: {hours}")
    return ", ".join(wishes)


def _of_the_day(rates: Iterable[RequestRate]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The slowest rate at each time of a day, so that it need not be looked for when asked.

    A day has few minutes, and a file may hold a rate for each two of them.
    """
    slowest: dict[tuple[int, int], float] = {}
    for rate in rates:
        for span in _spans(rate.window):
            slowest[span] = max(slowest.get(span, 0), rate.seconds / rate.requests)
    beginning: dict[int, list[tuple[float, int]]] = {}
    for (start, end), seconds in slowest.items():
        beginning.setdefault(start, []).append((-seconds, end))
    changes: list[int] = []
    seconds_from: list[float] = []
    # The rates that have begun, the slowest first, and when they end.
    begun: list[tuple[float, int]] = []
    for minute in range(_MINUTES) if slowest else ():
        for one in beginning.get(minute, ()):
            heappush(begun, one)
        while begun and begun[0][1] <= minute:
            heappop(begun)
        now = -begun[0][0] if begun else 0
        if not changes or now != seconds_from[-1]:
            changes.append(minute)
            seconds_from.append(now)
    return tuple(changes), tuple(seconds_from)


def _spans(window: Window | None) -> list[tuple[int, int]]:
    """The minutes of a window, from and before; two spans where it wraps around midnight."""
    if window is None:
        return [(0, _MINUTES)]
    if window.start < window.end:
        return [(window.start, window.end)]
    return [(0, window.end), (window.start, _MINUTES)]
