"""How often requests start that are dropped then, such as those of an unreachable site.

Such a request is excluded from CONCURRENT_REQUESTS: Scrapy 2.14 keeps it for a tenth of a second.
But it costs Scrapy most of what a small page costs. While pages are downloaded, these requests get
a small part of the time. Without this limit, the thousands of a site would delay the pages of all
others: Scrapy's DownloaderAwarePriorityQueue returns the requests of sites first that have no
download in progress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import Timer

if TYPE_CHECKING:
    from scrapy import Request

    from .clock import Clock
    from .engine import Engine

MAX_PER_TURN = 2
"""How many of these requests start before the event loop runs again."""

REST = 19
MIN_REST = 0.02
MAX_REST = 0.5
"""For how long none of them starts while pages are downloaded, in multiples of the duration of the
turn of the event loop in which the last ones started, and the limits of that in seconds."""


class DropPace:
    """The pace of the requests of one crawl that are dropped when they start."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._started: set[Request] = set()
        """Requests that were started and that the downloader may still have."""
        self._in_turn = 0
        """How many have started since the event loop ran."""
        self._began = 0.0
        self._timer = Timer(clock)
        self._rests = False

    def may_start(self) -> bool:
        """Whether one more request may start beside pages that are downloaded."""
        return not self._rests and self._in_turn < MAX_PER_TURN

    def may_start_alone(self) -> bool:
        """Whether one more request may start because nothing else is downloaded."""
        return self._in_turn < MAX_PER_TURN and not self._engine.is_downloading

    def start(self, request: Request) -> None:
        """Note that a request starts, and exclude it from CONCURRENT_REQUESTS until it ends."""
        self._started.add(request)
        self._engine.exclude(request)
        self._in_turn += 1
        if self._in_turn == 1:
            self._began = self._clock.monotonic()
            self._timer.start(0, self._end_turn)

    def cancel(self) -> None:
        """Cancel the timer, and forget all requests: the crawl is over."""
        self._timer.cancel()
        self._include(self._started.copy())

    def _end_turn(self) -> None:
        took = self._clock.monotonic() - self._began
        self._in_turn = 0
        self._rests = True
        self._timer.start(min(max(REST * took, MIN_REST), MAX_REST), self._end_rest)
        self._engine.wake()

    def _end_rest(self) -> None:
        self._include(self._started.difference(self._engine.active))
        if self._started:
            self._timer.start(MIN_REST, self._end_rest)
        if self._rests:
            self._rests = False
            self._engine.wake()

    def _include(self, requests: set[Request]) -> None:
        """Forget requests, which no longer have to be excluded."""
        self._started -= requests
        for request in requests:
            self._engine.include_page(request)
