"""What the log says while a crawl waits, and at its end."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from testing.faults import silence
from testing.web import Page, Site, Web, text

from .conftest import PRIVATE, Clock, Crawl, Outcome, Visitor, delayed, in_turn, numbers, until


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
    clock: Clock

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        await until(lambda: all(site.received for site in self.awaited))
        await until(lambda: self.outcome.responses)
        for seconds in (0, 3600, 0):
            self.clock.ahead += seconds
            self.outcome.middleware.crawl.poll()
        stats = self.crawler.stats
        assert stats is not None
        self.gauges = dict(stats.get_stats())
        self.stop()


@pytest.mark.parametrize("interval", [3600, 0])
async def test_a_line_at_each_interval_says_what_requests_wait_for(
    web: Web, crawl: Crawl, clock: Clock, interval: int
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
            f"The robots.txt of {site.root} has not arrived: status 503. Requests wait for it. The "
            f"next attempt ({attempt} of 3) begins in 1 s.",
        )
        for site, level, attempt in [
            (sites[1], "INFO", 2),
            (sites[2], "INFO", 2),
            (sites[2], "DEBUG", 3),
        ]
    )
