"""One download of a robots.txt through Scrapy's engine, limited in time and in size.

The handlers of :data:`HANDLERS` limit and decode its body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from errno import EMFILE, ENFILE
from typing import Any, Literal, NamedTuple

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.http.headers import Headers

from ..clock import Clock
from ..ip_addresses import Address
from ..origin import OriginFile
from ..protocol.access import REDIRECT_STATUSES, Answer, CopyInfo
from ..protocol.body_reader import WIRE_LIMIT, BodyReader
from ..protocol.lines import SIZE_LIMIT
from ..protocol.printable import printable
from ..scrapy_internals import forget_cached_response, import_path, receivers, set_body
from ..settings import CACHED_FLAG, DONT_OBEY, IS_ROBOTSTXT_REQUEST

DOWNLOAD = "robotstxt_download"
"""The meta key under which the signal handlers find the state of a download."""

# The keys that keep other middlewares from answering, redirecting or retrying the request.
META = {
    "allow_offsite": True,
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

VALIDATORS = ("If-None-Match", "If-Modified-Since")

_BROWSERS = ("camoufox", "nodriver", "playwright", "puppeteer", "pyppeteer", "selenium", "splash")
"""Prefixes of the meta keys that make a download handler or a middleware use a browser, which wraps
the file in an HTML page."""

Truncation = Literal["length", "disconnect", "unspecified"]
"""Why the end of a body is missing (WARC 1.1 §5.13): the size limit, the end of the connection, or
another component, which stopped the download."""


class Downloaded(IgnoreRequest):
    """Ends a download with its response, which the engine would count and log as a page."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"{response} is for scrapy-rep")
        self.response = response


@dataclass(slots=True, eq=False)
class Download:
    """One request for a file, and its response. Times are on the monotonic clock."""

    file: OriginFile
    url: str
    clock: Clock
    record: Record | None
    """Called with each response that a download handler receives."""
    validators: dict[str, bytes]
    """The validators that this package put on the request."""
    started: float = 0
    """When the request was given to Scrapy. Once there are headers: when it was sent."""
    reader: BodyReader = field(default_factory=BodyReader)
    waited: float = 0
    """How long the request waited for its host, in seconds."""
    by_proxy: bool = False
    """The request used a proxy, which resolves host names."""
    is_stopped: bool = False
    """Another component has stopped the download before all of the body had arrived."""
    response: Response = field(init=False)
    """The response after the middlewares."""
    answer: Answer = field(init=False)
    """What the response means depends on it."""

    @property
    def copy(self) -> CopyInfo | None:
        """The good copy that the request validates."""
        return self.file.copy if self.validators else None

    def end(self, response: Response) -> None:
        """Note the response after the middlewares."""
        self.response = response
        is_cut_off = _is_cut_off(response, self.reader) and len(response.body) <= SIZE_LIMIT
        # Scrapy's middlewares remove Content-Encoding from what they decode, as this module does.
        is_encoded = response.body and b"Content-Encoding" in response.headers
        is_broken = is_cut_off or is_encoded or self.reader.is_broken
        headers = {  # in Latin-1 (RFC 9110 §5.5)
            name.decode("latin-1").lower(): values[0].decode("latin-1")
            for name, values in response.headers.items()
            if values
        }
        if "cache-control" in headers:
            directives = response.headers.getlist("Cache-Control")
            headers["cache-control"] = b", ".join(directives).decode("latin-1")
        self.answer = Answer(
            self.url,
            response.status,
            None if is_broken else response.body[: SIZE_LIMIT + 1],
            headers,
            self.copy,
            from_cache=CACHED_FLAG in response.flags,
        )


Fields = tuple[tuple[bytes, bytes], ...]
"""The header fields of a message, in order. A field with several values is there once for each."""


class Exchange(NamedTuple):
    """One request and its response, as a download handler sent and received them (REP_ARCHIVE)."""

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
    ip_address: Address | None = None
    """The address of the connection; None if the download handler does not report it."""
    by_proxy: bool = False
    file: bytes | None = None
    """The decoded body, up to the limit. None if it cannot be decoded or is cut off."""
    origin: str = ""
    """The origin whose robots.txt is fetched. After a redirect, ``url`` is of another origin."""
    copy_sha256: str | None = None
    """The SHA-256 of the good copy that the request validates; None if there is none."""


Record = Callable[[Exchange], object]


def remove_browser_meta(meta: MutableMapping[Any, Any]) -> None:
    """Remove the keys that make a download handler or a middleware use a browser."""
    for key in tuple(meta):
        if isinstance(key, str) and key.lstrip("_").startswith(_BROWSERS):
            del meta[key]


def _reached_downloader(request: Request) -> None:
    download: Download | None = request.meta.get(DOWNLOAD)
    if download is not None:
        remove_browser_meta(request.meta)
        forget_cached_response(request)
        for name in ("Cache-Control", *VALIDATORS):
            request.headers.pop(name, None)
        request.headers.update(download.validators)
        download.reader = BodyReader()  # a component may send the request again
        download.by_proxy = bool(request.meta.get("proxy"))
        # BodyReader stops the download at the limit: a longer Content-Length must not fail it.
        request.meta["download_maxsize"] = 0


def _headers_received(request: Request, headers: Headers) -> None:
    download: Download | None = request.meta.get(DOWNLOAD)
    if download is not None:
        if (latency := request.meta.get("download_latency")) is not None:
            sent = download.clock.monotonic() - latency
            download.waited += sent - download.started
            download.started = sent
        download.reader = _reader(headers)


def _bytes_received(request: Request, data: bytes) -> None:
    download: Download | None = request.meta.get(DOWNLOAD)
    if download is not None:
        download.reader.feed(data)
        if download.reader.is_done:
            # fail=False: for all other components this is a normal response.
            raise StopDownload(fail=False)


def downloaded(request: Request, response: Response) -> None:
    """Limit and decode the body before a middleware sees it."""
    download: Download | None = request.meta.get(DOWNLOAD)
    if download is None:
        return
    request.meta["download_maxsize"] = WIRE_LIMIT  # for HttpCompressionMiddleware
    if not download.reader.received:  # the download handler sends no signals
        download.reader = _reader(response.headers)
        download.reader.feed(response.body)
    reader = download.reader
    if _is_cut_off(response, reader):
        download.is_stopped = "download_stopped" in response.flags and not reader.is_done
        reader.is_broken = True
    if download.record is not None:
        download.record(_exchange(request, response, download))
    if reader.is_supported or reader.is_broken or not 200 <= response.status <= 299:
        # HttpCompressionMiddleware would fail, or would inflate the body again without this limit.
        # It may be able to decode any other body, of a status whose body is used.
        body = reader.body
        reader.is_broken = body is None
        response.headers.pop("Content-Encoding", None)
        if body != response.body:
            set_body(response, body or b"")
    status = response.status
    sets_cookie = status in REDIRECT_STATUSES and b"Set-Cookie" in response.headers
    is_cacheable = 200 <= status <= 499 and status not in (206, 304, 407, 429)
    if reader.is_broken or sets_cookie or not is_cacheable:
        request.meta["dont_cache"] = True


def _exchange(request: Request, response: Response, download: Download) -> Exchange:
    ago = download.clock.monotonic() - download.started
    limit = WIRE_LIMIT if b"Content-Encoding" in response.headers else SIZE_LIMIT + 1
    return Exchange(
        url=request.url,
        sent_at=download.clock.time() - ago,
        method=request.method,
        request_fields=_fields(request.headers),
        status=response.status,
        response_fields=_fields(response.headers),
        body=response.body[:limit],
        truncated=_truncation(response, limit, download.reader),
        ip_address=response.ip_address,
        by_proxy=download.by_proxy,
        file=download.reader.body,
        origin=download.file.key,
        copy_sha256=download.copy and download.copy.sha256,
    )


def _truncation(response: Response, limit: int, reader: BodyReader) -> Truncation | None:
    if "dataloss" in response.flags:
        return "disconnect"
    # The download is stopped at the limit even if the body ends there.
    is_stopped = "download_stopped" in response.flags and not reader.is_whole
    if len(response.body) > limit or (is_stopped and reader.is_full):
        return "length"
    return "unspecified" if is_stopped else None


def _fields(headers: Headers) -> Fields:
    return tuple((name, value) for name, values in headers.items() for value in values)


HANDLERS = (
    (_headers_received, signals.headers_received),
    (_bytes_received, signals.bytes_received),
    (_reached_downloader, signals.request_reached_downloader),
    (downloaded, signals.response_downloaded),
)


def stopping_receivers(crawler: Crawler) -> str:
    """Return the names of the other signal handlers of a crawl that may stop a download."""
    own, received = zip(*HANDLERS[:2], strict=True)
    names = {import_path(each) for each in receivers(crawler, received) if each not in own}
    return _cut(", ".join(sorted(names)))


def _is_cut_off(response: Response, reader: BodyReader) -> bool:
    """Whether the end of a body is missing that would make a difference."""
    is_incomplete = not {"dataloss", "download_stopped"}.isdisjoint(response.flags)
    return is_incomplete and not (reader.is_full or reader.is_whole)


def _reader(headers: Headers) -> BodyReader:
    coding = b",".join(headers.getlist("Content-Encoding"))
    return BodyReader(coding, headers.get("Content-Length"))


# What the errors of a download mean, in words: for the log, the report and the tools

MAX_LENGTH = 300
"""The most characters of an error message."""

_WORDS = {
    "the host name cannot be resolved": (
        "CannotResolveHostError DNSLookupError UnknownHostError gaierror"
    ),
    "the connection was refused": "ConnectionRefusedError DownloadConnectionRefusedError",
    "the connection timed out": "ConnectTimeout TCPTimedOutError",
    "it took longer than REP_TIMEOUT": "DownloadTimeoutError ReadTimeout TimeoutError",
    "the connection was closed before the response was complete": (
        "ConnectionAborted ConnectionDone ConnectionLost ConnectionResetError "
        "PartialDownloadError ResponseDataLossError ServerDisconnectedError"
    ),
}
_BY_NAME = {name: words for words, names in _WORDS.items() for name in names.split()}
"""The words for an error, by the name of its class, which several libraries share."""

_TLS = ("OpenSSL", "ssl", "service_identity")


def in_words(error: BaseException) -> str:
    """Return what went wrong, for people, in printable characters, at most MAX_LENGTH."""
    causes = list(_causes(error))
    for each in reversed(causes):  # the first cause says most
        if type(each).__module__.split(".")[0] in _TLS:
            return _cut(f"TLS failed: {_text(each)}")
        names = [base.__name__ for base in type(each).__mro__ if base.__name__ in _BY_NAME]
        if names:
            return _BY_NAME[names[0]]
    return with_name(causes[-1])


def with_name(error: BaseException) -> str:
    """Return the class of an error and its message, in printable characters."""
    return _cut(f"{type(error).__name__}: {_text(error) or 'no reason given'}")


def is_out_of_files(error: BaseException) -> bool:
    """Return whether an error is one of this process or machine: it has too many open files."""
    numbers = {
        getattr(each, name, None) for each in _causes(error) for name in ("errno", "osError")
    }
    return not numbers.isdisjoint((EMFILE, ENFILE))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what has caused it. Twisted has lists of Failures with the causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        reasons: Any = getattr(current, "reasons", None)
        failures = reasons if isinstance(reasons, list) else []
        values = [value for each in failures if (value := getattr(each, "value", None)) is not None]
        current = values[-1] if values else current.__cause__


def _text(error: BaseException) -> str:
    """Return the message of an error. OpenSSL's is a list of tuples whose last item says most."""
    match error.args:
        case ([*_, (*_, str(text))],):
            return text
    return str(error)


def _cut(text: str) -> str:
    return printable(" ".join(text.split()), MAX_LENGTH)
