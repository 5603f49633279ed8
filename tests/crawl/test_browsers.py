"""Crawls that load pages in a browser, and robots.txt files without one."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from scrapy_rep.fetch.downloader import remove_browser_meta
from testing.faults import PATHS, RULES, RULES_HOLD, outcome_of
from testing.web import Page, Web

from .conftest import Crawl, ScrapysHandler

WRAPPED = (
    b'<html><head><meta name="color-scheme" content="light dark"></head><body>'
    b'<pre style="word-wrap: break-word; white-space: pre-wrap;">%s</pre></body></html>' % RULES
)


class Browser(ScrapysHandler):
    """A download handler that uses a browser for requests with ``playwright`` in their meta."""

    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        if not request.meta.get("playwright"):
            return response
        self.seen.append(urlsplit(request.url).path)
        body = WRAPPED if response.body == RULES else response.body
        return HtmlResponse(response.url, status=response.status, body=body)


class Assigns:
    """A downloader middleware that sends every request to the browser."""

    def process_request(self, request: Request) -> None:
        request.meta["playwright"] = True


class Rebuilds:
    """A downloader middleware that replaces every request by a new one."""

    def process_request(self, request: Request) -> Request | None:
        if "rebuilt" in request.meta:
            return None
        meta = {**request.meta, "playwright": True, "rebuilt": True}
        return Request(request.url, request.callback, meta=meta, errback=request.errback)


@pytest.mark.parametrize("place", [50, 950])
@pytest.mark.parametrize("middleware", [Assigns, Rebuilds])
async def test_no_robots_txt_goes_through_a_browser(
    web: Web, crawl: Crawl, middleware: type, place: int
) -> None:
    site = web.site(RULES)
    places = {"DOWNLOADER_MIDDLEWARES": {middleware: place}}
    await crawl(site.urls(*PATHS), {**places, "DOWNLOAD_HANDLERS": {"http": Browser}})
    assert outcome_of(site) == RULES_HOLD
    assert Browser.seen == ["/public"]


def test_the_keys_of_browsers_are_removed() -> None:
    keys = ("playwright", "playwright_page_methods", "_splash_processed", "selenium", "proxy", 1)
    meta: dict[Any, bool] = dict.fromkeys(keys, True)
    remove_browser_meta(meta)
    assert [*meta] == ["proxy", 1]


class Driver:
    """A downloader middleware that returns the page that a browser makes of a robots.txt."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return HtmlResponse(request.url, body=WRAPPED)
        return None


async def test_the_page_of_a_browser_is_unwrapped(web: Web, crawl: Crawl) -> None:
    answered, sent = web.site(RULES), web.site(Page(WRAPPED))
    missing = web.site(Page(WRAPPED, 404))
    outcome = await crawl(answered.urls(*PATHS), {"DOWNLOADER_MIDDLEWARES": {Driver: 800}})
    assert (answered.paths, outcome.stats["robotstxt/unwrapped_count"]) == (["/public"], 1)
    bare = web.site(Page(b"<html><head></head><body>%s</body></html>" % RULES))
    outcome = await crawl([url for site in (sent, missing, bare) for url in site.urls(*PATHS)])
    assert (outcome_of(sent), outcome_of(bare)) == (RULES_HOLD, RULES_HOLD)
    assert outcome.stats["robotstxt/unwrapped_count"] == 2
    assert missing.page_paths == ["/private", "/public"]


class Recorder(ScrapysHandler):
    """A download handler that records each request for a robots.txt."""

    async def download_request(self, request: Request) -> Response:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(request)
        return Response(request.url, body=RULES)


async def test_some_meta_keys_of_the_page_are_used(crawl: Crawl) -> None:
    used = {"proxy": "http://127.0.0.1:1", "bindaddress": "127.0.0.1", "download_slot": "a slot"}
    others = {"impersonate": "chrome", "cookiejar": 1, "handle_httpstatus_all": False}
    page = Request("http://a.example/public", meta={**used, **others})
    await crawl([page], {"DOWNLOAD_HANDLERS": {"http": Recorder}})
    (request,) = Recorder.seen
    assert {key for key in page.meta if request.meta.get(key) == page.meta[key]} >= used.keys()
    assert not {key for key in others if request.meta.get(key) == others[key]}
    assert request.meta["dont_obey_robotstxt"] is True


@pytest.mark.parametrize("transparent", [True, False])
async def test_scrapy_zyte_api_gets_no_coding_of_ours(crawl: Crawl, transparent: bool) -> None:
    """It decodes bodies itself, and warns about this header."""
    handled = {"DOWNLOAD_HANDLERS": {"http": Recorder}, "COMPRESSION_ENABLED": False}
    settings = {**handled, "ZYTE_API_TRANSPARENT_MODE": transparent}
    await crawl(["http://a.example/public"], settings)
    (request,) = Recorder.seen
    assert ("Accept-Encoding" in request.headers) is not transparent
