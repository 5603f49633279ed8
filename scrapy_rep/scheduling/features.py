"""The attributes of Scrapy that are not public and that this package uses, by feature.

==============================================  ====================================================
attribute                                       without it
==============================================  ====================================================
``downloader.active``                           Scrapy's engine does not run
``downloader.needs_backout``                    the same
``engine._slot.scheduler``                      requests that wait stay in the downloader
``engine._slot.nextcall``                       the same
``engine._slot.closing``                        a crawl closes only when no request waits
``queue._downloader_interface``                 requests that have to wait are read early
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

:data:`REQUIRED` and :data:`FEATURES` hold the same table. A crawl has either download slots or a
throttler: what belongs to the other one is not checked. ``queue`` is checked if the scheduler has
Scrapy's DownloaderAwarePriorityQueue.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from .slots import DEFAULT_DOMAIN_CONCURRENCY


class Feature(Enum):
    """A feature that needs private attributes of Scrapy. The value says what happens without it."""

    QUEUE = "requests that wait stay in the downloader"
    BUSY = "requests of hosts for which many others wait are read from the scheduler early"
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
    "queue._downloader_interface": Feature.BUSY,
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

``queue`` is Scrapy's DownloaderAwarePriorityQueue; ``slot`` is a download slot; ``throttler`` is
Scrapy's throttler, ``scope`` the manager of one of its scopes; ``handler`` is Scrapy's aiohttp
handler, ``connector`` its pool. Of the throttler, what is public is listed, too: it is not
released."""

OF_SLOTS = frozenset({Feature.DOMAIN, Feature.SLOTS})
OF_THROTTLER = frozenset({Feature.SCOPES, Feature.PACE, Feature.HELD})


def missing_paths(roots: dict[str, Any], unused: frozenset[Feature]) -> list[str]:
    """Return the paths of :data:`FEATURES` that a crawl uses and does not have.

    ``roots`` has the objects at which the paths begin. ``unused`` are the features that the crawl
    does not use.
    """
    missing = []
    for path, feature in FEATURES.items():
        root, *names = path.split(".")
        if feature not in unused and root in roots and not has_attributes(roots[root], names):
            missing.append(path)
    return missing


def has_attributes(value: Any, names: list[str]) -> bool:
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
