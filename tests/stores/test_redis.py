"""The keys in Redis, their values and their expiry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from redis import exceptions
from redis.connection import SSLConnection

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, Store, StoreError
from scrapy_rep.stores.entry import ENTRY_LIMIT, encode
from scrapy_rep.stores.fallback import FallbackStore
from scrapy_rep.stores.redis import SOCKET_TIMEOUT, RedisStore
from testing.redis_server import RedisServer

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
    return Mock(eval=call, getrange=call, close=call)


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


# The URL


def test_the_options_of_the_url_are_those_of_the_connections() -> None:
    store = RedisStore(
        "rediss://user:p%2Fw@h:1/2?ssl_ca_certs=/ca.pem&prefix=a:&socket_timeout=2&x=%26%20", ttl=60
    )
    assert RedisStore("redis://h", ttl=0.5)._ttl == 1, "Redis counts whole seconds here"
    pool = store._client.connection_pool
    options = pool.connection_kwargs
    assert options["username"] == "user"
    assert options["password"] == "p/w"
    assert (options["host"], options["port"], options["db"]) == ("h", 1, 2)
    assert options["ssl_ca_certs"] == "/ca.pem"
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (2, SOCKET_TIMEOUT)
    assert options["x"] == "& "
    assert "prefix" not in options
    assert pool.connection_class is SSLConnection
    assert store._prefix == "a:rep:7:"
    unix = RedisStore("unix:///run/x.sock?db=1", ttl=60)._client.connection_pool.connection_kwargs
    assert (unix["path"], unix["db"]) == ("/run/x.sock", 1)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://:Zk#9@h/0", "percent-encoded"),
        ("redis+cluster://:Zk/9@h", "percent-encoded"),
        ("redis://h:Zk/0", "percent-encoded"),
        ("redis://h:99999/0", "its port or an option"),
        ("redis+cluster://127.0.0.1/1", "db"),
        ("redis://h?prefix={a}", "its prefix"),
        ("redis://h?prefix=a%20b", "its prefix"),
        ("redis://h?db=Zk", "its port or an option"),
    ],
)
def test_an_invalid_url_is_an_error_without_the_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as error:
        RedisStore(url, ttl=60)
    assert "Zk" not in str(error.value)
