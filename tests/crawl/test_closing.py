"""A spider that closes while its requests wait: the crawl ends, and no request is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.clock import Clock
from scrapy_rep.frontier.frontier import Frontier
from scrapy_rep.frontier.queued import find_frontier
from scrapy_rep.policies.origins import OriginTable
from scrapy_rep.scrapy_internals import WATCH_INTERVAL
from testing.clock import FakeClock
from testing.counters import left_over
from testing.faults import answer_when, silence, stall
from testing.web import Misbehaviour, Page, Site, Web, redirect, text

from .conftest import (
    ALL,
    EXEMPT,
    FOLLOWING,
    CallerAndCloser,
    Closer,
    Crawl,
    InTurn,
    Outcome,
    Visitor,
    in_turn,
    make_crawler,
    numbers,
    our_warnings,
    run_crawler,
    until,
)

DOWN = Page(b"", 503, {"Retry-After": "250"})
TDM = "/.well-known/tdmrep.json"
SLOW = text(f"{ALL}Crawl-delay: 30\n")


WAITS: dict[str, tuple[Page | Misbehaviour, dict[str, Any]]] = {
    "a silent robots.txt": (silence, {"REP_TIMEOUT": 600, "DOWNLOAD_TIMEOUT": 600}),
    "a robots.txt that another crawl may want": (silence, {"REP_STORE": "sqlite:///{}/s.db"}),
    "the pace of several crawls": (SLOW, {"REP_STORE": "sqlite:///{}/s.db"}),
    "the next attempt": (DOWN, {"REP_ON_UNREACHABLE": "wait"}),
    "the Visit-time": (text(f"{ALL}Visit-time: 0600-0845\n"), {"REP_MAX_WAIT": 7200}),
    "a TDM file": (text(ALL), {"REP_TDMREP": True}),
    "the robots.txt of the final URL": (
        text(ALL),
        {**FOLLOWING, "REP_CHECK_FINAL_URL": "drop", "REP_TIMEOUT": 300},
    ),
}
"""What requests wait for: a robots.txt, and settings."""


def frontier_of(crawler: Crawler) -> Frontier:
    """The frontier of a crawl that has begun."""
    frontier = find_frontier(crawler)
    assert frontier is not None
    return frontier


async def begin(crawler: Crawler, **arguments: Any) -> Deferred[None]:
    """Begin a crawl. Returns what fires at its end."""
    opened: list[object] = []
    crawler.signals.connect(lambda: opened.append(True), signals.spider_opened, weak=False)
    crawled = deferred_from_coro(run_crawler(crawler, **arguments))
    await until(lambda: opened)
    return crawled


class Waiting(NamedTuple):
    """The sites of a crawl whose requests wait."""

    site: Site
    other: Site
    """The site of the final URLs."""
    settings: dict[str, Any]
    is_sent: bool
    """Whether the responses wait, not the requests."""
    awaited: list[Site]


@pytest.fixture(params=WAITS)
def waiting(request: pytest.FixtureRequest, web: Web, clock: FakeClock, tmp_path: Path) -> Waiting:
    robots, settings = WAITS[request.param]
    clock.set_forward = 20_000 * 86_400 + 5 * 3600 - clock.now  # an hour before the Visit-time
    other = web.site(silence, host="127.0.0.2")
    pages: dict[str, Page | Misbehaviour] = {TDM: stall()}
    if "REP_CHECK_FINAL_URL" in settings:
        pages |= {path: redirect(other.url(path)) for path in ("/1", "/2")}
    store = str(settings.get("REP_STORE", "")).format(tmp_path)
    settings = {**settings, "REP_STORE": store or None, "CLOSESPIDER_TIMEOUT": 120}
    site, is_final = web.site(robots, pages), "REP_CHECK_FINAL_URL" in settings
    is_sent = is_final or "REP_TDMREP" in settings
    return Waiting(site, other, settings, is_sent, [other if is_final else site])


async def test_the_next_crawl_has_requests(waiting: Waiting, crawl: Crawl, tmp_path: Path) -> None:
    site, other, settings, _, awaited = waiting
    settings["JOBDIR"] = str(tmp_path)
    asked = [Request(url) for url in site.urls("/1", "/2")]
    first = await crawl(asked, settings, spider=Closer, awaited=awaited)
    assert first.stats["finish_reason"] == "enough"
    assert (first.responses, first.failures) == ({}, {})
    assert left_over(first.crawler) == []
    assert "Traceback" not in first.log.text
    assert [each for each in first.warnings if "is unreachable" not in each] == []
    site.pages["/robots.txt"] = other.pages["/robots.txt"] = text(ALL)
    site.pages[TDM] = Page(b"", 404)
    again = {"REP_OBEY_RATE_LIMITS": False, "REP_LOCAL_RULES": None, "REP_ON_UNREACHABLE": "allow"}
    second = await crawl([], {**settings, **again})
    assert len(second.responses) == 2
    requests = [response.request for response in second.responses.values()]
    assert not any(request is None or request.dont_filter for request in requests)
    assert second.stats["finish_reason"] == "finished"
    assert "robotstxt/store/wait_count" not in second.stats, "a claim was left"


async def test_callers_of_the_engine_wait_no_longer_than_rep_max_wait(
    waiting: Waiting, clock: FakeClock
) -> None:
    urls = waiting.site.urls("/1", "/2")
    settings = {**waiting.settings, "REP_MAX_WAIT": 3700}
    crawler = make_crawler(CallerAndCloser, settings)
    crawled = await begin(crawler, requests=urls, awaited=waiting.awaited)
    await until(lambda: frontier_of(crawler).closing.has_begun)
    await Clock().sleep(2 * WATCH_INTERVAL)
    outcome: Outcome = crawler.spider.outcome  # type: ignore[union-attr]
    assert not {*outcome.failures, *outcome.responses} - {"data:,"}, "they go on waiting"
    clock.now += 3700
    await maybe_deferred_to_future(crawled)
    # The crawl does not wait for those who called.
    await until(lambda: len({*outcome.failures, *outcome.responses} - {"data:,"}) == 2)
    sent = [path for path in waiting.site.page_paths if path != TDM]
    assert sent == (["/1", "/2"] if waiting.is_sent else [])
    assert set(outcome.failures) == (set() if TDM in waiting.site.paths else set(urls))
    for error in outcome.failures.values():
        assert isinstance(error, RobotsTxtDisallowed) or "the crawl was stopped" in str(error)
    assert outcome.stats.get("robotstxt/abandoned_count", 0) == (0 if waiting.is_sent else 2)


class Downloads(Visitor):
    """Yields an item with two files for each page, or downloads the files itself, and closes itself
    at the first request for a file or its robots.txt.
    """

    files: Site
    calls = False

    async def parse(self, response: Any, **_: Any) -> Any:
        urls = [self.files.url(f"{urlsplit(response.url).path}.{number}") for number in (1, 2)]
        if self.calls:
            responses = [await self.engine.download_async(Request(url)) for url in urls]
            yield {"downloaded": [each.url for each in responses]}
        else:
            yield {"file_urls": urls}


@pytest.mark.parametrize("calls", [False, True], ids=["pipeline", "callback"])
@pytest.mark.parametrize(
    ("robots", "first"),
    [
        pytest.param(text(f"{ALL}Crawl-delay: 0.3\n"), Page(), id="the pace of their host"),
        pytest.param(Page(ALL, delay=1.5), Page(), id="the robots.txt of a new host"),
        pytest.param(text(ALL), Page(b"", 429, {"Retry-After": "1"}), id="a hold"),
    ],
)
async def test_a_stop_loses_no_file(
    web: Web,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    robots: Page,
    first: Page,
    calls: bool,
) -> None:
    site, files = web.site(ALL), web.site(robots, {"*": in_turn(first)}, host="127.0.0.2")
    settings = {
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(tmp_path / "files"),
        "JOBDIR": str(tmp_path / "job"),
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "RETRY_ENABLED": True,
    }
    crawler, items = make_crawler(Downloads, settings), list[Any]()
    crawler.signals.connect(lambda item: items.append(item), signals.item_scraped, weak=False)
    urls = site.urls(*numbers(3))
    crawled = await begin(crawler, requests=urls, files=files, calls=calls)
    await until(lambda: len(site.page_paths) == 3 and files.received)
    if first.status == 429:
        await until(lambda: crawler.stats.get_value("robotstxt/backoff_count"))
    crawler.spider.stop()  # type: ignore[union-attr]
    await maybe_deferred_to_future(crawled)
    assert len(set(files.page_paths)) == 6
    name = "downloaded" if calls else "files"
    assert [len(item[name]) for item in items] == [2, 2, 2]
    assert files.robots_fetches == 1
    assert our_warnings(caplog) == []
    assert left_over(crawler) == []


@pytest.mark.parametrize("shares", [False, True], ids=["JOBDIR", "several workers"])
@pytest.mark.parametrize("is_redirect", [False, True], ids=["other port", "redirect"])
async def test_the_end_of_a_crawl_is_not_a_failure_of_a_site(
    web: Web, crawl: Crawl, tmp_path: Path, shares: bool, is_redirect: bool
) -> None:
    """The robots.txt waits for the pace of a host when the spider closes."""
    paced = web.site(text(f"{ALL}Crawl-delay: 2\n"))
    robots = redirect(paced.url("/moved")) if is_redirect else text(ALL)
    other = web.site(robots, host="127.0.0.2" if is_redirect else "127.0.0.1")
    settings = {"JOBDIR": str(tmp_path / "job")}
    if shares:
        settings["REP_STORE"] = f"sqlite:///{tmp_path}/s.db"
    then = {paced.url("/1"): [Request(other.url("/2"))]}
    crawler = make_crawler(InTurn, settings)
    first = await begin(crawler, requests=[paced.url("/1")], then=then)
    await until(lambda: frontier_of(crawler).waiters)
    crawler.spider.stop()  # type: ignore[union-attr]
    await maybe_deferred_to_future(first)
    assert other.paths == (["/robots.txt"] if is_redirect else [])
    second = await crawl([], {**settings, "REP_OBEY_RATE_LIMITS": False})
    assert list(second.responses) == [other.url("/2")]
    assert "is unreachable" not in second.log.text
    assert second.stats["finish_reason"] == "finished"


async def test_a_robots_txt_that_nothing_waits_for_leaves_its_download_slot(web: Web) -> None:
    def has_given_up() -> bool:
        middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        return (
            middleware.crawl.closing.has_begun and not middleware.crawl.fetches.fetcher.in_progress
        )

    pages = {
        "/slow": answer_when(has_given_up, text("slow")),
        "/slower": answer_when(has_given_up, Page(b"", delay=0.5)),
    }
    site, other = web.site(ALL, pages), web.site(ALL, pages, host="127.0.0.2")
    urls = site.url("/slow"), other.url("/slower")  # the second one keeps the crawl open
    exempt = [Request(url, meta=dict(EXEMPT)) for url in urls]
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CLOSESPIDER_TIMEOUT": 120}
    crawler = make_crawler(Closer, settings)
    await run_crawler(crawler, requests=[*exempt, site.url("/a")], awaited=[site])
    assert site.paths == ["/slow"]


async def test_a_job_that_fails_does_not_keep_a_stopped_crawl_open(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(OriginTable, "measure", fail)
    site = web.site(text(f"{ALL}Crawl-delay: 200\n"))
    settings = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
    outcome = await crawl(site.urls("/1", "/2"), settings, spider=Closer, awaited=[site])
    assert site.paths == ["/robots.txt", "/1"]
    messages = {each.getMessage() for each in outcome.log.records if each.levelname == "ERROR"}
    assert messages == {
        "A periodic job of the crawl has failed, and is tried again: limit the memory of origins"
    }
