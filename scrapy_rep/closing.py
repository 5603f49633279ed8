"""What may still wait when the spider closes: only the requests of callers, for a time."""

from __future__ import annotations

from math import inf
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http.request import NO_CALLBACK

from .clock import Clock


class Closing:
    """Whether the spider of a crawl closes, and which requests may wait nevertheless.

    A scheduler keeps every other request for the next crawl.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.has_begun = False
        self._callers_until = inf
        """Until when callers of the engine may wait, on the monotonic clock."""
        self.returned: WeakKeyDictionary[Request, bool] = WeakKeyDictionary()
        """The requests that went back to a scheduler because the spider is closing, each with its
        ``dont_filter``, which is True on the way."""

    def begin(self, seconds: float = 0) -> None:
        """Note that the spider closes. Callers may wait for so many seconds from the first call."""
        self.has_begun = True
        self._callers_until = min(self._callers_until, self._clock.monotonic() + seconds)

    @property
    def may_callers_wait(self) -> bool:
        """Whether callers may wait: for REP_MAX_WAIT after the spider has begun to close."""
        return self._clock.monotonic() < self._callers_until

    def may_wait(self, request: Request) -> bool:
        """Whether a request may wait for its robots.txt and its host."""
        return not self.has_begun or (self.is_called(request) and self.may_callers_wait)

    def is_called(self, request: Request) -> bool:
        """Whether a caller of ``engine.download_async`` waits for a request, if the spider closes.

        A caller may not set NO_CALLBACK, but then the engine sends a returned request again.
        """
        return request.callback is NO_CALLBACK or request in self.returned

    def send_back(self, request: Request) -> Request:
        """Return a request that goes back to its scheduler."""
        self.returned[request] = request.dont_filter
        request.dont_filter = True  # the scheduler has seen it; our queues store it as it was
        return request
