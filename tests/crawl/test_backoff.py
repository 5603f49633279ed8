"""Sites that ask for fewer requests, judged by when the servers received the requests."""

from __future__ import annotations

import re
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.frontier import backoff
from testing.counters import left_over
from testing.web import Page, Site, Web, between

from .conftest import ALL, EXEMPT, Caller, Crawl, Visitor, in_turn, make_crawler, numbers, together

pytestmark = pytest.mark.rule("Back-off")
IN_FLIGHT = 8
"""CONCURRENT_REQUESTS_PER_DOMAIN."""
ANY_STATUS = {"HTTPERROR_ALLOW_ALL": True}


def busy(seconds: str, status: int = 429) -> Page:
    """The answer of a site that asks for fewer requests."""
    return Page(b"too many", status, {"Retry-After": seconds}, delay=0.3)


def times_of(site: Site) -> list[float]:
    """When a site received the requests for pages."""
    return sorted(received.at for received in site.received if received.path != "/robots.txt")


@pytest.mark.each_loop
@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
async def test_nothing_is_sent_before_retry_after(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    # On a busy machine, the answers may arrive seconds apart.
    monkeypatch.setattr(backoff, "FIRST_BACKOFF", 60)
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
    log = outcome.log.text
    assert log.count("127.0.0.1 asks for fewer requests: it answered with status 429") == 1


async def test_a_host_that_is_busy_for_long_is_warned_about_once(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONG_BACKOFF", 0.3)
    site = web.site(ALL, {"*": Page(b"too many", 429)})
    settings = {**ANY_STATUS, "REP_MAX_BACKOFF": 0.2, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(site.urls(*numbers(12)), settings)
    assert len(times_of(site)) == 12
    (warning,) = outcome.warnings
    expected = r"127.0.0.1 has .* [1-9] requests? left: at one in 0.2 s, that takes 0:00:0"
    assert re.match(expected, warning)


@pytest.mark.parametrize(
    ("spider", "settings"),
    [
        pytest.param(Visitor, {"DOWNLOAD_DELAY": 0.1}, id="wait for DOWNLOAD_DELAY"),
        pytest.param(Caller, {}, id="wait for a connection"),
        pytest.param(
            Caller, {"DOWNLOAD_DELAY": 0.1}, id="wait for both", marks=pytest.mark.each_loop
        ),
    ],
)
async def test_requests_in_a_download_slot_wait(
    web: Web, crawl: Crawl, spider: type[Visitor], settings: dict[str, Any]
) -> None:
    """The simulation has when each of them is sent."""
    site = web.site(ALL, {"*": in_turn(*[busy("3")] * 2, then=Page(delay=0.3))})
    requests = [
        Request(url, meta=dict(EXEMPT) if number % 2 else {})
        for number, url in enumerate(site.urls(*numbers(20)))
    ]
    outcome = await crawl(requests, {**ANY_STATUS, **settings}, spider=spider)
    assert site.page_paths == sorted(numbers(20)), "each is sent once"
    assert max(between(times_of(site))) > 2
    assert outcome.stats["robotstxt/exempt_count"] == 10
    assert left_over(outcome.crawler) == []


class Browser:
    """Answers the first page itself, as a browser in a middleware does."""

    def __init__(self) -> None:
        self.answered = 0

    async def process_request(self, request: Request) -> Response | None:
        if request.meta.get("is_robotstxt_request") or self.answered:
            return None
        self.answered += 1
        return Response(request.url, 429, {"Retry-After": "2"}, request=request)


class BanDetector:
    """Makes a 429 of the first page, which the site has sent with another status."""

    def __init__(self) -> None:
        self.answered = 0

    async def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("is_robotstxt_request") or self.answered:
            return response
        self.answered += 1
        return response.replace(status=429, headers={"Retry-After": "2"})


@pytest.mark.parametrize("retries", [False, True])
@pytest.mark.parametrize(
    ("middleware", "priority"), [(Browser, 200), (Browser, 543), (Browser, 999), (BanDetector, 543)]
)
async def test_an_answer_that_a_middleware_makes_holds_its_host(
    web: Web, crawl: Crawl, middleware: type, priority: int, retries: bool
) -> None:
    site = web.site(ALL)
    settings = {
        **ANY_STATUS,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOADER_MIDDLEWARES": {middleware: priority},
        "RETRY_ENABLED": retries,
    }
    began = monotonic()
    outcome = await crawl(site.urls(*numbers(3)), settings)
    assert outcome.stats["robotstxt/backoff_count"] == 1
    later = [at for at in times_of(site) if at > began + 1.5]
    assert len(later) >= 2, "the others were sent after the hold"
    assert len(times_of(site)) - len(later) == (middleware is BanDetector)
    assert left_over(outcome.crawler) == []


async def test_an_answer_from_a_cache_holds_nothing(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(ALL, {"*": busy("3600")})
    settings = {**ANY_STATUS, "HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    first = await crawl(site.urls("/a"), settings)
    again = await crawl(site.urls("/a"), settings)
    assert site.page_paths == ["/a"]
    assert first.stats["robotstxt/backoff_count"] == 1
    assert "robotstxt/backoff_count" not in again.stats


@pytest.mark.each_loop
async def test_two_workers_wait_and_take_turns(web: Web, tmp_path: Path) -> None:
    both = 2 * IN_FLIGHT
    first, later = [busy("2")] * both, Page(delay=0.1)
    answers = in_turn(*first, then=later, once=lambda: len(site.page_paths) >= both)
    site = web.site(ALL, {"*": answers})
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/store.db"}
    workers = [make_crawler(Visitor, settings) for _ in range(2)]
    urls = site.urls(*numbers(24))
    await together(*workers, requests=[urls[::2], urls[1::2]])
    times = times_of(site)
    assert len(times) == 24
    assert times[both] >= times[both - 1] + 2
    assert times[both + 1] >= times[both] + later.delay, "one at a time, of both together"
    for worker in workers:
        assert left_over(worker) == []


@pytest.mark.rule("Back-off without Retry-After")
@pytest.mark.parametrize(
    ("status", "settings"),
    [(408, {}), (403, {}), (429, {"REP_BACKOFF": False}), (500, {"REP_BACKOFF": False})],
)
async def test_others_hold_nothing(web: Web, crawl: Crawl, status: int, settings: Any) -> None:
    """``test_frontier`` has how long each answer holds its host."""
    site = web.site(ALL, {"*": in_turn(busy("3600", status))})
    outcome = await crawl(site.urls("/a", "/b"), {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, **settings})
    assert len(site.page_paths) == 2
    assert "robotstxt/backoff_count" not in outcome.stats


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_robots_txt_that_asks_for_time_holds_its_host(
    web: Web, crawl: Crawl, is_on: bool
) -> None:
    """Its good copy is used meanwhile."""
    robots = in_turn(Page(ALL, headers={"Cache-Control": "max-age=0"}), then=busy("2", 503))
    site = web.site(robots, {"/1": Page(delay=1.2)})
    settings = {"REP_TTL_RANGE": [1, 1], "REP_TIMEOUT": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    outcome = await crawl(site.urls(*numbers(3)), {**settings, "REP_BACKOFF": is_on})
    times = times_of(site)
    assert len(times) == 3
    assert ("it answered with status 503" in outcome.log.text) is is_on
    assert (outcome.stats.get("robotstxt/backoff_seconds", 0) >= 2) is is_on
    asked = [each.at for each in site.received if each.path == "/robots.txt"]
    assert len(asked) >= 2
    assert (times[2] - asked[1] >= 2) is is_on


async def test_a_robots_txt_has_a_schedule_of_its_own(web: Web, crawl: Crawl) -> None:
    site, other = web.site(busy("3600")), web.site(ALL)
    outcome = await crawl([site.url("/a"), other.url("/b")], {"REP_ON_UNREACHABLE": "allow"})
    assert site.page_paths == ["/a"]
    assert "robotstxt/backoff_count" not in outcome.stats


@pytest.mark.each_loop
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
    first = await crawl(site.urls(*numbers(6)), {**settings, **ANY_STATUS, **held}, most=1)
    sent = len(site.page_paths)
    assert 1 <= sent < 6
    assert left_over(first.crawler) == []
    await crawl([], settings)
    assert site.page_paths == numbers(6)
    times = times_of(site)
    assert times[sent] - times[0] >= 3
