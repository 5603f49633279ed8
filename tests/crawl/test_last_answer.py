"""A spider that requests a robots.txt gets the one that the crawl has fetched."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.spiders import SitemapSpider

from testing.web import Page, Web, redirect, text

from .conftest import ALL, EXEMPT, FIFO, Crawl, in_turn, make_crawler, run_crawler

pytestmark = pytest.mark.rule("A spider requests a robots.txt")
SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    "<url><loc>{}</loc></url></urlset>"
)
NOT_ROBOTS = "<!doctype html><title>Log in</title>"
LONG = ALL + "# x\n" * 130_000


class Sitemaps(SitemapSpider):
    """Does what the documentation of Scrapy shows."""

    name = "sitemaps"

    def parse(self, response: Any, **_: Any) -> None:
        self.crawler.stats.inc_value("pages")


@pytest.mark.each_loop
@pytest.mark.parametrize("is_moved", [False, True], ids=["", "moved"])
async def test_a_sitemap_spider_finds_the_pages_with_one_robots_txt(
    web: Web, is_moved: bool
) -> None:
    site = web.site()
    site.pages["/sitemap.xml"] = Page(
        SITEMAP.format(site.url("/a")), 200, {"Content-Type": "text/xml"}
    )
    robots = text(f"{ALL}Sitemap: {site.url('/sitemap.xml')}\n")
    site.pages.update({"/robots.txt": redirect("/moved") if is_moved else robots, "/moved": robots})
    crawler = make_crawler(Sitemaps)
    await run_crawler(crawler, sitemap_urls=site.urls("/robots.txt"))
    assert site.paths == ["/robots.txt", *["/moved"] * is_moved, "/sitemap.xml", "/a"]
    assert crawler.stats.get_value("pages") == 1
    assert crawler.stats.get_value("robotstxt/answered_count") == 1


@pytest.mark.each_loop
async def test_an_outage_is_asked_for_once_and_does_not_hold_the_host(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(Page(b"", 503, {"Retry-After": "1"}))
    page = Request(site.url("/a"), meta=dict(EXEMPT))
    settings = {"RETRY_ENABLED": True, "REP_RETRY_TIMES": 1}
    outcome = await crawl([site.url("/robots.txt"), page], settings)
    assert sorted(site.paths) == ["/a", *["/robots.txt"] * 2]
    failure: Any = outcome.failures[site.url("/robots.txt")]
    assert failure.response.status == 503
    assert "robotstxt/backoff_count" not in outcome.stats


@pytest.mark.each_loop
async def test_a_request_for_the_file_does_not_stop_the_fetch_of_a_host_that_is_held(
    web: Web, crawl: Crawl
) -> None:
    busy = Page(b"", 503, {"Retry-After": "1"})
    site = web.site(in_turn(text(ALL, Cache_Control="max-age=0"), then=busy))
    site.pages["/1"] = Page(delay=1.2)
    settings = {"REP_TTL_RANGE": [1, 1], "CONCURRENT_REQUESTS": 1, "CLOSESPIDER_TIMEOUT": 60}
    outcome = await crawl(site.urls("/1", "/robots.txt#part"), {**settings, **FIFO})
    assert outcome.stats["finish_reason"] == "finished"
    assert outcome.responses[site.url("/robots.txt#part")].body.decode() == ALL
    assert site.paths == ["/robots.txt", "/1", "/robots.txt"]


@pytest.mark.parametrize(
    ("robots", "fetches", "status", "body"),
    [
        pytest.param(text(BOM_UTF8 + b"# \xff\r\n"), 1, 200, b"# \xff\n", id="as it was read"),
        pytest.param(Page("gone", 404), 1, 404, b"", id="unavailable"),
        pytest.param(redirect("mailto:x@a.example"), 1, None, b"", id="a redirect that is refused"),
        pytest.param(text(b"x", Content_Encoding="gzip"), 1, None, b"", id="a broken body"),
        pytest.param(redirect("/robots.txt"), 1, None, b"", id="a loop"),
        pytest.param(Page(NOT_ROBOTS), 2, 200, NOT_ROBOTS.encode(), id="another page"),
        pytest.param(text(LONG), 2, 200, LONG.encode(), id="too long"),
    ],
)
async def test_the_last_answer(
    web: Web, crawl: Crawl, robots: Page, fetches: int, status: int | None, body: bytes
) -> None:
    site = web.site(robots)
    outcome = await crawl(site.urls("/robots.txt"), {"HTTPERROR_ALLOW_ALL": True})
    assert site.paths == ["/robots.txt"] * fetches
    if status is None:
        assert isinstance(outcome.failures[site.url("/robots.txt")], IgnoreRequest)
    else:
        response = outcome.responses[site.url("/robots.txt")]
        assert (response.status, response.body) == (status, body)
        assert ("scrapy_rep" in response.flags) is (fetches == 1)


@pytest.mark.parametrize(
    "options",
    [{"method": "HEAD"}, {"method": "POST"}, {"meta": EXEMPT}, {"url": "/robots.txt?now"}],
    ids=str,
)
async def test_other_requests_are_sent(web: Web, crawl: Crawl, options: dict[str, Any]) -> None:
    site = web.site(ALL)
    url = site.url(options.get("url", "/robots.txt"))
    await crawl([site.url("/a"), Request(**{**options, "url": url, "dont_filter": True})])
    assert site.paths.count(url.removeprefix(site.root)) == 1 + ("url" not in options)


async def test_the_http_cache_keeps_what_the_site_sent(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    sent = f"# \r\n{ALL}"
    site = web.site(text(sent))
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for meta, body in ({}, f"# \n{ALL}"), ({}, f"# \n{ALL}"), (EXEMPT, sent):
        outcome = await crawl([Request(site.url("/robots.txt"), meta=dict(meta))], cache)
        assert outcome.responses[site.url("/robots.txt")].body.decode() == body
    assert site.paths == ["/robots.txt"]
