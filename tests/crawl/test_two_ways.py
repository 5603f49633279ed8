"""A queue and the downloader agree whether a request may start, waits, or is dropped.

A request that comes from a queue, and one of ``engine.download_async``, take different ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.test import get_crawler

from scrapy_rep import RobotsTxtMiddleware
from scrapy_rep.origin import DAY, Origin
from scrapy_rep.policies.gate import Place
from scrapy_rep.protocol.access import AccessResult, CopyInfo, Rules, Unavailable, Unreachable
from scrapy_rep.protocol.paths import host_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing.clock import FakeClock
from testing.faults import answer_when
from testing.web import Web, text

from .conftest import ALL, FIFO, Crawl, InTurn
from .test_local_rules import disallow, exception

KEY = "http://a.example"
URL = f"{KEY}/robots.txt"
LOCAL_RULES = disallow("a.example", "/local/closed") + exception("a.example", "/local/open")
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ordinary": ("/a", {}),
    "exempt": ("/a", {"dont_obey_robotstxt": True}),
    "for robots.txt": ("/robots.txt", {}),
    "under an exception": ("/local/open", {}),
    "disallowed by a local rule": ("/local/closed", {}),
    "the same, exempt": ("/local/closed", {"dont_obey_robotstxt": True}),
}
PACES = {
    "none": None,
    "a delay": "Crawl-delay: 5\n",
    "open": (-7200, 7200),
    "soon open": (180, 7200),
    "closed": (7200, 9000),
}
"""A line, or when the Visit-time begins and ends, in seconds from now."""


def line(pace: str, now: float) -> str:
    times = PACES[pace]
    if isinstance(times, tuple):
        begin, end = (int(now + seconds) % DAY // 60 for seconds in times)
        return f"Visit-time: {begin // 60:02}{begin % 60:02}-{end // 60:02}{end % 60:02}\n"
    return times or ""


class State:
    """Brings an origin into a state."""

    def __init__(self, middleware: RobotsTxtMiddleware, pace: str) -> None:
        policies = middleware.policies
        self.origin: Origin = policies.origins.find_or_add(KEY)
        self.now, self.monotonic = policies.now(), middleware.crawl.clock.monotonic()
        lines = line(pace, middleware.crawl.clock.time())
        self.body = f"User-agent: testbot\n{lines}Disallow: /b\n\nUser-agent: other\nDisallow: /b\n"

    def begins(self, ago: float = 0) -> None:
        self.origin.start_fetch(self.now - ago)

    def ends(self, event: Any, ago: float = 0, *, seconds_ago: float = 1e5) -> None:
        self.begins(ago)
        self.origin.apply(event, self.now - ago)
        self.origin.notes.answer(self.monotonic - seconds_ago, 0)

    def gets(self, ago: float, lasts: float, *, is_used: bool = True) -> None:
        """Get rules so many seconds ago, for so many seconds from now."""
        body = self.body.encode()
        content, copy = RobotsTxt.parse(body), CopyInfo(URL)
        rules = Rules(
            content=content, body=body, copy=copy, status=200, expires_at=self.now + lasts
        )
        self.ends(rules, ago, seconds_ago=1e5 if is_used else 0)
        if is_used:
            self.origin.notes.use()

    def fails(self, ago: float = 0) -> None:
        self.ends(Unreachable("status 503", 503, URL), ago, seconds_ago=0)


def fails_for_long(state: State) -> None:
    state.fails(31 * DAY)
    state.origin.refresh_at = state.now + 100


STATES: dict[str, list[Any]] = {
    "unknown": [],
    "fetching": [State.begins],
    "fresh": [lambda state: state.gets(0, DAY)],
    "due for a refresh": [lambda state: state.gets(950, 50)],
    "in a refresh": [lambda state: state.gets(950, 50), State.begins],
    "expired": [lambda state: state.gets(1000, -1)],
    "expired, and fetched": [lambda state: state.gets(1000, -1), State.begins],
    "expired, and unused": [lambda state: state.gets(1000, -0.1, is_used=False)],
    "404": [lambda state: state.ends(Unavailable(URL, state.now + DAY, 404))],
    "401": [
        lambda state: state.ends(
            Unavailable(URL, state.now + DAY, 401, result=AccessResult.DISALLOWED)
        )
    ],
    "unreachable": [State.fails],
    "unreachable, and due": [lambda state: state.fails(1000)],
    "unreachable, and fetched": [lambda state: state.fails(1000), State.begins],
    "unreachable for a month": [fails_for_long],
    "a good copy": [lambda state: state.gets(3000, -2000), State.fails],
    "a good copy, and due": [lambda state: state.gets(3000, -2000), lambda each: each.fails(1000)],
}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    state=st.sampled_from(sorted(STATES)),
    pace=st.sampled_from(sorted(PACES)),
    kind=st.sampled_from(sorted(REQUESTS)),
    agent=st.sampled_from(["testbot", "other", None]),
    last=st.sampled_from(["testbot", "other", None]),
    on_unreachable=st.sampled_from(["disallow", "wait", "allow"]),
    obeys_rates=st.booleans(),
)
def test_both_ways_give_the_same_answer(
    tmp_path: Path,
    state: str,
    pace: str,
    kind: str,
    agent: str | None,
    last: str | None,
    on_unreachable: str,
    obeys_rates: bool,
) -> None:
    local = tmp_path / "rules.toml"
    local.write_text(LOCAL_RULES)
    middleware = RobotsTxtMiddleware(
        get_crawler(
            settings_dict={
                "REP_DISALLOW_STATUSES": [401],
                "REP_LOCAL_RULES": str(local),
                "REP_OBEY_RATE_LIMITS": obeys_rates,
                "REP_ON_UNREACHABLE": on_unreachable,
                "ROBOTSTXT_OBEY": True,
                "USER_AGENT": "testbot",
            }
        )
    )
    policies = middleware.policies
    fetcher = middleware.crawl.fetches.fetcher
    fetcher.start = lambda *_: None  # type: ignore[method-assign]  # it never ends
    origin = State(middleware, pace)
    for change in STATES[state]:
        change(origin)
    path, meta = REQUESTS[kind]
    headers = [{"User-Agent": name} if name else {} for name in (agent, last)]
    request, before = (Request(KEY + path, headers=each, meta=dict(meta)) for each in headers)
    if origin.origin.content is not None:
        seconds = policies.delay(origin.origin, policies.tokens(before)) or 0
        middleware.frontier.set_delay(host_of(KEY), KEY, seconds)
    address, delay = policies.address(request), middleware.frontier.delay_of(host_of(KEY))
    queue, downloader = policies.gate(address, delay), middleware._apply_pace(request)
    assert queue.place is downloader.place
    if queue.seconds < 1e5:
        assert queue.seconds == pytest.approx(downloader.seconds, abs=1)
    if queue.place is Place.DROPS:
        verdict = downloader.verdict
        if verdict is None:
            verdict = policies.local_disallow(KEY, request.url)
        assert verdict is not None
        assert not verdict.allowed


# What the comparison has found, judged by what a server received

SLOW, FAST = ({"User-Agent": name} for name in ("slow", "fast"))
EACH_AGENT = "User-agent: slow\n{}Disallow: /x\n\nUser-agent: fast\nDisallow: /x\n"
ONE = {**FIFO, "CONCURRENT_REQUESTS": 1}


@pytest.mark.each_loop
async def test_the_delay_of_each_user_agent_is_kept(web: Web, crawl: Crawl) -> None:
    site = web.site(EACH_AGENT.format("Crawl-delay: 0.4\n"))
    urls = site.urls("/1", "/2", "/3", "/4", "/5", "/6")
    requests = [Request(url, headers=(SLOW, FAST)[n % 2]) for n, url in enumerate(urls)]
    outcome = await crawl(requests, ONE)
    assert len(outcome.responses) == 6
    pages = [each for each in site.received if each.path != "/robots.txt"]
    slow = [n for n, each in enumerate(pages) if each.headers["user-agent"] == "slow" and n]
    assert slow
    assert all(pages[n].at - pages[n - 1].at >= 0.4 for n in slow)


@pytest.mark.rule("Visit-time")
async def test_the_visit_time_of_each_user_agent_applies(
    web: Web, crawl: Crawl, clock: FakeClock
) -> None:
    robots = text(EACH_AGENT.format("Visit-time: 0600-0845\n"))

    def is_early() -> bool:
        clock.set_forward = 20_000 * DAY + 6 * 3600 - 2 - clock.now
        return True

    site = web.site(answer_when(is_early, robots))
    requests = [Request(url, headers=SLOW) for url in site.urls("/1", "/2")]
    requests += [Request(url, headers=FAST) for url in site.urls("/3", "/4")]
    outcome = await crawl(requests, ONE)
    assert len(outcome.responses) == 4
    assert site.paths == ["/robots.txt", "/3", "/4", "/1", "/2"]


class Counting(InTurn):
    """Counts the requests that were dropped before each page."""

    dropped: dict[str, int]

    def parse(self, response: Any, **_: Any) -> Any:
        self.dropped[urlsplit(response.url).path] = len(self.outcome.failures)
        for request in super().parse(response):
            yield request.replace(errback=self.failed)


async def test_what_a_local_rule_drops_does_not_wait_for_the_pace(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(text(f"{ALL}Crawl-delay: 0.5\n"))
    local = tmp_path / "rules.toml"
    local.write_text(LOCAL_RULES.replace("a.example", site.root))
    closed = [Request(url) for url in site.urls(*(f"/local/closed/{n}" for n in range(5)))]
    dropped: dict[str, int] = {}
    outcome = await crawl(
        site.urls("/1", "/2", "/3"),
        {**ONE, "REP_LOCAL_RULES": str(local)},
        spider=Counting,
        then={site.url("/1"): closed},
        dropped=dropped,
    )
    assert site.page_paths == ["/1", "/2", "/3"]
    assert (dropped["/1"], dropped["/3"]) == (0, 5), "they were dropped between the pages"
    assert outcome.stats["robotstxt/local/disallowed"] == 5
