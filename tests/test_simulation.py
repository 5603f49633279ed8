"""Random crawls on a virtual clock obey the laws, and a crawl that breaks one is found."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import scrapy
from scrapy import Request

from scrapy_rep.clock import Clock
from scrapy_rep.fetch.fetcher import RECENT
from scrapy_rep.frontier.hosts import Slot
from scrapy_rep.frontier.queue import OriginQueue
from scrapy_rep.protocol.access import Cancelled
from scrapy_rep.protocol.verdict import Verdict
from scrapy_rep.stores import Claim
from testing import harness, simulation
from testing.faults import ErrorFault
from testing.simulation import Answer, Ask, Handler, Scenario, Site, crawled, run

EXAMPLES = 200
"""They take about 12 seconds of CPU time, in four processes. `python -m checks simulation` runs
more."""

pytestmark = pytest.mark.skipif(
    scrapy.version_info < (2, 15),
    reason="the simulation runs without a reactor, which needs Scrapy 2.15 or later",
)


@pytest.mark.rule("Random crawls and faults")
@pytest.mark.parametrize("seed", range(4))
def test_random_crawls_obey_the_laws(seed: int) -> None:
    harness.call(simulation.check, EXAMPLES // 4, seed, False, timeout=600)


def test_crawls_with_an_error_in_one_function_obey_the_laws() -> None:
    harness.call(simulation.check_errors, timeout=600)


# Defects, each of which the simulation finds

push, pop_stored, set_alarm = OriginQueue.push, OriginQueue.pop_stored, Slot.set_alarm


def push_first(queue: OriginQueue, request: Request) -> None:
    """Add a request before the one that would be next."""
    first = queue.pop() if queue.size else None
    push(queue, request)
    if first is not None:
        push(queue, first)


SCENARIO = Scenario(
    sites=(Site(0, 8000, (Answer("private", latency=1, delay=3),), page_latency=0.2),),
    asks=tuple(Ask(0, 0, path) for path in ("/a", "/private/a", "/b", "/a", "/private/b")),
    settings={
        "CONCURRENT_REQUESTS": 2,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "REP_CACHE_SIZE": 1000,
        "REP_RETRY_TIMES": 0,
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    },
)

NO_FILE = replace(SCENARIO, sites=(Site(0, 8000, (Answer(status=404, latency=1),), 0.2),))

ERROR = replace(
    SCENARIO, faults=(ErrorFault("scrapy_rep.fetch.fetcher.Fetcher._event", ValueError, 1.0, 0),)
)

CALLS = replace(SCENARIO, asks=(Ask(0, 0, "/a", called=True),) * 2)
"""Requests that did not come from the queue wait in the downloader."""

BACKOFF = replace(
    SCENARIO,
    sites=(Site(0, 8000, (Answer(),), page_latency=0.2),),
    asks=(Ask(0, 0, "/a", fate="slow down for long"), Ask(0, 0, "/b"), Ask(2, 0, "/a")),
)


LOCAL = replace(NO_FILE, local="disallow")
MOVED = replace(
    SCENARIO,
    sites=(Site(0, 8000, (Answer("private", moved=True),), 0.2), Site(1, 8001, (Answer(),), 0.2)),
)
SHORT_LIVED = replace(
    SCENARIO,
    sites=(Site(0, 8000, (Answer(delay=5, max_age=1),), 0.2),),
    settings={**SCENARIO.settings, "REP_TTL_RANGE": (2, 300)},
)
OWN_DELAY = replace(
    SCENARIO,
    sites=(Site(0, 8000, (Answer(),), page_latency=5),),
    settings={**SCENARIO.settings, "DOWNLOAD_DELAY": 0.3},
)
ON_DISK = replace(SCENARIO, on_disk=True)
PAIR = replace(SCENARIO, crawlers=2)


class Defect(NamedTuple):
    """What is replaced, and by what; then the simulation finds a problem with this text."""

    scenario: Scenario
    law: int = 0
    """The law that is broken; 0: none, because nothing is replaced."""
    target: str = ""
    replacement: Any = None


ENGINE, FRONTIER = "scrapy_rep.scrapy_internals.Engine", "scrapy_rep.frontier.frontier.Frontier"
LOCAL_RULE, GATE = "scrapy_rep.policies.local_rules.LocalRule", "scrapy_rep.policies.gate"
RULES = "scrapy_rep.middleware.RobotsTxtMiddleware.decide"
QUEUE = "scrapy_rep.frontier.queue.OriginQueue"
FETCHER = "scrapy_rep.fetch.fetcher.Fetcher"
HOST = "scrapy_rep.frontier.hosts.Host"
STORE = "testing.simulation.SimulatedStore"


def nothing(*_: Any) -> None:
    pass


def zero(*_: Any, **__: Any) -> int:
    return 0


def allow(_: object, __: object, verdict: Verdict) -> Verdict:
    return verdict._replace(allowed=True)


def ring_late(slot: Slot, clock: Clock, seconds: float, ring: Any) -> None:
    set_alarm(slot, clock, seconds + 1, ring)


def pop_two(queue: OriginQueue, bucket: Any) -> Request | None:
    pop_stored(queue, bucket)
    return pop_stored(queue, bucket) if bucket in queue.buckets else None


async def claim(*_: Any) -> Claim:
    return Claim(True, None, None)


async def reserve(*_: Any) -> int:
    return 0


DEFECTS = {
    "a lost request": Defect(ON_DISK, 1, f"{QUEUE}.pop_stored", pop_two),
    "the rules": Defect(SCENARIO, 2, RULES, allow),
    "local rules": Defect(LOCAL, 2, f"{LOCAL_RULE}.decides", zero),
    "the rules after a redirect": Defect(MOVED, 2, RULES, allow),
    "the counters": Defect(CALLS, 3, f"{ENGINE}.include", nothing),
    "the order": Defect(SCENARIO, 4, f"{QUEUE}.push", push_first),
    "the pace": Defect(SCENARIO, 5, f"{HOST}.seconds_left", zero),
    "the pace of two crawlers": Defect(PAIR, 5, f"{STORE}.reserve_host", reserve),
    "the claims": Defect(PAIR, 6, f"{STORE}.claim", claim),
    "the alarms": Defect(SCENARIO, 7, f"{FRONTIER}._ring", nothing),
    "one use of each answer": Defect(
        SHORT_LIVED,
        7,
        f"{GATE}.max",
        lambda *_: 1,
    ),
    "the back-off": Defect(BACKOFF, 8, f"{FRONTIER}.note_answer", nothing),
    "the retries": Defect(ERROR, 9, f"{FETCHER}.unexpected", lambda *_: Cancelled()),
    "the two ways": Defect(NO_FILE, 10, "scrapy_rep.origin.Origin.disallows_all", lambda *_: True),
    "the start of a slot's delay": Defect(OWN_DELAY, 11, f"{FRONTIER}.note_reached", nothing),
    "late alarms": Defect(SCENARIO, 11, "scrapy_rep.frontier.hosts.Slot.set_alarm", ring_late),
}
SCENARIOS = [*{id(defect.scenario): defect.scenario for defect in DEFECTS.values()}.values()]
DEFECTS |= {f"nothing in {number}": Defect(each) for number, each in enumerate(SCENARIOS)}

MOST_TURNS = 4_000
"""The limit of a crawl in turns of its event loop. Without a defect, it needs some 300."""


def problems() -> dict[str, list[str]]:
    """Crawl with each defect, and return the problems that the simulation finds."""
    simulation.MOST_TURNS = MOST_TURNS
    logging.disable(logging.CRITICAL)
    found = {}
    for name, defect in DEFECTS.items():
        with patch(defect.target, defect.replacement) if defect.target else nullcontext():
            found[name] = run(defect.scenario)
    return found


def test_the_simulation_finds_defects_and_names_the_law() -> None:
    assert {defect.law for defect in DEFECTS.values()} == {*range(12)}
    for name, found in harness.call(problems, timeout=600).items():
        if law := DEFECTS[name].law:
            assert any(problem.startswith(f"law {law}:") for problem in found), (name, found)
        else:
            assert found == [], name


# Times that a real clock would make depend on the machine


def figures(name: str) -> tuple[dict[str, int], list[tuple[str, float]], dict[str, int], float]:
    """Return figures of a crawl of this module, and the seconds that it takes.

    They are the fetches of each robots.txt, the pages and their times, and the drops by reason.
    """
    with patch("scrapy_rep.settings._WITHOUT_POOL", Handler.__module__):
        network = crawled(globals()[name])
    pages = [(request.url.partition("?")[0], at) for at, request in network.pages]
    (crawler,) = network.crawlers
    assert crawler.stats is not None
    prefix, stats = "robotstxt/forbidden/", crawler.stats.get_stats()
    dropped = {name.removeprefix(prefix): stats[name] for name in stats if prefix in name}
    return dict(network.asked), pages, dropped, network.loop.now


DOWN = Answer(status=503, retry_after=1)
OUTAGES = replace(
    SCENARIO,
    sites=(Site(0, 8000, (DOWN,), 0.2), Site(1, 8001, (DOWN, DOWN, DOWN, Answer()), 0.2)),
    asks=(*(Ask(0, 0, "/first") for _ in range(10)), *(Ask(2.5, site, "/late") for site in (0, 1))),
    settings={**SCENARIO.settings, "REP_ON_UNREACHABLE": "wait", "REP_MAX_WAIT": 4.95},
)


def test_rep_max_wait_limits_the_total_wait_of_each_site() -> None:
    """All requests of a site wait as long as the first one. The other site answers in time."""
    asked, pages, dropped, seconds = harness.call(figures, "OUTAGES")
    first, other = (site.root for site in OUTAGES.sites)
    assert asked == {first: 5, other: 4}  # at 0, 1, 2, 3 and 4 s; at 2.5, 3.5, 4.5 and 5.5 s
    assert [url for url, _ in pages] == [f"{other}/late"]
    assert dropped == {"unreachable": 11}
    assert 5.5 < seconds < 7


MOVING = replace(
    SCENARIO,  # each file is of eight o'clock or later, and says that the time begins in 2 minutes
    sites=(
        Site(0, 8000, tuple(Answer(visit=f"08{n:02}-08{n + 1:02}") for n in range(2, 40, 2)), 0),
    ),
    asks=(Ask(0, 0, "/a"), Ask(0, 0, "/b"), Ask(0, 0, "/c", called=True), Ask(200, 0, "/d")),
    settings={**SCENARIO.settings, "REP_TTL_RANGE": [10, 10]},
)


def test_a_visit_time_that_moves_keeps_no_crawl_open() -> None:
    """REP_MAX_WAIT (300 s) limits the wait of its requests, however often the file changes."""
    asked, pages, dropped, seconds = harness.call(figures, "MOVING")
    assert ([*asked.values()], pages, dropped) == ([3], [], {"visit-time": 4})
    assert 240 <= seconds < 242


SLOW = Answer(latency=20)
SLOW_SITES = replace(
    SCENARIO,  # with 2 CONCURRENT_REQUESTS, so 8 fetches are recent at most
    sites=tuple(Site(n, 8000 + n, (SLOW if n < 32 else Answer(),), 0.2) for n in range(33)),
    asks=tuple(Ask(0, site, "/page") for site in range(33)),
)


def test_fetches_begin_while_earlier_ones_take_long() -> None:
    """They do not wait until the crawl looks for ended requests, twice a second."""
    (url, at), *_ = harness.call(figures, "SLOW_SITES")[1]
    assert url == f"{SLOW_SITES.sites[32].root}/page"
    assert 4 * RECENT <= at < 4 * RECENT + 0.1


CALLERS = replace(
    BACKOFF,
    asks=tuple(
        Ask(n / 100, 0, "/a", called=True, fate="page" if n else "slow down for long")
        for n in range(10)
    ),
    settings={**SCENARIO.settings, "CONCURRENT_REQUESTS": 20, "CONCURRENT_REQUESTS_PER_DOMAIN": 2},
)


def test_callers_do_not_pile_up_in_the_download_slot() -> None:
    """When a request ends, Scrapy sends all that wait in the slot, before its answer is known."""
    assert sum(at < 100 for _, at in harness.call(figures, "CALLERS")[1]) == 2
