"""The first request of an origin, whose robots.txt is not known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from scrapy.exceptions import IgnoreRequest

from scrapy_rep import RobotsTxtMiddleware
from testing.web import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler as ScrapyCrawler

    from testing.web import Web

    from .conftest import Crawl

ALL = Page("User-agent: *\nDisallow:\n", delay=0.2)
HOSTS = [f"127.0.0.{number}" for number in range(2, 6)]


class Observer:
    """Notes the pages that the downloader has when the robots.txt of their site is downloaded."""

    pages: ClassVar[list[str]] = []

    def __init__(self, crawler: ScrapyCrawler) -> None:
        self._crawler = crawler
        self.pages.clear()

    @classmethod
    def from_crawler(cls, crawler: ScrapyCrawler) -> Observer:
        return cls(crawler)

    def process_request(self, request: Request) -> None:
        engine: Any = self._crawler.engine
        page = request.url.replace("robots.txt", "page")
        if page != request.url and page in [each.url for each in engine.downloader.active]:
            self.pages.append(page)


class Nothing:
    """A middleware without an effect."""

    def process_request(self, request: Request) -> None:
        pass


class NothingForResponses:
    """A middleware that gets no requests."""

    def process_response(self, request: Request, response: Any) -> Any:
        return response


@pytest.mark.parametrize("fetches", [1, len(HOSTS)])
@pytest.mark.parametrize(
    ("first", "number"), [(None, 1), (NothingForResponses, 1), (Nothing, len(HOSTS))]
)
async def test_it_waits_in_the_downloader_only_if_another_middleware_comes_first(
    web: Web, crawl: Crawl, first: Callable[[], object] | None, number: int, fetches: int
) -> None:
    sites = [web.site(ALL, host=host) for host in HOSTS]
    middlewares: dict[Any, int] = {Observer: 900}
    if first is not None:
        middlewares[first] = 50
    asked = [site.url("/page") for site in sites]
    settings = {"DOWNLOADER_MIDDLEWARES": middlewares, "REP_CONCURRENT_FETCHES": fetches}
    outcome = await crawl(asked, settings)
    assert [site.paths for site in sites] == [["/robots.txt", "/page"]] * len(sites)
    # Until a request waits, the engine takes what the scheduler returns.
    assert len(Observer.pages) == number
    assert outcome.stats["robotstxt/wait_count/robots_txt"] == len(sites)


class Dropping:
    """Drops the pages of one host."""

    def process_request(self, request: Request) -> None:
        if request.url.startswith(f"http://{HOSTS[-1]}") and request.url.endswith("/page"):
            raise IgnoreRequest


async def test_there_is_no_fetch_for_a_request_that_a_middleware_drops_first(
    web: Web, crawl: Crawl
) -> None:
    sites = [web.site(ALL, host=host) for host in HOSTS]
    asked = [site.url("/page") for site in sites]
    await crawl(asked, {"DOWNLOADER_MIDDLEWARES": {Dropping: 50}})
    assert [len(site.received) for site in sites] == [2, 2, 2, 0]


class Sometimes(RobotsTxtMiddleware):
    """Does not check the requests to one host."""

    async def process_request(self, request: Request) -> Any:
        return None if HOSTS[-1] in request.url else await super().process_request(request)


async def test_there_is_no_fetch_for_a_request_that_a_subclass_does_not_check(
    web: Web, crawl: Crawl
) -> None:
    sites = [web.site(ALL, host=host) for host in HOSTS]
    asked = [site.url("/page") for site in sites]
    middlewares = {RobotsTxtMiddleware: None, Sometimes: 100}
    await crawl(asked, {"DOWNLOADER_MIDDLEWARES": middlewares})
    assert [site.paths for site in sites[:-1]] == [["/robots.txt", "/page"]] * 3
    assert sites[-1].paths == ["/page"]
