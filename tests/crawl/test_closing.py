"""A spider that closes while its requests wait: the crawl ends, and no request is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import pytest
from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware
from testing.counters import left_over
from testing.faults import answer_when, silence, stall
from testing.web import Misbehaviour, Page, Site, Web, redirect, text

from .conftest import CallerAndCloser, Clock, Closer, Crawl, our_warnings, until
from .following import FOLLOWING

ALL = "User-agent: *\nDisallow:\n"
DOWN = Page(b"", 503, {"Retry-After": "250"})
TDM = "/.well-known/tdmrep.json"
SLOW = text(f"{ALL}Crawl-delay: 30\n")


class Wait(NamedTuple):
    """What requests wait for."""

    robots: Page | Misbehaviour = text(ALL)
    settings: Mapping[str, Any] = MappingProxyType({})
    pages: Mapping[str, Page | Misbehaviour] = MappingProxyType({})


WAITS = {
    "a silent robots.txt": Wait(silence, {"REP_TIMEOUT": 600, "DOWNLOAD_TIMEOUT": 600}),
    "a robots.txt that another crawl may want": Wait(silence, {"REP_STORE": "sqlite:///{}/s.db"}),
    "the pace of several crawls": Wait(SLOW, {"REP_STORE": "sqlite:///{}/s.db"}),
    "the next attempt": Wait(DOWN, {"REP_UNREACHABLE": "wait"}),
    "the Visit-time": Wait(text(f"{ALL}Visit-time: 0600-0845\n"), {"REP_MAX_WAIT": 7200}),
    "a TDM file": Wait(settings={"REP_TDMREP": True}, pages={TDM: stall()}),
    "the robots.txt of the final URL": Wait(
        settings={**FOLLOWING, "REP_CHECK_FINAL_URL": "drop", "REP_TIMEOUT": 300},
        pages={"/1": redirect("OTHER/1"), "/2": redirect("OTHER/2")},
    ),
}


class Waiting(NamedTuple):
    """The sites of a crawl whose requests wait."""

    site: Site
    other: Site
    """The site of the final URLs."""
    settings: dict[str, Any]
    is_sent: bool
    """Whether the responses wait, not the requests."""

    @property
    def awaited(self) -> list[Site]:
        return [self.other if "REP_CHECK_FINAL_URL" in self.settings else self.site]


@pytest.fixture(params=WAITS)
def waiting(request: pytest.FixtureRequest, web: Web, clock: Clock, tmp_path: Path) -> Waiting:
    wait = WAITS[request.param]
    clock.set(20_000 * 86_400 + 5 * 3600)  # an hour before the Visit-time
    other = web.site(silence, host="127.0.0.2")
    pages = {
        path: redirect(page.headers["Location"].replace("OTHER", other.root))
        if isinstance(page, Page)
        else page
        for path, page in wait.pages.items()
    }
    store = str(wait.settings.get("REP_STORE", "")).format(tmp_path)
    settings = {**wait.settings, "REP_STORE": store or None, "CLOSESPIDER_TIMEOUT": 120}
    return Waiting(web.site(wait.robots, pages), other, settings, bool(wait.pages))


async def test_the_next_crawl_has_the_requests(
    waiting: Waiting, crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site, other, settings, _ = waiting
    settings["JOBDIR"] = str(tmp_path)
    asked = [Request(url) for url in site.urls("/1", "/2")]
    first = await crawl(asked, settings, spider=Closer, awaited=waiting.awaited)
    assert first.stats["finish_reason"] == "enough"
    assert (first.responses, first.failures) == ({}, {})
    assert left_over(first.crawler) == []
    assert "Traceback" not in caplog.text
    assert [each for each in our_warnings(caplog) if "is unreachable" not in each] == []
    site.pages["/robots.txt"] = other.pages["/robots.txt"] = text(ALL)
    site.pages[TDM] = Page(b"", 404)
    again = {"REP_OBEY_RATE_LIMITS": False, "REP_LOCAL_RULES": None, "REP_UNREACHABLE": "allow"}
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


class Watched(Closer):
    """Says whether it has given up its fetches."""

    crawlers: ClassVar[list[Crawler]] = []

    async def start(self) -> AsyncIterator[Any]:
        self.crawlers.append(self.crawler)
        async for request in super().start():
            yield request

    @classmethod
    def has_given_up(cls) -> bool:
        middleware = cls.crawlers[-1].get_downloader_middleware(RobotsTxtMiddleware)
        assert middleware is not None
        policies: Any = middleware.policies
        return policies._closing and not policies._fetches


async def test_a_robots_txt_that_nothing_waits_for_leaves_its_download_slot(
    web: Web, crawl: Crawl
) -> None:
    pages = {
        "/slow": answer_when(Watched.has_given_up, text("slow")),
        "/slower": answer_when(Watched.has_given_up, Page(b"", delay=0.5)),
    }
    site, other = web.site(ALL, pages), web.site(ALL, pages, host="127.0.0.2")
    urls = site.url("/slow"), other.url("/slower")  # the second one keeps the crawl open
    exempt = [Request(url, meta={"dont_obey_robotstxt": True}) for url in urls]
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 1, "CLOSESPIDER_TIMEOUT": 120}
    await crawl([*exempt, site.url("/a")], settings, spider=Watched, awaited=[site])
    assert site.paths == ["/slow"]
