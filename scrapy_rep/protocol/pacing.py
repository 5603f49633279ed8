"""The pace that a robots.txt asks of one crawler: how far apart, and at what time of day.

Crawl-delay, Request-rate and Visit-time are in no RFC; where a delay and a rate are both given the
slower holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .records import RequestRate, Window
    from .robotstxt import RobotsTxt

_DAY = 86_400


class Pacing(NamedTuple):
    """What one group asks for. Times are seconds since 1970; a time of day is UTC."""

    delay: float = 0
    rates: tuple[RequestRate, ...] = ()
    """One for a window, the slowest."""
    hours: Window | None = None

    @classmethod
    def of(cls, robots: RobotsTxt, agents: tuple[str, ...]) -> Pacing | None:
        """What the group of these product tokens asks for; None where it asks for nothing."""
        slowest: dict[Window | None, RequestRate] = {}
        for rate in robots.request_rates(agents):
            slowest[rate.window] = max(slowest.get(rate.window, rate), rate, key=_seconds)
        pacing = cls(
            robots.crawl_delay(agents) or 0, tuple(slowest.values()), robots.visit_time(agents)
        )
        return pacing if any(pacing) else None

    def seconds_between(self, now: float) -> float:
        """The seconds that are to lie between two requests at this time."""
        if not self.rates:
            return self.delay
        minute = now % _DAY / 60
        rates = (
            _seconds(rate)
            for rate in self.rates
            if rate.window is None or rate.window.contains(minute)
        )
        return max(self.delay, *rates, 0)

    def seconds_until_welcome(self, now: float) -> float:
        """The seconds until the Visit-time begins; 0 within it, and where there is none."""
        if self.hours is None or self.hours.contains(now % _DAY / 60):
            return 0
        return (self.hours.start * 60 - now) % _DAY


def _seconds(rate: RequestRate) -> float:
    """Those from one request to the next."""
    return rate.seconds / rate.requests
