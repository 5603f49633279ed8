"""Where another component does the download: rendering services, browsers, another downloader."""

from __future__ import annotations

from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_rep.frontier.clock import sleep

if TYPE_CHECKING:
    from testing.web import Web

    from .conftest import Crawl

SLOWLY = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.2\n"
DELAY = 0.2


class Splash:
    """Sends requests to a rendering service, as the middleware of scrapy-splash does."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> Splash:
        self = cls()
        self.service = crawler.settings["SPLASH_URL"]
        return self

    service: str

    def process_request(self, request: Request) -> Request | None:
        if "splash" not in request.meta or request.meta.get("_splash_processed"):
            return None
        request.meta["_splash_processed"] = True
        request.meta["download_slot"] = "127.0.0.1"
        request.meta["splash"].setdefault("args", {}).setdefault("url", request.url)
        return request.replace(
            url=f"{self.service}/render.html?url={quote(request.url, safe='')}", dont_filter=True
        )


async def test_robots_txt_and_pace_are_of_the_page_that_a_service_renders(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(SLOWLY)
    splash = web.site("User-agent: *\nDisallow: /\n", host="127.0.0.2")
    settings = {"SPLASH_URL": splash.root, "DOWNLOADER_MIDDLEWARES": {Splash: 725}}
    urls = site.urls("/1", "/2", "/private", "/3", "/4")
    outcome = await crawl([Request(url, meta={"splash": {}}) for url in urls], settings)
    assert site.paths == ["/robots.txt"]
    assert splash.robots_fetches == 0
    rendered = [f"/render.html?url={url}" for url in urls if "private" not in url]
    assert [unquote(path) for path in splash.page_paths] == rendered
    assert all(b.at - a.at > DELAY - 0.01 for a, b in pairwise(splash.received))
    assert len(outcome.failures) == 1


async def test_other_values_at_the_key_of_scrapy_splash_are_no_url(web: Web, crawl: Crawl) -> None:
    site = web.site(SLOWLY)
    values: list[Any] = [None, 1, {}, {"args": None}, {"args": {"url": 5}}, {"args": {}}]
    requests = [
        Request(site.url(f"/{number}"), meta={"splash": value, "_splash_processed": True})
        for number, value in enumerate(values)
    ]
    settings = {"REP_OBEY_RATE_LIMITS": False, "SPLASH_URL": site.root}
    outcome = await crawl(requests, settings)
    assert len(outcome.responses) == len(values)


async def test_meta_that_was_copied_from_a_rendered_page_is_ignored(web: Web, crawl: Crawl) -> None:
    site = web.site(SLOWLY)
    meta = {"_splash_processed": True, "splash": {"args": {"url": site.url("/public")}}}
    splash = web.site(host="127.0.0.2")
    outcome = await crawl([Request(site.url("/private"), meta=meta)], {"SPLASH_URL": splash.root})
    assert list(outcome.failures) == site.urls("/private")


class Browser:
    """Answers in ``process_request``, as the middleware of scrapy-selenium4 does."""

    visits: list[tuple[float, float]] = []  # noqa: RUF012

    async def process_request(self, request: Request) -> HtmlResponse | None:
        if request.meta.get("is_robotstxt_request"):
            return None
        began = monotonic()
        await sleep(0.2)
        self.visits.append((began, monotonic()))
        if request.url.endswith("/fails"):
            raise OSError("the browser crashed")
        return HtmlResponse(request.url, body=b"<p>A page", request=request)


async def test_the_pace_is_kept_where_no_download_slot_is_passed(web: Web, crawl: Crawl) -> None:
    Browser.visits.clear()
    site = web.site(SLOWLY)
    settings = {"DOWNLOADER_MIDDLEWARES": {Browser: 800}}
    await crawl(site.urls("/1", "/2", "/fails", "/private", "/3"), settings)
    assert site.paths == ["/robots.txt"]
    assert len(Browser.visits) == 4
    assert all(second[0] - first[1] > DELAY - 0.01 for first, second in pairwise(Browser.visits))
