from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, StoreError
from scrapy_rep.stores.fallback import FIRST_RETRY, RETRY_INTERVAL, WARNING_INTERVAL, FallbackStore
from scrapy_rep.stores.sqlite import MemoryStore
from testing.clock import FakeClock

OLD, NEW = (Entry(AccessResult.SUCCESSFUL, at, 0, body=b"") for at in (1, 2))


class FailingStore(MemoryStore):
    """Fails after ``left`` calls."""

    left, calls = 1000, 0
    error: BaseException = StoreError("it failed")

    def _call(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.left == 0:
            raise self.error
        self.left -= 1
        return super()._call(*arguments)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def failing() -> FailingStore:
    return FailingStore()


@pytest.fixture
def store(failing: FailingStore, clock: FakeClock) -> FallbackStore:
    return FallbackStore(failing, clock=clock.monotonic)


async def test_a_failed_store_is_tried_again_after_an_interval(
    store: FallbackStore, failing: FailingStore, clock: FakeClock
) -> None:
    await store.put("a", OLD)
    assert await store.reserve_host("a", 3000) == 0
    failing.left, failing.calls = 0, 0
    for _ in range(5):
        assert await store.put("a", NEW), "the crawl continues"
    assert await store.get("a") is None
    assert await store.claim("a", 1) == (True, None, 0)
    await store.release_host("a", 10)  # the crawl cannot release what it has reserved
    assert await store.reserve_host("a", 10) == 0
    assert failing.calls == 1
    clock.now += FIRST_RETRY
    failing.left = 1000
    assert await store.get("a") == OLD
    assert await store.get("a") == NEW, "it gets what was missed"


async def test_the_interval_doubles_until_the_store_works_again(
    store: FallbackStore, failing: FailingStore, clock: FakeClock
) -> None:
    failing.left = 0
    for _ in range(3):  # several calls fail at once
        store.mark_failed(StoreError("it failed"))
    for seconds in (1, 2, 4, 8, 16, RETRY_INTERVAL, RETRY_INTERVAL):
        failing.calls = 0
        clock.now += seconds - 0.01
        await store.get("a")
        assert failing.calls == 0
        clock.now += 0.01
        await store.get("a")
        await store.get("a")
        assert failing.calls == 1
    failing.left = 1
    clock.now += RETRY_INTERVAL
    await store.get("a")  # it works
    await store.get("a")
    clock.now += FIRST_RETRY
    failing.calls = 0
    await store.get("a")
    assert failing.calls == 1


@pytest.mark.parametrize("is_newer", [False, True])
async def test_an_entry_without_a_claim_replaces_no_newer_one(
    clock: FakeClock, is_newer: bool
) -> None:
    """The file was claimed while the store had failed, and is put when the store works again."""
    failing = FailingStore()
    other, store = MemoryStore(failing._name), FallbackStore(failing, clock=clock.monotonic)
    failing.left = 0
    mine = await store.claim("a", 60)
    assert mine.fence == 0
    failing.left = 1000
    clock.now += RETRY_INTERVAL
    assert await store.get("a") is None
    if is_newer:
        await other.put("a", NEW, (await other.claim("a", 60)).fence)
    assert await store.put("a", OLD, mine.fence) is not is_newer
    assert await other.get("a") == (NEW if is_newer else OLD)


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == level]


async def test_the_log_has_one_warning_of_an_outage(
    store: FallbackStore, failing: FailingStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    failing.left = 0
    for _ in range(4):
        await store.get("a")
        clock.now += WARNING_INTERVAL
    (warning,) = messages(caplog, logging.WARNING)
    assert "it failed" in warning
    failing.left = 1
    await store.get("a")
    assert messages(caplog, logging.INFO) == ["The store of robots.txt files works again."]
    await store.get("a")
    assert len(messages(caplog, logging.WARNING)) == 2


async def test_a_store_that_fails_now_and_then_has_one_warning_an_hour(
    store: FallbackStore, failing: FailingStore, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for number in range(1, 6):
        failing.left = 0
        await store.get("a")
        failing.left = 1000
        clock.now += WARNING_INTERVAL / 4
        await store.get("a")
        warnings, hours = messages(caplog, logging.WARNING), 1 + number // 5
        assert len(warnings) == len(messages(caplog, logging.INFO)) == hours
        assert len(messages(caplog, logging.DEBUG)) == number - hours
    failing.left = 0
    for _ in range(5):  # an outage that has begun within an hour after the last warning
        await store.get("a")
        clock.now += WARNING_INTERVAL / 4
    assert len(messages(caplog, logging.WARNING)) == 3


@pytest.mark.rule("Unexpected errors")
async def test_any_error_is_a_failure(
    store: FallbackStore, failing: FailingStore, caplog: pytest.LogCaptureFixture
) -> None:
    failing.left, failing.error = 0, ZeroDivisionError("\x1b[31m" + "x" * 1000)
    assert await store.get("a") is None
    (warning,) = messages(caplog, logging.WARNING)
    assert "ZeroDivisionError: \\x1b[31mxxx" in warning
    assert len(warning) < 1000
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("error", [asyncio.CancelledError, CancelledError])
async def test_a_cancelled_call_is_not_a_failure(
    store: FallbackStore, failing: FailingStore, error: type[BaseException]
) -> None:
    failing.left, failing.error = 0, error()
    with pytest.raises(error):
        await store.get("a")
    assert store._next_attempt_at is None
