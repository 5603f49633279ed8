"""One robots.txt: hops, retries, and what the answer means (RFC 9309, section 2.3.1).

:meth:`Fetcher.fetch` turns whatever comes back, or does not, into one event for
:mod:`scrapy_rep.origin`.
"""

from __future__ import annotations

import logging
import re
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.exceptions import IgnoreRequest
from typing_extensions import assert_never

from ..protocol import access, freshness
from ..protocol.access import (
    Cancelled,
    NotModified,
    Rules,
    StatusClass,
    StatusPolicy,
    Unavailable,
    Unreachable,
)
from ..protocol.lines import SIZE_LIMIT
from ..protocol.paths import robots_txt_url
from ..protocol.printable import printable
from ..protocol.robotstxt import RobotsTxt
from ..protocol.unwrap import unwrap_browser_page
from .browsers import ZYTE_API, ZYTE_API_PARAMS, zyte_api_params_for
from .downloader import RobotsTxtDownloader, allow_cache, cached_answer, request_for, timed_out
from .redirects import RedirectPolicy, redirect_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

    from ..origin import Origin
    from ..protocol.access import Event
    from ..scheduling.clock import Clock
    from ..scheduling.engine import Engine
    from ..scheduling.fetch_limit import FetchLimit
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from .downloader import Answer

logger = logging.getLogger(__name__)

FIRST_RETRY_PAUSE = 1
MAX_RETRY_PAUSE = 60
"""Seconds between two attempts of one fetch, doubling from the first to the longest."""

VALIDATOR_LIMIT = 256
"""Octets of an ETag or a Last-Modified that are worth keeping for each of many origins."""

# RFC 9110, section 5.5, field-value: visible characters, obs-text, SP and HTAB; no controls.
_FIELD_VALUE = re.compile(rf"[\t\x20-\x7e\x80-\xff]{{1,{VALIDATOR_LIMIT}}}")

TOO_MANY_REDIRECTS = "too many redirects"

MAX_FAILURE_LENGTH = 300
"""Characters of an error's text that are kept, and shown."""


class Fetcher:
    """Fetches robots.txt files for one crawl.

    ``shared``: what is fetched serves several crawlers.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        throttle: Throttle,
        fetch_limit: FetchLimit,
        clock: Clock,
        *,
        shared: bool = False,
    ) -> None:
        assert crawler.stats is not None
        self._stats: StatsCollector = crawler.stats
        self._downloads = RobotsTxtDownloader(crawler, engine, throttle, fetch_limit, clock)
        self._settings = settings
        self._clock = clock
        self._now = clock.time
        self._shared = shared
        params = settings.zyte_api_params
        self._zyte_api = None if params is None else zyte_api_params_for(params)
        self.cancelled: set[str] = set()
        """Origins whose fetch is being cancelled: its failure then means nothing."""

    async def fetch(self, origin: Origin, page: Request, wanted: Callable[[], bool]) -> Event:
        """What asking for the robots.txt of ``origin`` comes to, repeated as the settings say.

        ``page`` is the request that needs to know: its proxy and its User-Agent are used.
        ``wanted`` tells whether anybody waits: nobody, and nothing is repeated.
        """
        event = await self._attempt(origin, page)
        for retry in range(self._settings.retry_times):
            if not isinstance(event, Unreachable) or event.retry_after or not wanted():
                break
            await self._clock.sleep(min(FIRST_RETRY_PAUSE * 2**retry, MAX_RETRY_PAUSE))
            if not wanted():
                break
            self._stats.inc_value("robotstxt/retry_count")
            logger.debug(
                "Asking again for the robots.txt of %(origin)s (attempt %(attempt)d): %(failure)s",
                {"origin": origin.key, "attempt": retry + 2, "failure": event.failure},
            )
            event = await self._attempt(origin, page)
        return event

    async def _attempt(self, origin: Origin, page: Request) -> Event:
        """One attempt: up to five redirects, followed here (section 2.3.1.2)."""
        left = self._settings.timeout
        deadline = self._clock.monotonic() + left + self._settings.max_delay
        url = robots_txt_url(origin.key)
        visited: set[str] = set()
        redirects = RedirectPolicy(allow_private=self._settings.allow_private_redirects)
        failure: Unreachable | None = None
        while True:
            visited.add(url)
            request = self._request(origin, page, url)
            began = monotonic()
            answer = event = None
            try:
                answer, took = await self._send(request, left, deadline)
            # Whatever keeps a robots.txt from coming, it is unreachable (section 2.3.1.4).
            except Exception as error:
                event, took = self._failed(origin, error, url), monotonic() - began
            if answer is not None:
                refusal = redirects.response_refusal(answer)
                if refusal is not None:
                    return Unreachable(refusal, url=url)
                event = self._event(origin, answer)
            if isinstance(event, Unreachable) and origin.robots is None:
                cached = cached_answer(request)
                if cached is not None:
                    failure = failure or event
                    answer, event = cached, self._event(origin, cached)
            if event is not None or answer is None:
                assert event is not None
                if answer is None or failure is None:
                    return event
                return self._from_cache(origin, answer, event, failure)
            location = answer.headers.get("Location") or b""
            target = redirect_target(url, location)
            if target is None:
                where = printable(location[:1000].decode("utf-8", "replace"))
                return Unreachable(f"redirect to {where} refused", answer.status, url)
            if target in visited or len(visited) > access.MAX_REDIRECTS:
                return self._endless(answer)
            left -= took
            if left > 0:
                began = monotonic()
                refusal = await redirects.refusal(answer, target, left)
                if refusal is not None:
                    return Unreachable(refusal, answer.status, url)
                left -= monotonic() - began
            if left <= 0:
                return self._failed(origin, timed_out(url), url)
            self._stats.inc_value("robotstxt/redirect_count")
            url = target

    def _from_cache(
        self, origin: Origin, answer: Answer, event: Event, failure: Unreachable
    ) -> Event:
        """What holds where the answer came from an HTTP cache, because there was no other."""
        if isinstance(event, Rules):  # a good copy is used without end (section 2.3.1.4)
            origin.set_copy(event)
        elif isinstance(event, Unavailable):  # holds as long as if it had been kept since it came
            arrived = freshness.http_date(answer.header("Date") or "")
            if arrived is not None:
                expires_at = self._expires_at(answer, arrived, _default_lifetime(answer.status))
                if self._now() < expires_at:
                    return event._replace(expires_at=expires_at)
        return failure

    def _request(self, origin: Origin, page: Request, url: str) -> Request:
        request = request_for(url, self._meta_from(page, url))
        for name in ("Proxy-Authorization", "User-Agent"):
            if name in page.headers and (name == "User-Agent" or "proxy" in request.meta):
                request.headers[name] = page.headers[name]
        if self._settings.conditional_get and url == origin.copy_url:
            # From a store anything may come.
            if (etag := _field_value(origin.etag)) is not None:
                request.headers["If-None-Match"] = etag.encode("latin-1")
            if (last_modified := _field_value(origin.last_modified)) is not None:
                request.headers["If-Modified-Since"] = last_modified.encode("latin-1")
        if self._settings.http_cache:
            allow_cache(request, only=self._settings.http_cache_only)
        return request

    def _meta_from(self, page: Request, url: str) -> dict[str, Any]:
        """What makes a request for ``url`` go the way that ``page`` goes.

        The proxy stays for every hop, as in Scrapy's own redirects; a download slot is that of a
        host.
        """
        keys = set(self._settings.inherit_meta) & set(page.meta)
        if "proxy" in keys:
            keys |= {"_auth_proxy"} & set(page.meta)
            if page.meta.get("_scheme_proxy"):  # Scrapy finds it again in the environment
                keys -= {"proxy", "_auth_proxy"}
        if urlsplit(page.url).hostname != urlsplit(url).hostname:
            keys.discard("download_slot")
        meta = {key: page.meta[key] for key in keys}
        if self._zyte_api is not None:
            meta[ZYTE_API_PARAMS] = self._zyte_api
            if self._settings.zyte_api_transparent_mode:
                meta[ZYTE_API] = page.meta.get(ZYTE_API, True)
        return meta

    async def _send(self, request: Request, left: float, deadline: float) -> tuple[Answer, float]:
        self._stats.inc_value("robotstxt/request_count")
        answer, took = await self._downloads.send(
            request, left, deadline - self._clock.monotonic() - left
        )
        self._stats.inc_value("robotstxt/response_count")
        self._stats.inc_value(f"robotstxt/response_status_count/{answer.status}")
        return answer, took

    def _event(self, origin: Origin, answer: Answer) -> Event | None:
        """What an answer means; None for a redirect that is to be followed."""
        now = self._now()
        agreed = status_policy(self._settings, origin)
        match access.status_class(answer.status, agreed, conditional=answer.conditional):
            case StatusClass.RULES:
                if answer.body is None:
                    failure = "a body that is cut off or cannot be read"
                    return Unreachable(failure, answer.status, answer.url)
                body = self._unwrapped(answer.body)
                return Rules(
                    RobotsTxt.parse(body, strict=self._settings.strict, url=answer.url),
                    answer.status,
                    answer.url,
                    self._expires_at(answer, now),
                    _field_value(answer.header("ETag")),
                    _field_value(answer.header("Last-Modified")),
                    freshness.lifetime(answer.cache_headers(), now, shared=self._shared),
                    body,
                    answer.from_cache,
                )
            case StatusClass.NOT_MODIFIED:
                # RFC 9111, section 3.2: what a 304 does not say anew holds as it was stored.
                return NotModified(self._expires_at(answer, now, origin.lifetime))
            case StatusClass.UNAVAILABLE | StatusClass.DISALLOWED as found:
                expires_at = self._expires_at(answer, now, _default_lifetime(answer.status))
                refused = found is StatusClass.DISALLOWED
                return Unavailable(
                    answer.url, expires_at, answer.status, refused, answer.from_cache
                )
            case StatusClass.REDIRECT:
                if answer.headers.get("Location"):
                    return None
                failure = f"status {answer.status} without a Location"
                return Unreachable(failure, answer.status, answer.url)
            case StatusClass.UNREACHABLE:
                wish = None
                if answer.status == 429 or answer.status >= 500:
                    wish = access.retry_after(answer.header("Retry-After"), now)
                return Unreachable(f"status {answer.status}", answer.status, answer.url, wish)
            case unknown:
                assert_never(unknown)

    def _unwrapped(self, body: bytes) -> bytes:
        """The file, where a browser has made a page of it."""
        text = unwrap_browser_page(body, cut_off=len(body) > SIZE_LIMIT)
        if text is None:
            return body
        self._stats.inc_value("robotstxt/unwrapped_count")
        return text

    def _endless(self, answer: Answer) -> Event:
        if self._settings.too_many_redirects == "unreachable":
            return Unreachable(TOO_MANY_REDIRECTS, answer.status, answer.url)
        expires_at = self._expires_at(answer, self._now(), freshness.ERROR_LIFETIME)
        return Unavailable(answer.url, expires_at)

    def _failed(self, origin: Origin, error: Exception, url: str) -> Event:
        if origin.key in self.cancelled:
            return Cancelled()
        if not isinstance(error, IgnoreRequest):
            self._stats.inc_value(f"robotstxt/exception_count/{type(error)}")
        text = " ".join(str(error).split()) or "no reason given"
        return Unreachable(
            f"{type(error).__name__}: {printable(text, MAX_FAILURE_LENGTH)}", url=url
        )

    def _expires_at(self, answer: Answer, now: float, default: float | None = None) -> float:
        return freshness.expires_at(
            answer.cache_headers(),
            now,
            least=self._settings.cache_min,
            most=self._settings.cache_max,
            default=freshness.DEFAULT_LIFETIME if default is None else default,
            shared=self._shared,
        )


def status_policy(settings: Settings, origin: Origin) -> StatusPolicy:
    """What the settings say about statuses of this origin."""
    return StatusPolicy(
        settings.disallow_statuses,
        settings.unreachable_statuses,
        urlsplit(origin.key).hostname in settings.server_error_hosts,
    )


def _default_lifetime(status: int) -> float | None:
    return None if status in (404, 410) else freshness.ERROR_LIFETIME


def _field_value(validator: str | None) -> str | None:
    """A validator, where it can be sent back and is worth keeping."""
    return validator if validator is not None and _FIELD_VALUE.fullmatch(validator) else None
