"""The pace that a robots.txt states for a crawler: the time between requests, and the time of day.

Crawl-delay, Request-rate and Visit-time are in no RFC. If a group has both a delay and a rate, the
slower of the two applies.
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
"""How many Request-rates `describe` lists, so that its text stays short."""

_DAY = 86_400
_MINUTES = 24 * 60


class Pacing(NamedTuple):
    """The pace of one group. Times are in seconds since 1970, times of day in UTC."""

    delay: float = 0
    """The seconds between two requests, unless a rate states more."""
    changes: tuple[int, ...] = ()
    """The minutes of the day at which another rate begins to apply. The first is 0."""
    seconds: tuple[float, ...] = ()
    """For each of these minutes, the seconds between two requests by the slowest rate."""
    hours: Window | None = None
    """The Visit-time."""

    @classmethod
    def of(cls, robots: RobotsTxt, agents: tuple[str, ...]) -> Pacing | None:
        """Return the pace for the crawler with these product tokens, or None if none is stated."""
        changes, seconds = _of_the_day(robots.request_rates(agents))
        delay = robots.crawl_delay(agents) or 0
        pacing = cls(delay, changes, seconds, robots.visit_time(agents))
        return pacing if any(pacing) else None

    def seconds_between(self, now: float) -> float:
        """Return the seconds between two requests at a time."""
        if not self.changes:
            return self.delay
        minute = now % _DAY / 60
        return max(self.delay, self.seconds[bisect_right(self.changes, minute) - 1])

    def seconds_until_visit_time(self, now: float) -> float:
        """Return the seconds until the Visit-time begins. 0 within it, and without one."""
        if self.hours is None or self.hours.contains(now % _DAY / 60):
            return 0
        return (self.hours.start * 60 - now) % _DAY


def describe(robots: RobotsTxt, agents: tuple[str, ...]) -> str:
    """Return the pace for the crawler with these product tokens as text, or "" if none is stated.

    The text has at most `MAX_NAMED_RATES` rates.
    """
    parts = []
    if delay := robots.crawl_delay(agents):
        parts.append(f"Crawl-delay: {delay:g}")
    rates = robots.request_rates(agents)
    parts += [f"Request-rate: {rate}" for rate in rates[:MAX_NAMED_RATES]]
    if len(rates) > MAX_NAMED_RATES:
        parts.append(f"and {len(rates) - MAX_NAMED_RATES} more")
    if hours := robots.visit_time(agents):
        parts.append(f"Visit-time: {hours}")
    return ", ".join(parts)


def _of_the_day(rates: Iterable[RequestRate]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Return the minutes at which the slowest rate changes, and the seconds between requests then.

    The day is computed in advance: a file may have a rate for each pair of minutes, and a crawl
    needs the slowest before every request.
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
    # The rates that have begun, the slowest first, and the minute at which each ends.
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
    """Return the first minute and the end of a window. Two pairs if it wraps around midnight."""
    if window is None:
        return [(0, _MINUTES)]
    if window.start < window.end:
        return [(window.start, window.end)]
    return [(0, window.end), (window.start, _MINUTES)]
