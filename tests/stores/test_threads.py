from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import CancelledError

from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.stores.threads import Threads, _as_deferred

if TYPE_CHECKING:
    from collections.abc import Iterator


async def test_a_call_returns_or_raises() -> None:
    threads = Threads(1)
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)
    await threads.close(lambda: None)


async def test_what_has_begun_ends_before_the_last_call() -> None:
    threads, done = Threads(2), []
    go_on = threading.Event()

    def slow() -> None:
        go_on.wait(10)
        done.append("slow")

    slowly = deferred_from_coro(threads.run(slow))
    slowly.addErrback(lambda failure: None)
    await sleep(0.05)
    slowly.cancel()
    closing = deferred_from_coro(threads.close(lambda: done.append("last")))
    await sleep(0.05)
    assert done == []
    go_on.set()
    await maybe_deferred_to_future(closing)
    assert done == ["slow", "last"]


# On reactors without asyncio; it works on every reactor.


@pytest.fixture
def one_thread() -> Iterator[ThreadPoolExecutor]:
    if not is_reactor_installed():
        pytest.skip("there is no reactor")
    with ThreadPoolExecutor(1) as executor:
        yield executor


async def test_a_deferred_has_the_result(one_thread: ThreadPoolExecutor) -> None:
    work: Any = one_thread.submit(divmod, 7, 2)
    assert await maybe_deferred_to_future(_as_deferred(work)) == (3, 1)


async def test_a_deferred_has_the_error(one_thread: ThreadPoolExecutor) -> None:
    work: Any = one_thread.submit(divmod, 7, 0)
    with pytest.raises(ZeroDivisionError):
        await maybe_deferred_to_future(_as_deferred(work))


@pytest.mark.parametrize("begun", [True, False])
async def test_a_deferred_is_cancelled(one_thread: ThreadPoolExecutor, begun: bool) -> None:
    go_on = threading.Event()
    if not begun:
        one_thread.submit(go_on.wait, 10)
    deferred = _as_deferred(one_thread.submit(go_on.wait, 10))
    await sleep(0.05)
    failures: list[Any] = []
    deferred.addErrback(failures.append)
    deferred.cancel()
    go_on.set()
    await sleep(0.05)
    assert failures[0].check(CancelledError)
