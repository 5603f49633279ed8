"""Hosts that ask for fewer requests, and how long each is held (PROTOCOL §4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..clock import Clock
from ..recorder import Recorder
from ..settings import Settings
from .hosts import MAX_IDLE_HOSTS, Host, InProgress

SLOW_DOWN = frozenset({429, 503})
"""The statuses of pages that ask for fewer requests (PROTOCOL §4)."""

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

    def note(self, started: InProgress, status: int, seconds: float | None) -> bool:
        """Note the answer to a request. Returns whether the pace of its host has changed.

        ``seconds`` is the time for which the answer asks. Any answer that does not ask for fewer
        requests ends the back-off. If the request started before the host was held, its answer
        neither ends the back-off nor doubles it.
        """
        host, origin, now = started.host, started.origin, self._clock.monotonic()
        is_late, is_first = started.backoffs != host.backoffs, not host.backoffs
        if status not in SLOW_DOWN:
            if is_late or is_first:
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
        self._recorder.held(host.name, origin, hold, added, status if is_first else None)
        self._hold(host, hold)
        if now - host.held_since >= LONG_BACKOFF:
            self._recorder.held_long(host.name, hold, sum(queue.size for queue in host.queues))
        return True

    def _hold(self, host: Host, seconds: float) -> None:
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
                self._hold(host(name), seconds)
                yield host(name)
            else:
                del held[name]
