"""What Scrapy's own middleware does, so that the README describes it correctly.

If a test fails on a new Scrapy, correct the README.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.http import TextResponse

from testing.faults import raw
from testing.web import Page, text

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter

    from scrapy import Request

    from testing.web import Received, Web

    from .conftest import Clock, Crawl

pytestmark = pytest.mark.documentation

BUILT_IN: dict[str, Any] = {"ADDONS": {}, "ROBOTSTXT_OBEY": True}
OURS: dict[str, Any] = {}
DISALLOWED = "User-agent: *\nDisallow: /\n"


@pytest.mark.parametrize(
    ("robots", "asked", "by_scrapy", "by_us"),
    [
        pytest.param(Page(DISALLOWED, delay=0.5), 8, 6, 0, id="eight wait for one file"),
        pytest.param(Page(status=503), 1, 1, 0, id="503 allows everything"),
        pytest.param(Page(DISALLOWED, 404), 1, 0, 1, id="the body of a 404 is obeyed"),
    ],
)
async def test_pages_fetched(
    web: Web, crawl: Crawl, robots: Page, asked: int, by_scrapy: int, by_us: int
) -> None:
    for settings, fetched in ((BUILT_IN, by_scrapy), (OURS, by_us)):
        site = web.site(robots)
        await crawl(site.urls(*(f"/{number}" for number in range(asked))), settings)
        assert len(site.page_paths) == fetched


async def test_refused_connection_allows_everything(crawl: Crawl) -> None:
    url = "http://127.0.0.1:1/page"
    for settings, reason in ((BUILT_IN, "Refused"), (OURS, "unreachable")):
        outcome = await crawl([url], settings)
        error = outcome.failures[url]
        assert reason in f"{type(error).__name__} {error}"


async def test_a_redirect_to_another_host_is_dropped_as_offsite(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(DISALLOWED, host="127.0.0.2")
    moved = Page(b"", 301, {"Location": elsewhere.url("/robots.txt")})
    for settings, fetched in ((BUILT_IN, 1), (OURS, 0)):
        site = web.site(moved)
        await crawl([site.url("/page")], settings, allowed_domains=["127.0.0.1"])
        assert len(site.page_paths) == fetched


class TwoSchemes:
    """A host that disallows everything on http, and nothing on https. Nothing is sent."""

    asked: list[str] = []  # noqa: RUF012

    def process_request(self, request: Request) -> TextResponse:
        self.asked.append(request.url)
        rules = "" if request.url.startswith("https:") else DISALLOWED
        return TextResponse(request.url, body=rules.encode(), request=request)


async def test_two_schemes_share_a_file(crawl: Crawl) -> None:
    urls = ["http://127.0.0.1:9/page", "https://127.0.0.1:9/page"]
    for settings, fetched in ((BUILT_IN, 1), (OURS, 2)):
        TwoSchemes.asked.clear()
        one_by_one = {"DOWNLOADER_MIDDLEWARES": {TwoSchemes: 900}, "CONCURRENT_REQUESTS": 1}
        await crawl(urls, {**settings, **one_by_one})
        assert len([url for url in TwoSchemes.asked if url.endswith("/robots.txt")]) == fetched


async def test_a_robots_txt_is_used_for_the_whole_crawl(
    web: Web, crawl: Crawl, clock: Clock
) -> None:
    async def a_day_later(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        clock.ahead += 86_400
        writer.write(Page().octets())

    for settings, fetches in ((BUILT_IN, 1), (OURS, 2)):
        site = web.site(text(""), {"/1": a_day_later})
        await crawl(site.urls("/1", "/2"), {**settings, "CONCURRENT_REQUESTS": 1})
        assert site.robots_fetches == fetches


async def test_an_endless_file_is_read_to_the_time_out(web: Web, crawl: Crawl) -> None:
    pieces = [b"# nothing\n" * 10_000] * 1000
    for settings, timeouts in ((BUILT_IN, 1), (OURS, 0)):
        site = web.site(raw(b"HTTP/1.1 200 OK\r\n\r\n", *pieces, pause=0.01))
        few = {"DOWNLOAD_TIMEOUT": 1, "DOWNLOAD_MAXSIZE": 0, "DOWNLOAD_WARNSIZE": 0}
        outcome = await crawl([site.url("/page")], {**settings, **few})
        assert site.page_paths == ["/page"]
        found = [name for name in outcome.stats if "exception" in name and "Timeout" in name]
        assert bool(found) == bool(timeouts)


class Meeting:
    """A page that is sent once two requests for it are in progress, or after so many turns."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.in_progress = 0
        self.most = 0

    async def __call__(self, _: Received, __: StreamReader, writer: StreamWriter) -> None:
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        for _turn in range(self.turns):
            if self.most == 2:
                break
            await asyncio.sleep(0.05)
        self.in_progress -= 1
        writer.write(Page().octets())


async def test_a_crawl_delay_is_ignored(web: Web, crawl: Crawl) -> None:
    for settings, turns, most in ((BUILT_IN, 100, 2), (OURS, 4, 1)):
        page = Meeting(turns)
        site = web.site("User-agent: *\nCrawl-delay: 0.1\n", {"/1": page, "/2": page})
        await crawl(site.urls("/1", "/2"), settings)
        assert page.most == most
