"""Crawls that load pages in a browser, and robots.txt files without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.misc import build_from_crawler, load_object

from testing.faults import PATHS, RULES, RULES_HOLD, outcome_of
from testing.web import Page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from testing.web import Web

    from .conftest import Crawl

WRAPPED = (
    b'<html><head><meta name="color-scheme" content="light dark"></head><body>'
    b'<pre style="word-wrap: break-word; white-space: pre-wrap;">%s</pre></body></html>' % RULES
)


class Browser:
    """A download handler that uses a browser for requests with ``playwright`` in their meta."""

    lazy = False
    shown: list[str]

    def __init__(self, crawler: Crawler) -> None:
        handler = crawler.settings["DOWNLOAD_HANDLERS_BASE"]["http"]
        self.handler: Any = build_from_crawler(load_object(handler), crawler)
        type(self).shown = []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        response: Response = await self.handler.download_request(request)
        if not request.meta.get("playwright"):
            return response
        self.shown.append(urlsplit(request.url).path)
        body = WRAPPED if response.body == RULES else response.body
        return HtmlResponse(response.url, status=response.status, body=body)

    async def close(self) -> None:
        await self.handler.close()


class Assigns:
    """A downloader middleware that sends every request to the browser."""

    def process_request(self, request: Request) -> None:
        request.meta["playwright"] = True


class Updates:
    def process_request(self, request: Request) -> None:
        request.meta.update({"playwright": True, "playwright_include_page": False})


class Defaults:
    def process_request(self, request: Request) -> None:
        request.meta.setdefault("playwright", True)


class Rebuilds:
    """A downloader middleware that replaces every request by a new one."""

    def process_request(self, request: Request) -> Request | None:
        if "rebuilt" in request.meta:
            return None
        meta = {**request.meta, "playwright": True, "rebuilt": True}
        return Request(request.url, request.callback, meta=meta, errback=request.errback)


@pytest.mark.parametrize("place", [50, 950])
@pytest.mark.parametrize("middleware", [Assigns, Updates, Defaults, Rebuilds])
async def test_no_robots_txt_goes_through_a_browser(
    web: Web, crawl: Crawl, middleware: type, place: int
) -> None:
    site = web.site(RULES)
    settings = {
        "DOWNLOAD_HANDLERS": {"http": Browser},
        "DOWNLOADER_MIDDLEWARES": {middleware: place},
    }
    await crawl(site.urls(*PATHS), settings)
    assert outcome_of(site) == RULES_HOLD
    assert Browser.shown == ["/public"]


async def test_no_robots_txt_goes_through_the_browser_of_its_page(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)
    pages = [Request(url, meta={"playwright": True}) for url in site.urls(*PATHS)]
    settings = {
        "DOWNLOAD_HANDLERS": {"http": Browser},
        "REP_INHERIT_META": ["playwright", "playwright_context"],
    }
    await crawl(pages, settings)
    assert outcome_of(site) == RULES_HOLD
    assert Browser.shown == ["/public"]


class Driver:
    """A downloader middleware that returns the page that a browser makes of a robots.txt."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return HtmlResponse(request.url, body=WRAPPED)
        return None


async def test_the_page_that_a_browser_makes_of_a_robots_txt_is_unwrapped(
    web: Web, crawl: Crawl
) -> None:
    answered, sent = web.site(RULES), web.site(Page(WRAPPED))
    missing = web.site(Page(WRAPPED, 404))
    outcome = await crawl(answered.urls(*PATHS), {"DOWNLOADER_MIDDLEWARES": {Driver: 800}})
    assert (answered.paths, outcome.stats["robotstxt/unwrapped_count"]) == (["/public"], 1)
    bare = web.site(Page(b"<html><head></head><body>%s</body></html>" % RULES))
    outcome = await crawl([url for site in (sent, missing, bare) for url in site.urls(*PATHS)])
    assert (outcome_of(sent), outcome_of(bare)) == (RULES_HOLD, RULES_HOLD)
    assert outcome.stats["robotstxt/unwrapped_count"] == 2
    assert missing.page_paths == ["/private", "/public"]


class Recorder:
    """A download handler that records the meta of each robots.txt, as scrapy-zyte-api gets it."""

    lazy = False
    metas: list[dict[str, Any]]
    codings: list[bool]

    def __init__(self) -> None:
        type(self).metas, type(self).codings = [], []

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls()

    async def download_request(self, request: Request) -> Response:
        if request.meta.get("is_robotstxt_request"):
            self.metas.append(request.meta)
            self.codings.append("Accept-Encoding" in request.headers)
        return Response(request.url, body=RULES)

    async def close(self) -> None:
        pass


class Reader:
    """A downloader middleware that records Accept-Encoding, in the place of scrapy-zyte-api."""

    codings: list[bytes | None]

    def __init__(self) -> None:
        type(self).codings = []

    def process_request(self, request: Request) -> None:
        if request.meta.get("is_robotstxt_request"):
            self.codings.append(request.headers.get("Accept-Encoding"))


HTTP = {"httpResponseBody": True, "httpResponseHeaders": True}
TRANSPARENT = {"ZYTE_API_TRANSPARENT_MODE": True}
BY_BROWSER = {"ZYTE_API_AUTOMAP_PARAMS": {"browserHtml": True, "geolocation": "US"}}


@pytest.mark.parametrize(
    ("settings", "page", "expected"),
    [
        ({}, {}, None),
        ({}, {"zyte_api_automap": True}, None),
        (BY_BROWSER, {"zyte_api": {"browserHtml": True}}, None),
        (TRANSPARENT, {}, HTTP),
        (TRANSPARENT, {"zyte_api_automap": False}, False),
        (TRANSPARENT, {"zyte_api_automap": {"screenshot": True}}, HTTP),
        ({**TRANSPARENT, **BY_BROWSER}, {}, {**HTTP, "browserHtml": None}),
        (
            {**TRANSPARENT, **BY_BROWSER},
            {"zyte_api_automap": {"device": "mobile", "browserHtml": True}},
            {**HTTP, "browserHtml": None, "device": "mobile"},
        ),
        ({"REP_INHERIT_META": ["zyte_api_automap"]}, {"zyte_api_automap": True}, HTTP),
    ],
)
async def test_scrapy_zyte_api_gets_parameters_for_an_http_response(
    crawl: Crawl, settings: dict[str, Any], page: dict[str, Any], expected: Mapping[str, Any] | None
) -> None:
    request = Request("http://a.example/public", meta=page)
    handled = {"DOWNLOAD_HANDLERS": {"http": Recorder}, "DOWNLOADER_MIDDLEWARES": {Reader: 560}}
    await crawl([request], {**handled, **settings})
    (meta,) = Recorder.metas
    assert meta.get("zyte_api_automap") == expected
    assert Recorder.codings == [not expected], "scrapy-zyte-api warns about this header"
    assert Reader.codings == [None if expected else b"gzip"]
    assert "zyte_api" not in meta


# Meta keys of the page


async def test_rep_inherit_meta(crawl: Crawl) -> None:
    given = {
        "proxy": "http://127.0.0.1:1",
        "bindaddress": "127.0.0.1",
        "download_slot": "a slot",
        "impersonate": "chrome",
        "cookiejar": 1,
        "dont_obey_robotstxt": False,
        "handle_httpstatus_all": False,
    }
    expected: dict[object, set[str]] = {
        None: {"proxy", "bindaddress", "download_slot"},
        "": set(),
        "impersonate, proxy": {"proxy", "impersonate"},
        ("dont_obey_robotstxt", "handle_httpstatus_all", "cookiejar", "none"): {"cookiejar"},
    }
    for setting, inherited in expected.items():
        settings: dict[str, Any] = {"DOWNLOAD_HANDLERS": {"http": Recorder}}
        if setting is not None:
            settings["REP_INHERIT_META"] = setting
        await crawl([Request("http://a.example/public", meta=given)], settings)
        (meta,) = Recorder.metas
        assert {key for key in given if meta.get(key) == given[key]} == inherited
        assert meta["dont_obey_robotstxt"] is meta["handle_httpstatus_all"] is True
