"""How many fetches there are at once, and downloads that take too long, on each event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from scrapy_rep.clock import Clock
from scrapy_rep.fetch.downloader import in_words
from scrapy_rep.fetch.fetch_limit import OLD, FetchLimit, Permit
from testing.clock import FakeClock, settle
from tests.frontier.doubles import FakeEngine

LONG = 3600


def run(
    download: Coroutine[Any, Any, Any], seconds: float = LONG, permit: Permit | None = None
) -> Coroutine[Any, Any, Any]:
    return (permit or Permit(Clock())).run(download, seconds, 0, lambda: False)


@pytest.mark.parametrize("by_itself", [True, False])
async def test_an_expired_download_ends_and_its_caller_goes_on(by_itself: bool) -> None:
    ends = []

    async def download() -> None:
        try:
            await Clock().sleep(LONG)
        finally:
            ends.append("ended")

    permit = Permit(clock := Clock())
    if not by_itself:
        clock.call_later(0.01, permit.expire)
    with pytest.raises(TimeoutError) as raised:
        await run(download(), 0.05 if by_itself else LONG, permit)
    assert in_words(raised.value) == "it took longer than REP_TIMEOUT"
    assert ends == ["ended"]
    await Clock().sleep(0.01)  # the caller is not cancelled
    task = asyncio.current_task() if is_asyncio_available() else None
    if task is not None and hasattr(task, "cancelling"):
        assert not task.cancelling()


async def test_the_time_that_a_request_waits_for_its_host_does_not_count() -> None:
    with pytest.raises(TimeoutError):
        await Permit(Clock()).run(Clock().sleep(LONG), 0.02, 0.05, lambda: True)
    permit = Permit(Clock())
    await permit.run(Clock().sleep(0.3), 0.02, LONG, lambda: True)
    permit.expire()  # it has ended


async def test_a_download_is_cancelled_with_its_caller() -> None:
    ends = []

    async def download() -> None:
        try:
            await Clock().sleep(LONG)
        except (asyncio.CancelledError, CancelledError) as cancelled:
            ends.append(type(cancelled).__name__)
            raise

    caller = deferred_from_coro(run(download()))
    await Clock().sleep(0.01)
    caller.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await maybe_deferred_to_future(caller)
    assert ends == ["CancelledError"]


async def test_all_fetches_are_bounded_and_the_oldest_ends_for_another() -> None:
    clock, engine, ended = FakeClock(), FakeEngine(), list[int]()
    limit = FetchLimit(3, clock, engine, None)

    async def fetch(number: int) -> None:
        async with limit.permit() as permit:
            with pytest.raises(TimeoutError):
                await run(Clock().sleep(LONG), permit=permit)
            ended.append(number)

    fetches = [deferred_from_coro(fetch(number)).addErrback(lambda _: None) for number in range(4)]
    await settle()
    limit.end_oldest()
    assert not limit.can_begin(), "none is old"
    fetches[3].cancel()
    await settle()  # it leaves nothing
    assert ended == []
    clock.advance(OLD)
    limit.end_oldest()
    await settle()
    assert (limit.can_begin(), ended) == (True, [0])
    for each in fetches:
        each.cancel()
