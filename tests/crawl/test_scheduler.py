"""A request that waits delays no other, is bounded, and is not lost, beside all components."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import DeferredSemaphore

import scrapy_rep
from scrapy_rep.reports.answers import Obedience, obedience
from scrapy_rep.reports.records import Report
from testing.counters import left_over
from testing.faults import answer_when, silence
from testing.redis_server import wait_until
from testing.web import Page, Web, gaps, text
from tests.stores.worker import TIMEOUT, workers

from .conftest import (
    ALL,
    PRIVATE,
    Crawl,
    ScrapysHandler,
    Visitor,
    delayed,
    in_turn,
    numbers,
)

if TYPE_CHECKING:
    from typing_extensions import Self

EACH_LOOP = pytest.mark.each_loop


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


@EACH_LOOP
async def test_a_scheduler_with_the_required_methods_only(web: Web, crawl: Crawl) -> None:
    site = web.site(Page(delayed(0.02), delay=0.3))
    asked = [Request(url) for url in site.urls(*numbers(12))]
    settings = {"SCHEDULER": Minimal, "CLOSESPIDER_TIMEOUT": 120}
    outcome = await crawl(asked, settings)
    assert site.page_paths == sorted(numbers(12))
    assert not any(response.request.dont_filter for response in outcome.responses.values())  # type: ignore[union-attr]
    assert "Scheduler close failure" not in outcome.log.text
    assert "does not use the priority queue of scrapy-rep" in outcome.log.text


@EACH_LOOP
async def test_a_stopped_crawl_loses_nothing(web: Web, crawl: Crawl, tmp_path: Path) -> None:
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


async def test_a_crawl_that_was_stopped_and_then_killed_loses_nothing(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    """Scrapy writes the state of a queue when a crawl stops. The second crawl is killed while it
    waits for its fourth page, which gets no answer.
    """
    sites = [web.site(PRIVATE, host=f"127.0.5.{number}") for number in (1, 2)]

    def received() -> int:
        return sum(len(site.page_paths) for site in sites)

    settings = {"JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS": 1}
    asked = [url for site in sites for url in site.urls(*numbers(12))]
    await crawl(asked, {**settings, "CLOSESPIDER_PAGECOUNT": 5})
    before, pages = received(), in_turn(*[Page()] * 3, silence)
    for site in sites:
        site.pages["*"] = pages
    with workers(["", *(f"{name}={value}" for name, value in settings.items())]):
        wait_until(lambda: received() == before + 4, "the page", TIMEOUT)
    await crawl([], settings)
    assert {site.url(path) for site in sites for path in site.page_paths} == set(asked)
    assert received() == len(asked) + 4, "what it was given before is requested again"


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


@EACH_LOOP
@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(Page(ALL, delay=0.3), id="late"),
        pytest.param(text(delayed(0.1)), id="paced"),
        pytest.param(None, id="of the same site"),
    ],
)
async def test_a_request_that_waits_for_another_ends(
    web: Web, crawl: Crawl, robots: Page | None
) -> None:
    site = web.site(ALL)
    other = web.site(robots, host="127.0.0.2") if robots else site
    settings = {
        "CONCURRENT_REQUESTS": 1,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "CLOSESPIDER_TIMEOUT": 120,
        "DOWNLOADER_MIDDLEWARES": {Careless: 50},
        "OTHER": other.url("/token"),
    }
    await crawl(site.urls(*numbers(3)), settings)
    requested = {site.root: site.page_paths, other.root: other.page_paths}
    assert [*chain(*requested.values())] == [*numbers(3), *["/token"] * 3]


class Dropper:
    """Drops some requests."""

    def process_request(self, request: Request) -> None:
        if "drop" in request.url:
            raise IgnoreRequest("not wanted")


@EACH_LOOP
@pytest.mark.parametrize("place", [50, 950])
async def test_requests_that_others_drop_delay_none(web: Web, crawl: Crawl, place: int) -> None:
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


@EACH_LOOP
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


@EACH_LOOP
async def test_a_robots_txt_is_fetched_while_requests_keep_the_pace(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.2\n")
    other = web.site(PRIVATE, host="127.0.0.2")
    settings = {**POOLED, "CONCURRENT_REQUESTS": 1, "CLOSESPIDER_TIMEOUT": 60}
    settings["REP_TTL_RANGE"] = [0.1, 0.1]
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


class Replacer:
    """Replaces each request for a robots.txt once, as middlewares do that set a proxy."""

    def process_request(self, request: Request) -> Request | None:
        if not request.meta.get("is_robotstxt_request") or "replaced" in request.meta:
            return None
        return request.replace(meta={**request.meta, "replaced": True})


@pytest.mark.parametrize("position", [50, 950])
async def test_a_robots_txt_request_that_a_middleware_replaces_leaves_nothing_counted(
    web: Web, crawl: Crawl, position: int
) -> None:
    site = web.site(PRIVATE)
    outcome = await crawl(site.urls("/a"), {"DOWNLOADER_MIDDLEWARES": {Replacer: position}})
    assert site.paths == ["/robots.txt", "/a"]
    assert left_over(outcome.crawler) == []


class Reader(Visitor):
    """Reads an endless source, and closes itself after some pages."""

    most = 6
    limit = 20
    queued: list[scrapy_rep.Queued]

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        self.queued = []
        for number in count():
            await scrapy_rep.until_queued_below(self.crawler, self.limit)
            yield Request(f"{self.asked[number % len(self.asked)]}?{number}", callback=self.parse)
            self.queued.append(scrapy_rep.queued(self.crawler))


@pytest.mark.each_loop
async def test_a_start_that_reads_an_endless_source_is_held_back(web: Web, crawl: Crawl) -> None:
    paced = web.site(text(f"{ALL}Crawl-delay: 10\n"))
    outcome = await crawl([paced.url("/")], spider=Reader, most=1, limit=7)
    reader: Any = outcome.crawler.spider
    assert 0 < max(each.all for each in reader.queued) <= 7
    other = web.site(ALL, host="127.0.0.2")
    outcome = await crawl([paced.url("/"), other.url("/")], spider=Reader)
    reader = outcome.crawler.spider
    assert max(each.all for each in reader.queued) <= reader.limit
    assert all(all_ == ready + waiting for all_, ready, waiting in reader.queued)
    assert any(each.waiting for each in reader.queued)
    assert len(other.page_paths) >= 4
    assert left_over(outcome.crawler) == []


async def test_without_the_queue_of_the_package_there_is_no_count(web: Web, crawl: Crawl) -> None:
    site = web.site(ALL)
    outcome = await crawl([site.url("/a")], {"ROBOTSTXT_OBEY": False})
    with pytest.raises(RuntimeError, match="does not use the queue of scrapy-rep"):
        scrapy_rep.queued(outcome.crawler)
    with pytest.raises(ValueError, match="n is 0"):
        await scrapy_rep.until_queued_below(outcome.crawler, 0)


class Idiomatic(Visitor):
    """Waits for room before each of its requests."""

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            await scrapy_rep.until_queued_below(self.crawler, 1)
            yield request


async def test_a_start_also_waits_without_the_queue_of_the_package(web: Web, crawl: Crawl) -> None:
    site = web.site(ALL, {"*": Page(delay=0.1)})
    settings = {"ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS": 1}
    await crawl(site.urls(*numbers(5)), settings, spider=Idiomatic)
    assert site.page_paths == numbers(5)
