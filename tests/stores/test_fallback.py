from __future__ import annotations

import logging
from typing import Any

import pytest
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.stores import Entry, FallbackStore, StoreError
from scrapy_rep.stores.fallback import COPY_BATCH, RETRY_INTERVAL, WARNING_INTERVAL
from scrapy_rep.stores.memory import MemoryStore

OLD, NEW = (Entry(AccessResult.RULES, at, 0, body=b"") for at in (1, 2))


class Fragile(MemoryStore):
    """Works for ``left`` calls, and then not."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 1000
        self.asked = 0

    def _used(self) -> None:
        self.asked += 1
        if self.left == 0:
            raise StoreError("it fell")
        self.left -= 1

    async def get(self, origin: str) -> Entry | None:
        self._used()
        return await super().get(origin)

    async def put(self, origin: str, entry: Entry) -> None:
        self._used()
        await super().put(origin, entry)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def fragile() -> Fragile:
    return Fragile()


@pytest.fixture
def store(fragile: Fragile, clock: Clock) -> FallbackStore:
    return FallbackStore(fragile, clock=clock)


async def test_while_it_is_away_it_is_left_in_peace(
    store: FallbackStore, fragile: Fragile, clock: Clock
) -> None:
    fragile.left = 0
    for _ in range(5):
        await store.put("a", OLD)
    assert fragile.asked == 1
    assert await store.get("a") == OLD
    assert await store.claim("a", 1) == (True, OLD)
    clock.now += RETRY_INTERVAL
    assert await store.get("a") == OLD
    assert await store.get("a") == OLD
    assert fragile.asked == 2


async def test_what_was_learnt_meanwhile_is_given_back(
    store: FallbackStore, fragile: Fragile, clock: Clock
) -> None:
    await store.put("b", NEW)
    fragile.left = 0
    names = [str(number) for number in range(COPY_BATCH + 5)]
    for name in (*names, "b"):
        await store.put(name, OLD)
    fragile.left = 1000
    clock.now += RETRY_INTERVAL
    assert await store.get("b") == NEW, "and not what is older"
    assert await store.get("b") == NEW
    assert [await store.get(name) for name in names] == [OLD] * len(names)


async def test_it_may_go_away_while_it_is_given_back(
    store: FallbackStore, fragile: Fragile, clock: Clock
) -> None:
    fragile.left = 0
    await store.put("a", OLD)
    fragile.left = 1  # for whether there is something newer
    clock.now += RETRY_INTERVAL
    assert await store.get("a") == OLD, "kept in memory"
    assert await store.get("a") == OLD
    fragile.left = 1000
    clock.now += RETRY_INTERVAL
    assert await store.get("a") == OLD
    assert await fragile.get("a") == OLD


async def test_what_is_given_back_is_not_lost_with_a_call_that_is_cancelled(
    store: FallbackStore, fragile: Fragile, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragile.left = 0
    await store.put("a", OLD)
    fragile.left = 1000
    clock.now += RETRY_INTERVAL

    async def slow(origin: str, entry: Entry) -> None:
        await sleep(10)

    with monkeypatch.context() as patch:
        patch.setattr(fragile, "put", slow)
        call = deferred_from_coro(store.get("b"))
        call.addErrback(lambda failure: None)
        await sleep(0.05)
        call.cancel()
        await sleep(0.05)
    clock.now += RETRY_INTERVAL
    assert await store.get("b") is None
    assert await fragile.get("a") == OLD


async def test_what_is_slow_is_given_back_a_little_at_a_time(
    store: FallbackStore, fragile: Fragile, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragile.left = 0
    for origin in "abc":
        await store.put(origin, OLD)
    fragile.left = 1000
    clock.now += RETRY_INTERVAL
    monkeypatch.setattr("scrapy_rep.stores.fallback.COPY_TIME_LIMIT", -1)
    await store.get("z")
    assert [await fragile.get(origin) for origin in "abc"] == [None, None, OLD]


async def test_a_host_that_the_store_has_is_nobodys_while_it_is_away(
    store: FallbackStore, fragile: Any, clock: Clock
) -> None:
    """Nobody waits for what can be released no more, or was reserved elsewhere."""

    async def broken(*_: object) -> float:
        raise StoreError("it fell")

    assert await store.reserve_host("a", 3000) == 0
    fragile.reserve_host, fragile.release_host = broken, broken
    await store.release_host("a", 10)
    assert await store.reserve_host("a", 10) == 0
    assert await store.reserve_host("b", 10) == 0
    await store.release_host("b", 10)
    assert 0 < await store.reserve_host("b", 10) <= 10


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == level]


async def test_one_warning_is_enough(
    store: FallbackStore, fragile: Fragile, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fragile.left = 0
    for _ in range(4):
        await store.get("a")
        clock.now += RETRY_INTERVAL
    assert len(messages(caplog, logging.WARNING)) == 1
    assert "it fell" in messages(caplog, logging.WARNING)[0]
    fragile.left = 1
    await store.get("a")
    assert messages(caplog, logging.INFO) == ["The store of robots.txt files works again."]
    clock.now += WARNING_INTERVAL
    await store.get("a")
    assert len(messages(caplog, logging.WARNING)) == 2
    assert store.failures == 5


async def test_what_is_wrong_in_another_way_is_not_hidden(
    store: FallbackStore, fragile: Any
) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    fragile._used = broken
    with pytest.raises(ZeroDivisionError):
        await store.get("a")
