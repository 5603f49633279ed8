"""A stand-in for the throttler that Scrapy develops (its pull request 6931, not yet released).

It has what the package uses of ``crawler.throttler``, by the same names and with the same effects:

- The scope of a request is its host, or what ``meta["throttling_scopes"]`` names.
- ``acquire`` waits until each scope of a request allows it: the delay since the last request that
  *began* is over, and fewer requests than its concurrency are under way. The engine awaits it
  before the downloader middlewares get the request.
- ``release`` ends a request. The engine calls it when the download has ended.
- An unscheduled request, one of ``engine.download_async``, gets a place beyond the concurrency if
  all requests of the scope are in the middlewares, where they may wait for it.
- A scope forgets all that was set if it is idle and there are too many scopes.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from scrapy import signals
from scrapy.core.downloader import Downloader
from scrapy.core.engine import ExecutionEngine
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep.scheduling.clock import sleep

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.internet.defer import Deferred

INTERVAL = 0.005
"""Seconds between two checks of a request that waits. Scrapy's throttler has events instead."""


class Scope:
    """The limits of one scope."""

    def __init__(self, delay: float, concurrency: int, jitter: float) -> None:
        self._delay = delay
        self._concurrency = concurrency
        self._jitter = jitter
        self._next_allowed_time: float | None = None
        self.holders: set[Request] = set()

    def get_base_delay(self) -> float:
        return self._delay

    def set_base_delay(self, delay: float, *, only_increase: bool = True) -> None:
        if delay > self._delay or not only_increase:
            self._delay = delay

    def get_concurrency(self) -> int:
        return self._concurrency

    def set_concurrency(self, concurrency: int) -> None:
        assert concurrency >= 1
        self._concurrency = concurrency

    @property
    def is_delayed(self) -> bool:
        return self._next_allowed_time is not None and time.monotonic() < self._next_allowed_time

    def start(self, request: Request) -> None:
        spread = random.uniform(1 - self._jitter, 1 + self._jitter)
        self._next_allowed_time = time.monotonic() + self._delay * spread
        self.holders.add(request)


class Throttler:
    """The throttler of one crawl. ``delay``, ``concurrency`` and ``jitter`` are what is configured.

    ``is_in_middlewares`` says whether a request is in the downloader, and in no download handler.
    """

    def __init__(
        self,
        *,
        delay: float = 0,
        concurrency: int = 8,
        jitter: float = 0.5,
        is_in_middlewares: Callable[[Request], bool] = lambda _: False,
    ) -> None:
        self._configured = (delay, concurrency, jitter)
        self._is_in_middlewares = is_in_middlewares
        self.scopes: dict[str, Scope] = {}
        self.delayed: list[str] = []
        """The URLs of the requests that waited for a delay."""

    def get_applied_scopes(self, request: Request) -> list[str]:
        own: list[str] | None = request.meta.get("throttling_scopes")
        return [urlparse_cached(request).hostname or ""] if own is None else own

    def get_scope_manager(self, scope_id: str) -> Scope:
        if scope_id not in self.scopes:
            self.scopes[scope_id] = Scope(*self._configured)
        return self.scopes[scope_id]

    def forget(self, scope_id: str) -> None:
        """Do what the real one does with an idle scope when there are too many."""
        del self.scopes[scope_id]

    async def acquire(self, request: Request, *, unscheduled: bool = False) -> None:
        while True:
            names = self.get_applied_scopes(request)
            scopes = [self.get_scope_manager(name) for name in names]
            if any(scope.is_delayed for scope in scopes):
                if request.url not in self.delayed:
                    self.delayed.append(request.url)
            elif all(self._has_place(scope, unscheduled) for scope in scopes):
                for scope in scopes:
                    scope.start(request)
                return
            await sleep(INTERVAL)

    def _has_place(self, scope: Scope, unscheduled: bool) -> bool:
        if len(scope.holders) < scope.get_concurrency():
            return True
        return unscheduled and all(map(self._is_in_middlewares, scope.holders))

    def release(self, request: Request) -> None:
        for scope in self.scopes.values():
            scope.holders.discard(request)


class ThrottledDownloader(Downloader):
    """A downloader without slots: the engine has a throttler.

    Its download handlers get no more than CONCURRENT_REQUESTS requests at once.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._in_download_handler: set[Request] = set()

    def _download_handler_slots_full(self) -> bool:
        return 0 < self.total_concurrency <= len(self._in_download_handler)

    async def _enqueue_request(self, request: Request) -> Response:
        while self._download_handler_slots_full():
            await sleep(INTERVAL)
        request.meta["download_slot"] = urlparse_cached(request).hostname
        self.signals.send_catch_log(signals.request_reached_downloader, request=request)
        self._in_download_handler.add(request)
        try:
            response = await self.handlers.download_request_async(request)
            self.signals.send_catch_log(
                signals.response_downloaded, response=response, request=request
            )
            return response
        finally:
            self._in_download_handler.remove(request)
            self.signals.send_catch_log(signals.request_left_downloader, request=request)

    def is_in_middlewares(self, request: Request) -> bool:
        return request in self.active and request not in self._in_download_handler


class ThrottledEngine(ExecutionEngine):
    """An engine that downloads no request before a throttler allows it.

    It needs the setting ``DOWNLOADER``: :class:`ThrottledDownloader`.
    """

    downloader: ThrottledDownloader

    def __init__(self, crawler: Crawler, *arguments: Any) -> None:
        self._throttler_waiting: set[Request] = set()
        self._downloads: set[Deferred[Any]] = set()
        self._unscheduled: WeakSet[Request] = WeakSet()
        self._throttler = crawler.throttler = Throttler(  # type: ignore[attr-defined]
            delay=crawler.settings.getfloat("DOWNLOAD_DELAY"),
            concurrency=crawler.settings.getint("THROTTLING_SCOPE_CONCURRENCY", 8),
            is_in_middlewares=lambda request: self.downloader.is_in_middlewares(request),
        )
        super().__init__(crawler, *arguments)

    def needs_backout(self) -> bool:
        return super().needs_backout() or self._throttler_needs_backout()

    def _throttler_needs_backout(self) -> bool:
        held, active = len(self._throttler_waiting), len(self.downloader.active)
        return bool(held) and held + active >= self.downloader.total_concurrency

    def spider_is_idle(self) -> bool:
        return not self._downloads and super().spider_is_idle()

    async def download_async(self, request: Request) -> Response:
        self._unscheduled.add(request)
        return await super().download_async(request)

    def _download(self, request: Request) -> Deferred[Any]:
        assert self._slot is not None
        self._slot.add_request(request)
        self._throttler_waiting.add(request)
        download: Deferred[Any] = deferred_from_coro(self._download_when_allowed(request))
        self._downloads.add(download)
        download.addBoth(self._end, download)
        return download

    def _end(self, result: Any, download: Deferred[Any]) -> Any:
        self._downloads.discard(download)
        return result

    async def _download_when_allowed(self, request: Request) -> Any:
        try:
            await self._throttler.acquire(request, unscheduled=request in self._unscheduled)
        finally:
            self._throttler_waiting.discard(request)
        try:
            return await maybe_deferred_to_future(super()._download(request))
        finally:
            self._throttler.release(request)
