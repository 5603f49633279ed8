"""Calls that are cancelled, the end of calls, and what is special to the memory of a process.

:mod:`.test_contract` has the tests of the interface.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.stores import Entry
from scrapy_rep.stores.memory import ENTRY_OCTETS, MemoryData, MemoryStore
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_rep.stores import Store

ORIGIN = "https://a.example"
OLD = Entry(
    AccessResult.RULES,
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
            store = MemoryStore.named(str(tmp_path), ttl=60)
        else:
            store = SQLiteStore(tmp_path / "robots.db", ttl=60)
        store.open()
        return store

    return opened


async def test_closing_waits_for_the_calls_in_progress(open_shared: Callable[[], Store]) -> None:
    one, other = open_shared(), open_shared()
    puts = [deferred_from_coro(one.put(f"http://{n}.example", OLD)) for n in range(50)]
    await sleep(0)  # with asyncio, the tasks start now
    await one.close()
    assert [await other.get(f"http://{n}.example") for n in range(50)] == [OLD] * 50
    assert all(put.called for put in puts)
    await one.close()  # a second call has no effect
    await other.close()


async def test_calls_may_be_cancelled(open_shared: Callable[[], Store]) -> None:
    store = open_shared()
    gets = [deferred_from_coro(store.get(f"http://{n}.example")) for n in range(50)]
    puts = [deferred_from_coro(store.put(f"http://{n}.example", OLD)) for n in range(50)]
    await sleep(0)
    for each in gets + puts:
        each.addErrback(lambda failure: None)
        each.cancel()
    await sleep(0.05)
    kept = [await store.get(f"http://{n}.example") for n in range(50)]
    assert all(entry in (None, OLD) for entry in kept)
    await store.put(ORIGIN, NEW)
    assert await store.get(ORIGIN) == NEW
    await store.close()


@pytest.mark.parametrize("pause", [None, 0, 0.0005, 0.002, 0.005], ids=str)
async def test_a_cancelled_call_undoes_its_claim_or_reservation(
    open_shared: Callable[[], Store], pause: float | None
) -> None:
    one, other = open_shared(), open_shared()
    names = [f"{n}.example" for n in range(20)]
    ended: set[int] = set()

    async def call(number: int, method: Callable[[str, float], Any], name: str) -> None:
        await method(name, 1000)
        ended.add(number)

    coroutines = [call(n, one.claim, f"http://{name}") for n, name in enumerate(names)]
    coroutines += [call(n, one.reserve_host, name) for n, name in enumerate(names, 20)]
    calls = [deferred_from_coro(coroutine) for coroutine in coroutines]
    for each in calls:
        each.addErrback(lambda failure: None)
    if pause is not None:
        await sleep(pause)
    # The callbacks of a call may run later than its end.
    kept = frozenset(ended)
    for each in calls:
        each.cancel()
    free = [False]
    for _ in range(200):  # until the undo calls have run
        await sleep(0.05)
        claims = [(await other.claim(f"http://{name}", 1))[0] for name in names]
        waits = [await other.reserve_host(name, 1) for name in names]
        free = [n in kept or done for n, done in enumerate(claims)]
        free += [n in kept or not wait for n, wait in enumerate(waits, 20)]
        if all(free):
            break
    assert all(free)
    await one.close()
    await other.close()


async def test_a_cancelled_renewal_keeps_the_reservation(
    open_shared: Callable[[], Store],
) -> None:
    """The request that the reservation is for may be in progress."""
    one, other = open_shared(), open_shared()
    assert await one.reserve_host("a.example", 10) == 0
    renewals = [deferred_from_coro(one.reserve_host("a.example", 10)) for _ in range(20)]
    await sleep(0)
    for renewal in renewals:
        renewal.addErrback(lambda failure: None)
        renewal.cancel()
    await sleep(0.05)
    assert await other.reserve_host("a.example", 10) > 0
    await one.close()
    await other.close()


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


def run(coroutine: Any) -> Any:
    """Return the result of a coroutine that does not wait."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def test_memory_evicts_the_oldest_entry() -> None:
    store = MemoryStore(MemoryData(max_entries=2, clock=lambda: 0))
    for origin in "abac":
        run(store.put(origin, OLD))
    assert [run(store.get(origin)) for origin in "abc"] == [OLD, None, OLD]
    assert store.pop() == ("c", OLD, None)
    assert store.pop() == ("a", OLD, None)
    assert store.pop() is None
    for host in "abcab":
        assert run(store.reserve_host(host, 5)) == 0
        run(store.release_host(host, 5))
    assert run(store.reserve_host("b", 5)) == 5


def test_memory_is_limited_in_octets() -> None:
    assert OLD.body is not None
    store = MemoryStore(MemoryData(max_octets=2 * (ENTRY_OCTETS + len(OLD.body)), clock=lambda: 0))
    for origin in "abbbac":
        run(store.put(origin, OLD))
    assert [run(store.get(origin)) for origin in "abc"] == [OLD, None, OLD]
    run(store.put("d", OLD._replace(body=b"#" * 1000)))
    assert [run(store.get(origin)) for origin in "abcd"] == [None] * 4, "larger than the limit"
    for origin in "ab":
        run(store.put(origin, NEW))
    assert [run(store.get(origin)) for origin in "ab"] == [NEW, NEW]


def test_an_entry_in_memory_expires() -> None:
    now = 100.0
    memory = MemoryData(clock=lambda: now)
    short, long = MemoryStore(memory, ttl=5), MemoryStore(memory, ttl=50)
    run(short.put("a", OLD))
    now += 4
    assert run(short.get("a")) == OLD
    run(short.put("b", OLD))
    now += 4
    assert run(long.get("a")) == OLD
    assert run(short.get("a")) is None
    assert run(long.get("a")) is None
    assert run(short.claim("b", 5)).entry == OLD


async def test_memory_stores_with_other_names_share_nothing(tmp_path: Path) -> None:
    one, other = MemoryStore.named(f"{tmp_path}/1"), MemoryStore.named(f"{tmp_path}/2")
    await one.put(ORIGIN, OLD)
    assert (await one.claim(ORIGIN, 10))[:2] == (True, OLD)
    assert (await other.claim(ORIGIN, 10))[:2] == (True, None)
    assert await one.reserve_host("a.example", 10) == 0
    assert await other.reserve_host("a.example", 10) == 0


async def test_a_named_memory_store_keeps_its_data_when_it_is_closed(tmp_path: Path) -> None:
    one = MemoryStore.named(str(tmp_path))
    await one.put(ORIGIN, OLD)
    await one.close()
    assert await MemoryStore.named(str(tmp_path)).get(ORIGIN) == OLD
    assert await MemoryStore.named(f"{tmp_path}/other").get(ORIGIN) is None
