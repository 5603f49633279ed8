"""A spider that closes while its requests wait: the crawl ends, and no request is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scrapy import Request

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware
from testing.counters import left_over
from testing.faults import answer_when, silence, stall
from testing.web import Misbehaviour, Page, Site, Web, redirect, text

from .conftest import (
    ALL,
    EXEMPT,
    FOLLOWING,
    CallerAndCloser,
    Clock,
    Closer,
    Crawl,
    make_crawler,
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
def waiting(request: pytest.FixtureRequest, web: Web, clock: Clock, tmp_path: Path) -> Waiting:
    robots, settings = WAITS[request.param]
    clock.set(20_000 * 86_400 + 5 * 3600)  # an hour before the Visit-time
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


async def test_the_callers_of_the_engine_are_answered(waiting: Waiting, crawl: Crawl) -> None:
    urls = waiting.site.urls("/1", "/2")
    outcome = await crawl(urls, waiting.settings, spider=CallerAndCloser, awaited=waiting.awaited)
    # The crawl does not wait for those who called.
    await until(lambda: len({*outcome.failures, *outcome.responses} - {"data:,"}) == 2)
    sent = [path for path in waiting.site.page_paths if path != TDM]
    assert sent == (["/1", "/2"] if waiting.is_sent else [])
    assert set(outcome.failures) == (set() if TDM in waiting.site.paths else set(urls))
    for error in outcome.failures.values():
        assert isinstance(error, RobotsTxtDisallowed) or str(error) == "the spider is closing"


async def test_a_robots_txt_that_nothing_waits_for_leaves_its_download_slot(web: Web) -> None:
    def has_given_up() -> bool:
        middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        return middleware.frontier.is_closing and not middleware.policies.fetcher.in_progress

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
