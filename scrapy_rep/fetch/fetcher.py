"""One robots.txt: its redirects and retries, and what its response means (RFC 9309 §2.3.1).

:meth:`Fetcher.fetch` turns every response and every failure into one event for
:mod:`scrapy_rep.origin`, also those for another file of an origin.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from ..clock import Clock, fire
from ..closing import Closing
from ..logs import spider_logger
from ..origin import OriginFile
from ..protocol import access
from ..protocol.paths import ROBOTS_TXT
from ..protocol.printable import printable
from ..protocol.verdict import Verdict
from ..recorder import Recorder
from ..scrapy_internals import WATCH_INTERVAL, Engine, middleware_that_raised, proxy_keys
from ..settings import IS_ROBOTSTXT_REQUEST, Settings
from ..stores.entry import Entry, is_validator
from . import downloader
from .fetch_limit import TIMEOUT_MARGIN, FetchLimit
from .redirects import HopCookies, redirect_target, refusal

MayFetch = Callable[[str, Request], Awaitable[Verdict | None]]

PRIORITY = 1000
"""Higher than that of pages, which wait for it. Scrapy's own middleware uses this number."""

RECENT = 0.25
"""Seconds for which a fetch is a recent one. Most files arrive within this time."""

FILES_PAUSE = 1.0
"""Seconds until a fetch begins again that could not open a connection for want of a file."""

REFRESH_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for robots.txt files that no request waits
for. Most files arrive within half a second."""


class Demand(Protocol):
    """What fetches have to know of the requests of a crawl, and who is told about their results.

    It is a part of the frontier, whose methods have the same names.
    """

    @property
    def queue_size(self) -> int: ...
    @property
    def waiters(self) -> Container[Request]: ...
    def needs(self, origin: str) -> bool: ...
    def uses(self, origin: str) -> bool: ...
    def finish(self, request: Request) -> None: ...
    def delay_of(self, host: str) -> float: ...
    def set_delay(self, host: str, origin: str, seconds: float) -> None: ...
    def update_origin(self, host: str, origin: str) -> None: ...
    def hold(self, host: str, origin: str, seconds: float, status: int | None) -> float: ...


class Parts(NamedTuple):
    """The parts of a crawl that its fetches use. The frontier is the ``demand``."""

    crawler: Crawler
    settings: Settings
    engine: Engine
    clock: Clock
    closing: Closing
    recorder: Recorder
    demand: Demand


class Fetch(NamedTuple):
    """A fetch in progress."""

    file: OriginFile
    ended: Deferred[Any]


class Fetcher:
    """Fetches the files of the origins of one crawl: their robots.txt, and others like it.

    ``shared``: several crawlers use the copies. ``record`` is called with each response.
    """

    def __init__(
        self, parts: Parts, *, shared: bool = False, record: downloader.Record | None = None
    ) -> None:
        self._crawler = parts.crawler
        self._logger = spider_logger(__name__, parts.crawler.spider)
        self._settings = settings = parts.settings
        self._engine = parts.engine
        self._clock = parts.clock
        self._closing = parts.closing
        self._recorder = parts.recorder
        self._demand = parts.demand
        self._shared = shared
        self._record = record
        most, connections = settings.concurrent_robotstxt_requests, settings.connections
        self.limit = FetchLimit(most, parts.clock, parts.engine, connections)
        self.in_progress: dict[str, Fetch] = {}
        """The fetches in progress, by the URL of the file."""
        self.recent: set[str] = set()
        """The URLs of those that are recent."""
        self.awaited: list[tuple[str, Request]] = []
        """The origins for whose files a request or its response waits outside of the queues, such
        as that of its final URL."""
        self.answers: dict[str, access.Answer] | None = None
        """The last response for each robots.txt, by the URL of the file, for tools that show it."""
        self._idle_polls = 0
        """How many polls in a row have found that the crawl is over but for robots.txt files."""

    def keep_answers(self) -> dict[str, access.Answer]:
        """Keep the last response for each file from now on. Returns where they are, by URL."""
        self.answers = {}
        return self.answers

    # Fetches in progress.

    def start(
        self,
        file: OriginFile,
        fetch: Callable[[], Awaitable[access.FetchResult | Entry]],
        finish: Callable[[Any], None],
    ) -> None:
        """Fetch a file in a task of its own, unless it is being fetched.

        A request that waits for it may be cancelled. ``finish`` is called whatever happens.
        """
        url = file.file_url
        if url in self.in_progress:
            return

        def end(result: access.FetchResult | Entry | Failure) -> None:
            del self.in_progress[url]
            self.recent.discard(url)
            if isinstance(result, Failure):
                assert result.value is not None
                result = self.unexpected(file, result.value)
            if isinstance(result, access.Unreachable):
                self._count(file, "unreachable")
            elif isinstance(result, access.Unavailable):
                self._count(file, "unavailable")
                if result.result is not access.AccessResult.UNAVAILABLE:
                    self._count(file, f"unavailable/{result.result}")
            finish(result)

        ended = deferred_from_coro(fetch())
        self.in_progress[url] = Fetch(file, ended)
        self.recent.add(url)
        self._clock.call_later(RECENT, self._grow_old, url)
        ended.addBoth(end).addErrback(self.log_failure, file)

    def log_failure(self, failure: Failure, file: OriginFile) -> None:
        """Log an error after a fetch, which does not change the result."""
        if not failure.check(asyncio.CancelledError, CancelledError):
            self._log_error(file, failure.value)

    def _log_error(self, file: OriginFile, error: BaseException | None, effect: str = "") -> None:
        """Log the first error of a file which nobody foresaw."""
        if not file.notes.logged_error:
            file.notes.logged_error = True
            self._logger.error(
                "Unexpected error while handling the %(file)s of %(origin)s%(effect)s. If the "
                "error is not in your own code, please report this bug.",
                {"file": file.name, "origin": file.key, "effect": effect},
                exc_info=error,
            )

    async def ended(self, url: str) -> bool:
        """Return True when the fetch in progress of a file has ended; False if there is none."""
        fetch = self.in_progress.get(url)
        if fetch is not None:
            waiter: Deferred[None] = Deferred()
            fetch.ended.addBoth(lambda _: fire(waiter, None))
            await maybe_deferred_to_future(waiter)
        return fetch is not None

    @contextmanager
    def waiting(self, key: str, request: Request, response: Response | None) -> Iterator[None]:
        """Note that a request, or the response to it, waits for a file of an origin."""
        self.awaited.append((key, request))
        if response is not None:
            self._engine.exclude(request, response)
        try:
            yield
        finally:
            if response is not None:
                self._engine.include(request)
            self.awaited.remove((key, request))

    def _is_wanted(self, key: str) -> bool:
        """Whether a request or a response waits for a file of an origin."""
        may_wait = self._closing.may_wait
        is_awaited = any(key == each and may_wait(request) for each, request in self.awaited)
        return is_awaited or self._demand.needs(key)

    def _grow_old(self, url: str) -> None:
        """Note that a fetch is no longer recent, unless it has ended: others may begin."""
        if url in self.recent:
            self.recent.remove(url)
            self._engine.wake()

    def poll(self) -> None:
        """End fetches that take long, and those that alone keep the crawl open."""
        self.limit.update()
        active = self._engine.active
        is_busy = self._demand.queue_size or not active
        is_over = not is_busy and all(each.meta.get(IS_ROBOTSTXT_REQUEST) for each in active)
        self._idle_polls = self._idle_polls + 1 if is_over else 0
        if self._idle_polls * WATCH_INTERVAL > REFRESH_WAIT:
            self.cancel(unwanted=True)

    def cancel(self, *, unwanted: bool = False) -> None:
        """End all fetches without a result, or those for which nothing waits."""
        # The others end already.
        fetches = [each for each in self.in_progress.values() if not each.file.is_cancelled]
        cancelled = [each for each in fetches if not (unwanted and self._is_wanted(each.file.key))]
        for fetch in cancelled:
            fetch.file.is_cancelled = True
        for fetch in cancelled:
            fetch.ended.cancel()

    # One fetch.

    async def fetch(
        self, file: OriginFile, page: Request, *, may_fetch: MayFetch | None = None
    ) -> access.FetchResult:
        """Fetch a file, and retry as the settings say.

        The fetch uses the proxy and the User-Agent of ``page``, which needs the file. If no request
        waits for a file of the origin, there is no retry. ``may_fetch`` returns the verdict on a
        URL: unless it is allowed, a file there is unavailable.
        """
        for attempt in count(1):
            file.notes.attempt = attempt
            try:
                event = await self._follow(file, page, may_fetch)
            except Exception as error:
                event = self.unexpected(file, error)
            if not isinstance(event, access.Unreachable) or not self._is_wanted(file.key):
                break
            # A site that asks for a short pause gets it. A long one is for later requests.
            pause = event.retry_after or access.retry_pause(attempt - 1)
            is_long = event.retry_after is not None and pause > self._settings.timeout
            if is_long or not event.may_retry or attempt > self._settings.retry_times:
                break
            self._log_retry(file, event, pause)
            await self._clock.sleep(pause)
            if not self._is_wanted(file.key):
                break
            self._count(file, "retry_count")
        if isinstance(event, access.Cancelled) and not file.is_cancelled:  # no file is free
            await self._clock.sleep(FILES_PAUSE)
        return event

    def _log_retry(self, file: OriginFile, event: access.Unreachable, pause: float) -> None:
        """Log that an attempt has failed, at level INFO if it is the first one of the site."""
        is_logged, file.notes.logged_failure = file.notes.logged_failure, True
        values = {"file": file.name, "origin": file.key, "failure": event.failure.rstrip(".")}
        next_, most = file.notes.attempt + 1, self._settings.retry_times + 1
        self._logger.log(
            logging.DEBUG if is_logged else logging.INFO,
            "The %(file)s of %(origin)s has not arrived: %(failure)s. The next attempt "
            "(%(attempt)d of %(most)d) begins in %(seconds)s s.",
            {**values, "attempt": next_, "most": most, "seconds": f"{pause:.3g}"},
        )

    def unexpected(self, file: OriginFile, error: BaseException) -> access.FetchResult:
        """Return the result of an attempt that ended in an error which nobody foresaw.

        Such an attempt has failed like any other. The first error of an origin is logged.
        """
        result = self._failed(file, error, file.file_url)
        if isinstance(result, access.Unreachable):
            self._log_error(file, error, ", which is treated as unreachable")
        return result

    async def _follow(  # noqa: C901 - one hop after the other, and each way in which one ends
        self, file: OriginFile, page: Request, may_fetch: MayFetch | None
    ) -> access.FetchResult:
        """Request a file, and follow up to five redirects (RFC 9309 §2.3.1.2)."""
        left, wait_left = self._settings.timeout, self._settings.max_crawl_delay
        first, url, cookies, visited = None, file.file_url, HopCookies(), set[tuple[str, bytes]]()
        file.redirects = ()
        while True:
            cookie = cookies.header(url)
            visited.add((url, cookie))
            if may_fetch is not None and not await may_fetch(url, page):
                self._count(file, "disallowed")  # as if the site refused it, but nothing is sent
                return self._unavailable(file, access.Answer(url, 403, None, from_cache=True))
            request = self._request(file, page, url, cookie)
            try:
                response = await self._send(request, left, wait_left)
            # Every failure means that the file is unreachable (RFC 9309 §2.3.1.4).
            except Exception as error:
                return self._failed(file, error, url)
            first, status = first or response, response.answer.status
            if (problem := refusal(first, url, response)) is not None:
                return access.Unreachable(problem, url=url)
            event = self._event(file, response)
            if event is not None:
                return event
            location = response.response.headers.get("Location")
            if not location:
                return access.Unreachable(f"status {status} without a Location", status, url)
            target = redirect_target(url, location)
            if target is None:
                where = printable(location[:1000].decode("utf-8", "replace"))
                return access.Unreachable(f"redirect to {where} refused", status, url)
            set_cookies = response.response.headers.getlist("Set-Cookie")
            cookies.update(url, set_cookies, self._clock.time())
            is_loop = (target, cookies.header(target)) in visited
            if is_loop or len(visited) > access.MAX_REDIRECTS:
                if self._settings.on_too_many_redirects == "unreachable":
                    return access.Unreachable(access.TOO_MANY_REDIRECTS, status, url)
                return self._unavailable(file, response.answer)._replace(status=None)
            left -= self._clock.monotonic() - response.started
            wait_left -= response.waited
            if left <= 0:
                return self._failed(file, TimeoutError(), url)
            if (problem := refusal(first, target)) is not None:
                return access.Unreachable(problem, status, url)
            self._count(file, "redirect_count")
            file.redirects = (*file.redirects, url)
            url = target

    def _request(self, file: OriginFile, page: Request, url: str, cookie: bytes) -> Request:
        meta = {**self._meta_from(page, url), **downloader.META}
        names = ("Proxy-Authorization", "User-Agent") if "proxy" in meta else ("User-Agent",)
        headers: dict[str, Any] = {
            name: page.headers[name] for name in names if name in page.headers
        }
        if not self._settings.zyte_api_transparent_mode:  # it decodes itself, and warns
            # BodyReader inflates gzip as it arrives, up to the limit. It reads no other coding.
            headers["Accept-Encoding"] = "gzip"
        if not self._settings.http_cache_only:  # RFC2616Policy then sends what it could answer
            headers["Cache-Control"] = "no-cache"  # removed before the request is sent
        if cookie:
            headers["Cookie"] = cookie
            meta["dont_cache"] = True  # a cache has the response without the cookie
        validators = _validators(file.copy, url)
        headers.update(validators)
        request = Request(url, callback=NO_CALLBACK, priority=PRIORITY, headers=headers, meta=meta)
        record = self._record if file.path == ROBOTS_TXT else None
        request.meta[downloader.DOWNLOAD] = downloader.Download(
            file, request.url, self._clock, record, validators
        )
        return request

    def _meta_from(self, page: Request, url: str) -> dict[str, Any]:
        """Return the meta that sends a request for ``url`` the same way as ``page``."""
        keys = {"bindaddress", "download_slot"} | proxy_keys(page)  # as in Scrapy's redirects
        if urlsplit(page.url).hostname != urlsplit(url).hostname:  # a slot belongs to a host
            keys.remove("download_slot")
        return {key: page.meta[key] for key in keys & page.meta.keys()}

    async def _send(  # noqa: C901 - what it begins, it ends, however the download does
        self, request: Request, seconds: float, max_wait: float
    ) -> downloader.Download:
        """Send a request, and return its response. See :meth:`Permit.run` for its time."""
        engine, signals = self._crawler.engine, self._crawler.signals
        assert engine is not None
        download: downloader.Download = request.meta[downloader.DOWNLOAD]
        async with self.limit.permit() as permit:
            self._count(download.file, "request_count")
            download.started = self._clock.monotonic()
            request.meta["download_timeout"] = seconds
            if self._settings.connections is None:  # else it would wait for a connection there
                self._engine.exclude(request)
            # Scrapy calls these for each piece of each page: they are connected only if needed.
            for handler, signal in downloader.HANDLERS:
                signals.connect(handler, signal=signal)
            try:
                sent = engine.download_async(request)
                response = await permit.run(
                    sent,
                    seconds,
                    max_wait,
                    lambda: request in self._demand.waiters or self._engine.waits_in_slot(request),
                )
            except downloader.Downloaded as end:
                response = end.response
            except StopDownload as stop:  # another component stopped it, as a failure
                if stop.response is None:
                    raise
                response = stop.response
                downloader.downloaded(request, response)  # Scrapy sends no signal
            finally:
                if len(self.limit.in_progress) == 1:
                    for handler, signal in downloader.HANDLERS:
                        signals.disconnect(handler, signal=signal)
                self._engine.include(request)
                self._demand.finish(request)
                request.meta.pop(downloader.DOWNLOAD, None)  # it has a reference to the request
        if "download_stopped" in response.flags:
            # The connection is about to close. A page that reused it would be sent twice.
            await self._clock.sleep(0)
        download.end(response)
        self._count(download.file, "response_count")
        self._count(download.file, f"response_status_count/{response.status}")
        return download

    def _count(self, file: OriginFile, stat: str) -> None:
        self._recorder.count(f"{file.stats}/{stat}")

    def _event(self, file: OriginFile, download: downloader.Download) -> access.FetchResult | None:
        """Return what a response means; None for a redirect."""
        answer, now = download.answer, self._clock.time()
        if self.answers is not None:
            self.answers[file.file_url] = answer
        event = access.event_of(answer, self._policy(file, now), file.parse, now)
        is_broken = isinstance(event, access.Unreachable) and event.failure == access.BROKEN_BODY
        if is_broken and download.is_stopped:
            names = downloader.stopping_receivers(self._crawler)
            failure = (
                f"a signal handler of this crawl stopped the download ({names}). Let it skip "
                "requests with meta['is_robotstxt_request']"
            )
            return access.Unreachable(failure, answer.status, answer.url, may_retry=False)
        if not isinstance(event, access.Rules):
            return event
        if event.body is not answer.body:
            self._count(file, "unwrapped_count")
        etag, last_modified = map(answer.headers.get, ("etag", "last-modified"))
        copy = event.copy._replace(
            etag=etag if is_validator(etag) else None,
            last_modified=last_modified if is_validator(last_modified) else None,
            sha256=sha256(event.body).hexdigest(),
        )
        return event._replace(copy=copy)

    def _policy(self, file: OriginFile, now: float) -> access.AccessPolicy:
        policy, step = access_policy(self._settings, file), self._clock.step(now)
        return policy._replace(shared=self._shared, clock_step=step)

    def _unavailable(self, file: OriginFile, answer: access.Answer) -> access.Unavailable:
        now = self._clock.time()
        return access.unavailable(answer, self._policy(file, now), now)

    def _failed(self, file: OriginFile, error: BaseException, url: str) -> access.FetchResult:
        if file.is_cancelled:
            return access.Cancelled()
        is_ignored, middleware = isinstance(error, IgnoreRequest), middleware_that_raised(error)
        stat = "ignored_count" if is_ignored else f"exception_count/{type(error)}"
        self._count(file, stat)
        if downloader.is_out_of_files(error):
            if "too many files" not in self._recorder.logged:
                self._recorder.logged.add("too many files")
                self._logger.warning(
                    "This process has too many open files, so robots.txt files are fetched later. "
                    "Raise its limit (ulimit -n), or lower REP_CONCURRENT_ROBOTSTXT_REQUESTS.",
                )
            return access.Cancelled()
        if is_ignored and middleware is None:
            middleware = "A downloader middleware"
        words = downloader.in_words(error) if middleware is None else downloader.with_name(error)
        if middleware is not None and f"{middleware} {is_ignored}" not in self._recorder.logged:
            self._recorder.logged.add(f"{middleware} {is_ignored}")
            self._logger.warning(
                "%(middleware)s raised %(error)s for the request for %(url)s, so the site is "
                "treated as unreachable. Let requests with meta['is_robotstxt_request'] pass this "
                "middleware. The stat %(stat)s counts such requests.",
                {
                    "middleware": middleware,
                    "error": words,
                    "url": printable(url),
                    "stat": f"{file.stats}/{stat}",
                },
                exc_info=None if is_ignored else error,
            )
        return access.Unreachable(words, url=url)


def longest_fetch(settings: Settings) -> float:
    """Return the seconds of a fetch whose attempts wait for the host of a redirect and time out."""
    attempt = TIMEOUT_MARGIN * settings.timeout + settings.max_crawl_delay
    pauses = map(access.retry_pause, range(settings.retry_times))
    return attempt * (settings.retry_times + 1) + sum(pauses)


def access_policy(settings: Settings, file: OriginFile) -> access.AccessPolicy:
    """Return what the settings say about the responses to requests for a file."""
    return access.AccessPolicy(
        settings.disallow_statuses,
        file.host in settings.server_error_hosts,
        settings.not_robots if file.path == ROBOTS_TXT else None,
        *settings.ttl_range,
    )


def _validators(copy: access.CopyInfo | None, url: str) -> dict[str, bytes]:
    """Return the headers that validate the copy from a URL, which may come from any store."""
    if copy is None or url != copy.url:
        return {}
    values = zip(downloader.VALIDATORS, (copy.etag, copy.last_modified), strict=True)
    return {name: str(value).encode("latin-1") for name, value in values if is_validator(value)}
