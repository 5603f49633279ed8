"""Requests that wait for a robots.txt delay no other, are bounded, and are not lost."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from testing.counters import left_over
from testing.faults import answer_when
from testing.web import Page, Web

from .conftest import (
    AllAsked,
    Caller,
    Crawl,
    Visitor,
)
from .test_scheduling import QUEUES

NOTHING_PRIVATE = "User-agent: *\nDisallow: /private\n"


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
    dead = [web.site(down, host=f"127.0.0.{number}") for number in range(11, 21)]
    settings = {
        "SCHEDULER_PRIORITY_QUEUE": queue,
        "JOBDIR": str(tmp_path) if jobdir else None,
        "CONCURRENT_REQUESTS": 2,
        "REP_RETRY_TIMES": 0,
        "REP_STORE": None,
        **unreachable,
    }
    paths = [f"/{number}" for number in range(50)]  # more than needed: there is always a next one
    asked = [*live.urls(*paths), *(site.url(path) for path in paths[:20] for site in dead)]
    outcome = await crawl(asked, settings, spider=AtOnce, pages=25)
    assert len(outcome.responses) >= 25
    assert 0 < len(outcome.failures) < 100, "most of them are left"
    assert left_over(outcome.crawler) == []
    if jobdir:
        again = await crawl([], settings)
        assert live.page_paths == sorted(paths), "no request is lost"
        assert len(outcome.failures) + len(again.failures) == 200


async def test_requests_leave_by_priority_and_in_their_order(web: Web, crawl: Crawl) -> None:
    all_asked = threading.Event()
    late = web.site(answer_when(all_asked.is_set, Page(NOTHING_PRIVATE)))
    paced = web.site(f"{NOTHING_PRIVATE}Crawl-delay: 0.02\n", host="127.0.0.2")
    asked = [
        Request(site.url(f"/{number}"), priority=number * 7 % 4, dont_filter=True)
        for number in range(40)
        for site in (late, paced)
    ]
    settings = {"CONCURRENT_REQUESTS": 1}
    outcome = await crawl(asked, settings, spider=AllAsked, all_asked=all_asked)
    wanted = [f"/{number}" for number in sorted(range(40), key=lambda n: -(n * 7 % 4))]
    assert late.paths == ["/robots.txt", *wanted]
    assert sorted(paced.paths[1:]) == sorted(wanted)
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


async def test_callers_of_the_engine_wait_for_the_response(web: Web, crawl: Crawl) -> None:
    site = web.site(Page(NOTHING_PRIVATE, delay=0.4))
    paths = [f"/{number}" for number in range(12)]
    urls = site.urls("/private", *paths)
    settings = {"CONCURRENT_REQUESTS": 4}
    outcome = await crawl(urls, settings, spider=Caller)
    assert site.page_paths == sorted(paths)
    assert site.robots_fetches == 1
    assert set(outcome.responses) == {*site.urls(*paths), "data:,"}
    assert set(outcome.failures) == {site.url("/private")}
