"""One robots.txt through Scrapy's engine: hops, limits, retries (RFC 9309, sections 2.3.1 and 2.5).

:meth:`Fetcher.fetch` turns whatever comes back, or does not, into one event for
:mod:`scrapy_rep.origin`.
"""

from __future__ import annotations

import logging
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from scrapy import Request, signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http.request import NO_CALLBACK
from typing_extensions import assert_never
from w3lib.url import safe_url_string

from .protocol import access, freshness
from .protocol.access import Meaning, NotModified, Rules, Terms, Unavailable, Unreachable
from .protocol.lines import SIZE_LIMIT
from .protocol.paths import origin as origin_of
from .protocol.paths import robots_txt_url
from .protocol.robotstxt import RobotsTxt
from .waiting import sleep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.http.headers import Headers
    from scrapy.statscollectors import StatsCollector

    from .origin import Origin
    from .protocol.access import Event
    from .settings import Settings

logger = logging.getLogger(__name__)

PRIORITY = 1000
"""Before any page: others wait for it. Scrapy's own middleware uses the same number."""

FOREIGN_LIMIT = 2 * SIZE_LIMIT
"""Octets of a body in an encoding that we did not ask for: what Scrapy may read and inflate."""

INTAKE = "robotstxt_intake"
"""The meta key by which the signals of a download find the body that they belong to."""

# The request's own way past the middlewares that would answer, follow, repeat or keep it.
_META = {
    "allow_offsite": True,
    "dont_cache": True,
    "dont_merge_cookies": True,
    "dont_obey_robotstxt": True,
    "dont_redirect": True,
    "dont_retry": True,
    "download_fail_on_dataloss": True,
    "download_maxsize": 0,
    "download_warnsize": 0,
    "ftp_password": "anonymous@",
    "ftp_user": "anonymous",
    "handle_httpstatus_all": True,
    "is_robotstxt_request": True,
}


class Fetcher:
    """Fetches robots.txt files for one crawl.

    ``now`` gives the time, in seconds.
    """

    def __init__(self, crawler: Crawler, settings: Settings, now: Callable[[], float]) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats: StatsCollector = crawler.stats
        self._settings = settings
        self._now = now
        self._open = 0
        self.closing = False
        """Set when the crawl gives up what is under way: failures then mean nothing."""

    async def fetch(self, origin: Origin, page: Request, wanted: Callable[[], bool]) -> Event:
        """What asking for the robots.txt of ``origin`` comes to, repeated as the settings say.

        ``page`` is the request that needs to know: its proxy and its User-Agent are used.
        ``wanted`` tells whether anybody waits: nobody, and nothing is repeated.
        """
        for retry in range(self._settings.retry_times + 1):
            if retry:
                await sleep(1 << (retry - 1))
                self._stats.inc_value("robotstxt/retry_count")
            event = await self._attempt(origin, page)
            again = isinstance(event, Unreachable) and not event.retry_after
            if not again or self.closing or not wanted():
                break
        return event

    async def _attempt(self, origin: Origin, page: Request) -> Event:
        """One attempt: up to five redirects, followed here (section 2.3.1.2)."""
        self._stats.inc_value("robotstxt/request_count")
        deadline = self._now() + self._settings.timeout
        url = robots_txt_url(origin.key)
        visited: set[str] = set()
        while True:
            visited.add(url)
            try:
                answer = await self._download(origin, page, url, deadline)
            # Whatever keeps a robots.txt from coming, it is unreachable (section 2.3.1.4).
            except Exception as error:
                return self._failed(error, url)
            target = self._redirect_target(answer)
            if target is None:
                return self._event(origin, answer)
            if origin_of(target) is None or urlsplit(target).scheme not in ("http", "https"):
                return Unreachable(f"redirect to {target[:200]} refused", answer.status, url)
            if target in visited or len(visited) > access.MAX_REDIRECTS:
                return self._endless(answer)
            self._stats.inc_value("robotstxt/redirect_count")
            url = target

    async def _download(self, origin: Origin, page: Request, url: str, deadline: float) -> _Answer:
        request = self._request(origin, page, url, deadline)
        intake: _Intake = request.meta[INTAKE]
        engine = self._crawler.engine
        assert engine is not None
        with self._watching():
            try:
                response = await engine.download_async(request)
            except StopDownload as stop:
                if stop.response is None or not intake.full:
                    raise
                response = stop.response
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{response.status}")
        headers = response.headers
        conditional = b"If-None-Match" in request.headers or b"If-Modified-Since" in request.headers
        return _Answer(
            url, response.status, headers, intake.body_of(response), conditional, self._now()
        )

    def _request(self, origin: Origin, page: Request, url: str, deadline: float) -> Request:
        request = Request(
            url,
            callback=NO_CALLBACK,
            priority=PRIORITY,
            # gzip is inflated here as it arrives, with a limit; nothing else can be.
            headers={"Accept-Encoding": "gzip"},
            meta={
                **_META,
                "download_timeout": max(deadline - self._now(), 0.001),
                INTAKE: _Intake(),
            },
        )
        _inherit(page, request)
        if self._settings.conditional_get and url == origin.copy_url:
            if origin.etag is not None:
                request.headers["If-None-Match"] = origin.etag
            if origin.last_modified is not None:
                request.headers["If-Modified-Since"] = origin.last_modified
        return request

    def _redirect_target(self, answer: _Answer) -> str | None:
        if access.meaning(answer.status, Terms()) is not Meaning.REDIRECT:
            return None
        location = answer.header("Location")
        if location is None or not location.strip():
            return None
        try:
            target = urljoin(answer.url, safe_url_string(location.strip(), encoding="utf-8"))
        except ValueError:
            return location  # no URL: refused as one that leads nowhere
        return target.partition("#")[0]

    def _event(self, origin: Origin, answer: _Answer) -> Event:
        """What the last answer means (PROTOCOL: 2xx, 304, 4xx, the rest)."""
        match access.meaning(answer.status, self._terms(origin), conditional=answer.conditional):
            case Meaning.RULES:
                if answer.body is None:
                    return Unreachable("a body that cannot be read", answer.status, answer.url)
                return Rules(
                    RobotsTxt.parse(answer.body, strict=self._settings.strict, url=answer.url),
                    answer.status,
                    answer.url,
                    self._expires_at(answer, freshness.DEFAULT_LIFETIME),
                    answer.header("ETag"),
                    answer.header("Last-Modified"),
                )
            case Meaning.NOT_MODIFIED:
                return NotModified(self._expires_at(answer, freshness.DEFAULT_LIFETIME))
            case Meaning.UNAVAILABLE | Meaning.DISALLOWED as found:
                missing = answer.status in (404, 410)
                default = freshness.DEFAULT_LIFETIME if missing else freshness.ERROR_LIFETIME
                expires_at = self._expires_at(answer, default)
                refused = found is Meaning.DISALLOWED
                return Unavailable(answer.url, expires_at, answer.status, refused)
            case Meaning.REDIRECT:
                failure = f"status {answer.status} without a usable Location"
                return Unreachable(failure, answer.status, answer.url)
            case Meaning.UNREACHABLE:
                wish = None
                if answer.status == 429 or answer.status >= 500:
                    wish = access.retry_after(answer.header("Retry-After"), answer.time)
                return Unreachable(f"status {answer.status}", answer.status, answer.url, wish)
            case unknown:
                assert_never(unknown)

    def _endless(self, answer: _Answer) -> Event:
        if self._settings.too_many_redirects == "unreachable":
            return Unreachable("too many redirects", answer.status, answer.url)
        expires_at = self._expires_at(answer, freshness.ERROR_LIFETIME)
        return Unavailable(answer.url, expires_at)

    def _failed(self, error: Exception, url: str) -> Event:
        if self.closing:
            return access.Abandoned()
        if not isinstance(error, IgnoreRequest):
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
        text = " ".join(str(error).split()) or "no reason given"
        return Unreachable(f"{type(error).__name__}: {text[:300]}", url=url)

    def _terms(self, origin: Origin) -> Terms:
        settings = self._settings
        return Terms(
            settings.disallow_statuses,
            settings.unreachable_statuses,
            urlsplit(origin.key).hostname in settings.missing_5xx_hosts,
        )

    def _expires_at(self, answer: _Answer, default: float) -> float:
        headers = freshness.CacheHeaders(
            cache_control=answer.headers_joined("Cache-Control"),
            age=answer.header("Age"),
            date=answer.header("Date"),
            expires=answer.header("Expires"),
        )
        settings = self._settings
        return freshness.expires_at(
            headers,
            answer.time,
            least=settings.cache_min,
            most=settings.cache_max,
            default=default,
        )

    @contextmanager
    def _watching(self) -> Iterator[None]:
        """Listen to what arrives, for as long as any robots.txt is on its way and no longer.

        Scrapy sends these signals for each piece of each page: listening costs.
        """
        connect, disconnect = self._crawler.signals.connect, self._crawler.signals.disconnect
        if not self._open:
            connect(_headers_received, signal=signals.headers_received)
            connect(_bytes_received, signal=signals.bytes_received)
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                disconnect(_headers_received, signal=signals.headers_received)
                disconnect(_bytes_received, signal=signals.bytes_received)


@dataclass(frozen=True, slots=True)
class _Answer:
    """One answer to one hop. ``body`` is None where it cannot be read."""

    url: str
    status: int
    headers: Headers
    body: bytes | None
    conditional: bool
    time: float

    def header(self, name: str) -> str | None:
        """The first header of that name; header octets are Latin-1 (RFC 9110, section 5.5)."""
        values = self.headers.getlist(name)
        return values[0].decode("latin-1") if values else None

    def headers_joined(self, name: str) -> str | None:
        return b", ".join(self.headers.getlist(name)).decode("latin-1") or None


class _Intake:
    """The body of one answer, inflated as it arrives, up to one octet above the limit."""

    __slots__ = ("_broken", "_data", "_inflating", "_ours")

    def __init__(self) -> None:
        self._data = bytearray()
        self._inflating: Any = None
        self._ours = False
        self._broken = False

    def begin(self, headers: Headers) -> bool:
        """A body will come. Whether in a form that is read here."""
        self._data.clear()
        self._inflating, self._broken = None, False
        codings = b",".join(headers.getlist("Content-Encoding")).strip().lower()
        self._ours = codings in (b"", b"identity", b"gzip", b"x-gzip")
        if codings in (b"gzip", b"x-gzip"):
            self._inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
        return self._ours

    @property
    def full(self) -> bool:
        return len(self._data) > SIZE_LIMIT

    def receive(self, data: bytes) -> None:
        if not self._ours or self._broken:
            return
        room = SIZE_LIMIT + 1 - len(self._data)
        if self._inflating is None:
            self._data += data[:room]
        else:
            try:
                self._data += self._inflating.decompress(data, room)
            except zlib.error:
                self._broken = True

    def body_of(self, response: Response) -> bytes | None:
        """The body, one octet above the limit at most; None where it is broken."""
        if self.full:
            return bytes(self._data)
        if not self._ours:  # an encoding that Scrapy has dealt with, or FTP
            encoded = b"Content-Encoding" in response.headers
            return None if encoded else response.body[: SIZE_LIMIT + 1]
        if self._inflating is None:
            return bytes(self._data)
        complete = self._inflating.eof or not response.body
        return bytes(self._data) if complete and not self._broken else None


def _headers_received(request: Request, headers: Headers) -> None:
    intake = request.meta.get(INTAKE)
    if intake is not None and not intake.begin(headers):
        request.meta["download_maxsize"] = FOREIGN_LIMIT


def _bytes_received(request: Request, data: bytes) -> None:
    intake = request.meta.get(INTAKE)
    if intake is not None:
        intake.receive(data)
        if intake.full:
            raise StopDownload(fail=True)


def _inherit(page: Request, request: Request) -> None:
    """Send ``request`` the way that ``page`` goes, and under the same name.

    The proxy stays for every hop, as in Scrapy's own redirects; a download slot is that of a host.
    """
    meta = page.meta
    if "proxy" in meta and not meta.get("_scheme_proxy"):
        for key in ("proxy", "_auth_proxy"):
            if key in meta:
                request.meta[key] = meta[key]
        if "Proxy-Authorization" in page.headers:
            request.headers["Proxy-Authorization"] = page.headers["Proxy-Authorization"]
    if "bindaddress" in meta:
        request.meta["bindaddress"] = meta["bindaddress"]
    if "download_slot" in meta and urlsplit(page.url).hostname == urlsplit(request.url).hostname:
        request.meta["download_slot"] = meta["download_slot"]
    if "User-Agent" in page.headers:
        request.headers["User-Agent"] = page.headers["User-Agent"]
