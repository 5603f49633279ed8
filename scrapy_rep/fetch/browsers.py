"""No robots.txt goes through a browser, which would make a page of it.

What does so all the same is for :mod:`scrapy_rep.protocol.unwrap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
"""Of the meta keys by which download handlers and middlewares are told to use a browser."""

ZYTE_API = "zyte_api_automap"
"""The meta key by which scrapy-zyte-api downloads a request, in a browser or without one."""

ZYTE_API_PARAMS = "robotstxt_zyte_api"
"""The meta key that holds the parameters with which it uses none."""

# Its parameters that say by whom and from where a request is made.
_ROUTE = frozenset(
    {"customHttpRequestHeaders", "device", "geolocation", "ipType", "session", "tags"}
)


def zyte_api_params_for(defaults: Iterable[str]) -> dict[str, Any]:
    """The parameters with which scrapy-zyte-api gets a plain HTTP response.

    ``defaults``: the names in ZYTE_API_AUTOMAP_PARAMS, which None takes back.
    """
    unwanted = (name for name in defaults if name not in _ROUTE)
    return {**dict.fromkeys(unwanted), "httpResponseBody": True, "httpResponseHeaders": True}


class RobotsTxtRequest(Request):
    """A request for a robots.txt. Nothing that would send it through a browser stays in its meta,
    whichever component puts it there, and when.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own_meta = _Meta(super().meta)

    @property
    def meta(self) -> dict[str, Any]:
        """As Scrapy has it."""
        return self._own_meta


def remove_browser_meta(request: Request) -> None:
    """The same for a request that a middleware has made of one of these."""
    if not isinstance(request, RobotsTxtRequest):
        meta = dict(_Meta(request.meta))
        request.meta.clear()
        request.meta.update(meta)


class _Meta(dict[str, Any]):
    """A meta that refuses the keys of browsers, but for those of scrapy-zyte-api: a request that
    it is to download it does download, without a browser.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__()
        if ZYTE_API_PARAMS in values:
            self[ZYTE_API_PARAMS] = values[ZYTE_API_PARAMS]
        self.update(values)

    def __setitem__(self, key: str, value: Any) -> None:
        if key == ZYTE_API or (key == "zyte_api" and value is not False):
            self._download_by_zyte_api(value)
        elif not (isinstance(key, str) and key.lstrip("_").startswith(_PREFIXES)):
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
