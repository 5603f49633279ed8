"""Sites that ask for fewer requests, judged by when the servers received the requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.exceptions import CloseSpider

from scrapy_rep.frontier import frontier
from testing.counters import left_over
from testing.web import Page, between, text

from .conftest import Visitor
from .test_report import report_in, reporting

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from pathlib import Path

    from testing.web import Misbehaviour, Received, Site, Web

    from .conftest import Crawl

pytestmark = pytest.mark.each_loop

ALL = text("User-agent: *\nDisallow:\n")
IN_FLIGHT = 8
"""CONCURRENT_REQUESTS_PER_DOMAIN."""


def busy(seconds: str | None, status: int = 429) -> Page:
    """The answer of a site that asks for fewer requests."""
    headers = {} if seconds is None else {"Retry-After": seconds}
    return Page(b"too many", status, {**headers, "Connection": "close"}, delay=0.3)


def in_turn(*answers: Page) -> Misbehaviour:
    """Give these answers to the first requests, and a page to all others."""
    left = list(answers)

    async def answer(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        page = left.pop(0) if left else Page(headers={"Connection": "close"})
        await asyncio.sleep(page.delay)
        writer.write(page.octets())
        await writer.drain()

    return answer


def times_of(site: Site) -> list[float]:
    """When a site received the requests for pages."""
    return sorted(received.at for received in site.received if received.path != "/robots.txt")


def numbers(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


@pytest.fixture
def first_backoff(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(frontier, "FIRST_BACKOFF", 0.2)
    return 0.2


@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
async def test_nothing_is_sent_before_retry_after_but_to_others(
    web: Web, crawl: Crawl, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(ALL, {"*": in_turn(*[busy("2")] * IN_FLIGHT)})
    other = web.site(ALL, host="127.0.0.2")
    settings = {
        "RETRY_ENABLED": True,
        "CONCURRENT_REQUESTS": 60,
        "SCHEDULER_PRIORITY_QUEUE": f"scrapy.pqueues.{queue}",
    }
    urls = [*site.urls(*numbers(30)), *other.urls(*numbers(20))]
    outcome = await crawl(urls, settings)
    times = times_of(site)
    answered_at = times[0] + 0.3
    in_flight = sum(at < answered_at for at in times)
    assert in_flight == IN_FLIGHT
    assert times[in_flight] >= answered_at + 2
    assert len(times) == 30 + IN_FLIGHT, "the first ones are retried"
    assert max(times_of(other)) < times[in_flight]
    assert len(outcome.responses) == 50
    assert outcome.stats["robotstxt/backoff_count"] == 1
    assert 1.9 < outcome.stats["robotstxt/backoff_seconds"] < 2.5
    assert left_over(outcome.crawler) == []
    assert caplog.text.count("asks for fewer requests") == 1
    assert "127.0.0.1 asks for fewer requests: it answered with status 429" in caplog.text


async def test_the_time_doubles_until_there_is_another_answer(
    web: Web, crawl: Crawl, first_backoff: float, caplog: pytest.LogCaptureFixture
) -> None:
    answers = [busy(None, 503)] * 3 + [Page(status=404, headers={"Connection": "close"})]
    site = web.site(ALL, {"*": in_turn(*answers, busy(None, 503))})
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(site.urls(*numbers(7)), settings)
    gaps = between(times_of(site))
    for gap, factor in zip(gaps, (1, 2, 4, 0, 1, 0), strict=True):
        assert gap >= first_backoff * factor
    assert outcome.stats["robotstxt/backoff_count"] == 4
    assert caplog.text.count("asks for fewer requests") == 2, "there were two outages"


async def test_after_the_wait_one_request_is_sent_at_a_time(web: Web, crawl: Crawl) -> None:
    site = web.site(ALL, {"*": in_turn(*[busy("1")] * (IN_FLIGHT + 1))})
    await crawl(site.urls(*numbers(20)))
    times = times_of(site)
    assert times[IN_FLIGHT] - times[0] >= 1
    assert times[IN_FLIGHT + 1] - times[IN_FLIGHT] >= 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("99999999", 0.6, id="years"),
        pytest.param("Fri, 31 Dec 2999 23:59:59 GMT", 0.6, id="a far date"),
        pytest.param("Thu, 01 Jan 1970 00:00:00 GMT", 0.2, id="a date in 1970"),
        pytest.param("-5", 0.2, id="negative"),
        pytest.param("0", 0.2, id="zero"),
        pytest.param("soon", 0.2, id="unreadable"),
        pytest.param("9" * 8000, 0.6, id="a long number"),
    ],
)
@pytest.mark.usefixtures("first_backoff")
async def test_any_retry_after_is_bounded(
    web: Web, crawl: Crawl, value: str, seconds: float
) -> None:
    site = web.site(ALL, {"*": in_turn(busy(value))})
    settings = {"REP_MAX_BACKOFF": 0.6, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(site.urls("/a", "/b"), settings)
    assert outcome.stats["robotstxt/backoff_seconds"] == seconds
    assert between(times_of(site))[0] >= 0.3 + seconds


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


async def test_a_stopped_crawl_continues_with_what_the_site_asked_for(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(ALL, {"*": in_turn(busy("3"))})
    settings = {"JOBDIR": str(tmp_path), "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    await crawl(site.urls("/a", "/b", "/c"), settings, spider=BusyCloser)
    assert len(site.page_paths) == 1
    await crawl([], settings)
    times = times_of(site)
    assert len(times) == 3
    assert times[1] - times[0] >= 3


async def test_the_report_says_how_often_and_how_long(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(ALL, {"*": in_turn(busy(None), busy("2"))})
    settings = reporting(tmp_path, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    await crawl([Request(url) for url in site.urls("/a", "/b", "/c")], settings)
    totals = report_in(tmp_path).totals
    assert (totals.backoffs, totals.backoff_seconds, totals.delayed) == (2, 3.0, 2)
