"""What Scrapy's own middleware does, so that the README describes it correctly.

If a test fails on a new Scrapy, correct the README.
"""

from __future__ import annotations

from typing import Any

import pytest

from testing.web import Page, Web

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


@pytest.mark.each_loop
async def test_a_redirect_to_another_host_is_dropped_as_offsite(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(PRIVATE, host="127.0.0.2")
    moved = Page(b"", 301, {"Location": elsewhere.url("/robots.txt")})
    for settings, fetched in ((BUILT_IN, ["/page", "/private"]), (OURS, ["/page"])):
        site = web.site(moved)
        await crawl(site.urls("/page", "/private"), settings, allowed_domains=["127.0.0.1"])
        assert site.page_paths == fetched
