"""One request for a robots.txt through Scrapy's engine, limited in time and in size.

Redirects, retries and the meaning of a response are in :mod:`scrapy_rep.fetch.fetcher`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from scrapy import Request, signals
from scrapy.exceptions import StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from ..meta_keys import CACHED_FLAG, DONT_OBEY, IS_ROBOTSTXT_REQUEST
from ..protocol.freshness import CacheHeaders
from ..protocol.lines import SIZE_LIMIT
from .body_reader import WIRE_LIMIT, BodyReader
from .browsers import ZYTE_API, remove_browser_meta

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from typing import Any

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers

    from ..frontier.clock import Clock
    from ..frontier.engine import Engine
    from ..frontier.fetch_limit import Permit
    from ..frontier.frontier import Frontier
    from .addresses import Address

T = TypeVar("T")

PRIORITY = 1000
"""Higher than that of pages, which wait for it. Scrapy's own middleware uses this number."""

DOWNLOAD = "robotstxt_download"
"""The meta key under which the signal handlers find the state of a download."""

# The keys that keep other middlewares from answering, redirecting or retrying the request, and from
# storing the response.
_META = {
    "allow_offsite": True,
    "dont_cache": True,
    "dont_merge_cookies": True,
    DONT_OBEY: True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": False,  # this module handles a body that is cut off
    "download_maxsize": WIRE_LIMIT,  # for responses of other components; see _reached_downloader
    "download_warnsize": 0,
    "ftp_password": "anonymous@",
    "ftp_user": "anonymous",
    "handle_httpstatus_all": True,
    IS_ROBOTSTXT_REQUEST: True,
}

_VALIDATORS = (b"If-None-Match", b"If-Modified-Since")

# The flags of a response that Scrapy did not receive completely.
_CUT_OFF = frozenset({"dataloss", "download_stopped"})


Truncation = Literal["length", "disconnect", "unspecified"]
"""Why the end of a body is missing (WARC 1.1 §5.13): it is longer than the size limit; the
connection ended before it; or it cannot be decoded, or another component stopped the download."""


class RobotsTxtResponse(NamedTuple):
    """The response to one request for a robots.txt."""

    url: str
    status: int
    headers: Headers
    body: bytes | None
    """None if the body is cut off or cannot be decoded."""
    conditional: bool
    """Whether the request carried a validator."""
    ip_address: Address | None = None
    """The address of the connection; None if the download handler does not report it."""
    by_proxy: bool = False
    """The request used a proxy, or a service that downloads it. These resolve host names."""
    by_system_proxy: bool = False
    """The proxy comes from the environment."""
    from_cache: bool = False
    """Scrapy's HTTP cache answered."""

    def header(self, name: str) -> str | None:
        """Return the first header of this name, read as Latin-1 (RFC 9110 §5.5)."""
        values = self.headers.getlist(name)
        return values[0].decode("latin-1") if values else None

    def cache_headers(self) -> CacheHeaders:
        """Return the headers that say how long the response is fresh."""
        cache_control = b", ".join(self.headers.getlist("Cache-Control"))
        return CacheHeaders(
            cache_control=cache_control.decode("latin-1") or None,
            age=self.header("Age"),
            date=self.header("Date"),
            expires=self.header("Expires"),
        )


Fields = tuple[tuple[bytes, bytes], ...]
"""The header fields of a message, in order. A field with several values is there once for each."""


class Exchange(NamedTuple):
    """One request and its response, as the download handler sent and received them.

    This is for the archive of a crawl (REP_ARCHIVE). No other crawl makes such a record.
    """

    url: str
    sent_at: float
    """Seconds since 1970."""
    method: str
    request_fields: Fields
    """The header fields that Scrapy gave to the download handler."""
    status: int
    response_fields: Fields
    body: bytes
    """The bytes of the body without transfer coding, but with content coding, up to the limit."""
    truncated: Truncation | None = None
    protocol: str | None = None
    """The protocol as the download handler names it; None if it names none."""
    ip_address: Address | None = None
    """The address of the connection; None if the download handler does not report it."""
    by_proxy: bool = False
    file: bytes | None = None
    """The decoded body, up to the limit. None if it cannot be decoded or is cut off."""
    conditional: bool = False
    """Whether the request carried a validator of the good copy."""
    origin: str = ""
    """The origin whose robots.txt is fetched. After a redirect, ``url`` is of another origin."""
    copy_sha256: str | None = None
    """The SHA-256 of the good copy that the request validates; None if there is none."""


@dataclass(slots=True)
class _Download:
    """The state of one download. Times are seconds on the monotonic clock."""

    clock: Clock
    started: float
    """When the request was given to Scrapy. Once there are headers: when it was sent."""
    body: BodyReader = field(default_factory=BodyReader)
    by_proxy: bool = False
    by_system_proxy: bool = False
    validators: Mapping[bytes, bytes] = field(default_factory=dict)
    """The validators that this package put on the request."""
    exchanges: list[Exchange] | None = None
    """What was sent and received. None: it is not recorded."""


def request_for(url: str, meta: Mapping[str, object]) -> Request:
    """Return a request for the robots.txt at ``url``.

    ``meta`` holds further keys. The keys that this module sets take precedence.
    """
    request = Request(url, callback=NO_CALLBACK, priority=PRIORITY, meta={**meta, **_META})
    remove_browser_meta(request.meta)
    if not request.meta.get(ZYTE_API):  # it decodes itself, and warns about this header
        # BodyReader inflates gzip as it arrives, up to the limit. It reads no other coding.
        request.headers["Accept-Encoding"] = "gzip"
    return request


class RobotsTxtDownloader:
    """Downloads the robots.txt files of one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        engine: Engine,
        frontier: Frontier,
        clock: Clock,
        *,
        has_pool: bool,
    ) -> None:
        self._crawler = crawler
        self._has_pool = has_pool
        self._engine = engine
        self._frontier = frontier
        self._clock = clock
        self._downloads = 0
        """The number of robots.txt files that are being downloaded."""
        self._is_connected = False
        """Whether the signal handlers are connected."""

    async def send(
        self,
        request: Request,
        permit: Permit,
        seconds: float,
        max_wait: float,
        record: Callable[[Exchange], object] | None = None,
    ) -> tuple[RobotsTxtResponse, float]:
        """Return the response, and the seconds that it took.

        ``permit`` is that of this fetch. The download may take ``seconds``. The time that the
        request waits for its host does not count, up to ``max_wait`` seconds. Raises TimeoutError,
        and the errors of Scrapy.

        ``record`` is called with each response that a download handler received, also if a
        component then fails or replaces it.
        """
        request.meta["download_timeout"] = seconds
        with self._listening():
            download = request.meta[DOWNLOAD] = _Download(
                self._clock,
                self._clock.monotonic(),
                validators=_validators(request),
                exchanges=[] if record is not None else None,
            )
            body: bytes | None = None
            try:
                try:
                    response = await self._download(request, permit, seconds, max_wait)
                except StopDownload as stop:  # another component stopped it, as a failure
                    if stop.response is None:
                        raise
                    response = stop.response
                body = _body_of(response, download.body)
            finally:
                if record is not None and download.exchanges:
                    *others, last = download.exchanges
                    for exchange in (*others, last._replace(file=body)):
                        record(exchange)
        if "download_stopped" in response.flags:
            # The connection is about to close. A page that reused it would be sent twice.
            await self._clock.sleep(0)
        result = RobotsTxtResponse(
            request.url,
            response.status,
            response.headers,
            body,
            bool(download.validators),
            response.ip_address,
            download.by_proxy,
            download.by_system_proxy,
            CACHED_FLAG in response.flags,
        )
        return result, self._clock.monotonic() - download.started

    async def _download(
        self, request: Request, permit: Permit, seconds: float, max_wait: float
    ) -> Response:
        engine = self._crawler.engine
        assert engine is not None
        timeout = _Timeout(self._clock, seconds, max_wait, lambda: self._is_waiting(request))
        permit.expire = timeout.expire
        if not self._has_pool:  # else it would wait for a connection there
            self._engine.exclude(request)
        try:
            return await timeout.run(engine.download_async(request), request.url)
        finally:
            self._engine.include(request)
            self._frontier.finish(request)

    def _is_waiting(self, request: Request) -> bool:
        return self._frontier.is_waiting(request) or self._engine.is_held(request)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Connect the signal handlers while at least one robots.txt is downloaded."""
        if not self._is_connected:
            self._is_connected = True
            for handler, signal in _HANDLERS:
                self._crawler.signals.connect(handler, signal=signal)
        self._downloads += 1
        try:
            yield
        finally:
            self._downloads -= 1

    def disconnect_idle(self) -> None:
        """Disconnect the signal handlers if no robots.txt is being downloaded.

        Scrapy sends these signals for each piece of each page, so handlers have a cost. To connect
        and disconnect them for each robots.txt costs more, so this is called at regular intervals.
        """
        if self._is_connected and not self._downloads:
            self._is_connected = False
            for handler, signal in _HANDLERS:
                self._crawler.signals.disconnect(handler, signal=signal)


class _Timeout:
    """Cancels a download that takes too long.

    Most download handlers keep ``download_timeout`` exactly. This class is for the others (FTP, and
    handlers whose timeout is for a single read), and allows about a fifth more. The time that the
    request waits for its host does not count, up to ``max_wait`` seconds.
    """

    def __init__(
        self, clock: Clock, seconds: float, max_wait: float, is_waiting: Callable[[], bool]
    ) -> None:
        self._clock = clock
        self._is_waiting = is_waiting
        self._period = max(seconds / 10, 0.01)
        self._left = seconds + self._period
        self._wait_left = max_wait
        self._cancel: Callable[[], object] | None = None
        self._has_expired = False

    async def run(self, download: Coroutine[Any, Any, T], url: str) -> T:
        """Return the response. Raises TimeoutError if the download takes too long.

        With asyncio, the download runs in the task of the caller. A task of its own would take
        three more turns of the event loop, and the first page of each site waits for these.
        """
        task = None
        self._timer = self._clock.call_later(self._period, self._check)
        try:
            if is_asyncio_available():
                task = asyncio.current_task()
                assert task is not None
                self._cancel = task.cancel
                return await download
            deferred = deferred_from_coro(download)
            self._cancel = deferred.cancel
            return await maybe_deferred_to_future(deferred)
        except (asyncio.CancelledError, CancelledError):
            if self._has_expired:
                raise timeout_error(url) from None
            raise
        finally:
            self._timer.cancel()
            self._cancel = None
            if task is not None and self._has_expired and hasattr(task, "uncancel"):
                task.uncancel()  # since Python 3.11: the task goes on

    def expire(self) -> None:
        """Cancel the download, if it is in progress."""
        if self._cancel is not None and not self._has_expired:
            self._has_expired = True
            self._cancel()

    def _check(self) -> None:
        if self._is_waiting() and self._wait_left > 0:
            self._wait_left -= self._period
        else:
            self._left -= self._period
        if self._left < 0:
            self.expire()
        else:
            self._timer = self._clock.call_later(self._period, self._check)


def timeout_error(url: str) -> TimeoutError:
    """Return the error for an attempt that took too long."""
    return TimeoutError(f"getting {url} took longer than REP_TIMEOUT")


def allow_cache(request: Request, *, only: bool) -> None:
    """Allow Scrapy's HTTP cache to store the response to a request that has not been sent yet.

    A cache with RFC2616Policy must not answer itself. With ``only`` it answers first, because it
    does not send the requests that it cannot answer.
    """
    del request.meta["dont_cache"]
    if not only:
        request.headers["Cache-Control"] = "no-cache"  # removed before the request is sent


def _validators(request: Request) -> dict[bytes, bytes]:
    found = {name: request.headers.get(name) for name in _VALIDATORS}
    return {name: value for name, value in found.items() if value}


def _body_of(response: Response, reader: BodyReader) -> bytes | None:
    body = reader.body_of(response)
    is_cut_off = not _CUT_OFF.isdisjoint(response.flags)
    return None if is_cut_off and len(body or b"") <= SIZE_LIMIT else body


def _reached_downloader(request: Request) -> None:
    download: _Download | None = request.meta.get(DOWNLOAD)
    if download is None:
        return
    meta = request.meta
    remove_browser_meta(meta)
    if not meta.get("dont_cache"):
        # Without this, the cache would decide alone: it may replace a 5xx by an older response.
        meta.pop("cached_response", None)
        for name in (b"Cache-Control", *_VALIDATORS):
            request.headers.pop(name, None)
        request.headers.update(download.validators)
    download.by_proxy = bool(meta.get("proxy") or meta.get(ZYTE_API))
    if meta.get(ZYTE_API):
        request.headers.pop("Accept-Encoding", None)  # set by HttpCompressionMiddleware
    download.by_system_proxy = bool(meta.get("_scheme_proxy"))
    # BodyReader stops the download at the limit, so a longer Content-Length is no reason to fail.
    request.meta["download_maxsize"] = 0


def _headers_received(request: Request, headers: Headers) -> None:
    download: _Download | None = request.meta.get(DOWNLOAD)
    if download is None:
        return
    latency = request.meta.get("download_latency")
    if latency is not None:
        download.started = download.clock.monotonic() - latency
    download.body = BodyReader(_content_encoding(headers))


def _bytes_received(request: Request, data: bytes) -> None:
    download: _Download | None = request.meta.get(DOWNLOAD)
    if download is not None:
        download.body.feed(data)
        if download.body.done:
            # fail=False: for all other components this is a normal response.
            raise StopDownload(fail=False)


def _downloaded(request: Request, response: Response) -> None:
    """Limit the response before a middleware sees it."""
    download: _Download | None = request.meta.get(DOWNLOAD)
    if download is None:
        return
    request.meta["download_maxsize"] = WIRE_LIMIT  # for HttpCompressionMiddleware
    headers, length = response.headers, len(response.body)
    if download.exchanges is not None:
        headers = headers.copy()
    if not download.body.received:  # the download handler sends no signals
        download.body = BodyReader(_content_encoding(response.headers))
        download.body.feed(response.body)
    reader = download.body
    is_cut_off = not reader.full and not _CUT_OFF.isdisjoint(response.flags)
    if is_cut_off or not _is_cacheable(response.status):
        request.meta["dont_cache"] = True
    is_used = 200 <= response.status <= 299  # the body of any other status is ignored
    if not reader.readable and not (is_used and reader.decoded_by_scrapy):
        # A component that decodes this body would fail, or would inflate it without a limit.
        response.headers.pop("Content-Encoding", None)
    if reader.done:
        _set_body(response, response.body[: reader.consumed])
    if download.exchanges is not None:
        ago = download.clock.monotonic() - download.started
        exchange = Exchange(
            url=request.url,
            sent_at=download.clock.time() - ago,
            method=request.method,
            request_fields=_fields(request.headers),
            status=response.status,
            response_fields=_fields(headers),
            body=response.body,
            truncated=_truncation(response, headers, reader, length),
            protocol=response.protocol,
            ip_address=response.ip_address,
            by_proxy=download.by_proxy,
            conditional=bool(download.validators),
        )
        download.exchanges.append(exchange)


def _truncation(
    response: Response, headers: Headers, reader: BodyReader, length: int
) -> Truncation | None:
    """Return why the end of a body is missing, of which the handler returned ``length`` bytes."""
    if len(response.body) < length:
        return "length"
    if "dataloss" in response.flags:
        return "disconnect"
    # The download is stopped at the limit even if the body ends there.
    is_whole = headers.get("Content-Length") == str(length).encode()
    if is_whole or "download_stopped" not in response.flags:
        return None
    return "length" if reader.full or reader.received > WIRE_LIMIT else "unspecified"


def _fields(headers: Headers) -> Fields:
    return tuple((name, value) for name, values in headers.items() for value in values)


_HANDLERS = (
    (_headers_received, signals.headers_received),
    (_bytes_received, signals.bytes_received),
    (_reached_downloader, signals.request_reached_downloader),
    (_downloaded, signals.response_downloaded),
)


def _is_cacheable(status: int) -> bool:
    """Return whether a cache should store a response with this status."""
    return 200 <= status <= 499 and status not in (206, 304, 407, 429)


def _content_encoding(headers: Headers) -> bytes:
    return b",".join(headers.getlist("Content-Encoding"))


def _set_body(response: Response, body: bytes) -> None:
    """Replace the body of a response in place: a signal handler cannot return a new response."""
    # Without an encoding, a text response detects it again when it is needed. To read it here would
    # decode the whole body.
    names = set(response.attributes) - {"body", "encoding"}
    values = {name: getattr(response, name) for name in names}
    type(response).__init__(response, body=body, **values)
