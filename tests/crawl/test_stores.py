"""Crawls that use a store, one after another or together, and stores with faults.

The tests check what the servers received.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Slot

from scrapy_rep import Verdict
from scrapy_rep.exceptions import SettingError
from scrapy_rep.fetch.fetches import Fetches
from scrapy_rep.fetch.policy_store import PolicyStore
from scrapy_rep.origin import Origin
from scrapy_rep.policies.gate import Address, Place
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, ThreadedStore
from scrapy_rep.stores.registry import open_for_tool
from testing.clock import FakeClock
from testing.faults import answer_when
from testing.redis_server import RedisServer
from testing.web import Page, Web, gaps, text

from .conftest import PRIVATE, Crawl, Disturber, Visitor, make_crawler, run_crawler, together
from .test_middleware import Listener

PATHS = ("/", "/private/1")
DOWN = Page(b"", 503)
DAY = 86_400
NOW = time.time()


@pytest.fixture(params=["sqlite", "redis", "memory"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The settings of crawls that use the store."""
    if request.param == "sqlite":
        return {"REP_STORE": f"sqlite:///{tmp_path}/robots.db"}
    if request.param == "memory":
        return {"REP_STORE": f"memory://{uuid4()}"}
    return {"REP_STORE": request.getfixturevalue("redis_server").url}


on_disk = pytest.mark.parametrize("kept", ["sqlite", "redis"], indirect=True)


def verdict(outcome: Any, url: str) -> Verdict:
    found: Verdict = (outcome.responses.get(url) or outcome.requests[url]).meta["robotstxt"]
    return found


# One crawl after another


async def test_a_second_crawl_uses_policies(web: Web, crawl: Crawl, kept: dict[str, Any]) -> None:
    sites = [web.site(PRIVATE), web.site(), web.site(Page(b"", 403)), web.site(b"\xef\xbb\xbf")]
    urls = [url for site in sites for url in site.urls(*PATHS)]
    first = await crawl(urls, kept)
    second = await crawl(urls, kept)
    assert [site.robots_fetches for site in sites] == [1] * 4
    assert [site.page_paths for site in sites] == [["/", "/"]] + [["/", "/", *PATHS[1:] * 2]] * 3
    assert first.stats["robotstxt/store/miss_count"] == 4
    assert second.stats["robotstxt/store/hit_count"] == 4
    assert "robotstxt/request_count" not in second.stats
    assert [verdict(second, url) for url in urls] == [verdict(first, url) for url in urls]


@pytest.mark.parametrize(
    ("robots", "days", "settings", "result"),
    [
        pytest.param(Page(b"", 403), 0, {"REP_DISALLOW_STATUSES": [403]}, (False, 1), id="refused"),
        pytest.param(DOWN, 0, {"REP_5XX_AS_404_HOSTS": ["127.0.0.1"]}, (True, 2), id="as a 404"),
        pytest.param(Page(b"", 404), 0.01, {}, (True, 1), id="still fresh"),
        pytest.param(Page(b"", 404), 0.01, {"REP_TTL_RANGE": [300, 300]}, (True, 2), id="brief"),
        # RFC 9309 §2.3.1.4
        pytest.param(DOWN, 29.9, {}, (False, 2), id="down for less than 30 days"),
        pytest.param(DOWN, 30.1, {}, (True, 2), id="down for 30 days"),
    ],
)
async def test_the_settings_of_a_later_crawl_apply(
    web: Web, crawl: Crawl, clock: FakeClock, robots: Page, days: float, settings: Any, result: Any
) -> None:
    """``test_policy_store`` has what a store keeps of each state of an origin."""
    site, store = web.site(robots), {"REP_STORE": f"memory://{uuid4()}"}
    await crawl(site.urls("/1"), store)
    clock.set_forward = days * DAY
    later = await crawl(site.urls("/2"), {**store, **settings})
    assert (bool(later.responses), site.robots_fetches) == result


@pytest.mark.parametrize(
    ("setting", "value", "seconds"),
    [("JOBDIR", "{}", 1000), pytest.param("REP_STORE", "sqlite:///{}/a", 2000, id="shared")],
)
async def test_s_maxage_is_for_stores_that_crawls_share(
    web: Web, crawl: Crawl, tmp_path: Path, setting: str, value: str, seconds: float
) -> None:
    """A resumed crawl uses its own policies."""
    site = web.site(text(PRIVATE, Cache_Control="max-age=1000, s-maxage=2000"))
    settings = {setting: value.format(tmp_path)}
    await crawl(site.urls("/"), settings)
    outcome = await crawl(site.urls("/private/1", "/b"), settings)
    assert site.paths == ["/robots.txt", "/", "/b"]
    (origin,) = outcome.middleware.origins.values()
    assert origin.expires_at - origin.fetched_at == pytest.approx(seconds, abs=1)


async def test_without_obey_there_is_no_store(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(PRIVATE)
    await crawl(site.urls("/"), {"JOBDIR": str(tmp_path), "ROBOTSTXT_OBEY": False})
    assert not any(name.startswith("robots") for name in os.listdir(tmp_path))


async def test_a_policy_from_the_store_sends_the_signal_robots_parsed(
    web: Web, crawl: Crawl, kept: dict[str, Any]
) -> None:
    if not hasattr(signals, "robots_parsed"):
        pytest.skip("robots_parsed is of Scrapy 2.18")
    site = web.site(PRIVATE)
    for _ in range(2):
        outcome = await crawl(site.urls("/"), kept, spider=Listener)
        heard = outcome.crawler.spider.heard  # type: ignore[union-attr]
        assert [request.url for _, request in heard] == site.urls("/")


# Invalid settings


async def refused(url: str) -> str:
    """Return the error of a crawl that does not start."""
    crawler = make_crawler(Visitor, {"REP_STORE": url})
    with pytest.raises(SettingError) as error:
        await run_crawler(crawler, requests=[])
    return str(error.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("postgres://h/db", "must be None, 'sqlite:///path', 'redis://host:port/db', "),
        ("sqlite:////nowhere/at/all.db", "which cannot be used: there is no folder /nowhere/at"),
        ("sqlite:///{}/other.db", "or a store of another version: choose another path"),
        ("redis://127.0.0.1:1/0", "127.0.0.1:1. Connection refused"),
        ("redis://127.0.0.1:x/0", "port"),
        ("redis://127.0.0.1/x?db=y", "which cannot be used"),
        ("redis://127.0.0.1/0?colour=blue", "an invalid option"),
    ],
)
async def test_an_unusable_store_stops_the_crawl_at_its_start(
    tmp_path: Path, value: str, message: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("PRAGMA user_version = 7")
    value = value.format(tmp_path)
    said = await refused(value)
    assert said.startswith(f"REP_STORE is {value.replace('127.0.0.1:x/0', '***')!r}")
    assert message in said


# The pace of a site, among several crawlers


async def test_one_fetch_and_one_pace_for_several_crawlers(web: Web, kept: dict[str, Any]) -> None:
    """The pace is that of the host, whatever the download slots are."""
    site = web.site(Page("User-agent: *\nDisallow:\nCrawl-delay: 0.5\n", delay=0.3))
    quick = web.site("User-agent: *\nDisallow:\n", host="127.0.0.2")
    crawlers = [make_crawler(Visitor, kept) for _ in range(2)]
    asked = [
        [
            Request(url, meta={"download_slot": slot})
            for url in [*site.urls(f"/{one}/1", f"/{one}/2"), quick.url(f"/{one}")]
        ]
        for one, slot in enumerate((None, "two"))
    ]
    await together(*crawlers, requests=asked)
    assert len(site.page_paths) == 4
    assert site.robots_fetches == 1
    assert min(gaps(site)) >= 0.475
    assert max(received.at for received in quick.received) < site.received[-1].at


@pytest.mark.parametrize(
    ("kept", "settings"),
    [
        ("sqlite", {"DOWNLOAD_DELAY": 0.3}),
        ("redis", {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0.3, "concurrency": 8}}}),
        ("memory", {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.3}),
    ],
    indirect=["kept"],
)
async def test_several_crawlers_keep_the_delay_of_their_settings(
    web: Web, monkeypatch: pytest.MonkeyPatch, kept: dict[str, Any], settings: dict[str, Any]
) -> None:
    """It is from start to start: pages are answered when all of them were requested."""
    monkeypatch.setattr(Slot, "download_delay", lambda slot: slot.delay)  # not varied by half
    site = web.site(None, {"*": answer_when(lambda: len(site.page_paths) == 6, Page())})
    crawlers = [make_crawler(Visitor, {**kept, **settings}) for _ in range(2)]
    asked = [site.urls(*(f"/{one}/{page}" for page in range(3))) for one in range(2)]
    await together(*crawlers, requests=asked)
    assert len(site.page_paths) == 6
    assert min(gaps(site)) > 0.2


async def test_a_policy_of_the_store_is_used_only_with_its_pace(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its robots_parsed signal may take long: no request starts meanwhile without the delay."""
    site = web.site("User-agent: *\nCrawl-delay: 0.1\n")
    settings = {"REP_STORE": "memory://restored-with-its-pace"}
    await crawl(site.urls("/1"), settings)
    seen: list[tuple[Origin | None, Place]] = []

    async def look(fetches: Fetches, _content: object, _page: Request) -> None:
        policies = fetches._policies
        place = policies.gate(Address("127.0.0.1", site.root), 0).place
        seen.append((policies.fresh(site.root), place))

    monkeypatch.setattr(Fetches, "_on_content", look)
    await crawl(site.urls("/2"), settings)
    assert seen == [(None, Place.FETCHING)]
    assert site.page_paths == ["/1", "/2"]
    assert site.robots_fetches == 1


# Claims


@pytest.fixture
def other(kept: dict[str, Any]) -> Iterator[ThreadedStore]:
    """The same store, opened by another crawler."""
    store = open_for_tool(kept["REP_STORE"], must_exist=False)
    yield store
    store.disconnect()
    store._threads.shutdown()


@on_disk
async def test_a_claim_that_outlasts_a_fetch_is_not_waited_for(
    web: Web,
    crawl: Crawl,
    kept: dict[str, Any],
    other: ThreadedStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrapy_rep.fetch.policy_store.WAIT_MARGIN", 0.1)
    site = web.site(PRIVATE)
    assert (await other.claim(site.root, 3600))[0]
    outcome = await crawl(site.urls(*PATHS), {**kept, "REP_TIMEOUT": 2, "REP_MAX_CRAWL_DELAY": 0.1})
    assert site.paths == ["/robots.txt", "/"]
    assert outcome.stats["robotstxt/store/wait_timeout_count"] == 1
    assert outcome.stats["robotstxt/store/wait_count"] < 30
    entry = await other.get(site.root)
    assert entry is not None
    assert entry.body == PRIVATE.encode()


@on_disk
async def test_claims_are_renewed_while_a_crawl_fetches(
    web: Web, crawl: Crawl, kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed, renew = list[set[str]](), PolicyStore.renew

    async def noted(store: PolicyStore) -> None:
        renewed.append({key for key, load in store._loads.items() if load.is_claimed})
        await renew(store)

    monkeypatch.setattr(PolicyStore, "renew", noted)
    site = web.site(answer_when(lambda: {site.root} in renewed, text(PRIVATE)))
    outcome = await crawl(site.urls("/a"), kept)
    assert site.paths == ["/robots.txt", "/a"]
    assert not outcome.warnings


# Entries that are fresh for too long: tests/stores has those that cannot be read


@on_disk
@pytest.mark.parametrize(
    ("fetched_at", "expires_at"),
    [
        pytest.param(NOW + 400 * DAY, NOW + 401 * DAY, id="in the future"),
        # The longest lifetime of this crawl is a day.
        pytest.param(NOW - 2 * DAY, NOW + 28 * DAY, id="for a month"),
    ],
)
async def test_an_entry_that_is_fresh_for_too_long_is_ignored_and_replaced(
    web: Web, crawl: Crawl, kept: dict[str, Any], other: Any, fetched_at: float, expires_at: float
) -> None:
    site = web.site(PRIVATE)
    closed = b"User-agent: *\nDisallow: /\n"
    entry = Entry(AccessResult.SUCCESSFUL, fetched_at, expires_at, expires_at, closed)
    await other.put(site.root, entry)
    for _ in range(2):
        outcome = await crawl(site.urls(*PATHS), kept)
        assert set(outcome.responses) == {site.url("/")}
    assert site.paths == ["/robots.txt", "/", "/"]
    assert outcome.warnings == []


# Redis fails and works again


@pytest.fixture
def a_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("mortal"))
    yield server
    server.kill()


async def test_redis_may_fail_and_work_again(
    web: Web, crawl: Crawl, a_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_RETRY", "RETRY_INTERVAL"):
        monkeypatch.setattr(f"scrapy_rep.stores.fallback.{name}", 0.3)
    sites = [web.site(PRIVATE) for _ in range(7)]
    urls = [site.url("/") for site in sites]

    def wait() -> None:
        time.sleep(0.5)

    def back() -> None:
        a_redis.start()
        wait()

    outcome = await crawl(
        urls[:1],
        {"REP_STORE": a_redis.url},
        spider=Disturber,
        then=[a_redis.kill, lambda: None, lambda: None, back, wait],
        next_urls=urls[1:],
    )
    assert set(outcome.responses) == set(urls)
    (warning,) = outcome.warnings
    assert "The crawl continues without it" in warning
    with a_redis.client as client:
        keys = {key.decode() for key in client.keys("rep:7:*")}
    # The first entry is lost with the server, and those of its absence are not put.
    assert any(f"rep:7:{{{site.root}}}" in keys for site in sites[-2:])


async def test_a_silent_redis_delays_a_crawl_only_until_its_timeout(
    web: Web, crawl: Crawl, a_redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.redis_url.SOCKET_TIMEOUT", 0.3)
    sites = [web.site(PRIVATE) for _ in range(4)]
    urls = [site.url("/") for site in sites]
    outcome = await crawl(
        urls[:1],
        {"REP_STORE": a_redis.url, "CLOSESPIDER_TIMEOUT": 25},
        spider=Disturber,
        then=[a_redis.suspend],
        next_urls=urls[1:],
    )
    assert set(outcome.responses) == set(urls)
    assert len(outcome.warnings) == 1
    assert outcome.stats["finish_reason"] == "finished"
