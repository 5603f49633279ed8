"""Hosts that ask for fewer requests, and how long each is held (PROTOCOL §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..clock import Clock
from ..recorder import Recorder
from ..settings import Settings
from .hosts import MAX_IDLE_HOSTS, Host, InProgress

SLOW_DOWN = frozenset({429, 503})
"""The statuses that ask for fewer requests, also without Retry-After (PROTOCOL §4). With it, each
5xx does."""

FAILURES = frozenset({500, 502, 504})
"""The statuses that do so without Retry-After if several URLs in a row have one."""

FAILED_URLS = 3
"""From which URL on. Retries of a URL are not counted."""

MAX_FAILED_URLS = 100
"""How many URLs of such a row are known."""

FIRST_BACKOFF = 1.0
"""Seconds for which a host is held that asks for fewer requests, and does not say for how long. The
time doubles with each such answer in a row."""

LONG_BACKOFF = 3600.0
"""Seconds of such answers in a row after which the log has a warning: the crawl may take weeks."""


class Backoff:
    """The hosts of a crawl that are held."""

    def __init__(self, settings: Settings, clock: Clock, recorder: Recorder) -> None:
        self._most = settings.max_backoff
        self._clock = clock
        self._recorder = recorder
        self._held: dict[str, float] = {}
        """Until when hosts are held, on the wall clock. A crawl with JOBDIR keeps it."""

    def note(self, started: InProgress, status: int, seconds: float | None, url: str) -> bool:
        """Note the answer to a request. Returns whether the pace of its host has changed.

        ``seconds`` is the time for which the answer asks. An answer that is no failure ends the
        back-off, when the host is no longer held. If the request started before the host was held,
        its answer neither ends the back-off nor doubles it.
        """
        host, origin, now = started.host, started.origin, self._clock.monotonic()
        is_late, is_first = started.backoffs != host.backoffs, not host.backoffs
        asks_for_fewer = self._note_failure(host, url, status, seconds)
        if not asks_for_fewer:
            if status >= 500 or is_late:
                return False
            host.failed_urls.clear()
            if is_first or host.held_until > now:
                return False
            host.end_backoff()
            self._held.pop(host.name, None)
            return True
        doubled = FIRST_BACKOFF * 2.0 ** min(host.backoffs, 30)  # some 34 years
        hold = min(seconds or doubled, self._most)
        added = hold - max(host.held_until - now, 0)
        if is_late and (seconds is None or added < FIRST_BACKOFF):
            if seconds is not None:  # a little later: not counted as one more
                host.held_until = max(host.held_until, now + hold)
            return False
        self.hold_for(host, origin, hold, status)
        if now - host.held_since >= LONG_BACKOFF:
            self._recorder.held_long(host.name, hold, sum(queue.size for queue in host.queues))
        return True

    def _note_failure(self, host: Host, url: str, status: int, seconds: float | None) -> bool:
        """Note an answer that is one of a row of failures. Returns whether it holds its host."""
        if status in FAILURES and seconds is None:
            is_new = url not in host.failed_urls
            if len(host.failed_urls) < MAX_FAILED_URLS:
                host.failed_urls.add(url)
            return is_new and len(host.failed_urls) >= FAILED_URLS
        return status in SLOW_DOWN or (status >= 500 and seconds is not None)

    def hold_for(self, host: Host, origin: str | None, seconds: float, status: int | None) -> None:
        """Hold a host because an answer of one of its origins asks for that, and record it."""
        added = seconds - max(host.held_until - self._clock.monotonic(), 0)
        first = None if host.backoffs else status
        self._recorder.held(host.name, origin, seconds, max(added, 0), first)
        self.hold(host, seconds)

    def hold(self, host: Host, seconds: float) -> None:
        """Start no request to a host for so many seconds."""
        host.back_off(seconds, self._clock.monotonic())
        self._held[host.name] = self._clock.time() + seconds
        while len(self._held) > MAX_IDLE_HOSTS:
            del self._held[next(iter(self._held))]

    def hold_again(self, held: dict[str, float], host: Callable[[str], Host]) -> Iterator[Host]:
        """Hold hosts, each until a time on the wall clock, and yield those that are held.

        From now on ``held`` is up to date, without what is no host and no time.
        """
        self._held = held
        for name, until in tuple(held.items()):
            is_valid = isinstance(name, str) and isinstance(until, (int, float))
            seconds = min(until - self._clock.time(), self._most) if is_valid else 0
            if seconds > 0:
                self.hold(host(name), seconds)
                yield host(name)
            else:
                del held[name]
