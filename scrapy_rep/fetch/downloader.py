"""One request for a robots.txt through Scrapy's engine, within a time and a size.

A redirect, a retry and what an answer means are for :mod:`scrapy_rep.fetch.fetcher`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scrapy import signals
from scrapy.exceptions import StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from ..protocol.freshness import CacheHeaders
from ..protocol.lines import SIZE_LIMIT
from ..scheduling.clock import sleep
from ..scheduling.connection_limit import ConnectionLimit
from ..scheduling.engine import HANDLING, Handling
from .body_reader import WIRE_LIMIT, BodyReader
from .browsers import ZYTE_API, RobotsTxtRequest, remove_browser_meta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers
    from twisted.internet.defer import Deferred

    from ..scheduling.clock import Clock
    from ..scheduling.engine import Engine
    from ..scheduling.fetch_limit import FetchLimit
    from ..scheduling.throttle import Throttle
    from .addresses import Address

PRIORITY = 1000
"""Before any page: others wait for it. Scrapy's own middleware uses the same number."""

DOWNLOAD = "robotstxt_download"
"""The meta key by which the signals of a download find what they belong to."""

# The request's own way past the middlewares that would answer, follow, repeat or keep it.
_META = {
    "allow_offsite": True,
    "dont_cache": True,
    "dont_merge_cookies": True,
    "dont_obey_robotstxt": True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": False,  # a cut-off body is judged here, with its status
    "download_maxsize": WIRE_LIMIT,  # until it reaches the downloader: of what others answer
    "download_warnsize": 0,
    "ftp_password": "anonymous@",
    "ftp_user": "anonymous",
    "handle_httpstatus_all": True,
    "is_robotstxt_request": True,
}

CACHED = "cached_response"
"""The meta key at which Scrapy's HTTP cache leaves a response that it may serve on an error."""

_VALIDATORS = (b"If-None-Match", b"If-Modified-Since")

# Flags of a response that Scrapy gives where not all of it came.
_CUT_OFF = frozenset({"dataloss", "download_stopped"})


class Answer(NamedTuple):
    """One answer. ``body`` is None where it is cut off or cannot be read."""

    url: str
    status: int
    headers: Headers
    body: bytes | None
    conditional: bool
    """The request carried a validator."""
    ip_address: Address | None = None
    """Where the connection was made to; None where the download handler does not tell."""
    by_proxy: bool = False
    """The request went by a proxy, or by a service that downloads it: those resolve names."""
    by_system_proxy: bool = False
    """That proxy is the environment's."""
    from_cache: bool = False
    """Scrapy's HTTP cache has answered."""

    def header(self, name: str) -> str | None:
        """The first header of that name; header octets are Latin-1 (RFC 9110, section 5.5)."""
        values = self.headers.getlist(name)
        return values[0].decode("latin-1") if values else None

    def cache_headers(self) -> CacheHeaders:
        """What it says of how long it holds."""
        cache_control = b", ".join(self.headers.getlist("Cache-Control"))
        return CacheHeaders(
            cache_control=cache_control.decode("latin-1") or None,
            age=self.header("Age"),
            date=self.header("Date"),
            expires=self.header("Expires"),
        )


@dataclass(slots=True)
class _Download:
    """One request on its way."""

    body: BodyReader = field(default_factory=BodyReader)
    began: float = field(default_factory=monotonic)
    """When it was handed to Scrapy; once there are headers, when it left its slot's queue."""
    by_proxy: bool = False
    by_system_proxy: bool = False
    validators: Mapping[bytes, bytes] = field(default_factory=dict)
    """Those that we have put on the request."""
    cached: Response | None = None
    """What Scrapy's HTTP cache has, but would not serve."""


def request_for(url: str, meta: Mapping[str, object]) -> Request:
    """A request for a robots.txt at ``url``, to be completed and sent once.

    ``meta``: what it has beside its own, which takes precedence.
    """
    request = RobotsTxtRequest(url, callback=NO_CALLBACK, priority=PRIORITY, meta={**meta, **_META})
    if not request.meta.get(ZYTE_API):  # which decodes by itself, and warns of this header
        # gzip is inflated here as it arrives, with a limit; nothing else can be.
        request.headers["Accept-Encoding"] = "gzip"
    return request


class RobotsTxtDownloader:
    """Sends the requests of one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        engine: Engine,
        throttle: Throttle,
        fetch_limit: FetchLimit,
        clock: Clock,
    ) -> None:
        self._crawler = crawler
        self._engine = engine
        self._throttle = throttle
        self._fetch_limit = fetch_limit
        self._connection_limit = ConnectionLimit(engine, clock)
        self._open = 0

    async def send(
        self, request: Request, seconds: float, longest_wait: float
    ) -> tuple[Answer, float]:
        """The answer, and the seconds it took, of at most so many.

        The time that the request waits for the pace of its host does not count, but for
        ``longest_wait``. Raises whatever Scrapy does where there is no answer, and TimeoutError.
        """
        request.meta["download_timeout"] = seconds
        with self._watching():
            transfer = request.meta[DOWNLOAD] = _Download(validators=_validators(request))
            try:
                response = await self._within(seconds, request, longest_wait)
            except StopDownload as stop:  # another's, who wants it to fail
                if stop.response is None:
                    raise
                response = stop.response
        if "download_stopped" in response.flags:
            # Its connection closes in a moment. A page that used it before would be sent twice.
            await sleep(0)
        body = _body_of(response, transfer.body)
        answer = Answer(
            request.url,
            response.status,
            response.headers,
            body,
            bool(transfer.validators),
            response.ip_address,
            transfer.by_proxy,
            transfer.by_system_proxy,
            "cached" in response.flags,
        )
        return answer, monotonic() - transfer.began

    async def _within(self, seconds: float, request: Request, longest_wait: float) -> Response:
        engine = self._crawler.engine
        assert engine is not None
        watch = _Watch(seconds, longest_wait, lambda: self._is_waiting(request))
        place = await self._fetch_limit.acquire(watch.expire)
        try:
            await self._connection_limit.acquire(request)
        except BaseException:
            self._fetch_limit.release(place)
            raise
        if self._engine.connection_limit:
            self._fetch_limit.restart(place, watch.expire)
        handling = request.meta[HANDLING] = Handling()
        download = deferred_from_coro(engine.download_async(request))
        watch.start(download)
        try:
            return await maybe_deferred_to_future(download)
        except (asyncio.CancelledError, CancelledError):
            if watch.is_late:
                raise timed_out(request.url) from None
            raise
        finally:
            watch.stop()
            handling.end()
            self._engine.include_download(request)
            self._throttle.finish(request, sent=True)
            self._connection_limit.release(request)
            self._fetch_limit.release(place)

    def _is_waiting(self, request: Request) -> bool:
        return self._throttle.is_waiting(request) or self._engine.is_queued(request)

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Listen to what arrives, for as long as any robots.txt is on its way and no longer.

        Scrapy sends these signals for each piece of each page: listening costs.
        """
        connect, disconnect = self._crawler.signals.connect, self._crawler.signals.disconnect
        if not self._open:
            connect(_reached_downloader, signal=signals.request_reached_downloader)
            connect(_headers_received, signal=signals.headers_received)
            connect(_bytes_received, signal=signals.bytes_received)
            connect(_downloaded, signal=signals.response_downloaded)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                disconnect(_reached_downloader, signal=signals.request_reached_downloader)
                disconnect(_headers_received, signal=signals.headers_received)
                disconnect(_bytes_received, signal=signals.bytes_received)
                disconnect(_downloaded, signal=signals.response_downloaded)


class _Watch:
    """Cancels a download that takes too long.

    Most download handlers keep ``download_timeout`` themselves, to the point. This is for those
    which do not (FTP; time-outs of a single read); it gives them about a fifth more. The time that
    a request waits for its host does not count, up to ``longest_wait`` seconds.
    """

    def __init__(self, seconds: float, longest_wait: float, is_waiting: Callable[[], bool]) -> None:
        self.is_late = False
        self._download: Deferred[Response] | None = None
        self._is_waiting = is_waiting
        self._period = max(seconds / 10, 0.01)
        self._left = seconds + self._period
        self._wait_left = longest_wait

    def start(self, download: Deferred[Response]) -> None:
        self._download = download
        self._timer = call_later(self._period, self._look)

    def stop(self) -> None:
        self._timer.cancel()

    def expire(self) -> None:
        """Its time is over, once it has begun."""
        if self._download is not None:
            self.is_late = True
            self._download.cancel()

    def _look(self) -> None:
        if self._is_waiting() and self._wait_left > 0:
            self._wait_left -= self._period
        else:
            self._left -= self._period
        if self._left < 0:
            self.expire()
        else:
            self._timer = call_later(self._period, self._look)


def timed_out(url: str) -> TimeoutError:
    """The error for an attempt that took too long."""
    return TimeoutError(f"getting {url} took longer than REP_TIMEOUT")


def allow_cache(request: Request, *, only: bool) -> None:
    """Let Scrapy's HTTP cache keep the answer to a request that is not sent yet, and give one.

    A cache that knows of freshness is not to answer while the site does: what it has is for
    :func:`cached_answer`. ``only``: it is to answer first, because what it lacks is not asked for.
    """
    del request.meta["dont_cache"]
    if not only:
        request.headers["Cache-Control"] = "no-cache"  # which is not sent


def cached_answer(request: Request) -> Answer | None:
    """What Scrapy's HTTP cache has for a request that was sent in vain; None if nothing."""
    transfer: _Download = request.meta[DOWNLOAD]
    response = transfer.cached
    if response is None:
        return None
    intake = BodyReader()
    intake.start(_coding(response.headers))
    intake.feed(response.body)
    body = _body_of(response, intake)
    return Answer(request.url, response.status, response.headers, body, False, from_cache=True)


def _validators(request: Request) -> dict[bytes, bytes]:
    found = {name: request.headers.get(name) for name in _VALIDATORS}
    return {name: value for name, value in found.items() if value}


def _body_of(response: Response, intake: BodyReader) -> bytes | None:
    body = intake.body_of(response)
    is_cut_off = not _CUT_OFF.isdisjoint(response.flags)
    return None if is_cut_off and len(body or b"") <= SIZE_LIMIT else body


def _reached_downloader(request: Request) -> None:
    transfer: _Download | None = request.meta.get(DOWNLOAD)
    if transfer is None:
        return
    remove_browser_meta(request)
    meta = request.meta
    if not meta.get("dont_cache"):
        # Else the cache would answer by itself: instead of a 5xx, say, and with an older copy.
        transfer.cached = meta.pop(CACHED, None)
        for name in (b"Cache-Control", *_VALIDATORS):
            request.headers.pop(name, None)
        request.headers.update(transfer.validators)
    transfer.by_proxy = bool(meta.get("proxy") or meta.get(ZYTE_API))
    if meta.get(ZYTE_API):
        request.headers.pop("Accept-Encoding", None)  # what HttpCompressionMiddleware has set
    transfer.by_system_proxy = bool(meta.get("_scheme_proxy"))
    # Of what a download handler gets only the beginning is taken, however much is announced.
    request.meta["download_maxsize"] = 0


def _headers_received(request: Request, headers: Headers) -> None:
    transfer: _Download | None = request.meta.get(DOWNLOAD)
    if transfer is None:
        return
    latency = request.meta.get("download_latency")
    if latency is not None:
        transfer.began = monotonic() - latency
    transfer.body.start(_coding(headers))


def _bytes_received(request: Request, data: bytes) -> None:
    transfer: _Download | None = request.meta.get(DOWNLOAD)
    if transfer is not None:
        transfer.body.feed(data)
        if transfer.body.done:
            # Not as a failure: to everyone else this is an answer like any other.
            raise StopDownload(fail=False)


def _downloaded(request: Request, response: Response) -> None:
    """Before any middleware sees a response, cut from it what does not count."""
    transfer: _Download | None = request.meta.get(DOWNLOAD)
    if transfer is None:
        return
    request.meta["download_maxsize"] = WIRE_LIMIT  # for HttpCompressionMiddleware
    intake = transfer.body
    if not intake.received:  # a download handler that sends no signals
        intake.start(_coding(response.headers))
        intake.feed(response.body)
    is_cut_off = not intake.full and not _CUT_OFF.isdisjoint(response.flags)
    if is_cut_off or not _is_worth_keeping(response.status):
        request.meta["dont_cache"] = True
    counts = 200 <= response.status <= 299  # else nobody reads the body
    if not intake.readable and not (counts and intake.decoded_by_scrapy):
        # Whoever tried to decode it would fail, or inflate it without a limit.
        response.headers.pop("Content-Encoding", None)
    if intake.done:
        _set_body(response, response.body[: intake.consumed])


def _is_worth_keeping(status: int) -> bool:
    """Whether a status says something that may be replayed: not only that there is no answer."""
    return 200 <= status <= 499 and status not in (206, 304, 407, 429)


def _coding(headers: Headers) -> bytes:
    return b",".join(headers.getlist("Content-Encoding"))


def _set_body(response: Response, body: bytes) -> None:
    """Give a response another body, in place: a handler of a signal cannot replace it."""
    # The encoding is worked out again, when anybody asks: to read it decodes the whole body.
    names = set(response.attributes) - {"body", "encoding"}
    values = {name: getattr(response, name) for name in names}
    type(response).__init__(response, body=body, **values)
