"""What Scrapy's own middleware does, so that the README describes it correctly.

If a test fails on a new Scrapy, correct the README.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from testing.web import Page, Web, gaps, redirect, text

from .conftest import PRIVATE, Crawl

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


async def test_log_in_the_readme(web: Web, crawl: Crawl) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    shown = re.findall(r"^(?:Forbidden|Crawled) .*$", readme, re.MULTILINE)
    logged = []
    for settings in (BUILT_IN, OURS):
        site = web.site(Page("User-agent: *\nDisallow: /private/\n", delay=0.5))
        outcome = await crawl(site.urls("/private/a", "/private/b", "/private/c"), settings)
        lines = [each.getMessage() for each in outcome.log.records if each.levelname == "DEBUG"]
        logged += [
            line.replace(site.root, "https://example.com")
            for line in lines
            if line.startswith(("Forbidden", "Crawled")) and "/robots.txt>" not in line
        ]
        outcome.log.clear()
    assert sorted(logged) == sorted(shown)  # the order is that of the event loop


async def test_scrapy_ignores_a_crawl_delay(web: Web, crawl: Crawl) -> None:
    """Its requests follow each other at once. Ours are apart, and those of another site are not."""
    shortest = []
    for settings in (BUILT_IN, OURS):
        slow = web.site("User-agent: *\nCrawl-delay: 0.5\n")
        other = web.site(PRIVATE, host="127.0.0.2")
        paths = [f"/{number}" for number in range(4)]
        await crawl([*slow.urls(*paths), *other.urls(*paths)], settings)
        shortest += [min(gaps(site)) for site in (slow, other)]
    assert shortest[2] >= 0.49 > max(shortest[0], shortest[1], shortest[3])


@pytest.mark.each_loop
async def test_only_pages_count_as_pages(web: Web, crawl: Crawl) -> None:
    """Each hop of a robots.txt is a response for Scrapy's own middleware."""
    counts = []
    for settings in (BUILT_IN, OURS):
        hops = {
            "/robots.txt": redirect("/1.txt"),
            "/1.txt": redirect("/2.txt"),
            "/2.txt": text(PRIVATE),
        }
        sites = [web.site(PRIVATE, hops, host=f"127.0.0.{number}") for number in range(1, 4)]
        urls = [url for site in sites for url in site.urls("/a", "/b")]
        outcome = await crawl(
            urls, {**settings, "CLOSESPIDER_PAGECOUNT": 3, "CONCURRENT_REQUESTS": 1}
        )
        assert outcome.stats["finish_reason"] == "closespider_pagecount"
        counts.append((len(outcome.responses), outcome.stats["response_received_count"]))
        crawled = [each.getMessage() for each in outcome.log.records if "Crawled (" in each.msg]
        outcome.log.clear()
    (pages, responses), ours = counts
    assert pages < 3 <= responses, "it closes too early"
    assert 3 <= ours[0] == ours[1] == len(crawled)
    # Three pages may be those of two sites, before the third robots.txt is there.
    assert outcome.stats["robotstxt/response_count"] >= 6


async def test_a_slow_robots_txt_closes_no_spider_earlier(web: Web, crawl: Crawl) -> None:
    for settings in (BUILT_IN, OURS):
        site = web.site(Page(PRIVATE, delay=1.5))
        outcome = await crawl(site.urls("/a"), {**settings, "CLOSESPIDER_TIMEOUT_NO_ITEM": 1})
        assert outcome.stats["finish_reason"] == "closespider_timeout_no_item"


@pytest.mark.each_loop
async def test_a_redirect_to_another_host_is_dropped_as_offsite(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(PRIVATE, host="127.0.0.2")
    moved = Page(b"", 301, {"Location": elsewhere.url("/robots.txt")})
    for settings, fetched in ((BUILT_IN, ["/page", "/private"]), (OURS, ["/page"])):
        site = web.site(moved)
        await crawl(site.urls("/page", "/private"), settings, allowed_domains=["127.0.0.1"])
        assert site.page_paths == fetched
