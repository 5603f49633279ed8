"""The pace of a site, judged by when the servers received the requests."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import HtmlResponse
from scrapy.resolver import dnscache

from scrapy_rep import Reason
from scrapy_rep.clock import Clock
from scrapy_rep.frontier import hosts
from scrapy_rep.policies import origins
from testing.clock import FakeClock
from testing.faults import answer_when
from testing.web import Page, Web, gaps, redirect

from .conftest import ALL, EXEMPT, Crawl, InTurn, delayed, in_turn, numbers

PATHS = numbers(5)
FEW = PATHS[:3]


@pytest.mark.rule("Crawl-delay")
@pytest.mark.parametrize(
    ("robots", "settings", "seconds"),
    [
        (delayed(0.1), {}, 0.1),
        (delayed(0.05), {"DOWNLOAD_DELAY": 0.15}, 0.05),
        (delayed(0.15), {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.05, "concurrency": 9}}}, 0.15),
        (delayed(0.1), {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.01}, 0.1),
        (delayed(60), {"REP_MAX_CRAWL_DELAY": 0.1}, 0.1),
        (ALL + "Request-rate: 10/1\n", {}, 0.1),
        (ALL + "Request-rate: 20/1s\nCrawl-delay: 0.1\n", {}, 0.1),  # the slower one
        (ALL + "Request-rate: 10/1s\nCrawl-delay: 0.05\n", {}, 0.1),
        ("User-agent: a\nCrawl-delay: 60\nUser-agent: testbot\nCrawl-delay: 0.1\n", {}, 0.1),
    ],
)
async def test_requests_are_no_closer_together_than_the_crawl_delay(
    web: Web, crawl: Crawl, robots: str, settings: dict[str, Any], seconds: float
) -> None:
    site = web.site(robots)
    await crawl(site.urls(*FEW), settings)
    assert site.page_paths == FEW
    assert min(gaps(site)) >= seconds


OUTSIDE = "Outside its Visit-time, requests wait up to 300 s (REP_MAX_WAIT), then they are dropped."


@pytest.mark.parametrize(
    ("robots", "settings", "line"),
    [
        (
            delayed(60),
            {"REP_MAX_CRAWL_DELAY": 0.1},
            "Crawl-delay: 60. Requests to its host are at least 0.1 s apart now.",
        ),
        (
            f"{ALL}Crawl-delay: 60\nRequest-rate: 1/9\nRequest-rate: 1/9s 0000-2400\n"
            "Request-rate: 2/5\nRequest-rate: 1/2\nVisit-time: 0000-2400\n",
            {"REP_MAX_CRAWL_DELAY": 0.1},
            "Crawl-delay: 60, Request-rate: 1/9s, "
            "Request-rate: 1/9s from 00:00 to 24:00 UTC, Request-rate: 2/5s, and 1 more, "
            "Visit-time: 00:00 to 24:00 UTC. Requests to its host are at least 0.1 s apart now. "
            f"{OUTSIDE}",
        ),
        (f"{ALL}Visit-time: 0000-2400", {}, f"Visit-time: 00:00 to 24:00 UTC. {OUTSIDE}"),
        (delayed(60), {"REP_OBEY_RATE_LIMITS": False}, None),
        ("User-agent: other\nCrawl-delay: 60\nDisallow:\n", {}, None),
    ],
    ids=["above the most", "everything", "hours alone", "not obeyed", "for another"],
)
async def test_a_pace_that_applies_is_reported_once(
    web: Web, crawl: Crawl, robots: str, settings: dict[str, Any], line: str | None
) -> None:
    site = web.site(robots)
    outcome = await crawl(site.urls(*PATHS), settings)
    assert site.page_paths == PATHS
    assert sum(gaps(site)) < 30
    reports = [each for each in outcome.log.records if " sets " in each.getMessage()]
    expected = [("INFO", f"The robots.txt of {site.root} sets {line}")] if line else []
    assert [(each.levelname, each.getMessage()) for each in reports] == expected


class OneSlot(Downloader):
    """Has one slot for every request."""

    def get_slot_key(self, request: Request) -> str:
        return "the only one"


class Shuffler:
    """Gives each request a slot of its own, as middlewares for proxies do."""

    def process_request(self, request: Request) -> None:
        request.meta["download_slot"] = request.url


@pytest.mark.filterwarnings("ignore:The CONCURRENT_REQUESTS_PER_IP setting is deprecated")
@pytest.mark.parametrize(
    ("meta", "settings"),
    [
        pytest.param({"download_slot": "shared"}, {}, id="one, by the requests"),
        pytest.param({}, {"DOWNLOADER": OneSlot}, id="one, by the downloader"),
        pytest.param(
            {},
            {
                "CONCURRENT_REQUESTS_PER_IP": 8,
                "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
            },
            id="one, by the address",
        ),
        pytest.param({}, {"DOWNLOADER_MIDDLEWARES": {Shuffler: 900}}, id="many, set late"),
    ],
)
async def test_the_pace_is_the_sites_whatever_the_slots(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, meta: Any, settings: dict[str, Any]
) -> None:
    for host in ("127.0.0.2", "127.0.0.3"):
        monkeypatch.setitem(dnscache, host, "127.0.0.1")
    quick = web.site(delayed(0.1), host="127.0.0.2")
    plain = web.site(ALL, host="127.0.0.3")
    third = answer_when(lambda: len(quick.page_paths + plain.page_paths) == 10, Page())
    slow = web.site(delayed(0.25), {"*": in_turn(Page(), Page(), third)})
    priorities = {slow: 0, quick: 0, plain: -3}
    requests = [
        Request(url, meta=dict(meta), priority=priority)
        for site, priority in priorities.items()
        for url in site.urls(*PATHS)
    ]
    await crawl(requests, settings)
    assert sorted(slow.page_paths) == sorted(quick.page_paths) == sorted(plain.page_paths) == PATHS
    assert min(gaps(slow)) >= 0.25
    assert min(gaps(quick)) >= 0.1
    # The fourth page of the slow site is requested after the answer to the third.
    assert max(quick.received[-1].at, plain.received[-1].at) < slow.received[4].at


class Browser:
    """Answers in ``process_request``, as the middleware of scrapy-selenium4 does."""

    visits: ClassVar[list[tuple[float, float]]] = []

    async def process_request(self, request: Request) -> HtmlResponse | None:
        if request.meta.get("is_robotstxt_request"):
            return None
        began = monotonic()
        await Clock().sleep(0.2)
        self.visits.append((began, monotonic()))
        if request.url.endswith("/fails"):
            raise OSError("the browser crashed")
        return HtmlResponse(request.url, request=request)


async def test_the_pace_is_kept_where_no_download_slot_is_passed(web: Web, crawl: Crawl) -> None:
    Browser.visits.clear()
    site = web.site(f"{delayed(0.2)}Disallow: /private\n")
    settings = {"DOWNLOADER_MIDDLEWARES": {Browser: 800}}
    await crawl(site.urls("/1", "/2", "/fails", "/private", "/3"), settings)
    assert site.paths == ["/robots.txt"]
    assert len(Browser.visits) == 4
    assert all(second[0] - first[1] > 0.19 for first, second in pairwise(Browser.visits))


@pytest.mark.parametrize(
    ("meta", "stored", "first"),
    [
        pytest.param(EXEMPT, False, "/first", id="an exempt page"),
        pytest.param({}, True, "/robots.txt", id="perhaps a page of another crawler"),
    ],
)
async def test_the_first_page_waits_after_other_requests(
    web: Web, crawl: Crawl, tmp_path: Path, meta: dict[str, Any], stored: bool, first: str
) -> None:
    site = web.site(delayed(0.4))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/store.db"} if stored else {}
    then = {site.url("/first"): [Request(site.url("/second"))]}
    await crawl([Request(site.url("/first"), meta=meta)], settings, spider=InTurn, then=then)
    assert site.paths[0] == first
    at = {received.path: received.at for received in site.received}
    assert at["/second"] - at["/first"] >= 0.4
    if stored:
        assert at["/first"] - at["/robots.txt"] >= 0.4


async def test_exempt_pages_keep_the_pace_of_a_host_that_was_forgotten(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "MAX_IDLE_HOSTS", 0)
    monkeypatch.setattr(origins, "MAX_PARSED", 1)
    slow = web.site(delayed(0.2))
    other = web.site(ALL, {"/": Page(b"", delay=0.4)}, host="127.0.0.2")
    exempt = [Request(url, meta=dict(EXEMPT)) for url in slow.urls("/2", "/3")]
    then = {slow.url("/1"): [Request(other.url("/"))], other.url("/"): exempt}
    await crawl(slow.urls("/1"), spider=InTurn, then=then)
    assert slow.page_paths == ["/1", "/2", "/3"]
    assert slow.received[3].at - slow.received[2].at >= 0.2


async def test_a_redirect_keeps_the_pace_of_its_target(web: Web, crawl: Crawl) -> None:
    third = answer_when(lambda: len(plain.page_paths) == 7, Page())
    slow = web.site(delayed(0.4), {"*": in_turn(Page(), Page(), third)}, host="127.0.0.2")
    moved = {path: redirect(slow.url(f"/from{path}"), 302) for path in ("/x", "/y")}
    plain = web.site(ALL, moved)
    await crawl([*slow.urls("/a", "/b"), *plain.urls("/x", "/y", *PATHS)])
    assert sorted(slow.page_paths) == ["/a", "/b", "/from/x", "/from/y"]
    assert min(gaps(slow)) >= 0.4
    assert sorted(plain.page_paths) == sorted(["/x", "/y", *PATHS])
    assert plain.received[-1].at < slow.received[4].at, "after the answer to the third page"


# Visit-time

WINDOW = ALL + "Visit-time: 0600-0845\n"
MIDNIGHT, HOUR = 20_000 * 86_400, 3600


async def test_a_late_visit_time_drops_requests(web: Web, crawl: Crawl, clock: FakeClock) -> None:
    clock.set_forward = MIDNIGHT + 9 * HOUR - clock.now
    site = web.site(WINDOW)
    outcome = await crawl(site.urls("/a"))
    assert site.paths == ["/robots.txt"]
    assert outcome.reasons == {site.url("/a"): Reason.VISIT_TIME}
    (error,) = outcome.failures.values()
    assert str(error) == "Forbidden by robots.txt: visit-time: 06:00 to 08:45 UTC"
    assert outcome.stats["robotstxt/forbidden/visit-time"] == 1
    await crawl(site.urls("/a"), {"REP_OBEY_RATE_LIMITS": False})
    assert site.page_paths == ["/a"]
