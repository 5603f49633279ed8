"""The keys in Redis, their values and their expiry."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from redis import exceptions
from redis.exceptions import ClusterDownError, ClusterError

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, FallbackStore, StoreError, open_store
from scrapy_rep.stores.base import MAX_LEASE, MAX_RETRY
from scrapy_rep.stores.entry import OCTETS_LIMIT, encode
from scrapy_rep.stores.redis import _RELEASE, RedisStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy_rep.stores import Store
    from testing.redis_server import RedisServer

ENTRY = Entry(AccessResult.UNAVAILABLE, 1, 2, 3, status=404)
ORIGIN = "https://a.example"


async def test_every_key_expires(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, ttl=86_400)
    await store.put(ORIGIN, ENTRY)
    await store.claim(ORIGIN, 30)
    await store.reserve_host("a.example", 20)
    await store.reserve_host("b.example", 1000)
    await store.release_host("b.example", 10)
    await store.reserve_host("c.example", 1000)
    await store.release_host("c.example", 0)
    with redis_server.client as client:
        lives = {key.decode(): client.ttl(key) for key in client.keys("*")}
    assert lives == {
        "rep:5:{https://a.example}": pytest.approx(86_400, abs=2),
        "rep:5:{https://a.example}:claim": pytest.approx(30, abs=2),
        "rep:5:{https://a.example}:fence": pytest.approx(86_400, abs=2),
        "rep:5:host:{a.example}": pytest.approx(20, abs=2),
        "rep:5:host:{b.example}": pytest.approx(10, abs=2),
    }
    await store.release(ORIGIN)
    with redis_server.client as client:
        assert not client.exists("rep:5:{https://a.example}:claim")
    claim = await store.claim(ORIGIN, 30)
    await store.put(ORIGIN, ENTRY, claim.fence)
    with redis_server.client as client:
        assert not client.exists("rep:5:{https://a.example}:fence")
        assert client.ttl("rep:5:{https://a.example}") == pytest.approx(86_400, abs=2)
    await store.close()


@pytest.mark.parametrize("kind", ["octets", "too many", "another type"])
async def test_an_invalid_entry_counts_as_missing(redis_server: RedisServer, kind: str) -> None:
    store = RedisStore(redis_server.url, ttl=60)
    with redis_server.client as client:
        if kind == "another type":
            client.lpush("rep:5:{https://a.example}", b"something")
        else:
            octets = b"something" if kind == "octets" else encode(ENTRY) + bytes(OCTETS_LIMIT)
            client.set("rep:5:{https://a.example}", octets)
    assert await store.get(ORIGIN) is None
    assert (await store.claim(ORIGIN, 1))[:2] == (True, None)
    await store.put(ORIGIN, ENTRY)
    assert await store.get(ORIGIN) == ENTRY
    await store.close()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("theirs", None), ("theirs", 86_400), ("list", None)],
    ids=["no expiry", "a late expiry", "another type"],
)
async def test_a_lease_that_does_not_expire_in_time_is_ignored(
    redis_server: RedisServer, value: str, seconds: int | None
) -> None:
    store = RedisStore(redis_server.url, ttl=60)
    with redis_server.client as client:
        for key in ("rep:5:{https://a.example}:claim", "rep:5:host:{a.example}"):
            if value == "list":
                client.lpush(key, value)
            else:
                client.set(key, value, ex=seconds)
    assert (await store.claim(ORIGIN, 30))[:2] == (True, None)
    assert await store.reserve_host("a.example", 30) == 0
    with redis_server.client as client:
        fence = b"rep:5:{https://a.example}:fence"
        assert all(0 < client.ttl(key) <= 30 for key in client.keys("*") if key != fence)
    await store.release(ORIGIN)
    await store.release_host("a.example", 0)
    with redis_server.client as client:
        assert client.keys("*") == [fence]
    await store.close()


async def test_no_lease_is_longer_than_an_hour(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, ttl=1e300)
    await store.put(ORIGIN, ENTRY)
    await store.claim(ORIGIN, 1e300)
    await store.reserve_host("a.example", 1e300)
    await store.reserve_host("b.example", 1)
    await store.release_host("b.example", 1e300)
    other = RedisStore(redis_server.url, ttl=60)
    assert (await other.claim(ORIGIN, 1))[:2] == (False, ENTRY)
    assert await other.reserve_host("a.example", 1) == MAX_RETRY
    assert await store.reserve_host("b.example", 1) == MAX_RETRY
    with redis_server.client as client:
        lives = sorted(client.ttl(key) for key in client.keys("*"))
    assert all(3590 < life <= MAX_LEASE for life in lives[:-2]), (
        "but that of the entry and its fence"
    )
    await store.close()
    await other.close()


async def test_the_url_cannot_decode_responses(redis_server: RedisServer) -> None:
    store = RedisStore(f"{redis_server.url}?decode_responses=True", ttl=60)
    await store.put(ORIGIN, ENTRY)
    assert await store.get(ORIGIN) == ENTRY
    await store.close()


async def test_an_error_of_the_server_raises_store_error(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, ttl=60)
    with redis_server.client as client:
        client.config_set("maxmemory", 1)
        try:
            with pytest.raises(StoreError, match="maxmemory"):
                await store.put(ORIGIN, ENTRY)
            assert await store.get(ORIGIN) is None
        finally:
            client.config_set("maxmemory", 0)
    await store.close()


async def test_a_replica_that_fails_is_not_used_for_some_time(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[str] = []

    def fail() -> None:
        failures.append("")
        raise ConnectionError("the replica does not run")

    store = RedisStore(redis_server.url, ttl=60)
    store._target = store._target._replace(connect_replicas=fail)
    await store.put(ORIGIN, ENTRY)
    for _ in range(2):
        assert await store.get(ORIGIN) == ENTRY
    assert len(failures) == 1
    monkeypatch.setattr("scrapy_rep.stores.redis.REPLICA_PAUSE", 0)
    store._replicas_from = 0
    for _ in range(2):
        assert await store.get(ORIGIN) == ENTRY
    assert len(failures) == 3
    await store.close()


class MovingSlot:
    """A cluster in which the slot of all keys moves. A call gets the next of some errors."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = [*errors]

    def evalsha(self, *_: object) -> int:
        if self.errors:
            raise self.errors.pop(0)
        return 1


def test_a_script_waits_for_a_slot_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    again = [ClusterError("TTL exhausted.")] * 2
    assert _RELEASE.run(MovingSlot(*again), ("a", "b")) == 1
    cluster = MovingSlot(ClusterDownError("The cluster is down"), *again)
    with pytest.raises(ClusterDownError):
        _RELEASE.run(cluster, ("a", "b"))
    assert cluster.errors == again
    monkeypatch.setattr("scrapy_rep.stores.redis.MOVE_TIMEOUT", -1)
    with pytest.raises(ClusterError, match="TTL exhausted"):
        _RELEASE.run(cluster, ("a", "b"))
    assert len(cluster.errors) == 1


class FailingClient:
    """A client whose every call raises an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def evalsha(self, *_: object) -> None:
        raise self.error

    getrange = evalsha

    def close(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    "error",
    [
        exceptions.AskError("1 127.0.0.1:1"),
        exceptions.BusyLoadingError("loading"),
        exceptions.ClusterDownError("the cluster is down"),
        exceptions.MasterDownError("the link with the primary is down"),
        exceptions.MaxConnectionsError("too many connections"),
        exceptions.MovedError("1 127.0.0.1:1"),
        exceptions.NoPermissionError("no permission"),
        exceptions.ReadOnlyError("a replica"),
        exceptions.RedisClusterException("no node"),
        exceptions.SlotNotCoveredError("no node has the slot"),
        exceptions.TimeoutError("a time-out"),
        ConnectionResetError("reset"),
        IndexError("the table of nodes changed"),
        KeyError("the table of nodes changed"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_every_fault_of_a_server_is_handled(error: Exception) -> None:
    """A method of the store raises StoreError. A crawl goes on in memory."""
    store = RedisStore("redis+cluster://127.0.0.1:1", ttl=60)
    store._clients[store._target.connect] = FailingClient(error)
    calls: list[Callable[[Store], Awaitable[object]]] = [
        lambda store: store.get(ORIGIN),
        lambda store: store.put(ORIGIN, ENTRY, 1),
        lambda store: store.claim(ORIGIN, 1),
        lambda store: store.renew(ORIGIN, 1, 1),
        lambda store: store.release(ORIGIN),
        lambda store: store.reserve_host("a.example", 1),
        lambda store: store.release_host("a.example", 1),
    ]
    for call in calls:
        with pytest.raises(StoreError):
            await call(store)
        await call(FallbackStore(store))
    await store.close()


async def test_a_cluster_without_nodes_is_a_store_error() -> None:
    store = RedisStore("redis+cluster://:Zk9@127.0.0.1:1", ttl=60)
    with pytest.raises(StoreError, match="cannot be connected"):
        store.open()
    with pytest.raises(StoreError) as error:
        await store.get(ORIGIN)
    assert "Zk9" not in str(error.value)
    await store.close()


async def test_without_sentinels_there_is_a_store_error() -> None:
    store = RedisStore("redis+sentinel://127.0.0.1:1/name", ttl=60)
    with pytest.raises(StoreError, match="No master found for 'name'"):
        store.open()
    await store.close()


class EchoServer(threading.Thread):
    """A server that repeats each command in its error, as old servers do with unknown commands."""

    def __init__(self, separator: str) -> None:
        super().__init__(daemon=True)
        self._separator = separator
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    told = b" ".join(connection.recv(4096).split()).decode()
                    connection.sendall(f"-ERR unknown{self._separator}{told}\r\n".encode())

    def stop(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("separator", [" command, with args beginning with: ", ": "])
@pytest.mark.parametrize("user", [":Zk9x%2Fy@", "user:Zk9x%2Fy@", ""])
def test_an_error_that_repeats_the_password_is_shown_without_it(separator: str, user: str) -> None:
    server = EchoServer(separator)
    option = "" if user else "?password=Zk9x%2Fy"
    store = RedisStore(f"redis://{user}127.0.0.1:{server.port}/0{option}", ttl=60)
    try:
        with pytest.raises(StoreError) as error:
            store.open()
    finally:
        server.stop()
    assert str(error.value)
    assert "Zk9x" not in str(error.value)
    assert error.value.__cause__ is None


@pytest.mark.parametrize("url", ["redis://:Zk#9x@h/0", "redis://:Zk/9x@h/0", "redis://Zk?9x@h/0"])
def test_a_password_that_is_not_encoded_is_an_error(url: str) -> None:
    with pytest.raises(StoreError, match="percent-encoded") as error:
        RedisStore(url, ttl=60)
    assert "Zk" not in str(error.value)
    assert "9x" not in str(error.value)


def test_without_the_package_redis_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "scrapy_rep.stores.redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreError, match="pip install redis"):
        open_store("redis://127.0.0.1/0", jobdir=None, ttl=60)
