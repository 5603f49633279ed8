"""The parts of Scrapy's engine and downloader that are not public, all of them in this module.

=========================================  ====================================================
attribute                                  used for
=========================================  ====================================================
``engine._slot.scheduler``                 to keep requests that have to wait (:meth:`Engine.open`)
``engine._slot.nextcall.schedule()``       to have the engine ask for its next request
``engine._slot.closing``                   whether the spider is closing
``engine._start``, ``engine.scraper.slot`` whether a crawl is over but for a refresh
``downloader.total_concurrency``           CONCURRENT_REQUESTS, without the requests that wait
``downloader.slots``, ``_get_slot()``      to let the scheduler see who waits; the slot's own delay
``slot.active``, ``slot.transferring``     the same, and how many connections are in use
``slot.queue``, ``_process_queue()``       to take back what is not on its way yet
``handlers._schemes``                      whether a download handler has a pool of its own
``handlers._handlers``, ``_session``       to widen the connection pool of the aiohttp handler
``handlers.download_request_async()``      to end the download of a robots.txt that takes too long
=========================================  ====================================================

Where a Scrapy or a downloader of another make lacks one of them, one warning at the start of the
crawl names what is off for it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError, Deferred

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

WATCH_INTERVAL = 0.5
"""Seconds between two looks at the engine: there is no signal for the begin of its closing."""

_SLOT = ("active", "concurrency", "delay", "queue", "transferring")
"""What is used of a download slot."""

_HANDLERS = "scrapy.core.downloader.handlers."
UNLIMITED_HANDLERS = frozenset(
    {
        f"{_HANDLERS}_aiohttp.AiohttpDownloadHandler",  # once its pool is widened
        f"{_HANDLERS}http10.HTTP10DownloadHandler",
        f"{_HANDLERS}http11.HTTP11DownloadHandler",
        f"{_HANDLERS}http2.H2DownloadHandler",
    }
)
"""Download handlers that open as many connections as they get requests."""

HANDLING = "robotstxt_handling"
"""The meta key of the :class:`Handling` of a request."""

LAST_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for robots.txt files that nobody waits for."""


class Handling:
    """What a download handler does for one request, and for those that are made of it.

    Scrapy's downloader does not end that where the download is cancelled. A handler without a
    time-out of its own would keep the connection.
    """

    __slots__ = ("_download", "_is_over", "excluded")

    def __init__(self) -> None:
        self._download: Deferred[Response] | None = None
        self._is_over = False
        self.excluded: set[Request] = set()
        """The requests of this download that do not use up CONCURRENT_REQUESTS."""

    @property
    def is_over(self) -> bool:
        """Whether the download has ended."""
        return self._is_over

    def end(self) -> None:
        """Nobody waits for it any more."""
        self._is_over = True
        if self._download is not None:
            self._download.cancel()

    async def run(
        self, download: Callable[[Request], Awaitable[Response]], request: Request
    ) -> Response:
        """The response of a download handler, which is not asked for it once that is over."""
        if self._is_over:
            raise TimeoutError("the download was ended before it began")
        self._download = deferred_from_coro(download(request))
        try:
            return await maybe_deferred_to_future(self._download)
        except (asyncio.CancelledError, CancelledError):
            if self._is_over:  # the downloader expects an exception that is no end of the program
                raise TimeoutError("the download was ended") from None
            raise


class Engine:
    """What the package sees of one crawl's engine, and does to it."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._excluded: set[Request] = set()
        self._counted: dict[Request, Any] = {}
        """The slots in which requests that wait are counted."""
        self._extra_connections = 0
        self.connection_limit = 0
        """How many connections a download handler has that may have a pool; 0 without one."""
        self.wanted_connections: Callable[[], int] = lambda: 0
        """How many of them pages must leave to fetches that have not begun."""
        self._has_slots = False

    @property
    def _downloader(self) -> Any:
        return getattr(self._crawler.engine, "downloader", None)

    @property
    def _slot(self) -> Any:
        return getattr(self._crawler.engine, "_slot", None)

    # When the crawl begins.

    def open(self, wrap: Callable[[Any], Any]) -> None:
        """Put ``wrap(scheduler)`` in the place of the scheduler, and exclude requests that wait
        from CONCURRENT_REQUESTS.
        """
        missing = []
        self._has_slots = self._find_slots()
        scheduler = getattr(self._slot, "scheduler", None)
        if scheduler is None or getattr(self._slot, "nextcall", None) is None:
            missing.append("requests that wait are kept in the downloader")
        else:
            self._slot.scheduler = wrap(scheduler)
        if isinstance(getattr(self._downloader, "total_concurrency", None), int):
            needs_backout = self._downloader.needs_backout
            self._downloader.needs_backout = lambda: self._needs_backout(needs_backout)
            if self._has_limited_handler():
                self.connection_limit = max(self._downloader.total_concurrency, 0)
        else:
            missing.append("requests that wait use up CONCURRENT_REQUESTS")
        handlers = getattr(self._downloader, "handlers", None)
        download = getattr(handlers, "download_request_async", None)
        if download is None:
            missing.append("the download of a robots.txt that takes too long is not ended")
        else:
            handlers.download_request_async = partial(_handle, download)  # type: ignore[union-attr]
        if not hasattr(self._downloader, "_get_slot"):
            missing.append("the scheduler does not see who waits")
        elif not self._has_slots:
            missing.append("the concurrency and the delays of its download slots are not seen")
        if missing:
            logger.warning(
                "This engine or downloader (%(downloader)s) is not like Scrapy's own: %(missing)s.",
                {
                    "downloader": type(self._downloader).__qualname__,
                    "missing": "; ".join(missing),
                },
                extra={"spider": self._crawler.spider},
            )

    def _needs_backout(self, needs_backout: Callable[[], bool]) -> bool:
        limit: int = self._downloader.total_concurrency
        wanted = self.wanted_connections() if self.connection_limit else 0
        if not (self._excluded or wanted) or limit <= 0:
            return needs_backout()
        active = self._downloader.active
        if not limit - wanted <= len(active) < limit - wanted + len(self._excluded):
            return len(active) + wanted >= limit
        # One that is excluded until a task of its own notices that it has ended is not active.
        return len(active) + wanted - len(active & self._excluded) >= limit

    # Downloads.

    @property
    def has_capacity(self) -> bool:
        """Whether the engine may start one more download."""
        engine = self._crawler.engine
        assert engine is not None
        return not engine.needs_backout()

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has it, in whatever stage."""
        return request in self._downloader.active

    def has_reached_slot(self, request: Request) -> bool:
        """Whether a request may have been sent: it came as far as the queue of its slot."""
        return "download_slot" in request.meta or not hasattr(self._downloader, "_get_slot")

    @property
    def active(self) -> tuple[Request, ...]:
        """All requests that the downloader has."""
        return tuple(self._downloader.active)

    def exclude(self, request: Request) -> None:
        """A request that the downloader has does not use up CONCURRENT_REQUESTS."""
        self._excluded.add(request)
        self.wake()

    def include(self, request: Request) -> None:
        """It uses up CONCURRENT_REQUESTS again, or has ended."""
        self._excluded.discard(request)

    def exclude_download(self, request: Request) -> None:
        """Exclude a robots.txt that this package downloads from CONCURRENT_REQUESTS.

        A spider may make a request with the same ``meta``: it uses up CONCURRENT_REQUESTS, as does
        every download where a download handler may have no more connections than that.
        """
        handling = _handling(request)
        if self.connection_limit or handling is None or request in handling.excluded:
            return
        handling.excluded.add(request)
        self._widen_pools(1)
        self.exclude(request)

    def include_download(self, request: Request) -> None:
        """End what :meth:`exclude_download` began, also for a request that replaced this one."""
        handling = request.meta.get(HANDLING)
        while isinstance(handling, Handling) and handling.excluded:
            self._widen_pools(-1)
            self.include(handling.excluded.pop())

    def include_page(self, request: Request) -> None:
        """Include a request that no longer waits, unless :meth:`exclude_download` excluded it."""
        handling = _handling(request)
        if handling is None or request not in handling.excluded:
            self.include(request)

    @property
    def included(self) -> set[Request]:
        """The requests that use up CONCURRENT_REQUESTS."""
        return set(self._downloader.active) - self._excluded

    @property
    def transfers(self) -> set[Request]:
        """The requests that download handlers have."""
        found: set[Request] = set()
        for slot in self._slots.values():
            found |= slot.transferring
        return found

    def _has_limited_handler(self) -> bool:
        """Whether HTTP goes through a handler that may have a pool of CONCURRENT_REQUESTS."""
        handlers = getattr(self._downloader, "handlers", None)
        schemes = getattr(handlers, "_schemes", {})
        return any(_is_limited(schemes[name]) for name in ("http", "https") if name in schemes)

    def _widen_pools(self, connections: int) -> None:
        """Scrapy's handler for aiohttp opens no more than CONCURRENT_REQUESTS connections."""
        self._extra_connections += connections
        handlers = getattr(getattr(self._downloader, "handlers", None), "_handlers", {})
        for handler in handlers.values():
            connector: Any = getattr(getattr(handler, "_session", None), "connector", None)
            if getattr(connector, "_limit", 0) > 0:  # 0 means without a limit
                connector._limit = handler._pool_size_total + self._extra_connections

    def wake(self) -> None:
        """Have the engine ask for its next request soon."""
        nextcall = getattr(self._slot, "nextcall", None)
        if nextcall is not None and not self.is_closing:
            nextcall.schedule()

    # Download slots.

    @property
    def _slots(self) -> Any:
        return self._downloader.slots if self._has_slots else {}

    def _find_slots(self) -> bool:
        """Whether the downloader keeps slots as Scrapy's does. Its next one may not."""
        if not isinstance(getattr(self._downloader, "slots", None), dict):
            return False
        get_slot = getattr(self._downloader, "_get_slot", None)
        if get_slot is None:
            return False
        try:
            key, slot = get_slot(Request("data:,", meta={"download_slot": "scrapy-rep"}))
        except Exception:
            return False
        self._downloader.slots.pop(key, None)
        return all(hasattr(slot, name) for name in _SLOT)

    def count_in_slot(self, request: Request) -> None:
        """Count a request that waits in its slot.

        Scrapy's scheduler prefers the slots with the fewest active requests. So it asks for those
        who can go on first.
        """
        if self._has_slots:
            _, slot = self._downloader._get_slot(request)
            slot.active.add(request)
            self._counted[request] = slot

    def discount_in_slot(self, request: Request) -> None:
        """It waits no more."""
        slot = self._counted.pop(request, None)
        if slot is not None:
            slot.active.discard(request)

    def slot_limits(self, request: Request) -> tuple[int, float]:
        """How many requests its slot lets be under way, and the seconds between two of them."""
        downloader = self._downloader
        concurrency = getattr(downloader, "domain_concurrency", 8)
        slots = self._slots
        if not slots:
            return concurrency, 0
        key = request.meta.get("download_slot") or downloader.get_slot_key(request)
        slot = slots.get(key)
        return (slot.concurrency, slot.delay) if slot is not None else (concurrency, 0)

    def is_queued(self, request: Request) -> bool:
        """Whether a request waits in its slot, for the sake of DOWNLOAD_DELAY."""
        slot = self._slots.get(request.meta.get("download_slot"))
        return slot is not None and request in slot.active and request not in slot.transferring

    def take_queued(
        self, wanted: Callable[[Request], bool]
    ) -> Iterable[tuple[Request, Deferred[Any], Callable[[], None]]]:
        """Take back the requests that wait in slots and are wanted.

        Each comes with the Deferred that the downloader waits for, and a call that puts it back.
        """
        taken = []
        for slot in self._slots.values():
            for queued in [queued for queued in slot.queue if wanted(queued[0])]:
                slot.queue.remove(queued)
                taken.append((*queued, self._putting_back(slot, queued)))
        return taken

    def _putting_back(self, slot: Any, queued: tuple[Request, Deferred[Any]]) -> Callable[[], None]:
        def put_back() -> None:
            slot.queue.append(queued)
            self._downloader._process_queue(slot)

        return put_back

    # When the crawl ends.

    @property
    def is_closing(self) -> bool:
        """Whether the spider is closing, which waits for every download."""
        return isinstance(getattr(self._slot, "closing", None), Deferred)

    @property
    def _is_held_open(self) -> bool:
        """Whether the crawl is over but for robots.txt files that are under way, for nobody."""
        engine: Any = self._crawler.engine
        active = getattr(self._downloader, "active", None)
        if not active or getattr(engine, "_start", True) is not None:
            return False
        if not all(request.meta.get("is_robotstxt_request") for request in active):
            return False
        scheduler = getattr(self._slot, "scheduler", None)
        if scheduler is None or scheduler.has_pending_requests():
            return False
        scraping = getattr(engine.scraper, "slot", None)
        return scraping is not None and scraping.is_idle()

    def watch(
        self,
        look: Callable[[], None],
        closing: Callable[[], None],
        held_open: Callable[[], None],
    ) -> None:
        """Call ``look`` now and again; ``closing`` while the spider is closing; ``held_open`` once
        the crawl has been held open for a while. Nothing that they raise ends this.
        """
        held = 0

        def watch() -> None:
            nonlocal held
            try:
                held = held + 1 if self._is_held_open else 0
                if self.is_closing:
                    closing()
                elif held * WATCH_INTERVAL > LAST_WAIT:
                    held_open()
                else:
                    look()
            except Exception:
                logger.exception(
                    "Looking at the engine failed", extra={"spider": self._crawler.spider}
                )

        looping = create_looping_call(watch)

        def start() -> None:
            looping.start(WATCH_INTERVAL, now=False)

        def stop() -> None:
            if looping.running:
                looping.stop()

        self._crawler.signals.connect(start, signal=signals.spider_opened, weak=False)
        self._crawler.signals.connect(stop, signal=signals.spider_closed, weak=False)


def _handle(
    download: Callable[[Request], Awaitable[Response]], request: Request
) -> Awaitable[Response]:
    """Download a request, in such a way that its :class:`Handling` can be ended."""
    handling = request.meta.get(HANDLING)
    if not isinstance(handling, Handling):
        return download(request)
    return handling.run(download, request)


def _handling(request: Request) -> Handling | None:
    """The :class:`Handling` of a robots.txt that this package downloads, until it ends."""
    handling = request.meta.get(HANDLING)
    return handling if isinstance(handling, Handling) and not handling.is_over else None


def _is_limited(handler: Any) -> bool:
    """Whether a download handler, or the path of one, is none of those that are known."""
    try:
        bases = load_object(handler).__mro__
    except Exception:  # Scrapy has said so
        return False
    for base in bases:
        if f"{base.__module__}.{base.__qualname__}" in UNLIMITED_HANDLERS:
            return False
        if {"download_request", "_make_request"} & vars(base).keys():
            return True
    return True
