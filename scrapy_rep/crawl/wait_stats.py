"""Stats about waiting: how many requests waited, for what, and for how long.

A request may wait several times before it proceeds, in the scheduler or in the downloader. It
counts once for robots.txt, and once for the delay of its site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..meta_keys import IS_ROBOTSTXT_REQUEST

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from ..scheduling.clock import Clock
    from .recorder import Recorder

MIN_WAIT = 0.01
"""Seconds. A shorter wait is not counted: it is only an iteration of the event loop."""


class _Wait:
    """The waiting time of one request, in seconds."""

    __slots__ = ("for_policy", "pace_seconds", "policy_seconds", "started_at")

    def __init__(self) -> None:
        self.started_at: float | None = None
        """When the current wait started, on the monotonic clock. None while it does not wait."""
        self.for_policy = False
        """Whether the current wait started as a wait for robots.txt."""
        self.policy_seconds = 0.0
        self.pace_seconds = 0.0


class WaitStats:
    """The waiting times of the requests of one crawl."""

    def __init__(self, stats: StatsCollector, clock: Clock) -> None:
        self._stats = stats
        self._clock = clock
        self._waits: WeakKeyDictionary[Request, _Wait] = WeakKeyDictionary()
        self.recorder: Recorder | None = None

    def start(self, request: Request, *, for_policy: bool, since: float | None = None) -> None:
        """Start a wait: for the robots.txt of a request, or else for the delay of its site.

        It started at the time ``since`` on the monotonic clock, now if that is None.
        """
        if request.meta.get(IS_ROBOTSTXT_REQUEST):
            return
        wait = self._waits.get(request)
        if wait is None:
            wait = self._waits[request] = _Wait()
        wait.started_at = self._clock.monotonic() if since is None else since
        wait.for_policy = for_policy

    def is_waiting(self, request: Request) -> bool:
        """Return whether a wait of a request has started and has not been stopped."""
        wait = self._waits.get(request)
        return wait is not None and wait.started_at is not None

    def stop(self, request: Request, answered_at: float, *, has_delay: bool) -> None:
        """Stop the current wait of a request that is waiting. It may start another wait.

        ``answered_at`` is when the last fetch of its robots.txt ended, on the monotonic clock. The
        time after that counts as a wait for the delay of the site. If ``has_delay`` is False, the
        site has no delay. Then this time does not count: the request waits for the engine only.
        """
        wait = self._waits[request]
        assert wait.started_at is not None
        seconds = self._clock.monotonic() - wait.started_at
        policy_seconds = 0.0
        if wait.for_policy:
            is_before = answered_at < wait.started_at
            policy_seconds = seconds if is_before else answered_at - wait.started_at
        wait.policy_seconds += policy_seconds
        if has_delay:
            wait.pace_seconds += seconds - policy_seconds
        wait.started_at = None

    def finish(self, request: Request) -> None:
        """Add the waits of a request to the stats: it proceeds or is dropped."""
        wait = self._waits.pop(request, None)
        if wait is not None:
            self._add("robots_txt", wait.policy_seconds)
            self._add("pace", wait.pace_seconds)
            if self.recorder is not None:
                counted = (
                    seconds if seconds >= MIN_WAIT else 0
                    for seconds in (wait.policy_seconds, wait.pace_seconds)
                )
                self.recorder.waited(request, *counted)

    def discard(self, request: Request) -> None:
        """Forget the waits of a request, which returns to the scheduler."""
        self._waits.pop(request, None)

    def _add(self, kind: str, seconds: float) -> None:
        if seconds < MIN_WAIT:
            return
        self._stats.inc_value(f"robotstxt/wait_count/{kind}")
        name = f"robotstxt/wait_seconds/{kind}"
        self._stats.set_value(name, round(self._stats.get_value(name, 0) + seconds, 3))
