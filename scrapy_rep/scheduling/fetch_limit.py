"""How many robots.txt files are fetched at once.

Slow fetches do not prevent others: after :data:`SLOW` seconds a fetch no longer counts. At most
:data:`MAX_FACTOR` times as many fetches may be in progress in all. If one more has to begin then,
the oldest is ended, as if it had timed out, after :data:`OLD` seconds at the earliest. So a host
that never answers cannot delay others, however many names it has. The number of connections is
bounded, and so is the number of fetches that begin within :data:`OLD` seconds.

While pages are downloaded, they come first:

- A fetch in progress consists of hundreds of objects. Python's garbage collector looks at each of
  them about once a second, and nothing else runs meanwhile. So few fetches may take longer than
  :data:`OLD` seconds (:data:`OLD_SHARE`), and few are for files whose last fetch was slow and
  failed (:data:`SILENT_SHARE`): the others wait.
- Fetches begin for half of the time at most, and :data:`MAX_PER_TURN` at most before the event loop
  runs again.

If the crawl has no more connections than CONCURRENT_REQUESTS, fetches get half of them, slow
fetches included, and the oldest is ended after :data:`OLD_WITH_POOL` seconds at the earliest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from itertools import islice
from typing import TYPE_CHECKING

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .clock import Timer, fire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .clock import Clock

SLOW = 0.25
"""Seconds after which a fetch no longer counts. Many files arrive within this time."""

OLD = 8.0
OLD_WITH_POOL = 5.0
"""Seconds after which the oldest fetch may be ended; fewer if connections are few."""

MAX_FACTOR = 6
"""How many times as many fetches may be in progress in all, slow ones included."""

OLD_SHARE = 0.5
SILENT_SHARE = 0.25
"""How many old fetches, and how many fetches of silent files, may be in progress while pages are
downloaded, as a share of the limit."""

WAITING_FOR_EACH = 16
"""How many fetches of silent files may wait for each one in progress. If more wait, more of them
are in progress, so that their number stays bounded in a crawl that finds silent files all the time.
"""

MAX_PER_TURN = 5
"""How many fetches begin, or are ended, before the event loop runs again."""


class Permit:
    """The permit of one fetch."""

    __slots__ = ("began", "expire", "granted", "is_silent")

    def __init__(self, *, is_silent: bool) -> None:
        self.is_silent = is_silent
        """Whether the last fetch of the file was slow and failed."""
        self.expire: Callable[[], None] | None = None
        """Ends the fetch. It is called once at most, when other fetches need the permit."""
        self.granted: Deferred[None] | None = None
        """Fires when a permit that waited is granted."""
        self.began = 0.0


class FetchLimit:
    """The permits of one crawl.

    ``on_capacity`` is called when a fetch could begin and none waits. ``is_downloading`` returns
    whether pages are being downloaded.
    """

    def __init__(
        self,
        limit: int,
        clock: Clock,
        on_capacity: Callable[[], None],
        is_downloading: Callable[[], bool],
    ) -> None:
        self._limit = limit
        self._slow, self._old = SLOW, OLD
        self._max_in_progress = limit * MAX_FACTOR
        self._clock = clock
        self._on_capacity = on_capacity
        self._pages_come_first = is_downloading
        """Returns whether they do now."""
        self._quick: OrderedDict[Permit, None] = OrderedDict()
        """The permits that count, the oldest first."""
        self._slow_timer = Timer(clock)
        """Notes that the oldest of them is slow. There is one timer for all fetches: most of them
        end long before it."""
        self._in_progress: OrderedDict[Permit, None] = OrderedDict()
        """All permits that were granted, the oldest first."""
        self._silent: OrderedDict[Permit, None] = OrderedDict()
        """Those of silent files."""
        self._waiting: deque[Permit] = deque()
        self._waiting_silent: deque[Permit] = deque()
        self._in_turn = 0
        """How many fetches have begun, or were ended, since the turn began. A turn of the event
        loop is followed by a pause of the same duration while pages are downloaded."""
        self._turn_began = 0.0
        self._turn_timer = Timer(clock)

    def share(self, connections: int) -> None:
        """Use half of so many connections at most."""
        self._limit = self._max_in_progress = min(self._limit, max(connections // 2, 1))
        self._slow = self._old = OLD_WITH_POOL
        self._pages_come_first = lambda: False  # half of the connections are for pages already

    def restart(self, permit: Permit) -> None:
        """Count a fetch from now on: until now it has waited for a connection."""
        self._begin(permit)
        self._in_progress.move_to_end(permit)

    @property
    def capacity(self) -> int:
        """How many fetches may begin now without waiting."""
        return 0 if self._waiting else self._free

    @property
    def _free(self) -> int:
        in_all = self._max_in_progress - len(self._in_progress)
        return max(min(self._limit - len(self._quick), in_all), 0)

    def _share(self, share: float) -> int:
        """Return a share of the limit while pages come first; else how many may be in progress."""
        return (
            max(int(self._limit * share), 1) if self._pages_come_first() else self._max_in_progress
        )

    @property
    def _max_silent(self) -> int:
        waiting = len(self._waiting_silent)
        return max(self._share(SILENT_SHARE), waiting // WAITING_FOR_EACH)

    def _can_begin(self, *, is_silent: bool) -> bool:
        """Whether one more fetch may begin before the event loop runs again."""
        if self._in_turn >= MAX_PER_TURN or not self._free:
            return False
        return not is_silent or len(self._silent) < self._max_silent

    async def acquire(self, *, is_silent: bool) -> Permit:
        """Wait for a permit, and return it. Give it back with :meth:`release`.

        ``is_silent`` says that the last fetch of the file was slow and failed. The caller sets
        ``expire`` when the fetch can be ended.
        """
        permit = Permit(is_silent=is_silent)
        waiting = self._waiting_silent if is_silent else self._waiting
        if not waiting and self._can_begin(is_silent=is_silent):
            self._grant(permit)
            return permit
        permit.granted = Deferred()
        waiting.append(permit)
        self.end_oldest()
        try:
            await maybe_deferred_to_future(permit.granted)
        except BaseException:
            self.release(permit)
            raise
        return permit

    def release(self, permit: Permit) -> None:
        """Give a permit back: the fetch is over."""
        if permit in self._in_progress:
            del self._in_progress[permit]
            self._silent.pop(permit, None)
            self._quick.pop(permit, None)
            if not self._quick:
                self._slow_timer.cancel()
        else:
            for waiting in (self._waiting, self._waiting_silent):
                if permit in waiting:
                    waiting.remove(permit)
        self.update()

    def update(self) -> None:
        """Begin the fetches that may begin now, and end those that are too old.

        Call this from time to time: pages may no longer be downloaded.
        """
        while self._waiting and self._can_begin(is_silent=False):
            self._grant_waiting(self._waiting.popleft())
        while self._waiting_silent and self._can_begin(is_silent=True):
            self._grant_waiting(self._waiting_silent.popleft())
        self.end_oldest()
        if self.capacity:
            self._on_capacity()

    def _grant_waiting(self, permit: Permit) -> None:
        self._grant(permit)
        assert permit.granted is not None
        fire(permit.granted, None)

    def _grant(self, permit: Permit) -> None:
        self._in_progress[permit] = None
        if permit.is_silent:
            self._silent[permit] = None
        self._begin(permit)
        self._count_in_turn()

    def _count_in_turn(self) -> None:
        self._in_turn += 1
        if not self._turn_timer.is_active:
            self._turn_began = self._clock.monotonic()
            self._turn_timer.start(0, self._end_turn)

    def _end_turn(self) -> None:
        if self._pages_come_first():
            seconds = self._clock.monotonic() - self._turn_began
            self._turn_timer.start(seconds, self._begin_turn)
        else:
            self._begin_turn()

    def _begin_turn(self) -> None:
        self._in_turn = 0
        if self._waiting or self._waiting_silent:
            self.update()
        else:
            self.end_oldest()

    def _begin(self, permit: Permit) -> None:
        permit.began = self._clock.monotonic()
        self._quick[permit] = None
        self._quick.move_to_end(permit)
        if not self._slow_timer.is_active:
            self._slow_timer.start(self._slow, self._note_slow)

    def _note_slow(self) -> None:
        latest = self._clock.monotonic() - self._slow
        while self._quick:
            oldest = next(iter(self._quick))
            if oldest.began > latest:
                self._slow_timer.start(oldest.began - latest, self._note_slow)
                break
            del self._quick[oldest]
        self.update()

    def end_oldest(self, wanted: int = 0) -> None:
        """End the oldest fetches, so that those that wait and ``wanted`` others may begin, and so
        that few old ones are in progress while pages come first.

        Only fetches that are old are ended, and no more than needed. Call this from time to time:
        a fetch may have become old.
        """
        in_all = self._max_in_progress - len(self._waiting) - wanted
        most = min(in_all, self._share(OLD_SHARE))
        self._end_old(self._in_progress, len(self._in_progress) - most)
        silent = len(self._silent) + len(self._waiting_silent)
        self._end_old(self._silent, silent - self._max_silent)

    def _end_old(self, permits: Iterable[Permit], most: int) -> None:
        """End the first of these fetches if they are old, ``most`` of them at most."""
        latest = self._clock.monotonic() - self._old
        for permit in tuple(islice(permits, max(most, 0))):
            if permit.began > latest or self._in_turn >= MAX_PER_TURN:
                break
            if permit.expire is not None:
                expire, permit.expire = permit.expire, None
                self._count_in_turn()
                expire()
