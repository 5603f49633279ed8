"""One host: its pace, its requests in progress, and what waits for it. No I/O, no clock.

The origins of a host have a policy each, and share its pace. Times are seconds on a monotonic
clock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.utils.asyncio import CallLaterResult

    from .frontier import Queue

FIRST_BACKOFF = 1.0
"""Seconds for which a host is held that asks for fewer requests, and does not say for how long. The
time doubles with each such answer in a row."""


@dataclass(slots=True, eq=False)
class Host:
    """One host of a crawl, or one download slot that requests name in their ``meta``."""

    name: str
    limit: float
    """How many requests may be in progress at once."""
    active: int = 0
    """How many requests are in progress."""
    origins: dict[str | None, dict[Queue, None]] = field(default_factory=dict)
    """Its queues with requests, by their origin."""
    ready: dict[Queue, None] = field(default_factory=dict)
    """The queues that are ready: in most crawls, no more of them than may start now."""
    blocked: tuple[OrderedDict[Queue, None], ...] = field(
        default_factory=lambda: (OrderedDict(), OrderedDict(), OrderedDict())
    )
    """The queues that wait for this host or slot alone, by their order. They take turns, so only
    the first one may move."""
    timed: dict[Queue, None] = field(default_factory=dict)
    """The queues that wait for a time which their policy sets."""
    delays: dict[str, float] = field(default_factory=dict)
    """The delays of its origins, in seconds between two requests."""
    delay: float = 0
    """The longest of these delays. 0: none."""
    last_end: float = -inf
    """When the last request to the host ended, but for the robots.txt that sets a delay."""
    backoffs: int = 0
    """How many answers in a row have asked for fewer requests. 0: the last one did not."""
    held_until: float = -inf
    """Until when no request starts because of such an answer."""
    is_paced: bool = False
    """Whether one request starts after the other: there is a delay, or a back-off."""
    was_paced: bool = False
    """The same when all its queues were looked at last."""
    has_delay: bool = False
    """Whether Scrapy's download slot of this name has a delay of its own."""
    unsent: Request | None = None
    """The last request in progress, if it may still wait for that delay."""
    alarm: CallLaterResult | None = None
    """What looks at its queues again, at ``alarm_at``."""
    alarm_at: float = inf

    @property
    def queues(self) -> Iterator[Queue]:
        """Its queues with requests."""
        return chain.from_iterable(self.origins.values())

    @property
    def first_blocked(self) -> Queue | None:
        """The queue whose turn it is when this host or slot is free."""
        return next(chain.from_iterable(self.blocked), None)

    def add(self, queue: Queue) -> None:
        """Add a queue, which has requests now."""
        self.origins.setdefault(queue.address.origin, {})[queue] = None

    def remove(self, queue: Queue) -> None:
        """Remove a queue without requests."""
        own = self.origins[queue.address.origin]
        del own[queue]
        if not own:
            del self.origins[queue.address.origin]

    def set_delay(self, key: str, seconds: float) -> None:
        """Set the delay of an origin; 0 removes it. The longest delay of the host applies."""
        if seconds:
            self.delays[key] = seconds
        else:
            self.delays.pop(key, None)
        self.delay = max(self.delays.values(), default=0.0)
        self.is_paced = self.delay > 0 or self.backoffs > 0

    def back_off(self, seconds: float, now: float) -> None:
        """Hold the host for so many seconds: it has asked for fewer requests once more."""
        self.backoffs += 1
        self.held_until = max(self.held_until, now + seconds)
        self.is_paced = True

    def end_backoff(self) -> None:
        """Note that an answer has not asked for fewer requests."""
        self.backoffs, self.held_until = 0, -inf
        self.is_paced = self.delay > 0

    def seconds_left(self, now: float, *, has_started: bool = False) -> float:
        """Return the seconds until one more request may start, as far as the pace is concerned.

        With ``has_started``, until one may that is in progress. Infinity means: when the other
        requests in progress have ended.
        """
        if not self.is_paced:
            return 0
        if self.active > has_started:
            return inf
        return max(self.last_end + self.delay - now, self.held_until - now, 0)
