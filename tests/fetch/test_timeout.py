"""A download that takes too long is cancelled on each event loop, and its caller goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from scrapy_rep.fetch.downloader import in_words, run_within
from scrapy_rep.frontier.clock import Clock, sleep
from scrapy_rep.frontier.fetch_limit import Permit

T = TypeVar("T")
LONG = 3600


def within(
    download: Coroutine[Any, Any, T],
    seconds: float = LONG,
    max_wait: float = 0,
    *,
    waiting: bool = False,
    permit: Permit | None = None,
) -> Coroutine[Any, Any, T]:
    return run_within(seconds, max_wait, download, Clock(), permit or Permit(), lambda: waiting)


async def test_the_result_and_the_error_are_those_of_the_download() -> None:
    async def give(value: int) -> int:
        await sleep(0)
        return 10 // value

    permit = Permit()
    assert await within(give(5), permit=permit) == 2
    assert permit.expire is None
    with pytest.raises(ZeroDivisionError):
        await within(give(0))


@pytest.mark.parametrize("by_itself", [True, False])
async def test_an_expired_download_ends_and_its_caller_goes_on(by_itself: bool) -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        finally:
            ends.append("ended")

    permit = Permit()

    async def expire() -> None:
        await sleep(0.01)
        if permit.expire is not None and not by_itself:
            permit.expire()

    expiring = deferred_from_coro(expire())
    with pytest.raises(TimeoutError) as error:
        await within(download(), 0.05 if by_itself else LONG, permit=permit)
    assert in_words(error.value) == "it took longer than REP_TIMEOUT"
    assert ends == ["ended"]
    await sleep(0.01)  # the caller is not cancelled
    await maybe_deferred_to_future(expiring)
    task = asyncio.current_task() if is_asyncio_available() else None
    if task is not None and hasattr(task, "cancelling"):
        assert not task.cancelling()


async def test_the_time_that_a_request_waits_for_its_host_does_not_count() -> None:
    with pytest.raises(TimeoutError):
        await within(sleep(LONG), 0.02, 0.05, waiting=True)
    await within(sleep(0.3), 0.02, LONG, waiting=True)


async def test_a_download_is_cancelled_with_its_caller() -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        except (asyncio.CancelledError, CancelledError) as error:
            ends.append(type(error).__name__)
            raise

    caller = deferred_from_coro(within(download()))
    await sleep(0.01)
    caller.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await maybe_deferred_to_future(caller)
    assert ends == ["CancelledError"]
