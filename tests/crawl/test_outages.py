"""``REP_UNREACHABLE="wait"``: requests of an unreachable site wait, within bounds."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from scrapy import Request

from scrapy_rep import Reason, RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.crawl.outages import Outages
from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.protocol.access import Unreachable
from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.scheduling.hosts import BlockReason
from testing.counters import left_over
from testing.faults import answer_when
from testing.web import Page, text

from ..scheduling.doubles import FakeClock, FakeEngine, make_throttle
from .conftest import (
    Caller,
    CallerAndCloser,
    Closer,
    Visitor,
    Watcher,
    make_crawler,
    our_warnings,
    together,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator
    from pathlib import Path

    from twisted.python.failure import Failure

    from testing.web import Received, Site, Web

    from .conftest import Crawl, Outcome

PRIVATE = "User-agent: *\nDisallow: /private\n"
WAIT: dict[str, Any] = {"REP_UNREACHABLE": "wait"}
FIFO = {
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


class Failing:
    """A robots.txt that answers 503 so many times, and then ``page``."""

    def __init__(self, times: int, retry_after: str = "1", page: Page | None = None) -> None:
        self.times = times
        self.failure = Page(b"", 503, {"Retry-After": retry_after, "Connection": "close"})
        self.page = page or text(PRIVATE, Connection="close")

    async def __call__(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.times -= 1
        page = self.failure if self.times >= 0 else self.page
        writer.write(page.octets())
        await writer.drain()


def numbers(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


def reasons(outcome: Outcome) -> dict[str, Reason]:
    """Why requests were dropped, by URL."""
    found = {}
    for url, failure in outcome.failures.items():
        assert isinstance(failure, RobotsTxtDisallowed)
        found[url] = failure.verdict.reason
    return found


@pytest.mark.parametrize("failures", [1, 2])
async def test_waiting_requests_get_the_verdict_in_their_order(
    web: Web, crawl: Crawl, failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(Failing(failures))
    urls = site.urls("/private/a", *numbers(20), "/private/b")
    settings = {**WAIT, **FIFO, "CONCURRENT_REQUESTS": 1}
    outcome = await crawl(urls, settings)
    assert site.paths == ["/robots.txt"] * (failures + 1) + numbers(20)
    assert reasons(outcome) == dict.fromkeys(site.urls("/private/a", "/private/b"), Reason.RULES)
    assert outcome.stats["robotstxt/unreachable"] == failures
    assert outcome.stats["robotstxt/wait_count/robots_txt"] == 22
    assert "robotstxt/forbidden/unreachable" not in outcome.stats
    (warning,) = our_warnings(caplog)
    assert "status 503. Requests to the site wait up to 300 s (REP_MAX_WAIT), " in warning
    assert warning.endswith("The next attempt is in 1 s.")
    assert left_over(outcome.crawler) == []


async def test_by_default_requests_are_dropped(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(1))
    outcome = await crawl(site.urls("/a"))
    assert site.paths == ["/robots.txt"]
    assert reasons(outcome) == {site.url("/a"): Reason.UNREACHABLE}


async def test_a_site_that_answers_is_not_delayed(web: Web, crawl: Crawl) -> None:
    down = [web.site(Failing(1, "5"), host=f"127.0.0.{number}") for number in range(11, 15)]
    live = web.site(PRIVATE)
    urls = [url for site in down for url in site.urls(*numbers(10))]
    outcome = await crawl(
        urls + live.urls(*numbers(20)), {**WAIT, "CONCURRENT_REQUESTS": 2}, spider=Watcher
    )
    assert not outcome.failures
    assert [site.page_paths for site in down] == [sorted(numbers(10))] * 4
    assert [site.robots_fetches for site in down] == [2] * 4
    assert live.page_paths == sorted(numbers(20))
    second = min(site.received[1].at for site in down)
    assert max(received.at for received in live.received) < second


@pytest.mark.parametrize("retry_after", ["30", "3600"])
async def test_requests_are_dropped_if_the_next_attempt_is_too_late(
    web: Web, crawl: Crawl, retry_after: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(Failing(10, retry_after))
    outcome = await crawl(site.urls(*numbers(12)), {**WAIT, "REP_MAX_WAIT": 2})
    assert site.paths == ["/robots.txt"]
    assert reasons(outcome) == dict.fromkeys(site.urls(*numbers(12)), Reason.UNREACHABLE)
    assert outcome.stats["robotstxt/wait_limit_count/time"] == 12
    dropped = [line for line in our_warnings(caplog) if "are dropped, because its" in line]
    assert dropped == [
        f"Requests to {site.root} are dropped, because its robots.txt is still unreachable "
        f"(status 503). The next attempt, in {retry_after} s, is too late: a request waits at "
        "most 2 s. Increase REP_MAX_WAIT to keep these requests."
    ]


async def test_rep_max_wait_limits_the_total_wait(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(10))
    outcome = await crawl(site.urls(*numbers(12)), {**WAIT, "REP_MAX_WAIT": 2.95})
    assert site.paths == ["/robots.txt"] * 3
    assert reasons(outcome) == dict.fromkeys(site.urls(*numbers(12)), Reason.UNREACHABLE)
    assert outcome.stats["robotstxt/forbidden/unreachable"] == 12
    assert outcome.stats["robotstxt/wait_limit_count/time"] == 12
    assert left_over(outcome.crawler) == []


class Late(Visitor):
    """Asks for more, with a higher priority, during the second attempt."""

    site: Site
    more: list[str]
    all_asked: threading.Event

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        while self.site.robots_fetches < 2:
            await sleep(0.02)
        for url in self.more:
            self.outcome.requests[url] = Request(url)
            yield Request(url, priority=10, callback=self.parse, errback=self.failed)
        self.all_asked.set()


async def test_each_request_has_its_own_time_limit(web: Web, crawl: Crawl) -> None:
    """The first ones have waited for too long when the second attempt fails, the others not."""
    all_asked = threading.Event()
    failing = Failing(1, "2")
    second = answer_when(all_asked.is_set, Page(b"", 503, {"Retry-After": "1"}))

    async def robots_txt(
        received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        attempt = second if site.robots_fetches == 2 else failing
        await attempt(received, reader, writer)

    site = web.site(robots_txt)
    late = site.urls("/late/1", "/late/2")
    settings = {**WAIT, "REP_MAX_WAIT": 2.95}
    outcome = await crawl(
        site.urls(*numbers(5)), settings, spider=Late, site=site, more=late, all_asked=all_asked
    )
    assert site.robots_fetches == 3
    assert site.page_paths == ["/late/1", "/late/2"]
    assert reasons(outcome) == dict.fromkeys(site.urls(*numbers(5)), Reason.UNREACHABLE)


class Slow(Watcher):
    """Has a slow errback, and records the largest number of requests that waited."""

    most_waiting = 0

    def _look(self) -> None:
        super()._look()
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        assert middleware is not None
        self.most_waiting = max(self.most_waiting, len(middleware._throttle.queues))

    def failed(self, failure: Failure) -> None:
        time.sleep(0.02)
        super().failed(failure)


@pytest.mark.parametrize("queue", ["Fifo", "Lifo"])
async def test_rep_max_waiting_limits_the_waiting_requests(
    web: Web, crawl: Crawl, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if the next attempt begins before the requests of the last one are dropped."""
    site = web.site(Failing(1000))
    live = web.site(PRIVATE, host="127.0.0.2")
    settings = {
        **WAIT,
        "REP_MAX_WAITING": 10,
        "REP_MAX_WAIT": 3.5,
        "CONCURRENT_REQUESTS": 2,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
        "SCHEDULER_START_MEMORY_QUEUE": f"scrapy.squeues.{queue}MemoryQueue",
    }
    urls = [*live.urls("/first"), *site.urls(*numbers(200)), *live.urls("/last")]
    outcome = await crawl(urls, settings, spider=Slow)
    assert reasons(outcome) == dict.fromkeys(site.urls(*numbers(200)), Reason.UNREACHABLE)
    # How many of each depends on how quickly requests are read and dropped.
    by_number, by_time = (
        outcome.stats[f"robotstxt/wait_limit_count/{limit}"] for limit in ("number", "time")
    )
    assert by_number + by_time == 200
    assert by_number > 50
    # Ten, the first of each site until its robots.txt has had an answer, and the two that the
    # engine may have taken from a queue. They wait again if the site is still unreachable.
    assert 10 <= outcome.crawler.spider.most_waiting <= 10 + 2 + 2  # type: ignore[union-attr]
    assert live.page_paths == ["/first", "/last"]
    (dropped,) = [line for line in our_warnings(caplog) if "are dropped, because its" in line]
    assert dropped.endswith(
        "As many requests wait as REP_MAX_WAITING allows. Increase it to keep more requests."
    )
    assert left_over(outcome.crawler) == []


@pytest.mark.parametrize("capacity", [1, 2])
def test_a_request_without_capacity_does_not_wait_for_an_attempt_that_is_due(capacity: int) -> None:
    """It may come before the timer that begins the attempt."""
    origin = Origin("http://slow.example")
    origin.start_fetch(0)
    origin.apply(Unreachable("status 503", 503), 0)
    throttle = make_throttle(FakeClock(), FakeEngine(), capacity=capacity)
    throttle.blocks.block(origin.host, origin.key, BlockReason.UNREACHABLE)
    throttle.enqueue(Request(f"{origin.key}/a"), origin.host, origin.key)
    fetched: list[Request] = []
    cache: Any = SimpleNamespace(
        now=lambda: 61,
        origins={origin.key: origin},
        get_or_fetch=lambda _, page: fetched.append(page),
    )
    crawler: Any = SimpleNamespace(stats=SimpleNamespace())
    settings: Any = SimpleNamespace(unreachable="wait", max_wait=300)
    outages = Outages(crawler, settings, UnreachablePolicy(), throttle, cache, lambda *_: False)
    late = Request(f"{origin.key}/b")
    found = outages.get_or_fetch(origin.key, late)
    assert (found, fetched) == ((origin, []) if capacity == 1 else (None, [late]))


async def test_sites_share_the_limit_of_waiting_requests(web: Web, crawl: Crawl) -> None:
    sites = [web.site(Failing(1, "2"), host=f"127.0.0.{number}") for number in range(11, 21)]
    urls = [url for site in sites for url in site.urls("/a", "/b")]
    outcome = await crawl(urls, {**WAIT, "REP_MAX_WAITING": 4})
    asked = sum(len(site.page_paths) for site in sites)
    assert 4 <= asked <= 6
    assert asked + len(outcome.failures) == 20


async def test_overdue_requests_do_not_fetch_again_if_the_cache_is_full(
    web: Web, crawl: Crawl
) -> None:
    """The policy of an origin stays in the cache until its requests are dropped."""
    down = web.site(Failing(1000, "250"))
    late = web.site(answer_when(lambda: len(outcomes) == 3, text(PRIVATE)), host="127.0.0.2")
    outcomes: list[str] = []

    class Dropped(Visitor):
        def failed(self, failure: Any) -> None:
            super().failed(failure)
            outcomes.append(failure.request.url)

    settings = {**WAIT, "REP_CACHE_SIZE": 1, "REP_MAX_WAIT": 20, "REP_TIMEOUT": 10}
    await crawl([*late.urls("/a"), *down.urls(*numbers(3))], settings, spider=Dropped)
    assert down.paths == ["/robots.txt"]
    assert late.paths == ["/robots.txt", "/a"]


async def test_exempt_requests_do_not_wait(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(1))
    exempt = Request(site.url("/exempt"), meta={"dont_obey_robotstxt": True})
    await crawl([site.url("/a"), exempt], WAIT)
    assert site.paths[-2:] == ["/robots.txt", "/a"]
    assert "/exempt" in site.paths[:-2]


async def test_rfc_robots_txt_itself_is_never_dropped(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(10))
    settings = {**WAIT, "REP_MAX_WAIT": 0.5}
    outcome = await crawl(site.urls("/robots.txt", "/a"), settings)
    assert site.paths == ["/robots.txt"] * 2
    assert outcome.stats["robotstxt/forbidden"] == 1
    assert outcome.stats["robotstxt/wait_limit_count/time"] == 1


async def test_requests_do_not_wait_if_there_is_a_good_copy(web: Web, crawl: Crawl) -> None:
    site = web.site(text(PRIVATE))
    store = {"REP_STORE": f"memory://{uuid4()}"}
    caching = {"REP_CACHE_MIN": 0.01, "REP_CACHE_MAX": 0.01}
    await crawl(site.urls("/a"), {**store, **caching})
    site.pages["/robots.txt"] = Page(b"", 503)
    outcome = await crawl(site.urls("/b", "/private"), {**store, **caching, **WAIT})
    assert site.page_paths == ["/a", "/b"]
    assert reasons(outcome) == {site.url("/private"): Reason.RULES}


# A spider that closes


# Scrapy 2.14 leaves the files of empty disk queues open.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_stopped_crawl_loses_no_waiting_requests(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(Failing(1, "250"))
    settings = {**WAIT, "JOBDIR": str(tmp_path)}
    urls = site.urls("/private", *numbers(20))
    first = await crawl(urls, settings, spider=Closer, awaited=[site])
    assert first.stats["finish_reason"] == "enough"
    assert not first.failures
    assert site.paths == ["/robots.txt"]
    assert left_over(first.crawler) == []
    (tmp_path / "robotstxt.sqlite").unlink()  # which says when to ask again
    await crawl([], settings)
    assert site.page_paths == sorted(numbers(20))


async def test_calls_of_the_engine_wait_too(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(1))
    outcome = await crawl(site.urls("/private", *numbers(5)), WAIT, spider=Caller)
    assert site.page_paths == numbers(5)
    assert reasons(outcome) == {site.url("/private"): Reason.RULES}


async def test_closing_ends_a_call_of_the_engine(web: Web, crawl: Crawl) -> None:
    site = web.site(Failing(1, "250"))
    outcome = await crawl(site.urls("/a"), WAIT, spider=CallerAndCloser, awaited=[site])
    await sleep(0.3)  # the crawl does not wait for those who called
    assert set(outcome.failures) == {site.url("/a")}
    assert site.paths == ["/robots.txt"]


async def test_the_result_of_another_crawler_ends_the_wait(web: Web) -> None:
    """Two crawlers that share a store ask once for each attempt."""
    site = web.site(Failing(1, "2"))
    settings = {**WAIT, "REP_STORE": f"memory://{uuid4()}"}
    crawlers = [make_crawler(Visitor, settings) for _ in range(2)]
    await together(*crawlers, requests=[site.urls("/a"), site.urls("/b")])
    assert site.robots_fetches == 2
    assert site.page_paths == ["/a", "/b"]
