"""Browsers and rendering services, which download pages for the crawl.

Requests for robots.txt are kept away from them, because they wrap the file in an HTML page: the
keys that select them are removed just before the download.
:mod:`scrapy_rep.protocol.lines` handles a file that was wrapped nevertheless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def remove_browser_meta(meta: dict[str, Any]) -> None:
    """Remove the keys that make a download handler or a middleware use a browser.

    scrapy-zyte-api downloads the request without a browser, if its keys say that it should.
    """
    removed = {key: meta.pop(key) for key in tuple(meta) if _is_for_browser(key)}
    values = [removed[key] for key in (ZYTE_API, "zyte_api") if key in removed]
    wanted = [value for value in values if value is not False]
    if wanted:
        given = wanted[0] if isinstance(wanted[0], Mapping) else {}
        route = {name: given[name] for name in _ROUTE & given.keys()}
        meta[ZYTE_API] = {**meta.get(ZYTE_API_PARAMS, zyte_api_params_for(())), **route}
    elif ZYTE_API in removed:
        meta[ZYTE_API] = False


# Each fetch sets some twenty keys, which are the same for all.
@lru_cache(maxsize=256)
def _is_for_browser(key: object) -> bool:
    return isinstance(key, str) and key.lstrip("_").startswith(_PREFIXES)


def _is_below(url: str, base: Any) -> bool:
    return isinstance(base, str) and bool(base) and url.startswith(base.rstrip("/") + "/")
