"""Scrapy's engine and downloader: the only module that uses what is not public there.

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
``downloader.handlers.download_request_async``  the download of a robots.txt that takes too long is
                                                not ended
``downloader.handlers._schemes``                connections of handlers with a pool are not counted
``downloader.handlers._handlers``               the pool of Scrapy's aiohttp handler is not widened
``handler._pool_size_total``                    the same
``handler._session``                            the same
``connector._limit``                            the same
==============================================  ====================================================

:data:`REQUIRED` and :data:`FEATURES` hold the same table. :meth:`Engine.open` checks it when a
crawl starts, and says in one warning what is missing and what is off without it.
"""

from __future__ import annotations

import logging
import sys
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import Request, signals
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from ..meta_keys import IS_ROBOTSTXT_REQUEST
from .handlers import (
    AIOHTTP_HANDLER,
    TRANSFER,
    Transfer,
    is_limited,
    names_of,
    run_transfer,
    transfer_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

WATCH_INTERVAL = 0.5
"""Seconds between two checks whether the spider closes, for which Scrapy has no signal. The end of
a crawl is delayed by as much."""

REFRESH_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for robots.txt files that no request waits
for. Most files arrive within half a second."""

DEFAULT_DOMAIN_CONCURRENCY = 8
"""Scrapy's default of CONCURRENT_REQUESTS_PER_DOMAIN."""


class Feature(Enum):
    """A feature that needs private attributes of Scrapy. The value says what happens without it."""

    QUEUE = "requests that wait stay in the downloader"
    CLOSE = "a crawl closes only when no request waits"
    REFRESH = "a crawl ends only after the last refresh of a robots.txt"
    EXCLUDE = "requests that wait use up CONCURRENT_REQUESTS"
    DOMAIN = f"a host gets {DEFAULT_DOMAIN_CONCURRENCY} requests at once after they waited"
    SLOTS = (
        "download slots are not seen: the scheduler does not prefer hosts without waiting "
        "requests, and the delays of slots do not add to those of sites"
    )
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
    "downloader.handlers.download_request_async": Feature.END,
    "downloader.handlers._schemes": Feature.POOLS,
    "downloader.handlers._handlers": Feature.WIDEN,
    "handler._pool_size_total": Feature.WIDEN,
    "handler._session": Feature.WIDEN,
    "connector._limit": Feature.WIDEN,
}
"""Every other attribute that is used and is not public, and the feature that is off without it.

``slot`` is a download slot; ``handler`` is Scrapy's aiohttp handler, ``connector`` its pool."""


class Engine:
    """The engine and the downloader of one crawl, as this package uses them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._available: frozenset[Feature] = frozenset()
        self._excluded: set[Request] = set()
        self._counted: dict[Request, Any] = {}
        """The slots in which requests that wait are counted."""
        self._extra_connections = 0
        self.connection_limit = 0
        """How many connections a download handler has that may have a pool; 0 without one."""
        self.reserved_connections: Callable[[], int] = lambda: 0
        """Returns how many of these connections pages must leave free for robots.txt files."""
        self.on_send: Callable[[Request], object] | None = None
        """Called with each request that a download handler gets."""
        self.on_capacity_check: Callable[[], None] = lambda: None
        """Called when the engine checks whether it may start one more download."""

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

    # When the crawl begins.

    def open(self, wrap: Callable[[Any], Any]) -> None:
        """Replace the scheduler by ``wrap(scheduler)``, and exclude requests that wait from
        CONCURRENT_REQUESTS. Log one warning that names the features that are off.
        """
        missing = self._missing()
        off = list(dict.fromkeys(FEATURES[path] for path in missing))
        self._available = frozenset(Feature) - frozenset(off)
        if Feature.QUEUE in self._available:
            self._slot.scheduler = wrap(self._slot.scheduler)
        if Feature.EXCLUDE in self._available:
            needs_backout = self._downloader.needs_backout
            self._downloader.needs_backout = partial(self._check_capacity, needs_backout)
            if Feature.POOLS in self._available and self._has_limited_handler():
                self.connection_limit = max(self._downloader.total_concurrency, 0)
        if Feature.END in self._available:
            handlers = self._downloader.handlers
            self._transfer = handlers.download_request_async
            handlers.download_request_async = partial(run_transfer, self._send)
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

    def _missing(self) -> list[str]:
        """Return the paths of :data:`FEATURES` that this crawl does not have."""
        roots = {
            "engine": self._engine,
            "downloader": self._downloader,
            "slot": self._download_slot(),
        }
        if self._uses_aiohttp():
            roots["handler"] = load_object(AIOHTTP_HANDLER)
            roots["connector"] = sys.modules["aiohttp"].TCPConnector
        missing = []
        for path in FEATURES:
            root, *names = path.split(".")
            if root in roots and not _has(roots[root], names):
                missing.append(path)
        path = "downloader.total_concurrency"
        if path not in missing and not isinstance(self._downloader.total_concurrency, int):
            missing.append(path)
        return missing

    def _download_slot(self) -> Any:
        """Return a new download slot, if the downloader has slots."""
        if not _has(self._downloader, ["_get_slot"]) or not isinstance(
            getattr(self._downloader, "slots", None), dict
        ):
            return None
        try:
            request = Request("data:,", meta={"download_slot": "scrapy-rep"})
            key, slot = self._downloader._get_slot(request)
        except Exception:  # of a downloader with another kind of slots
            return None
        self._downloader.slots.pop(key, None)
        return slot

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
        return len(active) + reserved - len(active & self._excluded) >= limit

    # Downloads.

    def _send(self, request: Request) -> Any:
        """Give a request to its download handler."""
        if self.on_send is not None:
            self.on_send(request)
        return self._transfer(request)

    @property
    def shows_transfers(self) -> bool:
        """Whether :attr:`on_send` is called."""
        return Feature.END in self._available

    @property
    def has_capacity(self) -> bool:
        """Whether the engine may start one more download."""
        return not self._engine.needs_backout()

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has a request, at whatever stage."""
        return request in self._downloader.active

    def has_reached_slot(self, request: Request) -> bool:
        """Whether a request may have been sent, because it came as far as its download slot.

        Where the downloader has no slots, every request may have been sent.
        """
        return "download_slot" in request.meta or not _has(self._downloader, ["_get_slot"])

    @property
    def active(self) -> tuple[Request, ...]:
        """All requests that the downloader has."""
        return tuple(self._downloader.active)

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
    def transfers(self) -> set[Request]:
        """The requests that were given to download handlers and have not ended."""
        found: set[Request] = set()
        for slot in self._slots.values():
            found |= slot.transferring
        return found

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
        """Allow Scrapy's aiohttp handler this many connections beyond CONCURRENT_REQUESTS."""
        self._extra_connections += connections
        if Feature.WIDEN not in self._available:
            return
        for handler in self._downloader.handlers._handlers.values():
            if AIOHTTP_HANDLER in names_of(type(handler)):
                connector = handler._session.connector
                if connector._limit > 0:  # 0 means without a limit
                    connector._limit = handler._pool_size_total + self._extra_connections

    def wake(self) -> None:
        """Schedule the next step of the engine, which takes requests from the scheduler."""
        if Feature.QUEUE in self._available and not self.is_closing:
            self._slot.nextcall.schedule()

    # Download slots.

    @property
    def _slots(self) -> Any:
        return self._downloader.slots if Feature.SLOTS in self._available else {}

    def count_in_slot(self, request: Request) -> None:
        """Count a request that waits in its download slot.

        Scrapy's scheduler prefers the slots with the fewest active requests. So the engine gets
        requests of other hosts first.
        """
        if Feature.SLOTS in self._available:
            _, slot = self._downloader._get_slot(request)
            slot.active.add(request)
            self._counted[request] = slot

    def uncount_in_slot(self, request: Request) -> None:
        """End what :meth:`count_in_slot` began."""
        slot = self._counted.pop(request, None)
        if slot is not None:
            slot.active.discard(request)

    def slot_limits(self, request: Request) -> tuple[int, float]:
        """Return how many requests its slot allows at once, and the seconds between two of them."""
        downloader = self._downloader
        slots = downloader.slots if Feature.SLOTS in self._available else {}
        if slots:
            key = request.meta.get("download_slot") or downloader.get_slot_key(request)
            slot = slots.get(key)
            if slot is not None:
                return slot.concurrency, slot.delay
        if Feature.DOMAIN in self._available:
            return downloader.domain_concurrency, 0
        return DEFAULT_DOMAIN_CONCURRENCY, 0

    def is_queued(self, request: Request) -> bool:
        """Whether a request waits in the queue of its slot, because of DOWNLOAD_DELAY."""
        slot = self._slots.get(request.meta.get("download_slot"))
        return slot is not None and request in slot.active and request not in slot.transferring

    def remove_queued(
        self, wanted: Callable[[Request], bool]
    ) -> Iterable[tuple[Request, Deferred[Any], Callable[[], None]]]:
        """Remove the wanted requests from the queues of slots, and return them.

        Each comes with the Deferred that the downloader waits for, and a call that puts it back.
        """
        removed = []
        for slot in self._slots.values():
            for queued in [queued for queued in slot.queue if wanted(queued[0])]:
                slot.queue.remove(queued)
                removed.append((*queued, partial(self._put_back, slot, queued)))
        return removed

    def _put_back(self, slot: Any, queued: tuple[Request, Deferred[Any]]) -> None:
        slot.queue.append(queued)
        self._downloader._process_queue(slot)

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
