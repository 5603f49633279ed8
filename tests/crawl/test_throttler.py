"""The throttler that Scrapy develops gets the pace of sites, and the pace is kept with it.

It is not released: :mod:`tests.throttler` stands for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import _schedule_coro

from testing.faults import answer_when
from testing.web import Page, text
from tests.throttler import Scope, ThrottledDownloader, ThrottledEngine

from .conftest import Caller, Outcome, Visitor, our_warnings

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Site, Web

    from .conftest import Crawl

PATHS = [f"/{number}" for number in range(4)]
SLOWLY = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.4\n"
SETTINGS = {
    "DOWNLOADER": ThrottledDownloader,
    # Scrapy's default looks at the slots of the downloader.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
}


@pytest.fixture(autouse=True)
def throttled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have crawlers make an engine with a throttler."""
    monkeypatch.setattr("scrapy.crawler.ExecutionEngine", ThrottledEngine)


def gaps(site: Site) -> list[float]:
    return [later.at - sooner.at for sooner, later in pairwise(site.received)]


def throttler_of(outcome: Outcome) -> Any:
    return outcome.crawler.throttler  # type: ignore[attr-defined]


def limits_of(outcome: Outcome) -> tuple[float, int, float]:
    scope: Scope = throttler_of(outcome).scopes["127.0.0.1"]
    return scope.get_base_delay(), scope.get_concurrency(), scope._jitter


@pytest.mark.parametrize("count", [1, 4])
async def test_the_throttler_gets_the_pace_of_a_site(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    site = web.site(SLOWLY)
    outcome = await crawl(site.urls(*PATHS[:count]), SETTINGS)
    assert site.page_paths == PATHS[:count]
    assert min(gaps(site)) >= 0.4
    assert limits_of(outcome) == (0.4, 1, 0)
    assert our_warnings(caplog) == []
    assert "Traceback" not in caplog.text


async def test_the_delay_of_the_crawl_is_kept_where_it_is_longer(web: Web, crawl: Crawl) -> None:
    site = web.site(SLOWLY)
    outcome = await crawl(site.urls(*PATHS), {**SETTINGS, "DOWNLOAD_DELAY": 0.6})
    assert site.page_paths == PATHS
    assert min(gaps(site)[1:]) >= 0.6
    assert limits_of(outcome) == (0.6, 1, 0)


async def test_the_time_in_the_throttler_is_not_time_that_a_site_takes(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(SLOWLY)
    await crawl(site.urls("/0"), {**SETTINGS, "DOWNLOAD_DELAY": 2, "REP_TIMEOUT": 0.5})
    assert site.paths == ["/robots.txt", "/0"]


async def test_requests_that_are_dropped_or_answered_do_not_delay_others(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(SLOWLY)
    private = [f"/private/{number}" for number in range(20)]
    urls = site.urls("/0", *private, "/robots.txt", "/0", "/0", "/1")
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    outcome = await crawl(urls, {**SETTINGS, **cache})
    assert site.page_paths == ["/0", "/1"]
    assert min(gaps(site)) >= 0.4
    assert len(outcome.failures) == len(private)
    # The queues start a request when the throttler allows it.
    assert throttler_of(outcome).delayed == []


class Both(Caller):
    """Passes requests to ``engine.download_async``, and those with a priority to the scheduler."""

    async def start(self) -> Any:
        self.outcome = Outcome(self.crawler)
        for request in self.asked:
            assert isinstance(request, Request)
            if request.priority:
                yield request
            else:
                _schedule_coro(self._call(request))


async def test_requests_that_wait_keep_no_others_of_their_host_from_starting(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(SLOWLY)
    calls = [Request(url, callback=NO_CALLBACK) for url in site.urls("/a", "/b")]
    pages = [Request(url, priority=1) for url in site.urls(*PATHS)]
    settings = {**SETTINGS, "THROTTLING_SCOPE_CONCURRENCY": 1}
    await crawl([*calls, *pages], settings, spider=Both)
    assert sorted(site.page_paths) == sorted([*PATHS, "/a", "/b"])
    assert min(gaps(site)) >= 0.4


async def test_other_sites_of_a_scope_are_not_slowed(web: Web, crawl: Crawl) -> None:
    slow, other = web.site(SLOWLY), web.site(host="127.0.0.2")
    meta = {"throttling_scopes": ["shared"]}
    urls = [*slow.urls(*PATHS), *other.urls(*PATHS)]
    outcome = await crawl([Request(url, meta=dict(meta)) for url in urls], SETTINGS)
    assert slow.page_paths == PATHS
    assert sorted(other.page_paths) == PATHS
    assert min(gaps(slow)) >= 0.4
    assert other.received[-1].at < slow.received[3].at
    shared = throttler_of(outcome).scopes["shared"]
    assert (shared.get_base_delay(), shared.get_concurrency()) == (0, 8)


class Changer(Visitor):
    """Removes the delay of its site after the first page, and yields more requests."""

    site: Site

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if response.url.endswith("/first"):
            self.site.pages["/robots.txt"] = text("")
            yield from (response.follow(path) for path in PATHS)


async def test_the_limits_of_a_scope_are_restored_when_its_site_has_no_pace(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(SLOWLY)
    settings = {**SETTINGS, "REP_CACHE_MIN": 0.2, "REP_CACHE_MAX": 0.2}
    outcome = await crawl(site.urls("/first"), settings, spider=Changer, site=site)
    assert sorted(site.page_paths) == [*PATHS, "/first"]
    assert limits_of(outcome) == (0, 8, 0.5)


async def test_many_paced_sites_leave_capacity_for_others(web: Web, crawl: Crawl) -> None:
    slow = [web.site(SLOWLY, host=f"127.0.0.{number}") for number in range(51, 57)]
    other = web.site(Page(b""), host="127.0.0.2")
    urls = [url for site in slow for url in site.urls("/private", *PATHS)]
    await crawl([*urls, *other.urls(*PATHS)], {**SETTINGS, "CONCURRENT_REQUESTS": 3})
    for site in slow:
        assert site.page_paths == PATHS
        assert min(gaps(site)) >= 0.4
    assert sorted(other.page_paths) == PATHS
    assert other.received[-1].at < min(site.received[-1].at for site in slow)


async def test_silent_sites_leave_capacity_for_others(web: Web, crawl: Crawl) -> None:
    """The silent sites answer only when the other site is complete."""
    other = web.site(SLOWLY, host="127.0.0.2")
    late = answer_when(lambda: len(other.page_paths) == len(PATHS), Page(status=503))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(51, 57)]
    urls = [url for site in silent for url in site.urls(*PATHS)]
    settings = {**SETTINGS, "CONCURRENT_REQUESTS": 2, "REP_TIMEOUT": 60}
    outcome = await crawl([*urls, *other.urls(*PATHS)], settings)
    assert other.page_paths == PATHS
    assert len(outcome.failures) == len(urls)
    origins = outcome.middleware.origins
    assert {origins[site.root].failure for site in silent} == {"status 503"}, "no timeout"
