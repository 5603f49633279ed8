"""Sites that ask for fewer requests, judged by when the servers received the requests."""

from __future__ import annotations

import asyncio
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Callable
from math import inf
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.utils.defer import _schedule_coro

from testing.counters import left_over
from testing.web import Misbehaviour, Page, Received, Site, Web, text

from .conftest import Caller, Crawl, Visitor, make_crawler, together

pytestmark = pytest.mark.each_loop

ALL = text("User-agent: *\nDisallow:\n")
IN_FLIGHT = 8
"""CONCURRENT_REQUESTS_PER_DOMAIN."""


def busy(seconds: str | None, status: int = 429) -> Page:
    """The answer of a site that asks for fewer requests."""
    headers = {} if seconds is None else {"Retry-After": seconds}
    return Page(b"too many", status, {**headers, "Connection": "close"}, delay=0.3)


def in_turn(*answers: Page, once: Callable[[], bool] = lambda: True) -> Misbehaviour:
    """Give these answers to the first requests once a condition holds, and a page to all others."""
    left = list(answers)

    async def answer(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        page = left.pop(0) if left else Page(headers={"Connection": "close"})
        while not once():  # noqa: ASYNC110 - it changes with other requests
            await asyncio.sleep(0.02)
        await asyncio.sleep(page.delay)
        writer.write(page.octets())
        await writer.drain()

    return answer


def times_of(site: Site) -> list[float]:
    """When a site received the requests for pages."""
    return sorted(received.at for received in site.received if received.path != "/robots.txt")


def numbers(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
async def test_nothing_is_sent_before_retry_after_but_to_others(
    web: Web, crawl: Crawl, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    all_sent = in_turn(*[busy("2")] * IN_FLIGHT, once=lambda: len(site.page_paths) >= IN_FLIGHT)
    site = web.site(ALL, {"*": all_sent})
    other = web.site(ALL, host="127.0.0.2")
    settings = {
        "RETRY_ENABLED": True,
        "CONCURRENT_REQUESTS": 60,
        "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{queue}",
    }
    urls = [*site.urls(*numbers(30)), *other.urls(*numbers(20))]
    outcome = await crawl(urls, settings)
    times = times_of(site)
    assert times[IN_FLIGHT] >= times[IN_FLIGHT - 1] + 2
    assert len(times) == 30 + IN_FLIGHT, "the first ones are retried"
    assert max(times_of(other)) < times[IN_FLIGHT]
    assert len(outcome.responses) == 50
    assert outcome.stats["robotstxt/backoff_count"] == 1
    assert 1.9 < outcome.stats["robotstxt/backoff_seconds"] < 2.5
    assert left_over(outcome.crawler) == []
    assert caplog.text.count("asks for fewer requests") == 1
    assert "127.0.0.1 asks for fewer requests: it answered with status 429" in caplog.text


class Watcher(Visitor):
    """Notes when the first answer asks for fewer requests, and how many requests are sent then."""

    at = 0.0
    sent = 0

    async def start(self) -> AsyncIterator[Any]:
        self.answers: list[int] = []
        self.crawler.signals.connect(self.answered, signals.response_downloaded)
        async for request in super().start():
            yield request

    def answered(self, response: Response, request: Request) -> None:
        if response.url.startswith("http") and not response.url.endswith("/robots.txt"):
            self.answers.append(response.status)
            if response.status == 429 and not self.at:
                self.at = time.monotonic()
                _schedule_coro(self.count(request.meta["download_slot"]))

    async def count(self, slot: str) -> None:
        """Count the requests that were sent. Those that Scrapy has just begun to send have begun
        before this.
        """
        engine: Any = self.crawler.engine
        self.sent = len(self.answers) + len(engine.downloader.slots[slot].transferring)


class CallerAndWatcher(Watcher, Caller):
    """Calls ``engine.download_async`` for all requests at once."""


@pytest.mark.parametrize(
    ("spider", "settings"),
    [
        pytest.param(Watcher, {"DOWNLOAD_DELAY": 0.1}, id="wait for DOWNLOAD_DELAY"),
        pytest.param(CallerAndWatcher, {}, id="wait for a connection"),
        pytest.param(CallerAndWatcher, {"DOWNLOAD_DELAY": 0.1}, id="wait for both"),
    ],
)
async def test_requests_in_a_download_slot_wait(
    web: Web, crawl: Crawl, spider: type[Watcher], settings: dict[str, Any]
) -> None:
    is_over = asyncio.Event()

    async def answer(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        page = Page(headers={"Connection": "close"}) if is_over.is_set() else busy("2")
        await asyncio.sleep(page.delay)
        is_over.set()
        writer.write(page.octets())
        await writer.drain()

    site = web.site(ALL, {"*": answer})
    exempt = {"dont_obey_robotstxt": True}
    requests = [
        Request(url, meta=dict(exempt) if number % 2 else {})
        for number, url in enumerate(site.urls(*numbers(20)))
    ]
    outcome = await crawl(requests, settings, spider=spider)
    watcher: Any = outcome.crawler.spider
    times = times_of(site)
    assert 1 <= watcher.sent < 20
    assert times[watcher.sent] >= watcher.at + 2
    assert sorted(site.page_paths) == sorted(numbers(20)), "each is sent once"
    assert len(watcher.answers) == 20
    assert outcome.stats["robotstxt/exempt_count"] == 10
    assert left_over(outcome.crawler) == []


async def test_two_workers_wait_and_take_turns(web: Web, tmp_path: Path) -> None:
    both = 2 * IN_FLIGHT
    spans: list[tuple[float, float]] = []
    all_came = asyncio.Event()

    async def answer(received: Received, _: StreamReader, writer: StreamWriter) -> None:
        number = len(spans)
        spans.append((received.at, inf))
        if number == both - 1:
            all_came.set()
        await all_came.wait()
        page = Page(headers={"Connection": "close"}, delay=0.1)
        if number < both:
            page = busy("2")
        await asyncio.sleep(page.delay)
        spans[number] = received.at, time.monotonic()
        writer.write(page.octets())
        await writer.drain()

    site = web.site(ALL, {"*": answer})
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/store.db"}
    workers = [make_crawler(Visitor, settings) for _ in range(2)]
    urls = site.urls(*numbers(24))
    await together(*workers, requests=[urls[::2], urls[1::2]])
    assert len(spans) == 24
    answered = min(ended for _, ended in spans[:both])
    assert spans[both][0] >= answered + 2
    assert spans[both + 1][0] >= spans[both][1], "one at a time, of both together"
    for worker in workers:
        assert left_over(worker) == []


class LiveSiteCloser(Visitor):
    """Closes itself when all sites have answered."""

    custom_settings = {"HTTPERROR_ALLOW_ALL": True}  # noqa: RUF012
    most = 0

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if len(self.outcome.responses) == self.most:
            raise CloseSpider("enough")


async def test_many_sites_that_are_held_delay_no_other_site(web: Web, crawl: Crawl) -> None:
    others = [
        web.site(ALL, {"*": busy("300")}, host=f"127.0.0.{number}") for number in range(1, 41)
    ]
    live = web.site(ALL, host="127.0.0.41")
    urls = [url for other in others for url in other.urls(*numbers(5))]
    settings = {"CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(
        [*urls, *live.urls(*numbers(20))], settings, spider=LiveSiteCloser, most=40 + 20
    )
    assert [len(other.page_paths) for other in others] == [1] * 40
    assert live.page_paths == sorted(numbers(20))
    assert outcome.stats["robotstxt/backoff_count"] == 40
    assert left_over(outcome.crawler) == []


async def test_a_header_of_a_megabyte_ends_each_request_once(web: Web, crawl: Crawl) -> None:
    site = web.site(ALL, {"*": in_turn(busy("9" * 1_000_000))})
    settings = {"REP_MAX_BACKOFF": 0.6, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(site.urls("/a", "/b"), settings)
    assert len(outcome.responses) + len(outcome.failures) == 2
    assert left_over(outcome.crawler) == []


@pytest.mark.parametrize(
    ("status", "settings"),
    [(408, {}), (403, {}), (500, {}), (502, {}), (429, {"REP_BACKOFF": False})],
)
async def test_other_answers_hold_nothing(
    web: Web, crawl: Crawl, status: int, settings: dict[str, Any]
) -> None:
    site = web.site(ALL, {"*": in_turn(busy("3600", status))})
    outcome = await crawl(site.urls("/a", "/b"), {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, **settings})
    assert len(site.page_paths) == 2
    assert "robotstxt/backoff_count" not in outcome.stats


async def test_a_robots_txt_has_a_schedule_of_its_own(web: Web, crawl: Crawl) -> None:
    site = web.site(busy("3600"))
    other = web.site(ALL, host="127.0.0.1")
    outcome = await crawl([site.url("/a"), other.url("/b")], {"REP_UNREACHABLE": "allow"})
    assert site.page_paths == ["/a"]
    assert "robotstxt/backoff_count" not in outcome.stats


class BusyCloser(Visitor):
    """Closes itself when a site asks for fewer requests."""

    custom_settings = {"HTTPERROR_ALLOW_ALL": True}  # noqa: RUF012

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if response.status == 429:
            raise CloseSpider("enough")


@pytest.mark.parametrize(
    "held",
    [
        pytest.param({"CONCURRENT_REQUESTS_PER_DOMAIN": 1}, id="in the queue"),
        pytest.param({"DOWNLOAD_DELAY": 0.5}, id="in the download slot"),
    ],
)
async def test_a_stopped_crawl_continues_with_what_the_site_asked_for(
    web: Web, crawl: Crawl, tmp_path: Path, held: dict[str, Any]
) -> None:
    site = web.site(ALL, {"*": in_turn(busy("3"))})
    settings = {"JOBDIR": str(tmp_path)}
    first = await crawl(site.urls(*numbers(6)), {**settings, **held}, spider=BusyCloser)
    sent = len(site.page_paths)
    assert 1 <= sent < 6
    assert left_over(first.crawler) == []
    await crawl([], settings)
    assert site.page_paths == numbers(6)
    times = times_of(site)
    assert times[sent] - times[0] >= 3
