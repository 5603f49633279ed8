"""No robots.txt goes through a browser; one that did all the same is unwrapped.

A browser shows a text file as a page of its own, ``<html>…<pre>…</pre></body></html>``: the first
line of the file is then no line of a robots.txt any more, and what it disallows is fetched.
"""

from __future__ import annotations

import re
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

HTTP_RESPONSE = "robotstxt_zyte_api"
"""The meta key that holds the parameters with which it uses none."""

# Its parameters that say by whom and from where a request is made.
_ROUTE = frozenset(
    {"customHttpRequestHeaders", "device", "geolocation", "ipType", "session", "tags"}
)


def http_response(defaults: Iterable[str]) -> dict[str, Any]:
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


def keep_from_browsers(request: Request) -> None:
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
        if HTTP_RESPONSE in values:
            self[HTTP_RESPONSE] = values[HTTP_RESPONSE]
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
            wanted = {**self.get(HTTP_RESPONSE, http_response(())), **route}
        super().__setitem__(ZYTE_API, wanted)


# What Chromium, Firefox and WebKit make of a text file, before the text and after it. Between the
# two there is no tag, for a browser escapes the text. Bounded, so that nothing is searched in vain.
_BEFORE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,100}(?:<!doctype[^<>]{0,200}>\s{0,100})?"
    rb"<html[^<>]{0,500}>\s{0,100}"
    rb"(?:<head[^<>]{0,200}>(?:\s{0,100}<(?:meta|link)[^<>]{0,500}>){0,20}"
    rb"(?:\s{0,100}<title[^<>]{0,200}>[^<>]{0,500}</title>)?"
    rb"(?:\s{0,100}<(?:meta|link)[^<>]{0,500}>){0,20}\s{0,100}</head>\s{0,100})?"
    rb"<body[^<>]{0,500}>\s{0,100}<pre[^<>]{0,500}>",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rb"</pre>(?:\s{0,100}<div[^<>]{0,500}>\s{0,100}</div>){0,5}\s{0,100}</body>\s{0,100}</html>\s*",
    re.IGNORECASE,
)

# The characters that a browser writes as entities in a text (HTML, section 13.3). The last is last.
_ENTITIES = (
    (b"&nbsp;", "\u00a0".encode()),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b'"'),
    (b"&#39;", b"'"),
    (b"&amp;", b"&"),
)


def unwrapped(body: bytes, *, cut_off: bool) -> bytes | None:
    """The text of which a browser has made this page; None where it is no such page.

    ``cut_off``: the end of the page may be missing, as a limit cuts it.
    """
    before = _BEFORE.match(body)
    if before is None:
        return None
    end = body.find(b"<", before.end())
    if end < 0:
        if not cut_off:
            return None
        end = len(body)
    elif not _AFTER.fullmatch(body, end) and not (cut_off and len(body) - end < 1000):
        return None
    text = body[before.end() : end]
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
