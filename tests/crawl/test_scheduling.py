"""A request that waits is not changed, delays no other, and is checked when it leaves its queue."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.frontier import fetch_limit
from testing.faults import answer_when, silence
from testing.web import Page, Web, text

from .conftest import AllAsked, Crawl, Visitor, needs_connections

ALL = "User-agent: *\nDisallow:\n"

QUEUES = [
    pytest.param("scrapy.pqueues.DownloaderAwarePriorityQueue", id="downloader-aware"),
    pytest.param("scrapy.pqueues.ScrapyPriorityQueue", id="plain"),
]
FIFO = {
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


def delayed(seconds: float) -> str:
    return f"{ALL}Crawl-delay: {seconds}\n"


def numbers(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


# Other requests are not delayed


class Until(Visitor):
    """Stops once so many of its pages are there."""

    pages: int

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if len(self.outcome.responses) == self.pages:
            self.stop()


class UntilAllAsked(AllAsked, Until):
    """Notes when all of its requests are scheduled, and stops once so many pages are there."""


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_site_of_low_priority_does_not_wait_for_a_paced_one(
    web: Web, crawl: Crawl, queue: str
) -> None:
    paced = web.site(delayed(0.6))
    live = web.site(ALL, host="127.0.0.2")
    asked = [Request(url, dont_filter=True) for url in paced.urls(*numbers(100))]
    asked += [Request(url, priority=-3, dont_filter=True) for url in live.urls(*numbers(10))]
    settings = {"SCHEDULER_PRIORITY_QUEUE": queue, "CLOSESPIDER_TIMEOUT": 120}
    await crawl(asked, settings, spider=Until, pages=13)
    assert live.page_paths == sorted(numbers(10))
    assert live.received[-1].at < paced.received[3].at


@pytest.mark.parametrize("queue", QUEUES)
async def test_silent_sites_do_not_use_up_the_capacity(web: Web, crawl: Crawl, queue: str) -> None:
    """The silent sites answer only when the others are complete."""
    needs_connections()
    live = [web.site(ALL, host=f"127.0.0.{number}") for number in range(61, 64)]
    late = answer_when(lambda: sum(len(site.page_paths) for site in live) == 15, Page(status=503))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(11, 51)]
    urls = [url for site in silent for url in site.urls(*numbers(3))]
    urls += [url for site in live for url in site.urls(*numbers(5))]
    settings = {
        **FIFO,
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "CONCURRENT_REQUESTS": 4,
        "REP_TIMEOUT": 60,
        "DOWNLOAD_TIMEOUT": 60,
    }
    outcome = await crawl(urls, settings)
    assert [site.page_paths for site in live] == [sorted(numbers(5))] * 3
    origins = outcome.middleware.origins
    assert {origins[site.root].failure for site in silent} == {"status 503"}, "no timeout"
    assert len(outcome.failures) == 120
    assert [site.paths for site in silent] == [["/robots.txt"]] * 40


@pytest.mark.parametrize("queue", QUEUES)
async def test_new_sites_are_fetched_however_many_others_are_silent(
    web: Web, crawl: Crawl, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_connections()
    monkeypatch.setattr(fetch_limit, "OLD", 1)
    silent = [web.site(silence, host=f"127.0.0.{number}") for number in range(11, 23)]
    live = web.site(ALL)
    urls = [site.url("/0") for site in silent] + live.urls(*numbers(3))
    settings = {
        **FIFO,
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "REP_CONCURRENT_ROBOTSTXT_REQUESTS": 2,
        "REP_TIMEOUT": 60,
        "DOWNLOAD_TIMEOUT": 60,
        "CLOSESPIDER_TIMEOUT": 120,
    }
    outcome = await crawl(urls, settings, spider=Until, pages=3)
    assert outcome.stats["finish_reason"] == "enough"
    assert live.page_paths == numbers(3)
    ended = [error for error in outcome.failures.values() if isinstance(error, RobotsTxtDisallowed)]
    assert ended, "the oldest fetches made room"


# Nothing of this package is scheduled, shown or stored


def stored(folder: Path) -> bytes:
    """Everything in the files of a folder."""
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


async def test_nothing_is_lost_and_little_is_stored_when_a_crawl_stops(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    robots = f"User-agent: *\nAllow: /{'*' * 400_000}\nCrawl-delay: 0.02\n"
    all_asked = threading.Event()
    site = web.site(answer_when(all_asked.is_set, text(robots)))
    settings = {"JOBDIR": str(tmp_path)}
    asked = [Request(url, dont_filter=True) for url in site.urls(*numbers(60))]
    await crawl(asked, settings, spider=UntilAllAsked, pages=5, all_asked=all_asked)
    assert len(site.page_paths) < 60
    queued = stored(tmp_path / "requests.queue")
    assert b"robotstxt" not in queued
    assert len(queued) < 60 * 2000
    site.pages["/robots.txt"] = text(ALL)
    await crawl([], {**settings, "REP_STORE": None})
    assert site.page_paths == sorted(numbers(60))
