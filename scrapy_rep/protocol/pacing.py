"""The pace of one crawler at a site: how many seconds between two requests, and at which hours.

It follows from Crawl-delay, Request-rate and Visit-time, which `records` reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from .records import MINUTES, RequestRate, VisitTime, pace_text
from .robotstxt import RobotsTxt

_DAY = 60 * MINUTES


class Pacing(NamedTuple):
    """The pace of one group. Times are in seconds since 1970, times of day in UTC.

    If a group has both a delay and a rate, the slower of the two applies.
    """

    delay: float = 0
    """The seconds between two requests, unless a rate states more."""
    seconds: tuple[float, ...] = ()
    """For each minute of the day, the seconds between two requests by the slowest rate."""
    hours: VisitTime | None = None

    @classmethod
    def of(cls, robots: RobotsTxt, agents: tuple[str, ...]) -> Pacing | None:
        """Return the pace for the crawler with these product tokens, or None if none is stated."""
        seconds = _of_the_day(robots.request_rates(agents))
        pacing = cls(robots.crawl_delay(agents) or 0, seconds, robots.visit_time(agents))
        return pacing if any(pacing) else None

    def seconds_between(self, now: float) -> float:
        """Return the seconds between two requests at a time."""
        return max(self.delay, self.seconds[int(now % _DAY) // 60] if self.seconds else 0)

    def seconds_until_visit_time(self, now: float) -> float:
        """Return the seconds until the Visit-time begins. 0 within it, and without one."""
        if self.hours is None or self.hours.contains(now % _DAY / 60):
            return 0
        return (self.hours.start * 60 - now) % _DAY


def describe(robots: RobotsTxt, agents: tuple[str, ...]) -> str:
    """Return the pace for the crawler with these product tokens as text, or "" without one."""
    rates = robots.request_rates(agents)
    return pace_text(robots.crawl_delay(agents), rates, robots.visit_time(agents))


def _of_the_day(rates: Iterable[RequestRate]) -> tuple[float, ...]:
    """Return the seconds between requests by the slowest rate, for each minute of the day.

    A file may have a rate for each pair of minutes. A crawl needs the slowest before every request.
    """
    slowest: dict[tuple[int, int], float] = {}
    for rate in rates:
        for span in rate.window.spans() if rate.window else [(0, MINUTES)]:
            slowest[span] = max(slowest.get(span, 0), rate.seconds / rate.requests)
    day: list[float] = [0] * MINUTES if slowest else []
    for (start, end), seconds in sorted(slowest.items(), key=itemgetter(1)):
        day[start:end] = [seconds] * (end - start)
    return tuple(day)
