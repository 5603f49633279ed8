"""A request that waits delays no other, is bounded, and is not lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.frontier import fetch_limit
from testing.counters import left_over
from testing.faults import answer_when, silence
from testing.web import Page, Web

from .conftest import ALL, FIFO, PRIVATE, Crawl, Visitor, needs_connections, numbers

QUEUES = [
    pytest.param("scrapy.pqueues.DownloaderAwarePriorityQueue", id="downloader-aware"),
    pytest.param("scrapy.pqueues.ScrapyPriorityQueue", id="plain"),
]


@pytest.mark.parametrize("queue", QUEUES)
async def test_silent_sites_do_not_use_up_the_capacity(web: Web, crawl: Crawl, queue: str) -> None:
    """The silent sites answer only when the others are complete."""
    needs_connections()
    live = [web.site(ALL, host=f"127.0.0.{number}") for number in range(61, 64)]
    late = answer_when(lambda: sum(len(site.page_paths) for site in live) == 15, Page(status=503))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(11, 51)]
    urls = [url for site in silent for url in site.urls(*numbers(3))]
    urls += [url for site in live for url in site.urls(*numbers(5))]
    settings = {**FIFO, "SCHEDULER_PRIORITY_QUEUE": queue, "CONCURRENT_REQUESTS": 4}
    outcome = await crawl(urls, {**settings, "REP_TIMEOUT": 60})
    assert [site.page_paths for site in live] == [sorted(numbers(5))] * 3
    assert {outcome.failure_of(site) for site in silent} == {"status 503"}, "no timeout"
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
        "CLOSESPIDER_TIMEOUT": 120,
    }
    outcome = await crawl(urls, settings, most=3)
    assert outcome.stats["finish_reason"] == "enough"
    assert live.page_paths == numbers(3)
    ended = [error for error in outcome.failures.values() if isinstance(error, RobotsTxtDisallowed)]
    assert ended, "the oldest fetches made room"


class AtOnce(Visitor):
    """Schedules all of its requests at once."""

    async def start(self) -> AsyncIterator[Any]:
        requests = [request async for request in super().start()]
        for request in requests[:-1]:
            self.engine.crawl(request)
        yield requests[-1]


@pytest.mark.parametrize(
    ("unreachable", "jobdir"),
    [
        pytest.param({}, False, id="disallowed, in memory"),
        pytest.param({}, True, id="disallowed, JOBDIR"),
        pytest.param({"REP_UNREACHABLE": "wait", "REP_MAX_WAIT": 1}, False, id="overdue"),
    ],
)
@pytest.mark.parametrize("queue", QUEUES)
async def test_requests_that_are_dropped_do_not_delay_pages(
    web: Web, crawl: Crawl, tmp_path: Path, queue: str, jobdir: bool, unreachable: dict[str, Any]
) -> None:
    """Scrapy's queues return those of the unreachable sites first: as the latest ones, or because
    the sites have no download in progress."""
    live = web.site(Page(PRIVATE), {"*": Page(delay=0.02)})
    down = answer_when(lambda: bool(live.page_paths), Page(status=503))
    dead = [web.site(down, host=f"127.0.0.{number}") for number in range(11, 21)]
    settings = {
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "JOBDIR": str(tmp_path) if jobdir else None,
        "CONCURRENT_REQUESTS": 2,
        "REP_STORE": None,
        **unreachable,
    }
    paths = numbers(50)  # more than needed: there is always a next one
    asked = [*live.urls(*paths), *(site.url(path) for path in paths[:20] for site in dead)]
    outcome = await crawl(asked, settings, spider=AtOnce, most=25)
    assert len(outcome.responses) >= 25
    assert 0 < len(outcome.failures) < 100, "most of them are left"
    assert left_over(outcome.crawler) == []
    if jobdir:
        again = await crawl([], settings)
        assert live.page_paths == sorted(paths), "no request is lost"
        assert len(outcome.failures) + len(again.failures) == 200


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
