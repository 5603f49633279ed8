"""What lies in Redis, and for how long."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.stores import Entry, Kind, StoreError, open_store
from scrapy_rep.stores.redis import RedisStore

if TYPE_CHECKING:
    from .servers import RedisServer

ENTRY = Entry(Kind.UNAVAILABLE, 1, 2, 3, status=404)
ORIGIN = "https://a.example"


async def test_every_key_expires(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, keep=86_400)
    await store.put(ORIGIN, ENTRY)
    await store.claim(ORIGIN, 30)
    await store.turn("a.example", 20)
    with redis_server.client as client:
        lives = {key.decode(): client.ttl(key) for key in client.keys("*")}
    assert lives == {
        "rep:2:{https://a.example}": pytest.approx(86_400, abs=2),
        "rep:2:{https://a.example}:claim": pytest.approx(30, abs=2),
        "rep:2:turn:a.example": pytest.approx(20, abs=2),
    }
    await store.release(ORIGIN)
    with redis_server.client as client:
        assert not client.exists("rep:2:{https://a.example}:claim")
    await store.close()


async def test_what_is_no_entry_is_as_if_it_were_not_there(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, keep=60)
    with redis_server.client as client:
        client.set("rep:2:{https://a.example}", b"something")
    assert await store.get(ORIGIN) is None
    assert await store.claim(ORIGIN, 1) == (True, None)
    await store.put(ORIGIN, ENTRY)
    assert await store.get(ORIGIN) == ENTRY
    await store.close()


async def test_a_key_of_another_kind_is_an_error_of_the_store(redis_server: RedisServer) -> None:
    store = RedisStore(redis_server.url, keep=60)
    with redis_server.client as client:
        client.lpush("rep:2:{https://a.example}", b"something")
    with pytest.raises(StoreError, match="WRONGTYPE"):
        await store.get(ORIGIN)
    await store.close()


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "scrapy_rep.stores.redis")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreError, match=r"pip install scrapy-rep\[redis\]"):
        open_store("redis://127.0.0.1/0", jobdir=None, keep=60)
