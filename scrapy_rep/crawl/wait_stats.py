"""How many requests have waited, for what, and how long: stats of the crawl.

A request may wait several times before it goes on, in the scheduler's place and in the downloader.
It counts once for a robots.txt, and once for a pace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..meta_keys import IS_ROBOTSTXT_REQUEST

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from ..scheduling.clock import Clock

SHORTEST = 0.01
"""Seconds: less is a turn of the loop, and counts as no wait."""


class _Wait:
    """The wait of one request. Times are seconds."""

    __slots__ = ("began", "for_policy", "pace", "policy")

    def __init__(self) -> None:
        self.began: float | None = None
        """On the monotonic clock; None while it does not wait."""
        self.for_policy = False
        self.policy = 0.0
        self.pace = 0.0


class WaitStats:
    """The waits of one crawl's requests."""

    def __init__(self, stats: StatsCollector, clock: Clock) -> None:
        self._stats = stats
        self._clock = clock
        self._waits: WeakKeyDictionary[Request, _Wait] = WeakKeyDictionary()

    def start(self, request: Request, *, for_policy: bool) -> None:
        """A request begins to wait: until its robots.txt is there, or for the pace of its host."""
        if request.meta.get(IS_ROBOTSTXT_REQUEST):
            return
        wait = self._waits.get(request)
        if wait is None:
            wait = self._waits[request] = _Wait()
        wait.began, wait.for_policy = self._clock.monotonic(), for_policy

    def pause(self, request: Request, answered_at: float, *, paced: bool) -> None:
        """A request waits no more, or not in the same way.

        ``answered_at``: when its robots.txt was there, on the monotonic clock. ``paced``: whether
        its site asks for a pace. Where it does not, what is left is the wait for the engine.
        """
        wait = self._waits.get(request)
        if wait is None or wait.began is None:
            return
        seconds = self._clock.monotonic() - wait.began
        policy = 0.0
        if wait.for_policy:
            policy = seconds if answered_at < wait.began else answered_at - wait.began
        wait.policy += policy
        if paced:
            wait.pace += seconds - policy
        wait.began = None

    def finish(self, request: Request) -> None:
        """A request goes on, or is dropped: its waits count."""
        wait = self._waits.pop(request, None)
        if wait is not None:
            self._count("robots_txt", wait.policy)
            self._count("pace", wait.pace)

    def forget(self, request: Request) -> None:
        """A request goes back to the scheduler."""
        self._waits.pop(request, None)

    def _count(self, what: str, seconds: float) -> None:
        if seconds < SHORTEST:
            return
        self._stats.inc_value(f"robotstxt/wait_count/{what}")
        name = f"robotstxt/wait_seconds/{what}"
        self._stats.set_value(name, round(self._stats.get_value(name, 0) + seconds, 3))
