"""A download that takes too long is cancelled on each event loop, and its caller goes on."""

from __future__ import annotations

import asyncio

import pytest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from scrapy_rep.fetch.downloader import _Timeout
from scrapy_rep.frontier.clock import Clock, sleep

URL = "https://a.example/robots.txt"
LONG = 3600


def timeout(seconds: float = LONG, max_wait: float = 0, waiting: bool = False) -> _Timeout:
    return _Timeout(Clock(), seconds, max_wait, lambda: waiting)


async def test_the_result_and_the_error_are_those_of_the_download() -> None:
    async def give(value: int) -> int:
        await sleep(0)
        return 10 // value

    limit = timeout()
    limit.expire()  # nothing is in progress yet
    assert await limit.run(give(5), URL) == 2
    limit.expire()  # nothing is in progress any more
    with pytest.raises(ZeroDivisionError):
        await timeout().run(give(0), URL)


@pytest.mark.parametrize("by_itself", [True, False])
async def test_an_expired_download_ends_and_its_caller_goes_on(by_itself: bool) -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        finally:
            ends.append("ended")

    limit = timeout(0.05 if by_itself else LONG)

    async def expire() -> None:
        await sleep(0.01)
        if not by_itself:
            limit.expire()
            limit.expire()

    expiring = deferred_from_coro(expire())
    with pytest.raises(TimeoutError, match=f"getting {URL} took longer than REP_TIMEOUT"):
        await limit.run(download(), URL)
    assert ends == ["ended"]
    await sleep(0.01)  # the caller is not cancelled
    await maybe_deferred_to_future(expiring)
    task = asyncio.current_task() if is_asyncio_available() else None
    if task is not None and hasattr(task, "cancelling"):
        assert not task.cancelling()


async def test_the_time_that_a_request_waits_for_its_host_does_not_count() -> None:
    with pytest.raises(TimeoutError):
        await timeout(0.02, max_wait=0.05, waiting=True).run(sleep(LONG), URL)
    await timeout(0.02, max_wait=LONG, waiting=True).run(sleep(0.3), URL)


async def test_a_download_is_cancelled_with_its_caller() -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        except (asyncio.CancelledError, CancelledError) as error:
            ends.append(type(error).__name__)
            raise

    caller = deferred_from_coro(timeout().run(download(), URL))
    await sleep(0.01)
    caller.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await maybe_deferred_to_future(caller)
    assert ends == ["CancelledError"]
