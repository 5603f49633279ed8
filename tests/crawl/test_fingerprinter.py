"""Clean-param in a crawl: duplicate filter and HTTP cache, judged by what a server received."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.request import fingerprint
from scrapy.utils.test import get_crawler

from scrapy_rep import CleanParamRequestFingerprinter
from testing.web import Web, text

from .conftest import Crawl, InTurn, Outcome, travel

pytestmark = pytest.mark.rule("Clean-param")
CLEAN = "User-agent: *\nDisallow: /private\nClean-param: ref /shop\n"
OURS: dict[str, Any] = {"REQUEST_FINGERPRINTER_CLASS": CleanParamRequestFingerprinter}


async def crawl_later(crawl: Crawl, settings: dict[str, Any], first: str, *urls: str) -> Outcome:
    """Crawl the rest of the URLs, with the duplicate filter, when the first page is there."""
    then = {first: [Request(url) for url in urls]}
    return await crawl([first], settings, spider=InTurn, then=then)


async def test_pages_that_differ_in_such_a_parameter_are_one(web: Web, crawl: Crawl) -> None:
    site = web.site(CLEAN)
    pages = ["/shop?id=1&ref=a", "/shop?ref=b&id=1", "/shop?id=2&ref=a", "/news?ref=a",
             "/news?ref=b"]  # fmt: skip
    outcome = await crawl_later(crawl, OURS, *site.urls("/", *pages))
    assert site.page_paths == sorted(["/", pages[0], pages[2], pages[3], pages[4]])
    assert outcome.stats["dupefilter/filtered"] == 1


@pytest.mark.parametrize(
    ("robots", "settings"),
    [(CLEAN, {}), (None, OURS), (CLEAN, {**OURS, "ROBOTSTXT_OBEY": False})],
    ids=["without the setting", "without a robots.txt", "switched off"],
)
async def test_otherwise_scrapy_decides(web: Web, crawl: Crawl, robots: Any, settings: Any) -> None:
    site = web.site(robots)
    await crawl_later(crawl, settings, *site.urls("/", "/shop?ref=a", "/shop?ref=b"))
    assert site.page_paths == ["/", "/shop?ref=a", "/shop?ref=b"]


async def test_a_resumed_crawl_knows_what_it_saw(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(CLEAN)
    settings = {**OURS, "JOBDIR": str(tmp_path)}
    await crawl_later(crawl, settings, *site.urls("/", "/shop?ref=a"))
    await crawl_later(crawl, settings, *site.urls("/again", "/shop?ref=b"))
    assert site.page_paths == ["/", "/again", "/shop?ref=a"]


async def test_what_a_fingerprint_is_made_of(web: Web) -> None:
    hostile = [f"Clean-param: a&%zz&\x00 /*{number}*\xff" for number in range(1_000)]
    site = web.site(text("\n".join([CLEAN, *hostile])))
    plain = site.url("/shop?id=1")
    requests = [
        Request(site.url("/shop?ref=a&id=1"), cookies={"a": "b"}),
        Request(site.url("/shop?ref=b&id=1"), method="POST", body=b"x"),
        Request(site.url("/shop?ref=c&id=1#part"), meta={"verbatim_url": True}),
        Request(site.url("/shop?" + "ref&" * 5_000 + "%zz=%&a%C3=1")),
        Request(site.url("/1?a=%")),
        Request("data:,hello?ref=1"),
        Request("http://%zz/shop?ref=1"),
        Request("http:///shop?ref=1"),
        Request("s3://bucket/shop?ref=1"),
        Request("HTTP://EXAMPLE.COM:80/?ref=1"),
    ]
    async with travel(OURS) as spider:
        await spider.fetches(site.url("/"))
        fingerprinter: Any = spider.crawler.request_fingerprinter
        taken = {each.url: fingerprinter.fingerprint(each) for each in requests}
    assert taken[requests[0].url] == fingerprint(Request(plain))
    assert taken[requests[1].url] == fingerprint(Request(plain, method="POST", body=b"x"))
    assert taken[requests[2].url] == fingerprint(requests[2])
    for request in requests[5:]:
        assert taken[request.url] == fingerprint(request)


def test_before_a_crawl_it_is_scrapys() -> None:
    request = Request("https://example.com/shop?ref=a")
    for crawler in (None, get_crawler()):
        assert CleanParamRequestFingerprinter(crawler).fingerprint(request) == fingerprint(request)
