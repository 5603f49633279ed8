"""Scrapy's engine and downloader: what is not public there is listed, checked and used here.

==============================================  ====================================================
attribute                                       without it
==============================================  ====================================================
``downloader.active``                           Scrapy's engine does not run
``downloader.needs_backout``                    the same
``engine._slot.scheduler``                      requests that wait stay in the downloader
``engine._slot.nextcall``                       the same
``engine._slot.closing``                        a crawl closes only when no request waits
``engine._start``                               a crawl ends only after the last refresh of a policy
``engine.scraper.slot``                         the same
``downloader.total_concurrency``                requests that wait use up CONCURRENT_REQUESTS
``downloader.domain_concurrency``               a host gets 8 requests at once after they waited
``downloader.slots``                            download slots are not seen: the scheduler does not
                                                prefer hosts without waiting requests, and the
                                                delays of slots do not add to those of sites
``downloader._get_slot``                        the same
``downloader.get_slot_key``                     the same
``downloader._process_queue``                   the same
``slot.active``                                 the same
``slot.concurrency``                            the same
``slot.delay``                                  the same
``slot.queue``                                  the same
``slot.transferring``                           the same
``throttler.acquire``                           the scopes of Scrapy's throttler are not seen: while
                                                requests wait, others of their host may not start
``throttler.get_applied_scopes``                the same
``throttler.get_scope_manager``                 the same
``throttler.release``                           the same
``scope.get_base_delay``                        the same
``scope.get_concurrency``                       the same
``downloader._in_download_handler``             the same
``scope.set_base_delay``                        Scrapy's throttler does not get the pace of sites
``scope.set_concurrency``                       the same
``scope._jitter``                               the same
``scope._next_allowed_time``                    the same
``engine._throttler_waiting``                   requests that it holds back are not seen: they count
                                                as ended, and requests that wait use up
                                                CONCURRENT_REQUESTS meanwhile
``engine._throttler_needs_backout``             the same
``downloader._download_handler_slots_full``     the same
``downloader.handlers.download_request_async``  the download of a robots.txt that takes too long is
                                                not ended
``downloader.handlers._schemes``                connections of handlers with a pool are not counted
``downloader.handlers._handlers``               the pool of Scrapy's aiohttp handler is not widened
``handler._pool_size_total``                    the same
``handler._session``                            the same
``connector._limit``                            the same
==============================================  ====================================================

:data:`REQUIRED` and :data:`FEATURES` hold the same table. :meth:`Engine.open` checks it when a
crawl starts, and says in one warning what is missing and what is off without it. A crawl has either
download slots or a throttler: what belongs to the other one is not checked.

:mod:`.slots` uses those that belong to download slots and to the throttler.
"""

from __future__ import annotations

import logging
import sys
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from ..meta_keys import IS_ROBOTSTXT_REQUEST
from .handlers import AIOHTTP_HANDLER, HANDLING, Handling, handle, handling_of, is_limited, names_of
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


class Feature(Enum):
    """What needs attributes that are not public. The value says what happens without them."""

    QUEUE = "requests that wait stay in the downloader"
    CLOSE = "a crawl closes only when no request waits"
    REFRESH = "a crawl ends only after the last refresh of a robots.txt"
    EXCLUDE = "requests that wait use up CONCURRENT_REQUESTS"
    DOMAIN = f"a host gets {DEFAULT_DOMAIN_CONCURRENCY} requests at once after they waited"
    SLOTS = (
        "download slots are not seen: the scheduler does not prefer hosts without waiting "
        "requests, and the delays of slots do not add to those of sites"
    )
    SCOPES = (
        "the scopes of Scrapy's throttler are not seen: while requests wait, others of their host "
        "may not start"
    )
    PACE = "Scrapy's throttler does not get the pace of sites"
    HELD = "requests that Scrapy's throttler holds back are not seen"
    END = "the download of a robots.txt that takes too long is not ended"
    POOLS = "connections of download handlers with a pool are not counted"
    WIDEN = "the pool of Scrapy's aiohttp handler is not widened for robots.txt files"


REQUIRED = ("downloader.active", "downloader.needs_backout")
"""Attributes that Scrapy's engine itself uses of each downloader: they are not checked."""

FEATURES = {
    "engine._slot.scheduler": Feature.QUEUE,
    "engine._slot.nextcall": Feature.QUEUE,
    "engine._slot.closing": Feature.CLOSE,
    "engine._start": Feature.REFRESH,
    "engine.scraper.slot": Feature.REFRESH,
    "downloader.total_concurrency": Feature.EXCLUDE,
    "downloader.domain_concurrency": Feature.DOMAIN,
    "downloader.slots": Feature.SLOTS,
    "downloader._get_slot": Feature.SLOTS,
    "downloader.get_slot_key": Feature.SLOTS,
    "downloader._process_queue": Feature.SLOTS,
    "slot.active": Feature.SLOTS,
    "slot.concurrency": Feature.SLOTS,
    "slot.delay": Feature.SLOTS,
    "slot.queue": Feature.SLOTS,
    "slot.transferring": Feature.SLOTS,
    "throttler.acquire": Feature.SCOPES,
    "throttler.get_applied_scopes": Feature.SCOPES,
    "throttler.get_scope_manager": Feature.SCOPES,
    "throttler.release": Feature.SCOPES,
    "scope.get_base_delay": Feature.SCOPES,
    "scope.get_concurrency": Feature.SCOPES,
    "downloader._in_download_handler": Feature.SCOPES,
    "scope.set_base_delay": Feature.PACE,
    "scope.set_concurrency": Feature.PACE,
    "scope._jitter": Feature.PACE,
    "scope._next_allowed_time": Feature.PACE,
    "engine._throttler_waiting": Feature.HELD,
    "engine._throttler_needs_backout": Feature.HELD,
    "downloader._download_handler_slots_full": Feature.HELD,
    "downloader.handlers.download_request_async": Feature.END,
    "downloader.handlers._schemes": Feature.POOLS,
    "downloader.handlers._handlers": Feature.WIDEN,
    "handler._pool_size_total": Feature.WIDEN,
    "handler._session": Feature.WIDEN,
    "connector._limit": Feature.WIDEN,
}
"""Every other attribute that is used and is not public, and the feature that is off without it.

``slot`` is a download slot; ``throttler`` is Scrapy's throttler, ``scope`` the manager of one of
its scopes; ``handler`` is Scrapy's aiohttp handler, ``connector`` its pool. Of the throttler, what
is public is listed, too: it is not released."""

OF_SLOTS = frozenset({Feature.DOMAIN, Feature.SLOTS})
OF_THROTTLER = frozenset({Feature.SCOPES, Feature.PACE, Feature.HELD})


class Engine:
    """The engine and the downloader of one crawl, as this package uses them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._available: frozenset[Feature] = frozenset()
        self._excluded: set[Request] = set()
        self.slots = Slots()
        """The limits of hosts."""
        self._extra_connections = 0
        self.connection_limit = 0
        """How many connections a download handler has that may have a pool; 0 without one."""
        self.reserved_connections: Callable[[], int] = lambda: 0
        """Returns how many of these connections pages must leave free for robots.txt files."""
        self.on_capacity_check: Callable[[], None] = lambda: None
        """Called when the engine checks whether it may start one more download."""

    @property
    def _engine(self) -> Any:
        return self._crawler.engine

    @property
    def _downloader(self) -> Any:
        return self._engine.downloader

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
        self.slots = self._make_slots()
        if Feature.QUEUE in self._available:
            self._slot.scheduler = wrap(self._slot.scheduler)
        if Feature.EXCLUDE in self._available:
            needs_backout = self._downloader.needs_backout
            self._downloader.needs_backout = partial(self._check_capacity, needs_backout)
            if Feature.HELD in self._available:
                self._exclude_in_checks_of_throttler()
            if Feature.POOLS in self._available and self._has_limited_handler():
                self.connection_limit = max(self._downloader.total_concurrency, 0)
        if Feature.END in self._available:
            handlers = self._downloader.handlers
            handlers.download_request_async = partial(handle, handlers.download_request_async)
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
        if self._throttler is None:
            roots["slot"] = new_slot(self._downloader)
        else:
            roots["throttler"] = self._throttler
            roots["scope"] = any_scope(self._throttler)
        if self._uses_aiohttp():
            roots["handler"] = load_object(AIOHTTP_HANDLER)
            roots["connector"] = sys.modules["aiohttp"].TCPConnector
        missing = []
        for path, feature in FEATURES.items():
            root, *names = path.split(".")
            if feature not in unused and root in roots and not _has(roots[root], names):
                missing.append(path)
        path = "downloader.total_concurrency"
        if path not in missing and not isinstance(self._downloader.total_concurrency, int):
            missing.append(path)
        return missing

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
        # A request that has ended stays excluded until its task notices, and is not active.
        return len(active) + reserved - len(active & self._excluded) >= limit

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

    # Downloads.

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
        return Feature.SCOPES not in self._available and not _has(self._downloader, ["_get_slot"])

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
        handling = handling_of(request)
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
        handling = handling_of(request)
        if handling is None or request not in handling.excluded:
            self.include(request)

    @property
    def included(self) -> set[Request]:
        """The requests that use up CONCURRENT_REQUESTS."""
        return set(self._downloader.active) - self._excluded

    def _http_handlers(self) -> list[Any]:
        """Return the download handlers of HTTP, or their paths."""
        schemes = self._downloader.handlers._schemes
        return [schemes[name] for name in ("http", "https") if name in schemes]

    def _has_limited_handler(self) -> bool:
        """Whether HTTP goes through a handler that may have a pool of CONCURRENT_REQUESTS."""
        return any(is_limited(handler) for handler in self._http_handlers())

    def _uses_aiohttp(self) -> bool:
        """Whether HTTP goes through Scrapy's handler for aiohttp."""
        if not _has(self._downloader, ["handlers", "_schemes"]):
            return False
        return any(AIOHTTP_HANDLER in names_of(handler) for handler in self._http_handlers())

    def _widen_pools(self, connections: int) -> None:
        """Let Scrapy's aiohttp handler open more connections than CONCURRENT_REQUESTS."""
        self._extra_connections += connections
        if Feature.WIDEN not in self._available:
            return
        for handler in self._downloader.handlers._handlers.values():
            if AIOHTTP_HANDLER in names_of(type(handler)):
                connector = handler._session.connector
                if connector._limit > 0:  # 0 means without a limit
                    connector._limit = handler._pool_size_total + self._extra_connections

    def wake(self) -> None:
        """Have the engine ask for its next request soon."""
        if Feature.QUEUE in self._available and not self.is_closing:
            self._slot.nextcall.schedule()

    # When the crawl ends.

    @property
    def is_closing(self) -> bool:
        """Whether the spider closes. Then the engine waits for all downloads to end."""
        if Feature.CLOSE not in self._available or self._slot is None:
            return False
        return isinstance(self._slot.closing, Deferred)

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


def _has(value: Any, names: list[str]) -> bool:
    """Whether a value has an attribute, which has the next one, and so on.

    A class has the attributes that its constructors set: Scrapy makes download handlers late.
    """
    for name in names:
        if isinstance(value, type) and name in _set_by_constructors(value):
            return True
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True


def _set_by_constructors(value: type) -> set[str]:
    constructors = [vars(base).get("__init__") for base in value.__mro__]
    codes = [getattr(constructor, "__code__", None) for constructor in constructors]
    return {name for code in codes if code is not None for name in code.co_names}
