"""Requests of spiders for /robots.txt, which are answered from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.spiders import SitemapSpider

from testing.faults import RULES, endless
from testing.web import Page, redirect, text

from .conftest import make_crawler, run_crawler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy.http import Response

    from testing.web import Web

    from .conftest import Crawl

OFF = {"REP_ANSWER_ROBOTS_TXT": False}
ANSWERED = "robotstxt/answered_count"


class Sitemaps(SitemapSpider):
    name = "sitemaps"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pages: list[str] = []

    def parse(self, response: Response, **_: Any) -> Any:
        self.pages.append(response.url)


@pytest.mark.parametrize(("settings", "fetches"), [({}, 1), (OFF, 2)], ids=["on", "off"])
@pytest.mark.parametrize("delay", ["", "Crawl-delay: 0.2\n"], ids=["", "paced"])
async def test_a_sitemap_spider_causes_no_second_fetch(
    web: Web, settings: dict[str, Any], fetches: int, delay: str
) -> None:
    site = web.site()
    urls = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in ("/a", "/private"))
    site.pages["/robots.txt"] = text(
        f"User-agent: *\n{delay}Disallow: /private\nSitemap: {site.url('/sitemap.xml')}\n"
    )
    site.pages["/sitemap.xml"] = Page(
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>',
        headers={"Content-Type": "application/xml"},
    )
    crawler = make_crawler(Sitemaps, settings)
    await run_crawler(crawler, sitemap_urls=[site.url("/robots.txt")])
    assert crawler.spider.pages == [site.url("/a")]  # type: ignore[union-attr]
    assert site.paths == ["/robots.txt"] * fetches + ["/sitemap.xml", "/a"]
    assert crawler.stats is not None
    assert crawler.stats.get_value(ANSWERED, 0) == 2 - fetches


class Seen:
    """A middleware further out than ours: it sees every response."""

    urls: list[str] = []  # noqa: RUF012

    def process_response(self, request: Request, response: Response) -> Response:
        assert response.request is request or "cached" not in response.flags
        self.urls.append(response.url)
        return response


async def test_the_response_has_the_text_of_the_file(web: Web, crawl: Crawl) -> None:
    Seen.urls.clear()
    site = web.site(b"\xef\xbb\xbfUser-agent: *\r\n Disallow: /priv\xe9\r\nSitemap: /s.xml")
    settings = {"DOWNLOADER_MIDDLEWARES": {Seen: 50}}
    outcome = await crawl(site.urls("/a", "/robots.txt"), settings)
    response = outcome.responses[site.url("/robots.txt")]
    assert (response.status, response.flags) == (200, ["cached"])
    assert response.body == b"User-agent: *\nDisallow: /priv\xe9\nSitemap: /s.xml"
    assert response.headers["Content-Type"] == b"text/plain; charset=utf-8"
    assert response.meta["robotstxt"].allowed
    assert outcome.stats[ANSWERED] == 1
    assert outcome.stats["downloader/response_status_count/200"] == 3
    assert sorted(Seen.urls) == site.urls("/a", "/robots.txt", "/robots.txt")
    assert sorted(site.paths) == ["/a", "/robots.txt"]


@pytest.mark.parametrize("known", [True, False])
async def test_all_requests_are_answered(web: Web, crawl: Crawl, known: bool) -> None:
    site = web.site(Page(RULES, delay=0.2))
    asked = [Request(site.url("/robots.txt"), dont_filter=True, priority=-1) for _ in range(5)]
    outcome = await crawl([*site.urls("/a")[:known], *asked])
    assert site.robots_fetches == 1
    assert outcome.stats[ANSWERED] == 5


def _request(**values: Any) -> Callable[[str], Request]:
    return lambda url: Request(url, **values)


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda url: Request(url + "?x"), id="a query"),
        pytest.param(lambda url: Request(url + "#x"), id="a fragment"),
        pytest.param(lambda url: Request(url.replace("/robots", "/a/robots")), id="another path"),
        pytest.param(lambda url: Request(url.replace("/robots", "/?/robots")), id="in a query"),
        pytest.param(_request(method="POST"), id="another method"),
        pytest.param(_request(meta={"dont_cache": True}), id="dont_cache"),
        pytest.param(_request(meta={"dont_obey_robotstxt": True}), id="exempt"),
        pytest.param(_request(meta={"playwright": True}), id="for a browser"),
        pytest.param(_request(meta={"is_robotstxt_request": True}), id="of another component"),
    ],
)
async def test_other_requests_go_to_the_server(
    web: Web, crawl: Crawl, made: Callable[[str], Request]
) -> None:
    site = web.site(RULES)
    outcome = await crawl([site.url("/a"), made(site.url("/robots.txt")).replace(priority=-1)])
    assert len(site.paths) == 3
    assert not outcome.failures
    assert ANSWERED not in outcome.stats


async def test_a_request_with_a_password_is_not_answered(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)
    url = site.url("/robots.txt").replace("//", "//me:secret@")
    outcome = await crawl([site.url("/a"), Request(url, priority=-1)])  # some handlers refuse it
    assert ANSWERED not in outcome.stats


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(redirect("/elsewhere.txt"), id="redirected"),
        pytest.param(Page(status=404), id="missing"),
        pytest.param(Page(status=503), id="unreachable"),
        pytest.param(text(RULES + b"# nothing\n" * 60_000), id="longer than the limit"),
        pytest.param(endless(b"HTTP/1.1 200 OK\r\n\r\n", RULES), id="without an end"),
    ],
)
async def test_a_robots_txt_that_is_not_complete_in_memory_is_fetched(
    web: Web, crawl: Crawl, robots: Any
) -> None:
    site = web.site(robots, {"/elsewhere.txt": text(RULES)})
    settings = {"HTTPERROR_ALLOW_ALL": True, "DOWNLOAD_MAXSIZE": 2_000_000, "REP_TIMEOUT": 5}
    outcome = await crawl(site.urls("/robots.txt"), settings)
    assert site.robots_fetches == 2
    assert ANSWERED not in outcome.stats


async def test_while_a_site_is_unreachable_its_last_good_copy_is_no_answer(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    store = {"REP_STORE": f"sqlite:///{tmp_path}/x.sqlite", "HTTPERROR_ALLOW_ALL": True}
    short = {"REP_CACHE_MIN": 0.01, "REP_CACHE_MAX": 0.01, "REP_RETRY_TIMES": 0}
    site = web.site(RULES)
    await crawl(site.urls("/a"), {**store, **short})
    site.pages["/robots.txt"] = Page(status=503)
    outcome = await crawl(site.urls("/robots.txt"), {**store, **short})
    assert outcome.responses[site.url("/robots.txt")].status == 503
    assert outcome.responses[site.url("/robots.txt")].meta["robotstxt"].allowed
    assert ANSWERED not in outcome.stats


async def test_a_file_that_has_expired_is_fetched_and_then_answered(web: Web, crawl: Crawl) -> None:
    site = web.site(Page(RULES, headers={"ETag": '"1"'}))
    short = {"REP_CACHE_MIN": 0.01, "REP_CACHE_MAX": 0.01, "CONCURRENT_REQUESTS": 1}
    urls = [site.url("/a"), Request(site.url("/robots.txt"), priority=-1)]
    site.pages["/a"] = Page(delay=1.2)  # longer than the result of a fetch is used (MIN_USE)
    outcome = await crawl(urls, short)
    assert outcome.stats[ANSWERED] == 1
    assert site.paths == ["/robots.txt", "/a", "/robots.txt"]
    assert site.received[-1].headers["if-none-match"] == '"1"'
