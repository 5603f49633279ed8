"""What the log says while a crawl waits, and at its end."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from testing.clock import FakeClock
from testing.faults import silence
from testing.web import Page, Site, Web, text

from .conftest import (
    ALL,
    EXEMPT,
    PRIVATE,
    Crawl,
    Outcome,
    Visitor,
    delayed,
    in_turn,
    numbers,
    until,
)


def lines(outcome: Outcome, start: str) -> list[tuple[str, str]]:
    """The level and the text of each line of the package that begins with a text."""
    found = [(each.levelname, each.getMessage()) for each in outcome.log.records]
    return [(level, line) for level, line in found if line.startswith(start)]


# While it waits


class Poller(Visitor):
    """Lets the periodic jobs run when each site has a request, once before an hour has passed and
    twice after it, and closes itself.
    """

    awaited: Sequence[Site] = ()
    clock: FakeClock

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        await until(lambda: all(site.received for site in self.awaited))
        await until(lambda: self.outcome.responses)
        for seconds in (0, 3600, 0):
            self.clock.now += seconds
            self.outcome.middleware.crawl.poll()
        stats = self.crawler.stats
        assert stats is not None
        self.gauges = dict(stats.get_stats())
        self.stop()


@pytest.mark.parametrize("interval", [3600, 0])
async def test_a_line_at_each_interval_says_what_requests_wait_for(
    web: Web, crawl: Crawl, clock: FakeClock, interval: int
) -> None:
    slow = web.site(delayed(7200), host="127.0.0.2")
    mute = web.site(silence, host="127.0.0.3")
    settings = {
        "LOGSTATS_INTERVAL": interval,
        "REP_MAX_CRAWL_DELAY": 7200,
        "REP_RETRY_TIMES": 2,
        "REP_TIMEOUT": 36_000,
    }
    urls = slow.urls(*numbers(5)) + mute.urls(*numbers(3))
    sites = [slow, mute]
    outcome = await crawl(urls, settings, spider=Poller, awaited=sites, clock=clock)
    expected = (
        "Waiting: 7 requests of 2 sites: 4 for the delay of 127.0.0.2 (7200 s, next in N s), "
        "3 for the robots.txt of 127.0.0.3 (attempt 1 of 3)"
    )
    found = [
        (level, re.sub(r"next in \d+ s", "next in N s", line))
        for level, line in lines(outcome, "Waiting")
    ]
    assert found == ([("INFO", expected)] if interval else [])
    poller: Any = outcome.crawler.spider
    shown = [
        {key.rpartition("/")[2]: value for key, value in stats.items() if "/waiting/" in key}
        for stats in (poller.gauges, outcome.stats)
    ]
    gauges = [{"delay": 4, "robots_txt": 3}, {"delay": 0, "robots_txt": 0}]
    assert shown == (gauges if interval else [{}, {}])


async def test_the_first_failed_attempt_is_logged_once_for_each_site(
    web: Web, crawl: Crawl
) -> None:
    failure = Page(b"", 503, {"Retry-After": "1"})
    sites = [web.site(in_turn(*[failure] * times, then=text(PRIVATE))) for times in range(3)]
    urls = [site.url("/a") for site in sites]
    outcome = await crawl(urls, {"REP_RETRY_TIMES": 2})
    assert not outcome.warnings
    assert sorted(lines(outcome, "The robots.txt of")) == sorted(
        (
            level,
            f"The robots.txt of {site.root} has not arrived: status 503. The next attempt "
            f"({attempt} of 3) begins in 1 s.",
        )
        for site, level, attempt in [
            (sites[1], "INFO", 2),
            (sites[2], "INFO", 2),
            (sites[2], "DEBUG", 3),
        ]
    )


# At its end


class Scraper(Visitor):
    """Makes two items of each page."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        yield {"number": 1}
        yield {"number": 2}


USES = "User-agent: *\nDisallow:\nContent-Signal: ai-train=no\n"
DROPPED = [
    "2 pages say noindex or a past unavailable_after; dropped 4 items: REP_NOINDEX",
    "3 pages refuse a use; dropped 4 items: REP_INTENDED_USES",
    "1 page says nofollow; dropped 0 requests: REP_NOFOLLOW",
]
KEPT = [
    "2 pages say noindex or a past unavailable_after; their items were kept: REP_NOINDEX",
    "3 pages refuse a use; their items were kept: REP_INTENDED_USES",
    "1 page says nofollow; its requests were kept: REP_NOFOLLOW",
]


@pytest.mark.parametrize("obey", [True, False])
@pytest.mark.parametrize("drops", [True, False])
async def test_one_line_says_what_pages_said(
    web: Web, crawl: Crawl, drops: bool, obey: bool
) -> None:
    meta = '<title>x</title>\n<meta name="robots" content="noindex, nofollow">'
    header = {"Content-Signal": "ai-train=no"}
    pages = {
        "/meta": Page(meta, headers=header),
        "/header": text("x", X_Robots_Tag="noindex"),
        "/uses": Page("x", headers=header),
        "/more": Page("x", headers=header),
        "/open": text("x"),
    }
    site = web.site(ALL, pages)
    drop = {"REP_NOINDEX": "drop", "REP_NOFOLLOW": "drop", "REP_INTENDED_USES": ["train-ai"]}
    settings: dict[str, Any] = {**(drop if drops else {}), "ROBOTSTXT_OBEY": obey}
    outcome = await crawl(site.urls(*pages), settings, spider=Scraper)
    (line,) = lines(outcome, "What pages said: ")
    expected = ". ".join(DROPPED if drops else KEPT)
    assert line[0] == "INFO"
    assert line[1].startswith(f"What pages said: {expected}. Each page of which something was ")
    dropped = lines(outcome, "Dropped: ")
    sources = [
        f"{site.url('/meta')} says noindex (line 2, meta: noindex)",
        f"{site.url('/header')} says noindex (X-Robots-Tag: noindex)",
        f"{site.url('/uses')} refuses train-ai (Content-Signal: ai-train=no)",
        f"{site.url('/more')} refuses train-ai (Content-Signal: ai-train=no)",
    ]
    found = sorted((level, text.split("\n")[0].rstrip()) for level, text in dropped)
    twice = [("DEBUG", f"Dropped: {source}") for source in sources for _ in range(2)]
    assert found == (sorted(twice) if drops else [])


META = '<title>x</title>\n<meta name="tdm-reservation" content="1">'


@pytest.mark.parametrize(
    ("robots", "page", "use", "source"),
    [
        (USES, text("x"), "train-ai", "robots.txt, line 3, Content-Signal: ai-train=no"),
        (ALL, Page(META), "tdm", "line 2, meta: tdm-reservation: 1"),
        (ALL, text("x", TDM_Reservation="1"), "tdm", "Tdm-Reservation: 1"),
    ],
)
async def test_what_refuses_a_use_is_named(
    web: Web, crawl: Crawl, robots: str, page: Page, use: str, source: str
) -> None:
    site = web.site(robots, {"/a": page})
    settings = {"REP_INTENDED_USES": ["search", use]}
    outcome = await crawl(site.urls("/a"), settings, spider=Scraper)
    dropped = [line.split("\n")[0].rstrip() for _, line in lines(outcome, "Dropped: ")]
    expected = f"Dropped: {site.url('/a')} refuses {use} ({source})"
    assert dropped == [expected] * 2


async def test_a_crawl_without_statements_and_drops_has_no_line_at_its_end(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(ALL)
    outcome = await crawl(site.urls("/a"), {"REP_NOINDEX": "drop"}, spider=Scraper)
    assert len(outcome.responses) == 1
    for start in ("What pages said", "Dropped", "Exempt", "Waiting", "1 exception"):
        assert not lines(outcome, start)


RULES = """\
[[exception]]
site = "http://127.0.0.1"
rules = "Allow: /private"
until = 2020-01-31
reason = "research"
given_by = "old@example.net"

[[disallow]]
site = "b.example"
rules = "Disallow: /"
until = 2020-01-31
reason = "not now"
given_by = "b@example.net"
"""


@pytest.mark.parametrize("has_ended", [True, False])
async def test_exceptions_are_named_at_the_start_or_counted_at_the_end(
    web: Web, crawl: Crawl, tmp_path: Path, has_ended: bool
) -> None:
    site = web.site(PRIVATE)
    rules = RULES.replace("http://127.0.0.1", site.root)
    path = tmp_path / "rules.toml"
    path.write_text(rules if has_ended else rules.replace("2020-01-31", "9999-01-31"))
    exempt = [Request(site.url(f"/private/{number}"), meta=dict(EXEMPT)) for number in range(2)]
    urls = [*site.urls("/private/a"), *exempt]
    outcome = await crawl(urls, {"REP_LOCAL_RULES": str(path)})
    ended = (
        f"1 exception in {path} (REP_LOCAL_RULES) ended before this crawl: "
        f"{site.root}: research (old@example.net)"
    )
    assert lines(outcome, "1 exception") == ([("INFO", ended)] if has_ended else [])
    exempted = "Exempt from robots.txt: 2 requests with dont_obey_robotstxt"
    if not has_ended:
        exempted += ", 1 request by exceptions in REP_LOCAL_RULES"
    shown = f"{exempted}. A report (REP_REPORT) lists them."
    assert lines(outcome, "Exempt") == [("INFO", shown)]
    assert len(lines(outcome, "Dropped 1 of ")) == has_ended
