from __future__ import annotations

import asyncio

import pytest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.scheduling.interruption import Interruption

LONG = 3600


async def test_the_result_and_the_error_are_those_of_the_coroutine() -> None:
    async def give(value: int) -> int:
        await sleep(0)
        return 10 // value

    interruption = Interruption()
    interruption.interrupt()  # nothing runs yet
    assert await interruption.run(give(5), "") == 2
    interruption.interrupt()  # nothing runs any more
    assert not interruption.has_interrupted
    with pytest.raises(ZeroDivisionError):
        await Interruption().run(give(0), "")


async def test_an_interrupted_coroutine_ends_and_its_caller_goes_on() -> None:
    interruption, ends = Interruption(), []

    async def run() -> None:
        try:
            await sleep(LONG)
        finally:
            ends.append("ended")

    async def interrupt() -> None:
        await sleep(0.01)
        interruption.interrupt()
        interruption.interrupt()

    caller = deferred_from_coro(interrupt())
    with pytest.raises(TimeoutError, match="too long"):
        await interruption.run(run(), "too long")
    assert ends == ["ended"]
    assert interruption.has_interrupted
    await sleep(0.01)  # the caller is not cancelled
    await maybe_deferred_to_future(caller)
    task = asyncio.current_task() if is_asyncio_available() else None
    if task is not None and hasattr(task, "cancelling"):
        assert not task.cancelling()


async def test_a_coroutine_is_cancelled_with_its_caller() -> None:
    ends = []

    async def run() -> None:
        try:
            await sleep(LONG)
        except (asyncio.CancelledError, CancelledError) as error:
            ends.append(type(error).__name__)
            raise

    interruption = Interruption()
    caller = deferred_from_coro(interruption.run(run(), ""))
    await sleep(0.01)
    caller.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await maybe_deferred_to_future(caller)
    assert ends == ["CancelledError"]
    assert not interruption.has_interrupted
