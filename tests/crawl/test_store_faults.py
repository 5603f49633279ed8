"""Invalid data in a store, clocks that are set, and crawls that end early do not stop a crawl.

The tests check what the servers received.
"""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import DeferredList

from scrapy_rep.stores import Store
from scrapy_rep.stores.entry import DICTIONARY, VERSION
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.web import Page, Web

from .conftest import Crawl, Visitor, make_crawler, our_warnings, run_crawler

PRIVATE = "User-agent: *\nDisallow: /private\n"
PATHS = ("/", "/private/1")
DAY = 86_400
NOW = time.time()


@pytest.fixture(params=["sqlite", "redis"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.db"


@pytest.fixture
def kept(request: pytest.FixtureRequest, kind: str, path: Path) -> dict[str, Any]:
    """The settings of crawls that use the store."""
    if kind == "sqlite":
        return {"REP_STORE": f"sqlite:///{path}"}
    return {"REP_STORE": request.getfixturevalue("redis_server").url}


@pytest.fixture
def other(kind: str, path: Path, kept: dict[str, Any]) -> Iterator[Store]:
    """The same store, opened by another crawler."""
    store: Any = SQLiteStore(path, ttl=1e6)
    if kind == "redis":
        store = RedisStore(kept["REP_STORE"], ttl=1e6)
    store.open()
    yield store
    store.disconnect()
    store._threads.shutdown()


# Claims


async def test_a_claim_that_outlasts_a_fetch_is_not_waited_for(
    web: Web, crawl: Crawl, kept: dict[str, Any], other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.crawl.policy_store.WAIT_MARGIN", 0.1)
    site = web.site(PRIVATE)
    assert (await other.claim(site.root, 3600))[0]
    outcome = await crawl(site.urls(*PATHS), {**kept, "REP_TIMEOUT": 2, "REP_MAX_DELAY": 0.1})
    assert site.paths == ["/robots.txt", "/"]
    assert outcome.stats["robotstxt/store/wait_timeout_count"] == 1
    assert outcome.stats["robotstxt/store/wait_count"] < 30
    entry = await other.get(site.root)
    assert entry is not None
    assert entry.body == PRIVATE.encode()


async def test_a_silent_site_is_fetched_by_one_crawler_until_the_timeout(
    web: Web, kept: dict[str, Any]
) -> None:
    """The claim outlasts the fetch, so that the other crawler gets its result."""
    site = web.site(Page(PRIVATE, delay=30))
    crawlers = [make_crawler(Visitor, {**kept, "REP_TIMEOUT": 0.5}) for _ in range(2)]
    crawls = [
        deferred_from_coro(run_crawler(crawler, requests=site.urls(path)))
        for crawler, path in zip(crawlers, ("/a", "/b"))
    ]
    await maybe_deferred_to_future(DeferredList(crawls, fireOnOneErrback=True))
    assert site.paths == ["/robots.txt"]


# Entries


def copy(etag: object) -> dict[str, object]:
    return {"url": "https://a.example/robots.txt", "etag": etag}


def octets(**fields: object) -> bytes:
    head = {"result": "rules", "fetched_at": time.time() - 9, "refresh_at": 0, **fields}
    deflate = zlib.compressobj(zdict=DICTIONARY)
    content = json.dumps(head).encode() + b"\nUser-agent: *\nDisallow: /\n"
    return VERSION + deflate.compress(content) + deflate.flush()


def put(origin: str, entry: bytes, kind: str, path: Path, url: str) -> None:
    if kind == "sqlite":
        with sqlite3.connect(path) as db:
            db.execute("INSERT INTO entries VALUES (?, ?, ?, 0)", (origin, time.time(), entry))
        db.close()
    else:
        store = RedisStore(url, ttl=60)
        store._client.set(f"rep:6:{{{origin}}}", b"0 " + entry)
        store.disconnect()


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(octets(refresh_at=1e18, expires_at=1e18), id="fresh forever"),
        pytest.param(octets(fetched_at=NOW + 400 * DAY, expires_at=NOW + 401 * DAY), id="future"),
        pytest.param(  # REP_CACHE_MAX of this crawl is a day
            octets(fetched_at=NOW - 2 * DAY, refresh_at=NOW + 28 * DAY, expires_at=NOW + 28 * DAY),
            id="fresh for a month",
        ),
        pytest.param(octets(copy=copy('"1"\r\nX-Injected: 1')), id="a header in a header"),
        pytest.param(
            VERSION + zlib.compress(b'{"a":' * 10_000), id="deep JSON without the dictionary"
        ),
    ],
)
async def test_an_invalid_entry_is_ignored_and_replaced(
    web: Web,
    crawl: Crawl,
    kind: str,
    path: Path,
    kept: dict[str, Any],
    other: Store,
    entry: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = web.site(PRIVATE)
    put(site.root, entry, kind, path, kept["REP_STORE"])
    for _ in range(2):
        outcome = await crawl(site.urls(*PATHS), kept)
        assert set(outcome.responses) == {site.url("/")}
    assert site.paths == ["/robots.txt", "/", "/"]
    assert "x-injected" not in site.received[0].headers
    assert our_warnings(caplog) == []
