"""Crawl-delay, Request-rate and Visit-time onto download slots: the one place that knows slots.

A slot is where requests queue in Scrapy's downloader: one for each host, or what ``download_slot``
says. The pace is that of the host, through whatever slots its requests go: their queues let go of
one when none is under way to that host and its delay has passed since the end of the last, so that
the server never sees two closer together, however long the way there takes. Whatever else is in the
slot does not wait for it, and what the slot itself is set to, or AutoThrottle makes of it, holds
besides: the slower wins. What waits for its turn does not use up CONCURRENT_REQUESTS.

Where crawlers share a store, each asks it for its turn before each request to a paced host, once
its slot would let the request go.

No released Scrapy has a throttler that a component could ask for this (2.14 to 2.19); one that has
is for this module to use.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import cached_property
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals
from scrapy.core.downloader import Slot
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError

from .protocol.paths import host_of
from .protocol.paths import origin as origin_of
from .waiting import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from scrapy import Request
    from scrapy.core.downloader import Downloader
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from .origin import Origin
    from .settings import Settings
    from .waiting import Engine, WayBack

logger = logging.getLogger(__name__)

# A magnitude since Scrapy 2.19; before that, a switch.
_JITTER = "jitter" if hasattr(Slot, "jitter") else "randomize_delay"

Queued = tuple["Request", "Deferred[Any]"]

Turn = Callable[[str, float], "Awaitable[float]"]
"""Asks for the turn at a host: 0 if it is ours, and nobody else's for so many seconds; else the
seconds after which to ask again."""


class Pace:
    """The pace of each host, as the origins on it ask for: the slower wins."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        way_back: WayBack,
        now: Callable[[], float],
        turn: Turn | None = None,
    ) -> None:
        self._crawler = crawler
        self._engine = engine
        self._way_back = way_back
        self._now = now
        self._turn = turn
        self._places = settings.max_waiting
        self._most_sites = settings.cache_size
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        """By host, those that ask for a pace."""
        self._queued = 0
        self._listens = False

    def governs(self, origin: Origin) -> bool:
        """Whether any origin on the same host asks for a pace."""
        return origin.host in self._sites

    def keep(self, origin: Origin, seconds: float) -> bool:
        """Let no request to the host start within so many seconds of the last's end.

        0 takes back what ``origin`` asked for. Whether there is a place for one more that waits.
        """
        site = self._sites.get(origin.host)
        if site is None:
            if not seconds:
                return True
            site = self._begin(origin)
        self._sites.move_to_end(origin.host)
        if site.wishes.get(origin.key, 0) != seconds:
            self._change(site, origin.key, seconds)
        return self._has_place(site)

    def flush(self) -> None:
        """The spider is closing: whoever waits for a turn goes back to the scheduler."""
        for site in tuple(self._sites.values()):
            for queue in tuple(site.queues):
                for request, waiter in queue.take(site):
                    back = self._way_back.as_it_is(request)
                    if waiter.called:  # a cancelled one has been called already
                        continue
                    if back is None:
                        waiter.errback(IgnoreRequest("the spider is closing"))
                    else:
                        waiter.callback(back)
            site.stop()

    def site_of(self, request: Request) -> _Site | None:
        """The host of a request, if it is paced."""
        key = origin_of(request.url)
        return None if key is None else self._sites.get(host_of(key))

    def lets_go(self, site: _Site, delay: float) -> bool:
        """Whether a request to ``site`` may start now, through a slot with a delay of its own.

        Where it may not, its queues are woken in time.
        """
        if site.under_way:
            return False
        left = site.seconds_left(delay)
        if left > 0:
            if site.timer is None:
                site.timer = call_later(left, self._wake, site)
            return False
        if self._turn is None or site.has_turn:
            return True
        if site.asking is None:
            site.asking = deferred_from_coro(self._await_turn(site, self._turn))
            site.asking.addBoth(self._asked, site)
        return False

    def enter(self, site: _Site, request: Request) -> bool:
        """A request begins to wait for its turn. Whether a place was lent for it.

        What finds none counts as Scrapy counts it, and so does a robots.txt, which has one.
        """
        if request.meta.get("is_robotstxt_request") or not self._has_place(site):
            return False
        self._queued += 1
        self._engine.lend()
        return True

    def leave(self) -> None:
        """A request for which a place was lent waits no more."""
        self._queued -= 1
        self._engine.take_back()

    def _has_place(self, site: _Site) -> bool:
        return not site.queues or self._queued < self._places

    @cached_property
    def _downloader(self) -> Any:
        engine = self._crawler.engine
        assert engine is not None
        return engine.downloader

    @property
    def _slots(self) -> dict[str, Any]:
        """Those of the downloader; a downloader of another make may have none."""
        return getattr(self._downloader, "slots", {})

    def _begin(self, origin: Origin) -> _Site:
        """From here on, the host is one that is paced."""
        if not self._listens:
            self._listens = True
            connect = self._crawler.signals.connect
            connect(self._reached, signal=signals.request_reached_downloader)
            connect(self._left, signal=signals.request_left_downloader)
            if not hasattr(self._downloader, "slots"):
                logger.warning(
                    "%(downloader)s has no download slots: the pace that sites ask for is not kept",
                    {"downloader": type(self._downloader).__qualname__},
                    extra={"spider": self._crawler.spider},
                )
        if len(self._sites) >= self._most_sites:
            longest_unasked = next(iter(self._sites.values()))
            if longest_unasked.is_at_rest:  # and so nothing is lost with it
                del self._sites[longest_unasked.host]
        # The robots.txt itself is a request to the site, whoever made it.
        site = _Site(origin.host, monotonic() - (self._now() - origin.fetched_at))
        self._sites[origin.host] = site
        for slot in self._slots.values():
            site.under_way |= {each for each in slot.transferring if self.site_of(each) is site}
            if isinstance(slot.queue, _Queue):
                slot.queue.sort(None)
            elif any(self.site_of(request) is site for request, _ in slot.queue):
                self._sort_by_site(slot)
        return site

    def _change(self, site: _Site, key: str, seconds: float) -> None:
        """What one of its origins asks for is another."""
        queues = tuple(site.queues)
        if seconds:
            site.wishes[key] = seconds
        else:
            site.wishes.pop(key, None)
        site.pace = max(site.wishes.values(), default=0.0)
        if not site.wishes:
            del self._sites[site.host]
            site.stop()
            for queue in queues:
                queue.sort(site)
        self._wake(site, queues)

    def _sort_by_site(self, slot: Slot) -> None:
        """Have a queue of ours in a slot."""
        queue: Any = _Queue(slot, self)
        slot.queue = queue
        if self._turn is not None:  # what is asked for is to be used at once
            setattr(slot, _JITTER, type(getattr(slot, _JITTER))(0))

    def _reached(self, request: Request) -> None:
        """It is queued right after this: only now is it settled in which slot."""
        if self.site_of(request) is not None:
            slot = self._slots.get(request.meta["download_slot"])
            if slot is not None and not isinstance(slot.queue, _Queue):
                self._sort_by_site(slot)

    def _left(self, request: Request) -> None:
        site = self.site_of(request)
        if site is not None:
            site.under_way.discard(request)
            site.last = monotonic()
            self._wake(site)

    def _wake(self, site: _Site, queues: Iterable[_Queue] | None = None) -> None:
        """Look who may go, in the queues where anybody waits for ``site``, or in these."""
        site.rest()
        for queue in tuple(site.queues) if queues is None else queues:
            self._downloader._process_queue(queue.slot)

    async def _await_turn(self, site: _Site, turn: Turn) -> None:
        """Until the site has its turn, or nothing that needs one."""
        await sleep(0)  # who asks is in the middle of a look at its queue
        while site.queues and not site.under_way:
            left = site.seconds_left()
            if left <= 0:
                left = await turn(site.host, site.pace)
            if left <= 0:
                site.has_turn = True
                self._wake(site)
                site.has_turn = False
                return
            await sleep(left)

    def _asked(self, result: object, site: _Site) -> None:
        site.asking = None
        error = getattr(result, "value", None)
        if error is not None and not isinstance(error, (asyncio.CancelledError, CancelledError)):
            logger.error(
                "Asking for a turn went wrong",
                exc_info=(type(error), error, error.__traceback__),
                extra={"spider": self._crawler.spider},
            )
            site.rest()
            site.timer = call_later(site.pace, self._wake, site)


def is_queued(request: Request, downloader: Downloader) -> bool:
    """Whether a request waits for its turn in its download slot."""
    slot = getattr(downloader, "slots", {}).get(request.meta.get("download_slot"))
    return slot is not None and request in slot.active and request not in slot.transferring


class _Site:
    """A host that is paced. Times are seconds on the monotonic clock."""

    def __init__(self, host: str, last: float) -> None:
        self.host = host
        self.wishes: dict[str, float] = {}
        """The seconds that each of its origins asks for."""
        self.pace = 0.0
        self.last = last
        """When the last request to it ended."""
        self.under_way: set[Request] = set()
        self.queues: set[_Queue] = set()
        """Where requests to it wait."""
        self.timer: CallLaterResult | None = None
        self.asking: Deferred[None] | None = None
        self.has_turn = False

    def seconds_left(self, delay: float = 0) -> float:
        """Until its delay since the last request is over, or this one if that is longer."""
        return self.last + max(self.pace, delay) - monotonic()

    @property
    def is_at_rest(self) -> bool:
        """Whether the next request might come at any time."""
        return not self.queues and not self.under_way and self.seconds_left() <= 0

    def rest(self) -> None:
        """Wait for nothing."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def stop(self) -> None:
        """The same, and ask for nothing."""
        self.rest()
        if self.asking is not None:
            self.asking.cancel()


class _Waiting(NamedTuple):
    """One that waits in a queue."""

    number: int
    """In the order in which they came."""
    queued: Queued
    lent: bool


class _Queue:
    """The queue of a slot, in which each paced site has a line of its own.

    To the downloader it is empty while nobody in it may go.
    """

    def __init__(self, slot: Slot, pace: Pace) -> None:
        self.slot = slot
        self._pace = pace
        self._lines: dict[_Site | None, deque[_Waiting]] = {}
        self._numbers = count()
        for queued in slot.queue:
            self.append(queued)

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __bool__(self) -> bool:
        return self.slot.free_transfer_slots() > 0 and bool(self._ready())

    def append(self, queued: Queued) -> None:
        site = self._pace.site_of(queued[0])
        lent = site is not None and self._pace.enter(site, queued[0])
        line = self._lines.setdefault(site, deque())
        line.append(_Waiting(next(self._numbers), queued, lent))
        if site is not None:
            site.queues.add(self)

    def popleft(self) -> Queued:
        """The one that has waited longest of those who may go."""
        site = min(self._ready(), key=lambda site: self._lines[site][0].number)
        queued = self._next(site)
        if site is not None:
            site.under_way.add(queued[0])
        return queued

    def take(self, site: _Site | None) -> list[Queued]:
        """Everyone out of a line."""
        return [self._next(site) for _ in range(len(self._lines.get(site, ())))]

    def sort(self, site: _Site | None) -> None:
        """Those in a line anew, as they are paced by now."""
        for queued in self.take(site):
            self.append(queued)

    def _ready(self) -> list[_Site | None]:
        """The lines of which one may go."""
        delay = self.slot.delay
        return [site for site in self._lines if site is None or self._pace.lets_go(site, delay)]

    def _next(self, site: _Site | None) -> Queued:
        line = self._lines[site]
        waiting = line.popleft()
        if waiting.lent:
            self._pace.leave()
        if not line:
            del self._lines[site]
            if site is not None:
                site.queues.discard(self)
        return waiting.queued
