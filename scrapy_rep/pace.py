"""Crawl-delay, Request-rate and Visit-time onto download slots: the one place that knows slots.

A slot is what Scrapy's downloader paces: one for each host, or what ``download_slot`` says. Between
two requests of a paced slot lies the delay, from the end of the one to the start of the next, so
that the server never sees them closer together however long the way there takes. What waits in such
a slot does not use up CONCURRENT_REQUESTS.

Where crawlers share a store, each asks it for its turn before each request of a paced slot, once
that slot would let the request go.

No released Scrapy has a throttler that a component could ask for this (2.14 to 2.19); one that has
is for this module to use.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from scrapy.core import downloader as scrapy_downloader
from scrapy.core.downloader import Downloader, Slot
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import CancelledError

from .waiting import sleep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from twisted.internet.defer import Deferred

    from .origin import Origin
    from .settings import Settings
    from .waiting import Engine, WayBack

logger = logging.getLogger(__name__)

# The clock of Slot.lastseen: time() up to Scrapy 2.18, monotonic() since.
_clock: Callable[[], float] = (
    getattr(scrapy_downloader, "monotonic", None) or vars(scrapy_downloader)["time"]
)

# A magnitude since Scrapy 2.19; before that, a switch.
_JITTER = "jitter" if hasattr(Slot, "jitter") else "randomize_delay"

plain_host = re.compile("https?://([a-z0-9.-]+)(?::[0-9]*)?/").match
"""Matches URLs whose host is seen without parsing them: group 1."""

Queued = tuple["Request", "Deferred[Any]"]

Turn = Callable[[str, float], "Awaitable[float]"]
"""Asks for the turn of a slot: 0 if it is ours, and nobody else's for so many seconds; else the
seconds after which to ask again."""


class Pace:
    """The pace of each slot, as the origins that use it ask for: the slower wins."""

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
        self._now = now
        self._turn = turn
        self._asking: set[Deferred[None]] = set()
        self._engine = engine
        self._way_back = way_back
        self._places = settings.max_waiting
        self._most_slots = settings.cache_size
        self._wishes: OrderedDict[str, dict[str, float]] = OrderedDict()
        """By slot: the seconds that each of its origins asks for."""
        self._queued = 0

    def governs(self, request: Request) -> bool:
        """Whether the slot of ``request`` is paced."""
        return bool(self._wishes) and self._slot_key(request) in self._wishes

    def keep(self, request: Request, origin: Origin, seconds: float) -> bool:
        """Let nothing start in the slot of ``request`` within so many seconds of the last's end.

        0 takes back what ``origin`` asked for. Whether there is a place in the slot's queue.
        """
        key = self._slot_key(request)
        wishes = self._wishes.get(key)
        if wishes is None:
            if not seconds:
                return True
            if len(self._wishes) >= self._most_slots:
                self._wishes.popitem(last=False)
            wishes = self._wishes[key] = {}
        self._wishes.move_to_end(key)
        slot: Slot = self._downloader.slots.get(key) or self._downloader._get_slot(request)[1]
        as_before = wishes.get(origin.key, 0) == seconds
        if not as_before or not isinstance(slot.transferring, _PacedTransfers):
            if seconds:
                wishes[origin.key] = seconds
            else:
                wishes.pop(origin.key, None)
            self._set(key, slot, max(wishes.values(), default=0.0), origin.fetched_at)
            if not wishes:
                del self._wishes[key]
        return not slot.queue or self._queued < self._places

    def flush(self) -> None:
        """The spider is closing: whoever waits in a paced slot goes back to the scheduler."""
        for asking in tuple(self._asking):
            asking.cancel()
        for slot in tuple(self._downloader.slots.values()):
            while isinstance(slot.queue, _PacedQueue) and slot.queue:
                request, waiter = slot.queue.popleft()
                back = self._way_back.as_it_is(request)
                if waiter.called:  # a cancelled one has been called already
                    continue
                if back is None:
                    waiter.errback(IgnoreRequest("the spider is closing"))
                else:
                    waiter.callback(back)

    @cached_property
    def _downloader(self) -> Any:
        engine = self._crawler.engine
        assert engine is not None
        return engine.downloader

    @cached_property
    def _hosts_are_slots(self) -> bool:
        """Whether a slot is the host of the URL, where the request does not say otherwise."""
        chooses = getattr(self._downloader.get_slot_key, "__func__", None)
        by_address = getattr(self._downloader, "ip_concurrency", 0)
        return chooses is Downloader.get_slot_key and not by_address

    def _slot_key(self, request: Request) -> str:
        """As the downloader has it, which parses the whole URL for it."""
        host = plain_host(request.url)
        if host and self._hosts_are_slots and "download_slot" not in request.meta:
            return host[1]
        key: str = self._downloader.get_slot_key(request)
        return key

    def _set(self, key: str, slot: Slot, pace: float, since: float) -> None:
        transfers = slot.transferring
        if not isinstance(transfers, _PacedTransfers):
            ask = None if self._turn is None else partial(self._ask, key, slot)
            transfers = slot.transferring = _PacedTransfers(slot, ask)
            slot.queue = _PacedQueue(slot.queue, transfers, self._enter, self._leave)
            # The robots.txt itself is a request to the site, whoever made it.
            slot.lastseen = max(slot.lastseen, _clock() - (self._now() - since))
        transfers.set_pace(pace)

    def _enter(self) -> None:
        self._queued += 1
        self._engine.lend()

    def _leave(self) -> None:
        self._queued -= 1
        self._engine.take_back()

    def _ask(self, key: str, slot: Slot) -> None:
        transfers = slot.transferring
        assert isinstance(transfers, _PacedTransfers)
        asking = deferred_from_coro(self._await_turn(key, slot, transfers))
        if not asking.called:
            self._asking.add(asking)
        asking.addBoth(self._asked, asking)

    def _asked(self, result: object, asking: Deferred[None]) -> None:
        self._asking.discard(asking)
        error = getattr(result, "value", None)
        if error is not None and not isinstance(error, (asyncio.CancelledError, CancelledError)):
            logger.error(
                "Asking for a turn went wrong",
                exc_info=(type(error), error, error.__traceback__),
                extra={"spider": self._crawler.spider},
            )

    async def _await_turn(self, key: str, slot: Slot, transfers: _PacedTransfers) -> None:
        """Until the slot has its turn, or nothing that needs one."""
        assert self._turn is not None
        transfers.asked = True
        try:
            # Nobody is asked during a transfer: this begins anew when that ends.
            while slot.queue and not transfers:
                left = slot.lastseen + slot.delay - _clock()
                if left <= 0 and transfers.pace:
                    left = await self._turn(key, transfers.pace)
                if left <= 0:
                    break
                await sleep(left)
        finally:
            transfers.asked = False
        if slot.queue and not transfers:
            transfers.hold(ours=True)
            self._downloader._process_queue(slot)


def is_queued(request: Request, downloader: Downloader) -> bool:
    """Whether a request waits for its turn in its download slot."""
    slot = downloader.slots.get(request.meta.get("download_slot", ""))
    return slot is not None and request in slot.active and request not in slot.transferring


class _PacedTransfers(set["Request"]):
    """What a paced slot is transferring: one at a time, and a delay after each.

    Scrapy counts a slot's delay from start to start, lets the jitter halve it, and AutoThrottle
    writes it anew after each response. Here it is put right whenever a transfer ends.
    """

    def __init__(self, slot: Slot, ask: Callable[[], None] | None) -> None:
        super().__init__(slot.transferring)
        self.pace = 0.0
        self.asked = False
        """Somebody asks for a turn already."""
        self._ask = ask
        self._slot = slot
        self._concurrency = slot.concurrency
        self._delay = slot.delay
        self._jitter: Any = getattr(slot, _JITTER)

    def set_pace(self, pace: float) -> None:
        """At least so many seconds after each; 0 gives the slot back what it had."""
        if pace != self.pace:
            self.pace = pace
            self._slot.delay = self._delay
            self._slot.concurrency = self._concurrency
            setattr(self._slot, _JITTER, self._jitter)
        self.hold()
        self.ask()

    def remove(self, request: Request) -> None:
        super().remove(request)
        if self.pace:
            self._slot.lastseen = _clock()
            self.hold()
            self.ask()

    def ask(self) -> None:
        """Where turns are shared, ask for one if there is anything that needs it."""
        if self._ask is not None and not self.asked and self.pace and self._slot.queue:
            self._ask()

    def hold(self, *, ours: bool = False) -> None:
        """Put the slot right; ``ours``: it has its turn, for one request."""
        if self.pace:
            slot = self._slot
            slot.delay = max(slot.delay, self.pace)
            slot.concurrency = 1 if self._ask is None or ours else 0
            setattr(slot, _JITTER, type(self._jitter)(0))


class _PacedQueue(deque[Queued]):
    """What waits in a paced slot, and says so."""

    def __init__(
        self,
        queued: Iterable[Queued],
        transfers: _PacedTransfers,
        enter: Callable[[], None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__()
        self._transfers = transfers
        self._enter = enter
        self._leave = leave
        for each in queued:
            self.append(each)

    def append(self, queued: Queued) -> None:
        if not _is_aside(queued):
            self._enter()
        super().append(queued)
        self._transfers.ask()

    def popleft(self) -> Queued:
        queued = super().popleft()
        self._transfers.hold()
        if not _is_aside(queued):
            self._leave()
        return queued


def _is_aside(queued: Queued) -> bool:
    # A robots.txt does not count as it is.
    return bool(queued[0].meta.get("is_robotstxt_request"))
