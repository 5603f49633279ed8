"""What each request for a robots.txt has of the page that needs it, and how long it may wait."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, call

import pytest
from scrapy import Request
from scrapy.http import TextResponse
from scrapy.settings import Settings as ScrapySettings
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler

from scrapy_rep.fetch import downloader
from scrapy_rep.fetch.fetcher import Fetcher, Parts, longest_fetch
from scrapy_rep.fetch.fetches import Fetches
from scrapy_rep.origin import Origin
from scrapy_rep.policies.policies import Policies
from scrapy_rep.protocol.access import Rules, Unreachable
from scrapy_rep.settings import Settings
from testing.clock import FakeClock, settle

ORIGIN = "http://a.example"
PAGE = Request(f"{ORIGIN}/", headers={"Proxy-Authorization": "secret"})
SLOT_WAIT, LATENCY = 20, 3


class Fetching(Fetcher):
    """Answers each request by itself: with two redirects, and then with a status."""

    status = 200

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.sent: list[tuple[Request, float, float]] = []

    async def _send(self, request: Request, seconds: float, max_wait: float) -> Any:
        self.sent.append((request, seconds, max_wait))
        download = request.meta[downloader.DOWNLOAD]
        download.started = self._clock.monotonic()
        self._clock.advance(LATENCY)  # type: ignore[attr-defined]
        download.waited = SLOT_WAIT
        hop = len(self.sent) % 3
        headers = {"Location": f"http://{hop}.example/robots.txt"} if hop else {}
        body = b"User-agent: *\nCrawl-delay: 5\n"
        download.end(TextResponse(request.url, 302 if hop else self.status, headers, body))
        return download


@pytest.fixture
def parts() -> Parts:
    settings = Settings.read(ScrapySettings({"REP_TIMEOUT": 30, "REP_CACHE_SIZE": 1}))
    clock = FakeClock()
    demand = Mock(**{"uses.return_value": False, "needs.return_value": False})
    return Parts(get_crawler(), settings, Mock(), clock, Mock(), Mock(), demand)


@pytest.mark.parametrize("proxy", [None, "http://proxy.example"])
async def test_the_requests_of_one_fetch(parts: Parts, proxy: str | None) -> None:
    fetcher = Fetching(parts)
    page = PAGE.replace(meta={"proxy": proxy} if proxy else {})
    assert isinstance(await fetcher.fetch(Origin(ORIGIN), page), Rules)
    left = [(seconds, wait) for _, seconds, wait in fetcher.sent]
    most = parts.settings.max_crawl_delay
    assert left == [(30 - LATENCY * hop, most - SLOT_WAIT * hop) for hop in range(3)]
    # The credentials are for the proxy. A site must not get them.
    sent = {request.headers.get("Proxy-Authorization") for request, *_ in fetcher.sent}
    assert sent == {b"secret" if proxy else None}


def test_an_origin_stays_in_memory_while_a_response_waits_for_its_file(parts: Parts) -> None:
    policies = Policies(parts.settings, parts.clock, Mock(), None)
    fetcher = Fetcher(parts)
    fetches = Fetches(parts, fetcher, policies, None)
    for key in (ORIGIN, "http://b.example"):
        policies.origins.find_or_add(key)
    with fetcher.waiting(ORIGIN, PAGE, TextResponse(PAGE.url)):
        fetches.evict()
        assert ORIGIN in policies.origins
    policies.origins.find_or_add("http://c.example")
    fetches.evict()
    assert ORIGIN not in policies.origins


@pytest.mark.parametrize(("waits", "attempts"), [("http://b.example", 1), (ORIGIN, 3)])
async def test_only_a_fetch_that_something_waits_for_is_tried_again(
    parts: Parts, waits: str, attempts: int
) -> None:
    fetcher, clock = Fetching(parts), parts.clock
    assert isinstance(clock, FakeClock)
    fetcher.status = 503
    with fetcher.waiting(waits, PAGE, None):
        fetch = deferred_from_coro(fetcher.fetch(Origin(ORIGIN), PAGE))
        await clock.run(60)
    assert isinstance(fetch.result, Unreachable)
    assert len(fetcher.sent) == 3 * attempts


@pytest.mark.parametrize(("status", "delays"), [(200, [call("a.example", ORIGIN, 5)]), (503, [])])
async def test_a_delay_is_set_as_soon_as_it_is_known(
    parts: Parts, status: int, delays: list[Any]
) -> None:
    fetcher = Fetching(parts)
    fetcher.status = status
    policies = Policies(parts.settings, parts.clock, Mock(), None)
    fetches = Fetches(parts, fetcher, policies, None)
    parts.demand.delay_of.return_value = 0  # type: ignore[attr-defined]
    fetches.begin(ORIGIN, PAGE)
    await settle()
    assert parts.demand.set_delay.mock_calls == delays  # type: ignore[attr-defined]


@pytest.mark.parametrize(("retries", "seconds"), [(0, 36 + 60), (2, 3 * (36 + 60) + 1 + 2)])
def test_the_longest_fetch_is_one_whose_attempts_all_time_out(retries: int, seconds: float) -> None:
    values = {"REP_TIMEOUT": 30, "REP_MAX_CRAWL_DELAY": 60, "REP_RETRY_TIMES": retries}
    assert longest_fetch(Settings.read(ScrapySettings(values))) == pytest.approx(seconds)
