"""Scrapy's engine and downloader: what is not public there is used here and in :mod:`.slots`.

:mod:`.features` lists it. :meth:`Engine.open` checks the list when a crawl starts, and says in one
warning what is missing and which features are off because of it.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.downloadermiddlewares.offsite import OffsiteMiddleware
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from ..meta_keys import IS_ROBOTSTXT_REQUEST
from .features import FEATURES, OF_SLOTS, OF_THROTTLER, Feature, has_attributes, missing_paths
from .handlers import (
    AIOHTTP_HANDLER,
    TRANSFER,
    Transfer,
    is_limited,
    names_of,
    run_transfer,
    transfer_of,
)
from .slots import (
    DEFAULT_DOMAIN_CONCURRENCY,
    DownloadSlots,
    PacedScopes,
    Slots,
    ThrottlingScopes,
    any_scope,
    new_slot,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from scrapy import Request
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

WATCH_INTERVAL = 0.5
"""Seconds between two checks whether the spider closes, for which Scrapy has no signal. The end of
a crawl is delayed by as much."""

REFRESH_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for robots.txt files that no request waits
for. Most files arrive within half a second."""


class Engine:
    """The engine and the downloader of one crawl, as this package uses them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._available: frozenset[Feature] = frozenset()
        self._can_wake = self._shows_closing = False
        """Whether QUEUE and CLOSE are available. Each wait reads them several times."""
        self._excluded: set[Request] = set()
        self.slots = Slots()
        """The limits of hosts."""
        self._has_wide_pool = False
        """Whether HTTP goes through Scrapy's aiohttp handler, whose pool can be widened."""
        self._extra_connections = 0
        self.connection_limit = 0
        """How many connections a download handler has that may have a pool; 0 without one."""
        self.reserved_connections: Callable[[], int] = lambda: 0
        """Returns how many of these connections pages must leave free for robots.txt files."""
        self.on_send: Callable[[Request], object] | None = None
        """Called with each request that a download handler gets."""
        self.on_capacity_check: Callable[[], None] = lambda: None
        """Called when the engine checks whether it may start one more download."""
        self.readable: Callable[[Collection[str]], Collection[str]] = lambda names: names
        """Returns those of the given hosts whose requests the scheduler may return now. Only
        Scrapy's DownloaderAwarePriorityQueue calls it."""

    @property
    def _engine(self) -> Any:
        return self._crawler.engine

    @property
    def _downloader(self) -> Any:
        engine: Any = self._crawler.engine
        return engine.downloader

    @property
    def _slot(self) -> Any:
        return self._engine._slot

    @property
    def _throttler(self) -> Any:
        return getattr(self._crawler, "throttler", None)

    # When the crawl begins.

    def open(self, wrap: Callable[[Any], Any]) -> None:
        """Replace the scheduler by ``wrap(scheduler)``, and exclude requests that wait from
        CONCURRENT_REQUESTS. Log one warning that names the features that are off.
        """
        unused = OF_THROTTLER if self._throttler is None else OF_SLOTS
        missing = self._missing(unused)
        off = list(dict.fromkeys(FEATURES[path] for path in missing))
        self._available = frozenset(Feature) - frozenset(off) - unused
        self._can_wake = Feature.QUEUE in self._available
        self._shows_closing = Feature.CLOSE in self._available
        self.slots = self._make_slots()
        queues = self._downloader_aware_queues()
        if Feature.QUEUE in self._available:
            self._slot.scheduler = wrap(self._slot.scheduler)
        if Feature.BUSY in self._available:
            for queue in queues:
                interface = queue._downloader_interface
                interface.stats = partial(self._readable_stats, interface.stats)
        if Feature.EXCLUDE in self._available:
            needs_backout = self._downloader.needs_backout
            self._downloader.needs_backout = partial(self._check_capacity, needs_backout)
            if Feature.HELD in self._available:
                self._exclude_in_checks_of_throttler()
            if Feature.POOLS in self._available and self._has_limited_handler():
                self.connection_limit = max(self._downloader.total_concurrency, 0)
        self._has_wide_pool = Feature.WIDEN in self._available and self._uses_aiohttp()
        if Feature.END in self._available:
            handlers = self._downloader.handlers
            send = partial(self._send, handlers.download_request_async)
            handlers.download_request_async = partial(run_transfer, send)
        if off:
            logger.warning(
                "The engine or the downloader (%(downloader)s) of this crawl differs from those of "
                "Scrapy 2.14 to 2.19 (this is %(version)s): %(off)s. Missing: %(missing)s.",
                {
                    "downloader": type(self._downloader).__qualname__,
                    "version": scrapy.__version__,
                    "off": "; ".join(feature.value for feature in off),
                    "missing": ", ".join(missing),
                },
                extra={"spider": self._crawler.spider},
            )

    def _make_slots(self) -> Slots:
        """Return what keeps the limits of hosts, as far as this crawl has it."""
        if Feature.PACE in self._available and Feature.SCOPES in self._available:
            return PacedScopes(self._throttler, self._downloader)
        if Feature.SCOPES in self._available:
            return ThrottlingScopes(self._throttler, self._downloader)
        concurrency = DEFAULT_DOMAIN_CONCURRENCY
        if Feature.DOMAIN in self._available:
            concurrency = self._downloader.domain_concurrency
        if Feature.SLOTS in self._available:
            return DownloadSlots(self._downloader, concurrency)
        return Slots(concurrency)

    def _missing(self, unused: frozenset[Feature]) -> list[str]:
        """Return the paths of :data:`FEATURES` that this crawl uses and does not have."""
        roots = {"engine": self._engine, "downloader": self._downloader}
        for queue in self._downloader_aware_queues():
            roots["queue"] = queue
        if self._throttler is None:
            roots["slot"] = new_slot(self._downloader)
        else:
            roots["throttler"] = self._throttler
            roots["scope"] = any_scope(self._throttler)
        if self._uses_aiohttp():
            roots["handler"] = load_object(AIOHTTP_HANDLER)
            roots["connector"] = sys.modules["aiohttp"].TCPConnector
        missing = missing_paths(roots, unused)
        path = "downloader.total_concurrency"
        if path not in missing and not isinstance(self._downloader.total_concurrency, int):
            missing.append(path)
        return missing

    def _downloader_aware_queues(self) -> list[Any]:
        """Return the priority queues of Scrapy's scheduler that compare download slots."""
        scheduler = getattr(getattr(self._engine, "_slot", None), "scheduler", None)
        queues = [getattr(scheduler, name, None) for name in ("mqs", "dqs")]
        return [each for each in queues if isinstance(each, DownloaderAwarePriorityQueue)]

    def _readable_stats(
        self, stats: Callable[[Collection[str]], Any], names: Collection[str]
    ) -> Any:
        """Replace ``stats`` of the interface through which a queue compares download slots.

        A queue returns no requests of slots that are left out. Most slots have the name of a host.
        """
        return stats(self.readable(names))

    def _check_capacity(self, needs_backout: Callable[[], bool]) -> bool:
        """Replace ``needs_backout`` of the downloader."""
        self.on_capacity_check()
        return self._needs_backout(needs_backout)

    def _needs_backout(self, needs_backout: Callable[[], bool]) -> bool:
        limit: int = self._downloader.total_concurrency
        reserved = self.reserved_connections() if self.connection_limit else 0
        if not (self._excluded or reserved) or limit <= 0:
            return needs_backout()
        active = self._downloader.active
        if not limit - reserved <= len(active) < limit - reserved + len(self._excluded):
            return len(active) + reserved >= limit
        # A request that has ended stays excluded until its task runs, and is not active.
        return len(active - self._excluded) + reserved >= limit

    def _exclude_in_checks_of_throttler(self) -> None:
        """Exclude requests from CONCURRENT_REQUESTS where Scrapy checks it beside its throttler."""
        engine, downloader = self._engine, self._downloader

        def excluding(is_full: Callable[[], bool], used: Callable[[], int]) -> Callable[[], bool]:
            return lambda: is_full() and used() >= downloader.total_concurrency

        engine._throttler_needs_backout = excluding(
            engine._throttler_needs_backout, lambda: len(self._held) + len(self.included)
        )
        downloader._download_handler_slots_full = excluding(
            downloader._download_handler_slots_full,
            lambda: len(self.slots.transfers - self._excluded),
        )

    def is_first_middleware(self, middleware: object) -> bool:
        """Whether this downloader middleware gets a request before all others.

        Scrapy's OffsiteMiddleware may come first: it has checked the requests of the scheduler.
        False if the downloader does not show its middlewares.
        """
        manager = getattr(self._downloader, "middleware", None)
        for each in getattr(manager, "middlewares", ()):
            if each is middleware:
                return True
            if hasattr(each, "process_request") and type(each) is not OffsiteMiddleware:
                return False
        return False

    # Downloads.

    def _send(self, download: Callable[[Request], Any], request: Request) -> Any:
        """Give a request to its download handler, by calling ``download``."""
        if self.on_send is not None:
            self.on_send(request)
        return download(request)

    def shows_sent(self) -> bool:
        """Whether :attr:`on_send` is called, and the :class:`Transfer` of a robots.txt is run."""
        return Feature.END in self._available

    @property
    def _held(self) -> Collection[Request]:
        """The requests that Scrapy's throttler holds back, before the downloader gets them."""
        if Feature.HELD not in self._available:
            return ()
        held: Collection[Request] = self._engine._throttler_waiting
        return held

    @property
    def has_capacity(self) -> bool:
        """Whether the engine may start one more download."""
        return not self._engine.needs_backout()

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has a request, at whatever stage, or is about to get it."""
        return request in self._downloader.active or request in self._held

    def is_held(self, request: Request) -> bool:
        """Whether Scrapy holds a request back, because of delays or limits of its own."""
        return request in self._held or self.slots.is_queued(request)

    def has_reached_slot(self, request: Request) -> bool:
        """Whether a request may have been sent, because it came as far as its download slot.

        Where the downloader has no slots, every request may have been sent.
        """
        if "download_slot" in request.meta:
            return True
        has_slots = has_attributes(self._downloader, ["_get_slot"])
        return Feature.SCOPES not in self._available and not has_slots

    @property
    def active(self) -> tuple[Request, ...]:
        """All requests that the downloader has or is about to get."""
        return (*self._downloader.active, *self._held)

    def exclude(self, request: Request) -> None:
        """Exclude a request that the downloader has from CONCURRENT_REQUESTS."""
        self._excluded.add(request)
        self.wake()

    def include(self, request: Request) -> None:
        """End what :meth:`exclude` began."""
        self._excluded.discard(request)

    def exclude_download(self, request: Request) -> None:
        """Exclude a robots.txt that this package downloads from CONCURRENT_REQUESTS.

        A spider may make a request with the same ``meta``: it uses up CONCURRENT_REQUESTS, as does
        every download where a download handler may have no more connections than that.
        """
        transfer = transfer_of(request)
        if self.connection_limit or transfer is None or request in transfer.excluded:
            return
        transfer.excluded.add(request)
        self._widen_pools(1)
        self.exclude(request)

    def include_download(self, request: Request) -> None:
        """End what :meth:`exclude_download` began, also for a request that replaced this one."""
        transfer = request.meta.get(TRANSFER)
        while isinstance(transfer, Transfer) and transfer.excluded:
            self._widen_pools(-1)
            self.include(transfer.excluded.pop())

    def include_page(self, request: Request) -> None:
        """Include a request that no longer waits, unless :meth:`exclude_download` excluded it."""
        transfer = transfer_of(request)
        if transfer is None or request not in transfer.excluded:
            self.include(request)

    @property
    def included(self) -> set[Request]:
        """The requests that use up CONCURRENT_REQUESTS."""
        return set(self._downloader.active) - self._excluded

    @property
    def is_downloading(self) -> bool:
        """Whether a request uses up CONCURRENT_REQUESTS."""
        return not self._excluded.issuperset(self._downloader.active)

    def _http_handlers(self) -> list[Any]:
        """Return the download handlers of HTTP, or their paths."""
        schemes = self._downloader.handlers._schemes
        return [schemes[name] for name in ("http", "https") if name in schemes]

    def _has_limited_handler(self) -> bool:
        """Whether HTTP goes through a handler that may have a pool of CONCURRENT_REQUESTS."""
        return any(is_limited(handler) for handler in self._http_handlers())

    def _uses_aiohttp(self) -> bool:
        """Whether HTTP goes through Scrapy's handler for aiohttp."""
        if not has_attributes(self._downloader, ["handlers", "_schemes"]):
            return False
        return any(AIOHTTP_HANDLER in names_of(handler) for handler in self._http_handlers())

    def _widen_pools(self, connections: int) -> None:
        """Allow Scrapy's aiohttp handler this many connections beyond CONCURRENT_REQUESTS."""
        self._extra_connections += connections
        if not self._has_wide_pool:
            return
        for handler in self._downloader.handlers._handlers.values():
            if AIOHTTP_HANDLER in names_of(type(handler)):
                connector = handler._session.connector
                if connector._limit > 0:  # 0 means without a limit
                    connector._limit = handler._pool_size_total + self._extra_connections

    def wake(self) -> None:
        """Schedule the next step of the engine, which takes requests from the scheduler."""
        if self._can_wake and not self.is_closing:
            self._slot.nextcall.schedule()

    # When the crawl ends.

    @property
    def is_closing(self) -> bool:
        """Whether the spider closes. Then the engine waits for all downloads to end."""
        slot = self._slot if self._shows_closing else None
        return slot is not None and isinstance(slot.closing, Deferred)

    @property
    def _waits_for_refreshes(self) -> bool:
        """Whether the crawl is over but for robots.txt files that no request waits for."""
        if not {Feature.REFRESH, Feature.QUEUE} <= self._available or self._slot is None:
            return False
        active = self._downloader.active
        if not active or self._engine._start is not None:
            return False
        if not all(request.meta.get(IS_ROBOTSTXT_REQUEST) for request in active):
            return False
        if self._slot.scheduler.has_pending_requests():
            return False
        slot = self._engine.scraper.slot
        return slot is not None and slot.is_idle()

    def watch(
        self,
        poll: Callable[[], None],
        closing: Callable[[], None],
        waits_for_refreshes: Callable[[], None],
    ) -> None:
        """Call ``poll`` at regular intervals, and ``closing`` instead while the spider closes.

        ``waits_for_refreshes`` is called instead once only refreshes have kept the crawl from
        its end for :data:`REFRESH_WAIT` seconds. What these calls raise is logged.
        """
        times = 0

        def watch() -> None:
            nonlocal times
            try:
                times = times + 1 if self._waits_for_refreshes else 0
                if self.is_closing:
                    closing()
                elif times * WATCH_INTERVAL > REFRESH_WAIT:
                    waits_for_refreshes()
                else:
                    poll()
            except Exception:
                logger.exception(
                    "Watching the engine failed", extra={"spider": self._crawler.spider}
                )

        looping = create_looping_call(watch)

        def start() -> None:
            looping.start(WATCH_INTERVAL, now=False)

        def stop() -> None:
            if looping.running:
                looping.stop()

        self._crawler.signals.connect(start, signal=signals.spider_opened, weak=False)
        self._crawler.signals.connect(stop, signal=signals.spider_closed, weak=False)
