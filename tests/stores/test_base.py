"""Calls that are cancelled, the end of calls, and entries that expire, with each store.

:mod:`.test_contract` has the tests of the interface.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.frontier.clock import sleep
from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry, Store
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import MemoryStore, SQLiteStore, _size

ORIGIN = "https://a.example"
OLD = Entry(
    AccessResult.SUCCESSFUL,
    1,
    2,
    3,
    b"User-agent: *\nDisallow: /\n",
    CopyInfo("https://a.example/robots.txt"),
)
NEW = Entry(AccessResult.UNAVAILABLE, 4, 5, 6, status=404)


@pytest.fixture(params=["named", "sqlite", "redis"])
def open_shared(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    def opened() -> Store:
        store: Store
        if request.param == "redis":
            store = RedisStore(request.getfixturevalue("redis_server").url, ttl=60)
        elif request.param == "named":
            store = MemoryStore(str(tmp_path), ttl=60)
        else:
            store = SQLiteStore(tmp_path / "robots.db", ttl=60)
        store.open()
        return store

    return opened


async def test_an_entry_expires(redis_server: Any, tmp_path: Path) -> None:
    now = time.time()
    redis = RedisStore(redis_server.url, ttl=0.5)
    sqlite = SQLiteStore(tmp_path / "robots.db", ttl=0.5, now=lambda: now)
    for store in (redis, sqlite):
        await store.put(ORIGIN, OLD)
        assert await store.get(ORIGIN) == OLD
    await sleep(1.1)  # Redis counts whole seconds here
    now += 1
    await sqlite.put("https://b.example", NEW)
    for store in (redis, sqlite):
        assert await store.get(ORIGIN) is None
        await store.close()


async def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries that were put first are evicted first."""
    monkeypatch.setattr("scrapy_rep.stores.sqlite.MAX_MEMORY", 200_000)
    numbers = range(100)
    store = MemoryStore(now=iter(range(1_000)).__next__)
    for number in numbers:
        assert await store.reserve_host(f"{number}.example", 1) == 0
        await store.put(str(number), OLD._replace(body=random.Random(number).randbytes(10_000)))
        assert _size(store._connect()) <= 200_000
    kept = [number for number in numbers if await store.get(str(number)) is not None]
    assert kept == list(numbers)[-len(kept) :]
    assert 10 <= len(kept) <= 20


async def test_the_data_of_a_memory_store_has_a_name_and_stays(tmp_path: Path) -> None:
    one, other = MemoryStore(f"{tmp_path}/1"), MemoryStore(f"{tmp_path}/2")
    await one.put(ORIGIN, OLD)
    assert (await one.claim(ORIGIN, 10))[:2] == (True, OLD)
    assert (await other.claim(ORIGIN, 10))[:2] == (True, None)
    assert await one.reserve_host("a.example", 10) == 0
    assert await other.reserve_host("a.example", 10) == 0
    await one.close()
    assert await MemoryStore(f"{tmp_path}/1").get(ORIGIN) == OLD
