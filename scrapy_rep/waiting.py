"""Who waits, without holding the crawl up.

A request that waits in a downloader middleware counts as a download, so that a few silent sites
would use up CONCURRENT_REQUESTS. Here the engine is lent a place for each one that waits. What
waits is bounded; what comes beyond that goes back to the scheduler, as does what still waits when
the spider closes.

This is the one module that knows the engine's counters, all of them in :class:`Engine`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later, create_looping_call
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler

LOOK_INTERVAL = 0.5
"""Seconds between two looks whether the spider is closing: there is no signal for it."""

LAST_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for what is fetched for nobody."""

PAUSE = 0.5
"""Seconds that a request is held, at most, which comes back from the scheduler too early."""

SENT_BACK = "robotstxt_sent_back"
"""The meta key that counts how often a request was sent back to the scheduler."""


class Engine:
    """The engine's counters.

    Where Scrapy has them no more, or a downloader of another make has not, nothing is lent and
    what waits counts as Scrapy counts it.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._downloads_aside = 0

    @property
    def _downloader(self) -> Any:
        return getattr(self._crawler.engine, "downloader", None)

    def lend(self) -> None:
        """One of the downloads waits: let another take its place."""
        self._lend(1)
        nextcall = getattr(getattr(self._crawler.engine, "_slot", None), "nextcall", None)
        if nextcall is not None:
            nextcall.schedule()

    def take_back(self) -> None:
        """It waits no more."""
        self._lend(-1)

    @property
    def _limit(self) -> int:
        """How many downloads may be under way; 0 means without a limit, or without a counter."""
        limit = getattr(self._downloader, "total_concurrency", 0)
        return limit if isinstance(limit, int) else 0

    def _lend(self, places: int) -> None:
        if self._limit > 0:
            self._downloader.total_concurrency += places

    @contextmanager
    def aside(self) -> Iterator[None]:
        """For as long as the context lasts, one that waits does not count."""
        self.lend()
        try:
            yield
        finally:
            self.take_back()

    @contextmanager
    def download_aside(self) -> Iterator[None]:
        """For as long as the context lasts, a download that is under way does not count."""
        with self.aside():
            self._widen_pools(1)
            try:
                yield
            finally:
                self._widen_pools(-1)

    def _widen_pools(self, connections: int) -> None:
        """Scrapy's handler for aiohttp opens no more than CONCURRENT_REQUESTS connections."""
        self._downloads_aside += connections
        handlers = getattr(getattr(self._downloader, "handlers", None), "_handlers", {})
        for handler in handlers.values():
            connector: Any = getattr(getattr(handler, "_session", None), "connector", None)
            if getattr(connector, "_limit", 0) > 0:  # 0 means without a limit
                connector._limit = handler._pool_size_total + self._downloads_aside

    @property
    def is_crowded(self) -> bool:
        """Whether more is under way than CONCURRENT_REQUESTS."""
        return 0 < self._limit < len(self._downloader.active)

    @property
    def is_closing(self) -> bool:
        """Whether the spider is closing, which waits for every download."""
        closing = getattr(getattr(self._crawler.engine, "_slot", None), "closing", None)
        return isinstance(closing, Deferred)

    @property
    def is_held_open(self) -> bool:
        """Whether the crawl is over but for robots.txt files that are under way, for nobody."""
        engine: Any = self._crawler.engine
        active = getattr(self._downloader, "active", None)
        if not active or getattr(engine, "_start", True) is not None:
            return False
        if not all(request.meta.get("is_robotstxt_request") for request in active):
            return False
        scheduler = getattr(getattr(engine, "_slot", None), "scheduler", None)
        if scheduler is None or scheduler.has_pending_requests():
            return False
        scraping = getattr(engine.scraper, "slot", None)
        return scraping is not None and scraping.is_idle()

    def watch(self, closing: Callable[[], None], held_open: Callable[[], None]) -> None:
        """Look now and again, and call ``closing`` while the spider is closing, and ``held_open``
        once the crawl has been held open for a while.
        """
        held = 0

        def look() -> None:
            nonlocal held
            held = held + 1 if self.is_held_open else 0
            if self.is_closing:
                closing()
            elif held * LOOK_INTERVAL > LAST_WAIT:
                held_open()

        looking = create_looping_call(look)

        def start() -> None:
            looking.start(LOOK_INTERVAL, now=False)

        def stop() -> None:
            if looking.running:
                looking.stop()

        self._crawler.signals.connect(start, signal=signals.spider_opened, weak=False)
        self._crawler.signals.connect(stop, signal=signals.spider_closed, weak=False)


class WaitingRoom:
    """Those who wait, by what they wait for.

    Each has a Deferred of its own: one that is cancelled takes no other with it, and every one of
    them gets the call. ``places`` bounds both the keys that are waited for and those who wait.
    """

    def __init__(self, engine: Engine, places: int) -> None:
        self._engine = engine
        self._places = places
        self._waiting: dict[str, set[Deferred[None]]] = {}
        self._count = 0

    def __contains__(self, key: str) -> bool:
        return key in self._waiting

    def has_place(self, key: str) -> bool:
        """Whether one more may wait for ``key``: many for one leave room for another's first."""
        if key in self._waiting:
            return self._count < self._places
        return len(self._waiting) < self._places

    async def wait(self, key: str, seconds: float | None = None) -> None:
        """Wait for :meth:`call`, or for so many seconds."""
        waiter: Deferred[None] = Deferred()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(waiter)
        self._count += 1
        try:
            with self._engine.aside():
                await wait_for(waiter, seconds)
        finally:
            self._count -= 1
            waiting.discard(waiter)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def call(self, key: str) -> None:
        """Let everyone go who waits for ``key``."""
        for waiter in tuple(self._waiting.pop(key, ())):
            call(waiter)

    def call_all(self) -> None:
        """Let everyone go."""
        for key in tuple(self._waiting):
            self.call(key)


class WayBack:
    """The way back to the scheduler.

    A downloader middleware returns a request for that. Those who called ``engine.download_async``
    get theirs downloaded at once instead. Theirs has NO_CALLBACK, as it should; one that has not is
    known by its coming straight back.
    """

    def __init__(self, crawler: Crawler, engine: Engine) -> None:
        self._crawler = crawler
        self._engine = engine
        self._returned: WeakSet[Request] = WeakSet()
        self._held: set[Deferred[None]] = set()
        self._listens = False

    async def to_the_end(self, request: Request) -> Request | None:
        """``request`` as it is to be returned, behind those of its priority.

        None where the way does not lead to the scheduler. One that was sent back before is held
        for a moment, in its place among CONCURRENT_REQUESTS, lest the two send it to and fro; it
        makes way for any other that is scheduled meanwhile.
        """
        if not self._leads_back(request):
            return None
        times = request.meta.get(SENT_BACK, 0)
        if times:
            await self._hold()
        meta = {**request.meta, SENT_BACK: times + 1}
        return self._back(request.replace(priority=request.priority - 1, meta=meta))

    def as_it_is(self, request: Request) -> Request | None:
        """``request`` as it is to be returned, in its old place; None as above."""
        return self._back(request) if self._leads_back(request) else None

    def if_crowded(self, request: Request) -> Request | None:
        """The same for one that has waited, where it cannot go on.

        Those who waited go on as far as the crawl's concurrency allows, the others later, and
        nobody once the spider is closing.
        """
        if self._engine.is_closing or self._engine.is_crowded:
            return self.as_it_is(request)
        return None

    def _leads_back(self, request: Request) -> bool:
        return request.callback is not NO_CALLBACK and request not in self._returned

    def _back(self, request: Request) -> Request:
        if not self._listens:
            self._listens = True
            self._crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)
        # The duplicate filter has seen it already.
        returned = request.replace(dont_filter=True)
        self._returned.add(returned)
        return returned

    def _scheduled(self, request: Request) -> None:
        if request in self._returned:
            self._returned.discard(request)
        elif self._held:
            call(self._held.pop())

    async def _hold(self) -> None:
        held: Deferred[None] = Deferred()
        self._held.add(held)
        try:
            await wait_for(held, PAUSE)
        finally:
            self._held.discard(held)


async def wait_for(waiter: Deferred[None], seconds: float | None = None) -> None:
    """Wait until ``waiter`` is called, at most so many seconds, on any of Scrapy's loops."""
    timer = None if seconds is None else call_later(seconds, call, waiter)
    try:
        await maybe_deferred_to_future(waiter)
    finally:
        if timer is not None:
            timer.cancel()


async def sleep(seconds: float) -> None:
    """Sleep on any of Scrapy's loops (Scrapy has its own from 2.18 on)."""
    await wait_for(Deferred(), seconds)


def call(waiter: Deferred[None]) -> None:
    """Let one go who waits, unless it went already: called before, or cancelled."""
    if not waiter.called:
        waiter.callback(None)
