"""Browsers and rendering services, which download pages for the crawl.

Requests for robots.txt are kept away from them, because they wrap the file in an HTML page.
:mod:`scrapy_rep.protocol.lines` handles a file that was wrapped nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from scrapy import Request

_PREFIXES = (
    "browser",
    "camoufox",
    "chrome",
    "headless",
    "nodriver",
    "playwright",
    "puppeteer",
    "pyppeteer",
    "render",
    "selenium",
    "splash",
    "use_browser",
    "use_playwright",
    "use_selenium",
    "webdriver",
    "zyte_api",
)
"""Prefixes of the meta keys that make a download handler or a middleware use a browser."""

ZYTE_API = "zyte_api_automap"
"""The meta key that makes scrapy-zyte-api download a request, with a browser or without one."""

ZYTE_API_PARAMS = "robotstxt_zyte_api"
"""The meta key that keeps the parameters with which scrapy-zyte-api uses no browser."""

# The parameters that identify the crawler, and its network and location.
_ROUTE = frozenset(
    {"customHttpRequestHeaders", "device", "geolocation", "ipType", "session", "tags"}
)


def zyte_api_params_for(defaults: Iterable[str]) -> dict[str, Any]:
    """Return the parameters with which scrapy-zyte-api gets a plain HTTP response.

    ``defaults`` holds the names in ZYTE_API_AUTOMAP_PARAMS. A value of None turns a default off.
    """
    unwanted = (name for name in defaults if name not in _ROUTE)
    return {**dict.fromkeys(unwanted), "httpResponseBody": True, "httpResponseHeaders": True}


def page_url(request: Request, service: str) -> str:
    """Return the URL of the page that a request is for, which may be its own.

    The middleware of scrapy-splash replaces the request for a page by one to its rendering service,
    whose URL is ``service``, and keeps the URL of the page in ``meta``. The robots.txt and the pace
    of the page's site apply.
    """
    if "_splash_processed" not in request.meta:
        return request.url
    splash = request.meta.get("splash")
    # A spider may copy all of this meta to a request for another page.
    if not isinstance(splash, Mapping) or not _is_below(
        request.url, splash.get("splash_url", service)
    ):
        return request.url
    args = splash.get("args")
    url = args.get("url") if isinstance(args, Mapping) else None
    return url if isinstance(url, str) and url else request.url


class RobotsTxtRequest(Request):
    """A request for a robots.txt.

    Its meta refuses the keys that would send it through a browser, no matter which component sets
    them and when.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_meta = _Meta(super().meta)

    @property
    def meta(self) -> dict[str, Any]:
        """The meta dictionary, as in :class:`scrapy.Request`."""
        return self._own_meta


def remove_browser_meta(request: Request) -> None:
    """Remove the meta keys of browsers from a request.

    This is for a request that a middleware has made from a :class:`RobotsTxtRequest`.
    """
    if not isinstance(request, RobotsTxtRequest):
        meta = dict(_Meta(request.meta))
        request.meta.clear()
        request.meta.update(meta)


# Each fetch sets some twenty keys, which are the same for all.
@lru_cache(maxsize=256)
def _is_for_browser(key: object) -> bool:
    return isinstance(key, str) and key.lstrip("_").startswith(_PREFIXES)


class _Meta(dict[str, Any]):
    """A meta dictionary that refuses the keys of browsers.

    The keys of scrapy-zyte-api are changed instead: it downloads the request without a browser.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        for_browsers = {key: values[key] for key in values if _is_for_browser(key)}
        for key in for_browsers:
            del self[key]
        self.update(for_browsers)

    def __setitem__(self, key: str, value: Any) -> None:
        if key == ZYTE_API or (key == "zyte_api" and value is not False):
            self._download_by_zyte_api(value)
        elif not _is_for_browser(key):
            super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self.get(key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def _download_by_zyte_api(self, value: Any) -> None:
        wanted: Any = value
        if value is not False:
            given = value if isinstance(value, Mapping) else {}
            route = {name: given[name] for name in _ROUTE & given.keys()}
            wanted = {**self.get(ZYTE_API_PARAMS, zyte_api_params_for(())), **route}
        super().__setitem__(ZYTE_API, wanted)


def _is_below(url: str, base: Any) -> bool:
    return isinstance(base, str) and bool(base) and url.startswith(base.rstrip("/") + "/")
