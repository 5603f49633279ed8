"""With components of others: no request is lost, and none waits forever."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

from scrapy_rep.reports.answers import Obedience, obedience
from scrapy_rep.reports.records import Report
from testing.faults import answer_when
from testing.web import Page, Web, gaps, text

from .conftest import ALL, PRIVATE, Crawl, ScrapysHandler, numbers

if TYPE_CHECKING:
    from typing_extensions import Self

pytestmark = pytest.mark.each_loop


def delayed(seconds: float) -> str:
    return f"{ALL}Crawl-delay: {seconds}\n"


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


async def test_a_scheduler_with_the_required_methods_only(web: Web, crawl: Crawl) -> None:
    site = web.site(Page(delayed(0.02), delay=0.3))
    asked = [Request(url) for url in site.urls(*numbers(12))]
    settings = {"SCHEDULER": Minimal, "CLOSESPIDER_TIMEOUT": 120}
    outcome = await crawl(asked, settings)
    assert site.page_paths == sorted(numbers(12))
    assert not any(response.request.dont_filter for response in outcome.responses.values())  # type: ignore[union-attr]
    assert "Scheduler close failure" not in outcome.log.text
    assert "does not use the priority queue of scrapy-rep" in outcome.log.text


async def test_a_crawl_that_stops_three_times_loses_nothing_and_repeats_nothing(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    """Neither a robots.txt nor anything that this package adds to a request is in the files."""
    paced = web.site(f"{delayed(0.1)}Allow: /{'*' * 400_000}\n")
    late = web.site(Page(ALL, delay=0.5), host="127.0.0.2")
    settings = {"JOBDIR": str(tmp_path), "REP_STORE": None}
    asked = [Request(url) for site in (paced, late) for url in site.urls(*numbers(15))]
    for number in range(3):
        await crawl(asked, {**settings, "CLOSESPIDER_PAGECOUNT": 6})
        assert number or len(paced.page_paths) + len(late.page_paths) < 30
        asked = asked[:5]  # which are known
        files = (path for path in (tmp_path / "requests.queue").rglob("*") if path.is_file())
        queued = b"".join(path.read_bytes() for path in files)
        assert b"robotstxt" not in queued
        assert len(queued) < 30 * 2000
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


# Download handlers with a pool of connections


class PoolHandler(ScrapysHandler):
    """Downloads as Scrapy's handler does, through no more than CONCURRENT_REQUESTS connections."""

    most_robots = robots = 0
    """The most robots.txt that have had a connection at once, and those that have one."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pool = DeferredSemaphore(crawler.settings.getint("CONCURRENT_REQUESTS"))
        type(self).most_robots = type(self).robots = 0

    async def download_request(self, request: Request) -> Response:
        is_robots = bool(request.meta.get("is_robotstxt_request"))
        await maybe_deferred_to_future(self._pool.acquire())
        type(self).robots += is_robots
        type(self).most_robots = max(self.most_robots, self.robots)
        try:
            return await super().download_request(request)
        finally:
            type(self).robots -= is_robots
            self._pool.release()


POOLED = {"DOWNLOAD_HANDLERS": {"http": PoolHandler}}


async def test_silent_sites_do_not_use_up_the_connections(web: Web, crawl: Crawl) -> None:
    live = web.site(PRIVATE, host="127.0.0.21")
    paths = numbers(10)
    late = answer_when(lambda: live.page_paths == paths, Page(PRIVATE))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(11, 15)]
    urls = [live.url(paths[0]), *(site.url("/") for site in silent), *live.urls(*paths[1:])]
    await crawl(urls, {**POOLED, "CONCURRENT_REQUESTS": 4, "REP_TIMEOUT": 60})
    assert live.page_paths == paths
    assert [site.paths for site in silent] == [["/robots.txt", "/"]] * 4
    assert PoolHandler.most_robots == 2


async def test_a_robots_txt_is_fetched_while_requests_wait_for_the_pace(
    web: Web, crawl: Crawl
) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.2\n")
    other = web.site(PRIVATE, host="127.0.0.2")
    settings = {
        **POOLED,
        "CONCURRENT_REQUESTS": 1,
        "REP_CACHE_MIN": 0.1,
        "REP_CACHE_MAX": 0.1,
        "CLOSESPIDER_TIMEOUT": 60,
    }
    outcome = await crawl([*site.urls("/1", "/2", "/3"), other.url("/")], settings)
    assert len(outcome.responses) == 4
    assert not outcome.warnings


# Downloaders


class Silent(Downloader):
    """A downloader that sends no signals."""

    async def _enqueue_request(self, request: Request) -> Response:
        request.meta["download_slot"] = self.get_slot_key(request)
        return await self.handlers.download_request_async(request)


@pytest.mark.parametrize("downloader", [Downloader, Silent])
async def test_a_report_says_whether_the_downloader_shows_what_it_sends(
    web: Web, crawl: Crawl, tmp_path: Path, downloader: type[Downloader]
) -> None:
    path = tmp_path / "report.json"
    site = web.site(PRIVATE)
    urls = [*site.urls("/a", "/private"), "data:,text"]
    settings = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
    await crawl(urls, {**settings, "DOWNLOADER": downloader, "REP_REPORT": str(path)})
    assert site.page_paths == ["/a"]
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    is_shown = downloader is Downloader
    assert report.runs[0].sent_is_known is is_shown
    assert report.totals.sent == is_shown
    assert obedience(report) is (Obedience.OBEYED if is_shown else Obedience.NOT_KNOWN)
