"""The keys in Redis, their values and their expiry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from redis import exceptions

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, Store, StoreError
from scrapy_rep.stores.entry import ENTRY_LIMIT, encode
from scrapy_rep.stores.fallback import FallbackStore
from scrapy_rep.stores.redis import RedisStore
from testing.redis_server import RedisSentinel, RedisServer

ENTRY = Entry(AccessResult.UNAVAILABLE, 1, 2, 3, status=404)
ORIGIN = "https://a.example"


KEY = "rep:7:{https://a.example}"
CLAIM, FENCE, A_HOST = f"{KEY}:claim", f"{KEY}:fence", "rep:7:host:{a.example}"


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[Any]:
    with redis_server.client as client:
        yield client


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[RedisStore]:
    store = RedisStore(redis_server.url, ttl=86_400)
    yield store
    store._threads.shutdown()
    store.disconnect()


async def test_every_key_expires(store: RedisStore, client: Any) -> None:
    await store.put(ORIGIN, ENTRY)
    await store.claim(ORIGIN, 30)
    await store.reserve_host("a.example", 20)
    await store.reserve_host("b.example", 1000)
    await store.release_host("b.example", 10)
    await store.reserve_host("c.example", 1000)
    await store.release_host("c.example", 0)
    assert {key.decode(): client.ttl(key) for key in client.keys("*")} == {
        KEY: pytest.approx(86_400, abs=2),
        CLAIM: pytest.approx(30, abs=2),
        FENCE: pytest.approx(86_400, abs=2),
        A_HOST: pytest.approx(20, abs=2),
        "rep:7:host:{b.example}": pytest.approx(10, abs=2),
    }
    await store.release(ORIGIN)
    assert not client.exists(CLAIM)
    claim = await store.claim(ORIGIN, 30)
    await store.put(ORIGIN, ENTRY, claim.fence)
    assert not client.exists(FENCE)
    assert client.ttl(KEY) == pytest.approx(86_400, abs=2)


@pytest.mark.parametrize(
    "value",
    [b"something", encode(ENTRY) + bytes(ENTRY_LIMIT), None],
    ids=["bytes", "too many", "another type"],
)
async def test_an_invalid_entry_counts_as_missing(
    store: RedisStore, client: Any, value: bytes | None
) -> None:
    client.lpush(KEY, b"something") if value is None else client.set(KEY, value)
    assert await store.get(ORIGIN) is None
    assert (await store.claim(ORIGIN, 1))[:2] == (True, None)
    await store.put(ORIGIN, ENTRY)
    assert await store.get(ORIGIN) == ENTRY


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("theirs", None), ("theirs", 86_400), (None, None)],
    ids=["no expiry", "a late expiry", "another type"],
)
async def test_a_lease_that_does_not_expire_in_time_is_ignored(
    store: RedisStore, client: Any, value: str | None, seconds: int | None
) -> None:
    for key in (CLAIM, A_HOST):
        client.lpush(key, "something") if value is None else client.set(key, value, ex=seconds)
    assert (await store.claim(ORIGIN, 30))[:2] == (True, None)
    assert await store.reserve_host("a.example", 30) == 0
    fence = FENCE.encode()
    assert all(0 < client.ttl(key) <= 30 for key in client.keys("*") if key != fence)
    await store.release(ORIGIN)
    await store.release_host("a.example", 0)
    assert client.keys("*") == [fence]


def failing(error: Exception) -> Any:
    """Return a client whose calls raise an error."""
    call = Mock(side_effect=error)
    return Mock(eval=call, getrange=call, close=call, connection_pool=None)


@pytest.mark.parametrize(
    "error",
    [
        exceptions.BusyLoadingError("loading"),
        exceptions.ClusterDownError("the cluster is down"),
        exceptions.RedisClusterException("no node"),
        exceptions.TimeoutError("a time-out"),
        ConnectionResetError("reset"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_fault_of_a_server_is_handled(error: Exception) -> None:
    """A method of the store raises StoreError. A crawl goes on in memory."""
    store = RedisStore("redis://127.0.0.1:1", ttl=60)
    store._client = failing(error)
    calls: list[Callable[[Store], Awaitable[object]]] = [
        lambda store: store.get(ORIGIN),
        lambda store: store.put(ORIGIN, ENTRY, 1),
        lambda store: store.claim(ORIGIN, 1),
        lambda store: store.release(ORIGIN),
        lambda store: store.reserve_host("a.example", 1),
        lambda store: store.release_host("a.example", 1),
    ]
    for call in calls:
        with pytest.raises(StoreError):
            await call(store)
        await call(FallbackStore(store))
    await store.close()


def test_an_error_that_repeats_the_password_is_shown_without_it() -> None:
    """Old servers repeat an unknown command."""
    for user, option in ((":Zk9x%2Fy@", ""), ("user:Zk9x%2Fy@", ""), ("", "?password=Zk9x%2Fy")):
        store = RedisStore(f"redis://{user}127.0.0.1:1/0{option}", ttl=60)
        for text in ("command, with args beginning with: Zk9x/y", "AUTH Zk9x/y"):
            store._client = failing(exceptions.ResponseError(f"unknown {text}"))
            with pytest.raises(StoreError, match="unknown") as error:
                store.open()
            assert "Zk9x" not in str(error.value)
            assert error.value.__cause__ is None


async def test_a_failover_of_sentinel(tmp_path: Path) -> None:
    primary = RedisServer(tmp_path)
    replica = RedisServer(tmp_path, arguments=["--replicaof", "127.0.0.1", str(primary.port)])
    sentinel = RedisSentinel(tmp_path, primary)
    hosts = f"127.0.0.1:1,127.0.0.1:{sentinel.port}"  # the first one does not answer
    store = RedisStore(f"redis+sentinel://{hosts}/main/2", ttl=60)
    try:
        store.open()
        await store.put(ORIGIN, ENTRY)
        sentinel.fail_over()
        await store.put(f"{ORIGIN}:2", ENTRY)
        assert await store.get(f"{ORIGIN}:2") == ENTRY
        with replica.client as client:
            client.select(2)
            assert len(client.keys("*")) == 2
        sentinel.kill()
        assert await store.get(ORIGIN) == ENTRY
    finally:
        await store.close()
        for server in (primary, replica, sentinel):
            server.kill()
    with pytest.raises(StoreError, match="No master found"):
        store.open()
    store.disconnect()
