"""Requests that wait for a robots.txt delay no other, are bounded, and are not lost."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.fetch import fetcher
from scrapy_rep.scheduling import fetch_limit, scheduler
from scrapy_rep.scheduling.clock import sleep
from testing.counters import left_over
from testing.faults import answer_when, silence
from testing.web import Page, text

from .conftest import Caller, CallerAndCloser, Closer, Visitor, Watcher, our_warnings
from .test_scheduling import QUEUES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from testing.web import Received, Web

    from .conftest import Crawl

NOTHING_PRIVATE = "User-agent: *\nDisallow: /private\n"


async def test_silent_sites_do_not_delay_other_sites(web: Web, crawl: Crawl) -> None:
    """The silent sites answer only when the others are complete."""
    live = [web.site(NOTHING_PRIVATE, host=f"127.0.0.{number}") for number in range(21, 25)]
    late = answer_when(lambda: sum(len(site.page_paths) for site in live) == 40, Page(status=503))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(11, 21)]
    urls = [url for site in silent for url in site.urls("/a", "/b", "/c")]
    urls += [site.url(f"/{number}") for number in range(10) for site in live]
    outcome = await crawl(urls, {"CONCURRENT_REQUESTS": 4, "REP_TIMEOUT": 60})
    assert [len(site.page_paths) for site in live] == [10] * 4
    assert [site.paths for site in silent] == [["/robots.txt"]] * 10
    assert len(outcome.failures) == 30
    origins = outcome.middleware.origins
    assert {origins[site.root].failure for site in silent} == {"status 503"}, "no timeout"


async def test_waiting_requests_are_bounded_and_none_is_lost(web: Web, crawl: Crawl) -> None:
    late = [web.site(Page(NOTHING_PRIVATE, delay=0.8)) for _ in range(3)]
    paths = [f"/{number}" for number in range(30)]
    settings = {"CONCURRENT_REQUESTS": 4, "REP_MAX_WAITING": 6}
    urls = [url for site in late for url in site.urls(*paths)]
    outcome = await crawl(urls, settings, spider=Watcher)
    assert [site.page_paths for site in late] == [sorted(paths)] * 3
    assert [site.robots_fetches for site in late] == [1] * 3
    assert not outcome.failures
    # Six that wait and the first of each other site, three robots.txt, and the crawl's own four.
    assert outcome.crawler.spider.most <= 6 + 2 + 3 + 4  # type: ignore[union-attr]


class AtOnce(Visitor):
    """Schedules all of its requests at once, and stops once so many pages are there."""

    pages: int

    async def start(self) -> AsyncIterator[Any]:
        engine = self.crawler.engine
        assert engine is not None
        requests = [request async for request in super().start()]
        for request in requests[:-1]:
            engine.crawl(request)
        yield requests[-1]

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if len(self.outcome.responses) == self.pages:
            self.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("jobdir", [False, True], ids=["in memory", "JOBDIR"])
@pytest.mark.parametrize("queue", QUEUES)
async def test_silent_sites_beyond_the_limit_do_not_hide_others(
    web: Web, crawl: Crawl, tmp_path: Path, queue: str, jobdir: bool
) -> None:
    """Scrapy's queues return the latest request first: those to the silent site."""
    live = web.site(NOTHING_PRIVATE)
    silent = web.site(silence, host="127.0.0.2")
    settings = {
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "JOBDIR": str(tmp_path) if jobdir else None,
        "REP_MAX_WAITING": 10,
        "REP_STORE": None,
        "REP_TIMEOUT": 300,
        "CLOSESPIDER_TIMEOUT": 60,
    }
    paths = [f"/{number}" for number in range(250)]
    asked = [*live.urls(*paths[:8]), *silent.urls(*paths)]
    outcome = await crawl(asked, settings, spider=AtOnce, pages=8)
    assert outcome.stats["finish_reason"] == "enough"
    assert live.page_paths == sorted(paths[:8])
    assert silent.paths == ["/robots.txt"]
    assert left_over(outcome.crawler) == []
    if jobdir:
        silent.pages["/robots.txt"] = text(NOTHING_PRIVATE)
        await crawl([], settings)
        assert silent.page_paths == sorted(paths), "no request is lost"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("jobdir", [False, True], ids=["in memory", "JOBDIR"])
async def test_requests_to_silent_sites_stay_in_the_scheduler(
    web: Web, crawl: Crawl, tmp_path: Path, jobdir: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "REST", 10**9)
    live = web.site(NOTHING_PRIVATE)
    silent = [web.site(silence, host=f"127.0.0.{number}") for number in (2, 3)]
    settings = {
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        "JOBDIR": str(tmp_path) if jobdir else None,
        "REP_STORE": None,
        "REP_TIMEOUT": 300,
        "CLOSESPIDER_TIMEOUT": 60,
    }
    paths = [f"/{number}" for number in range(300)]
    asked = [url for site in silent for url in site.urls(*paths)]
    outcome = await crawl([*asked, *live.urls(*paths[:8])], settings, spider=AtOnce, pages=8)
    assert live.page_paths == sorted(paths[:8])
    assert outcome.stats["scheduler/dequeued"] <= 8 + scheduler.MAX_PER_PASS + 2 * 9
    assert left_over(outcome.crawler) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "unreachable",
    [
        pytest.param({}, id="disallowed"),
        pytest.param({"REP_UNREACHABLE": "wait", "REP_MAX_WAIT": 1}, id="overdue"),
    ],
)
@pytest.mark.parametrize("jobdir", [False, True], ids=["in memory", "JOBDIR"])
@pytest.mark.parametrize("queue", QUEUES)
async def test_requests_that_are_dropped_do_not_delay_pages(
    web: Web,
    crawl: Crawl,
    tmp_path: Path,
    queue: str,
    jobdir: bool,
    unreachable: dict[str, Any],
) -> None:
    """Scrapy's queues return those of the unreachable sites first: as the latest ones, or because
    the sites have no download in progress."""
    live = web.site(Page(NOTHING_PRIVATE), {"*": Page(delay=0.02)})
    down = answer_when(lambda: bool(live.page_paths), Page(status=503))
    dead = [web.site(down, host=f"127.0.0.{number}") for number in range(11, 31)]
    settings = {
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "JOBDIR": str(tmp_path) if jobdir else None,
        "CONCURRENT_REQUESTS": 2,
        "REP_RETRY_TIMES": 0,
        "REP_STORE": None,
        **unreachable,
    }
    paths = [f"/{number}" for number in range(80)]  # more than needed: there is always a next one
    asked = [*live.urls(*paths), *(site.url(path) for path in paths[:20] for site in dead)]
    outcome = await crawl(asked, settings, spider=AtOnce, pages=40)
    assert len(outcome.responses) >= 40
    assert 0 < len(outcome.failures) < 200, "most of them are left"
    assert outcome.middleware._throttle.has_disallowed
    assert left_over(outcome.crawler) == []
    if jobdir:
        again = await crawl([], settings)
        assert live.page_paths == sorted(paths), "no request is lost"
        assert len(outcome.failures) + len(again.failures) == 400


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_site_that_was_silent_waits_for_others_like_it(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "SILENT", 0.7)
    acquire = fetch_limit.FetchLimit.acquire
    kinds: list[bool] = []

    async def note(limit: fetch_limit.FetchLimit, *, is_silent: bool) -> fetch_limit.Permit:
        kinds.append(is_silent)
        return await acquire(limit, is_silent=is_silent)

    monkeypatch.setattr(fetch_limit.FetchLimit, "acquire", note)
    settings = {"REP_RETRY_TIMES": 1, "REP_TIMEOUT": 0.8, "REP_STORE": None}
    await crawl([web.site(silence).url("/")], settings)
    assert kinds == [False, True]
    kinds.clear()
    await crawl([web.site(Page(status=503)).url("/")], settings)
    assert kinds == [False, False], "it has answered"


class AllRead(Visitor):
    """Notes when all of its requests were read from the scheduler: from then on, all wait."""

    all_read: threading.Event

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        while self.outcome.stats.get("scheduler/dequeued", 0) < len(self.asked):
            await sleep(0.02)
        self.all_read.set()


async def test_requests_beyond_the_limit_leave_in_their_order(web: Web, crawl: Crawl) -> None:
    all_read = threading.Event()
    late = web.site(answer_when(all_read.is_set, Page(NOTHING_PRIVATE, delay=0.6)))
    paced = web.site(f"{NOTHING_PRIVATE}Crawl-delay: 0.02\n", host="127.0.0.2")
    settings = {"REP_MAX_WAITING": 3, "CONCURRENT_REQUESTS": 1}
    asked = [
        Request(site.url(f"/{number}"), priority=number * 7 % 4, dont_filter=True)
        for number in range(40)
        for site in (late, paced)
    ]
    outcome = await crawl(asked, settings, spider=AllRead, all_read=all_read)
    wanted = [f"/{number}" for number in sorted(range(40), key=lambda n: -(n * 7 % 4))]
    assert late.paths == ["/robots.txt", *wanted]
    assert sorted(paced.paths[1:]) == sorted(wanted)
    assert outcome.stats["robotstxt/wait_count/robots_txt"] >= 40
    assert outcome.stats["robotstxt/wait_seconds/robots_txt"] > 20
    assert left_over(outcome.crawler) == []


async def test_no_more_robots_txt_are_fetched_at_once_than_the_setting_says(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_limit, "SLOW", 60)  # also if the machine is slow
    late = [web.site(Page(NOTHING_PRIVATE, delay=0.3)) for _ in range(9)]
    urls = [site.url("/a") for site in late]
    await crawl(urls, {"CONCURRENT_REQUESTS": 16, "REP_CONCURRENT_FETCHES": 3})
    assert [site.paths for site in late] == [["/robots.txt", "/a"]] * 9
    asked = sorted(site.received[0].at for site in late)
    for first, fourth in zip(asked, asked[3:]):
        assert fourth - first > 0.25, "three at a time"


class Busy:
    """A page that counts how many requests for it are in progress."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.05)
        self.now -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()


async def test_requests_that_waited_keep_the_concurrency_of_the_crawl(
    web: Web, crawl: Crawl
) -> None:
    busy = Busy()
    site = web.site(Page(NOTHING_PRIVATE, delay=0.5), {"*": busy})
    paths = [f"/{number}" for number in range(60)]
    settings = {"CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 60}
    outcome = await crawl(site.urls(*paths), settings)
    assert site.page_paths == sorted(paths)
    assert len(outcome.responses) == 60
    assert 2 <= busy.most <= 8


@pytest.mark.parametrize("robots", [NOTHING_PRIVATE, f"{NOTHING_PRIVATE}Crawl-delay: 0.05\n"])
@pytest.mark.parametrize("exempt", [True, False])
async def test_the_meta_of_a_robots_txt_request_does_not_exclude_a_request_of_a_spider(
    web: Web, crawl: Crawl, robots: str, exempt: bool
) -> None:
    busy = Busy()
    site = web.site(robots, {"*": busy})
    meta = {"is_robotstxt_request": True, "dont_obey_robotstxt": exempt}
    paths = [f"/{number}" for number in range(10)]
    requests = [Request(url, meta=dict(meta)) for url in site.urls(*paths)]
    outcome = await crawl([site.url("/first"), *requests], {"CONCURRENT_REQUESTS": 2})
    assert site.page_paths == sorted(["/first", *paths])
    assert busy.most <= 2
    assert left_over(outcome.crawler) == []


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
    site = web.site(NOTHING_PRIVATE)
    outcome = await crawl(site.urls("/a"), {"DOWNLOADER_MIDDLEWARES": {Replacer: position}})
    assert site.paths == ["/robots.txt", "/a"]
    assert left_over(outcome.crawler) == []


# Far more than a test may take: a request that waits for it hangs.
FOR_EVER = {"REP_TIMEOUT": 600, "DOWNLOAD_TIMEOUT": 600}


async def test_closing_does_not_wait_for_a_silent_site(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    silent = [web.site(silence) for _ in range(3)]
    urls = [url for site in silent for url in site.urls("/a", "/b")]
    outcome = await crawl(urls, FOR_EVER, spider=Closer, awaited=silent)
    assert outcome.stats["finish_reason"] == "enough"
    assert [site.paths for site in silent] == [["/robots.txt"]] * 3
    assert not our_warnings(caplog)
    assert "Traceback" not in caplog.text


# Scrapy 2.14 leaves the files of empty disk queues open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_stopped_crawl_loses_no_waiting_request(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    late = web.site(silence)
    live = web.site(NOTHING_PRIVATE)
    paths = [f"/{number}" for number in range(40)]
    urls = [*live.urls("/a", "/b"), *late.urls("/private", *paths)]
    settings = {"JOBDIR": str(tmp_path), "REP_MAX_WAITING": 10}
    first = await crawl(urls, {**settings, **FOR_EVER}, spider=Closer, awaited=[late])
    assert late.paths == ["/robots.txt"]
    assert live.page_paths == ["/a", "/b"]
    assert not first.failures
    late.pages["/robots.txt"] = Page(NOTHING_PRIVATE)
    await crawl([], settings)
    assert late.page_paths == sorted(paths)
    assert live.page_paths == ["/a", "/b"]


class CarelessCaller(Caller):
    """Does not say that there is no callback."""

    callback = None


@pytest.mark.parametrize("spider", [Caller, CarelessCaller])
@pytest.mark.parametrize("capacity", [1, 100])
async def test_callers_of_the_engine_wait_for_the_response(
    web: Web, crawl: Crawl, capacity: int, spider: type[Caller]
) -> None:
    site = web.site(Page(NOTHING_PRIVATE, delay=0.4))
    paths = [f"/{number}" for number in range(12)]
    urls = site.urls("/private", *paths)
    settings = {"REP_MAX_WAITING": capacity, "CONCURRENT_REQUESTS": 4}
    outcome = await crawl(urls, settings, spider=spider)
    assert site.page_paths == sorted(paths)
    assert site.robots_fetches == 1
    assert set(outcome.responses) == {*site.urls(*paths), "data:,"}
    assert set(outcome.failures) == {site.url("/private")}


async def test_closing_ends_a_call_of_the_engine_too(web: Web, crawl: Crawl) -> None:
    site = web.site(silence)
    outcome = await crawl(site.urls("/a"), FOR_EVER, spider=CallerAndCloser, awaited=[site])
    await sleep(0.3)  # the crawl does not wait for those who called
    assert isinstance(outcome.failures[site.url("/a")], RobotsTxtDisallowed)
    assert site.paths == ["/robots.txt"]


class OtherDownloader(Downloader):
    """A downloader without ``total_concurrency``."""

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self._limit = self.total_concurrency
        del self.total_concurrency

    def needs_backout(self) -> bool:
        return len(self.active) >= self._limit


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"DOWNLOADER": OtherDownloader, "CONCURRENT_REQUESTS": 4}, id="no counter"),
        pytest.param({"CONCURRENT_REQUESTS": 1}, id="one at a time"),
    ],
)
async def test_requests_wait_where_they_cannot_be_excluded(
    web: Web, crawl: Crawl, settings: dict[str, Any]
) -> None:
    site = web.site(Page(NOTHING_PRIVATE, delay=0.3))
    paths = [f"/{number}" for number in range(12)]
    await crawl(site.urls("/private", *paths), settings)
    assert site.page_paths == sorted(paths)
    assert site.robots_fetches == 1
