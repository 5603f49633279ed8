"""With schedulers and middlewares of others: no request is lost, and none waits forever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest

from testing.web import Page, Web, gaps, text

from .conftest import Crawl
from .test_scheduling import ALL, delayed, numbers

if TYPE_CHECKING:
    from typing_extensions import Self

pytestmark = pytest.mark.each_loop


# Schedulers


class Minimal:
    """The methods that Scrapy requires of a scheduler, with a duplicate filter of its own."""

    def __init__(self) -> None:
        self.queue: list[Request] = []
        self.seen: set[str] = set()

    @classmethod
    def from_crawler(cls, _: Crawler) -> Self:
        return cls()

    def has_pending_requests(self) -> bool:
        return bool(self.queue)

    def enqueue_request(self, request: Request) -> bool:
        if request.url in self.seen and not request.dont_filter:
            return False
        self.seen.add(request.url)
        self.queue.append(request)
        return True

    def next_request(self) -> Request | None:
        return self.queue.pop(0) if self.queue else None


async def test_a_scheduler_with_the_required_methods_only(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(Page(delayed(0.02), delay=0.3))
    asked = [Request(url) for url in site.urls(*numbers(12))]
    settings = {"SCHEDULER": Minimal, "CLOSESPIDER_TIMEOUT": 120}
    outcome = await crawl(asked, settings)
    assert site.page_paths == sorted(numbers(12))
    assert not any(response.request.dont_filter for response in outcome.responses.values())  # type: ignore[union-attr]
    assert "Scheduler close failure" not in caplog.text
    assert "does not use the priority queue of scrapy-rep" in caplog.text


async def test_a_crawl_that_stops_three_times_loses_nothing_and_repeats_nothing(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    paced = web.site(delayed(0.1))
    late = web.site(Page(ALL, delay=0.5), host="127.0.0.2")
    settings = {"JOBDIR": str(tmp_path), "REP_STORE": None}
    asked = [Request(url) for site in (paced, late) for url in site.urls(*numbers(15))]
    for number in range(3):
        await crawl(asked, {**settings, "CLOSESPIDER_PAGECOUNT": 6})
        assert number or len(paced.page_paths) + len(late.page_paths) < 30
        asked = asked[:5]  # which are known
    await crawl([], settings)
    assert paced.page_paths == late.page_paths == sorted(numbers(15))


# Middlewares, and callers of the engine


class Careless:
    """Asks for something else first, and does not say that there is no callback."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        other = self.crawler.settings["OTHER"]
        if request.url != other and not request.meta.get("is_robotstxt_request"):
            engine = self.crawler.engine
            assert engine is not None
            await engine.download_async(Request(other))


@pytest.mark.parametrize(
    "robots",
    [pytest.param(Page(ALL, delay=0.3), id="late"), pytest.param(text(delayed(0.1)), id="paced")],
)
async def test_a_request_that_waits_for_another_is_no_deadlock(
    web: Web, crawl: Crawl, robots: Page
) -> None:
    site = web.site(ALL)
    other = web.site(robots, host="127.0.0.2")
    settings = {
        "CONCURRENT_REQUESTS": 1,
        "CLOSESPIDER_TIMEOUT": 120,
        "DOWNLOADER_MIDDLEWARES": {Careless: 50},
        "OTHER": other.url("/token"),
    }
    await crawl(site.urls(*numbers(3)), settings)
    assert site.page_paths == numbers(3)
    assert other.page_paths == ["/token"] * 3


class Dropper:
    """Drops some requests."""

    def process_request(self, request: Request) -> None:
        if "drop" in request.url:
            raise IgnoreRequest("not wanted")


@pytest.mark.parametrize("place", [50, 950])
async def test_requests_that_others_drop_delay_no_request(
    web: Web, crawl: Crawl, place: int
) -> None:
    site = web.site(delayed(0.5))
    urls = site.urls("/a", *(f"/drop/{number}" for number in range(40)), "/b")
    settings = {"DOWNLOADER_MIDDLEWARES": {Dropper: place}, "CLOSESPIDER_TIMEOUT": 120}
    outcome = await crawl(urls, settings)
    assert outcome.stats["finish_reason"] == "finished"
    assert site.page_paths == ["/a", "/b"]
    assert max(gaps(site)) < 40 * 0.5, "those that were dropped take no turn"
