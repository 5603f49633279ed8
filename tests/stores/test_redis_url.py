"""The URLs of Redis, and the clients that they stand for."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis.connection import SSLConnection

from scrapy_rep.stores import StoreError
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_url import SOCKET_TIMEOUT, RedisURL, clients
from testing.redis_server import RedisServer


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
    ("message", "urls"),
    [
        ("percent-encoded", ["redis://:Zk#9@h/0", "redis+cluster://:Zk/9@h", "redis://h:Zk/0"]),
        ("db", ["redis+cluster://127.0.0.1/1"]),
        ("its prefix", ["redis://h?prefix={a}", "redis://h?prefix=a%20b"]),
        ("its port or an option",
         ["redis://h:99999/0", "redis://h?db=Zk", "redis://h?max_connections=-1",
          "redis+sentinel://h/main/Zk", "redis+sentinel://h/main/1/2",
          "redis+sentinel://:Zk@h,/main", "redis+sentinel://:Zk@h,h:99999/main"]),
        ("is invalid", ["redis+other://h", "http://h"]),
        ("the name of a service",
         ["redis+sentinel://:Zk@h:26379", "redis+sentinel://:Zk@h:26379//1"]),
    ],
)  # fmt: skip
def test_an_invalid_url_is_an_error_without_the_password(message: str, urls: list[str]) -> None:
    for url in urls:
        with pytest.raises(StoreError, match=message) as error:
            RedisStore(url, ttl=60)
        assert "Zk" not in str(error.value)


@pytest.mark.parametrize("library", [redis, redis.asyncio])
def test_a_url_of_sentinel(library: Any) -> None:
    """The user and the password are those of the servers. TLS is for both."""
    url = RedisURL(
        "rediss+sentinel://user:Zk%2F9@a,[::1]:2/a%20b/3?prefix=a:&socket_timeout=2"
        "&ssl_ca_certs=/ca.pem&sentinel_username=s&sentinel_password=Xj7&max_connections=9"
    )
    client = url.client(asynchronous=library is redis.asyncio, socket_timeout=4, protocol=3)
    assert type(client) is library.Redis
    pool, (_, *sentinels) = client.connection_pool, clients(client)
    assert (pool.service_name, pool.max_connections, url.prefix) == ("a b", 9, "a:")
    assert pool.connection_class is library.sentinel.SentinelManagedSSLConnection
    options = pool.connection_kwargs
    assert (options["username"], options["password"], options["db"]) == ("user", "Zk/9", 3)
    both = {"ssl_ca_certs": "/ca.pem", "socket_timeout": 2, "socket_connect_timeout": 5}
    assert both.items() <= options.items()
    assert (options["protocol"], options["retry"]._retries) == (3, 3)
    for sentinel, address in zip(sentinels, [("a", 26379), ("::1", 2)], strict=True):
        pool = sentinel.connection_pool
        assert pool.connection_class is library.SSLConnection
        options = pool.connection_kwargs
        assert (options["host"], options["port"]) == address
        assert (options["username"], options["password"]) == ("s", "Xj7")
        assert both.items() <= options.items()
        assert options["retry"]._retries == 3
    assert url.message(ValueError("Zk/9 Xj7 a")) == "*** *** a"


def test_a_client_of_asyncio(redis_server: RedisServer) -> None:
    async def value() -> Any:
        client = RedisURL(redis_server.url).client(asynchronous=True, decode_responses=True)
        try:
            await client.set("a", "b")
            return await client.get("a")
        finally:
            await client.aclose()

    with ThreadPoolExecutor(1) as thread:  # this one may have an event loop
        assert thread.submit(lambda: asyncio.run(value())).result() == "b"


def test_a_client_of_a_cluster() -> None:
    """It asks a node when it is used first."""
    client = RedisURL("redis+cluster://h:1").client(asynchronous=True)
    assert type(client) is redis.asyncio.RedisCluster
