"""The URLs of Redis, and the options of the connections that they describe. No server runs."""

from __future__ import annotations

from typing import Any

import pytest
from redis.connection import SSLConnection

from scrapy_rep.stores import StoreError, redis_client
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.redis_client import SENTINEL_TIMEOUT, SOCKET_TIMEOUT, target_of


def described(monkeypatch: pytest.MonkeyPatch, url: str) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of the client of a cluster or of Sentinel."""
    calls: list[tuple[Any, dict[str, Any]]] = []

    class Client:
        def __init__(self, nodes: Any = None, **options: Any) -> None:
            calls.append((nodes, options))

        def master_for(self, service: str) -> str:
            return f"primary of {service}"

        def slave_for(self, service: str) -> str:
            return f"replicas of {service}"

    monkeypatch.setattr(redis_client, "RedisCluster", Client)
    monkeypatch.setattr(redis_client, "Sentinel", Client)
    target = target_of(url)
    client = target.connect()
    nodes, options = calls.pop()
    if isinstance(client, str):
        options["client"] = client
    else:
        nodes = [(node.host, node.port) for node in options.pop("startup_nodes")]
    if target.connect_replicas is not None:
        options["replicas"] = target.connect_replicas()
    return nodes, options


def test_a_server_has_the_options_of_the_url() -> None:
    target = target_of(
        "rediss://user:p%2Fw@h:1/2?ssl_ca_certs=/ca.pem&prefix=a:&socket_timeout=2&x=%26%20"
    )
    options = target.connect().connection_pool.connection_kwargs
    assert options["username"] == "user"
    assert options["password"] == "p/w"
    assert (options["host"], options["port"], options["db"]) == ("h", 1, 2)
    assert options["ssl_ca_certs"] == "/ca.pem"
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (2, SOCKET_TIMEOUT)
    assert options["x"] == "& "
    assert "prefix" not in options
    assert target.connect().connection_pool.connection_class is SSLConnection
    assert target.prefix == "a:"
    assert target.connect_replicas is None
    assert target.secrets == ("p/w",)


def test_a_cluster_has_several_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "rediss+cluster://user:pw@h,[::1]:7001/0?ssl_ca_certs=/ca.pem&replicas=yes"
    nodes, options = described(monkeypatch, url)
    assert nodes == [("h", 6379), ("::1", 7001)]
    assert (options["username"], options["password"]) == ("user", "pw")
    assert options["ssl"] is True
    assert options["ssl_ca_certs"] == "/ca.pem"
    assert options["load_balancing_strategy"] is None
    assert "replicas" in options


def test_sentinel_has_options_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    url = (
        "rediss+sentinel://user:pw@h,i:1/the%20name/3?ssl_ca_certs=/ca.pem&replicas=true"
        "&sentinel_username=other&sentinel_password=Zk9"
    )
    nodes, options = described(monkeypatch, url)
    assert nodes == [("h", 26379), ("i", 1)]
    assert options["client"] == "primary of the name"
    assert options["replicas"] == "replicas of the name"
    assert (options["username"], options["password"], options["db"]) == ("user", "pw", 3)
    sentinel = options["sentinel_kwargs"]
    assert (sentinel["username"], sentinel["password"]) == ("other", "Zk9")
    assert sentinel["socket_timeout"] == SENTINEL_TIMEOUT
    for each in (options, sentinel):
        assert each["ssl"] is True
        assert each["ssl_ca_certs"] == "/ca.pem"
    assert "sentinel_password" not in options
    assert set(target_of(url).secrets) == {"pw", "Zk9"}


def test_without_options_there_is_no_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, options = described(monkeypatch, "redis+sentinel://h/name")
    assert nodes == [("h", 26379)]
    assert options["db"] == 0
    assert "ssl" not in options
    assert "replicas" not in options
    _, options = described(monkeypatch, "redis+cluster://h")
    assert options["ssl"] is False


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://:Zk#9@h/0", "percent-encoded"),
        ("redis+cluster://:Zk/9@h", "percent-encoded"),
        ("redis://h:Zk/0", "its port or an option"),
        ("redis+cluster://h:Zk", "its port or an option"),
        ("redis+cluster://h,,i", "its port or an option"),
        ("redis+cluster://h/1", "only the database 0"),
        ("redis+sentinel://h", "must be redis\\+sentinel"),
        ("redis+sentinel://h/name/x", "must be redis\\+sentinel"),
        ("redis://h?prefix={a}", "its prefix"),
        ("redis://h?prefix=a%20b", "its prefix"),
        ("redis://h?replicas=true", "only a cluster and Sentinel"),
        ("redis+cluster://h?replicas=perhaps", "true or false"),
        ("redis://h?db=Zk", "its port or an option"),
    ],
)
def test_an_invalid_url_is_an_error_without_the_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as error:
        RedisStore(url, ttl=60)
    assert "Zk" not in str(error.value)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(StoreError, match="invalid option"):
        RedisStore("redis://127.0.0.1:1/0?unknown=1", ttl=60).open()
