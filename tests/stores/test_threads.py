from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import CancelledError

from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.stores import StoreError
from scrapy_rep.stores.threads import CALL_TIMEOUT, ThreadPool, _as_deferred

if TYPE_CHECKING:
    from collections.abc import Iterator


async def test_a_call_returns_or_raises() -> None:
    threads = ThreadPool(1)
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)
    await threads.close(lambda: None)


async def test_closing_makes_its_call_after_all_others() -> None:
    threads, done = ThreadPool(2), []
    proceed = threading.Event()

    def slow() -> None:
        proceed.wait(10)
        done.append("slow")

    slowly = deferred_from_coro(threads.run(slow))
    slowly.addErrback(lambda failure: None)
    await sleep(0.05)
    slowly.cancel()
    closing = deferred_from_coro(threads.close(lambda: done.append("last")))
    await sleep(0.05)
    assert done == []
    proceed.set()
    await maybe_deferred_to_future(closing)
    assert done == ["slow", "last"]


async def test_a_cancelled_call_is_undone() -> None:
    threads, undone, proceed = ThreadPool(1), list[Any](), threading.Event()
    call = deferred_from_coro(threads.run(proceed.wait, 10, undo=undone.append))
    call.addErrback(lambda failure: None)
    await sleep(0.05)
    call.cancel()
    assert undone == []
    proceed.set()
    await threads.close(lambda: None)
    assert undone == [True]


async def test_a_call_that_failed_or_never_started_is_not_undone() -> None:
    threads, undone, proceed = ThreadPool(1), list[Any](), threading.Event()

    def fail() -> None:
        proceed.wait(10)
        raise ZeroDivisionError

    calls = [
        deferred_from_coro(threads.run(call, undo=undone.append)) for call in (fail, undone.clear)
    ]
    await sleep(0.05)
    for call in calls:
        call.addErrback(lambda failure: None)
        call.cancel()
    await sleep(0.01)
    proceed.set()
    await threads.close(lambda: None)
    assert undone == []


async def test_a_shielded_call_is_made_although_it_was_cancelled() -> None:
    threads, done, proceed = ThreadPool(1), list[Any](), threading.Event()
    calls = [
        deferred_from_coro(threads.run(proceed.wait, 10)),
        deferred_from_coro(threads.run(done.append, "once", shield=False)),
        deferred_from_coro(threads.run(done.append, "shielded", shield=True)),
        deferred_from_coro(threads.run(divmod, 1, 0, shield=True)),
    ]
    await sleep(0.05)
    for call in calls:
        call.addErrback(lambda failure: None)
        call.cancel()
    await sleep(0.01)
    proceed.set()
    await threads.close(lambda: done.append("last"))
    assert done == ["shielded", "last"]


async def test_a_call_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.stores.threads.CALL_TIMEOUT", 0.05)
    threads, undone, proceed = ThreadPool(1), list[Any](), threading.Event()
    with pytest.raises(StoreError, match=r"not answered for 0\.05 s"):
        await threads.run(proceed.wait, 10, undo=undone.append)
    await threads.close(lambda: None)
    with pytest.raises(StoreError, match="closed"):
        await threads.run(divmod, 7, 2)
    proceed.set()
    while not undone:
        await sleep(0.01)
    assert undone == [True]


async def test_a_call_that_waits_too_long_in_the_queue_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.threads.QUEUE_TIMEOUT", 0.05)
    threads, done, proceed = ThreadPool(1), list[Any](), threading.Event()
    slow = deferred_from_coro(threads.run(proceed.wait, 10))
    behind = [deferred_from_coro(threads.run(done.append, n, shield=True)) for n in range(3)]
    failures: list[Any] = []
    for call in behind:
        call.addErrback(failures.append)
    await sleep(0.1)
    proceed.set()
    assert await maybe_deferred_to_future(slow)
    await threads.close(lambda: None)
    await sleep(0)
    assert done == []
    assert all(failure.check(StoreError) for failure in failures)
    assert len(failures) == 3


# _as_deferred is used without asyncio, and works on every reactor.


@pytest.fixture
def one_thread() -> Iterator[ThreadPoolExecutor]:
    if not is_reactor_installed():
        pytest.skip("there is no reactor")
    with ThreadPoolExecutor(1) as executor:
        yield executor


async def test_the_deferred_has_the_result(one_thread: ThreadPoolExecutor) -> None:
    work: Any = one_thread.submit(divmod, 7, 2)
    assert await maybe_deferred_to_future(_as_deferred(work, CALL_TIMEOUT)) == (3, 1)


async def test_the_deferred_has_the_error(one_thread: ThreadPoolExecutor) -> None:
    work: Any = one_thread.submit(divmod, 7, 0)
    with pytest.raises(ZeroDivisionError):
        await maybe_deferred_to_future(_as_deferred(work, CALL_TIMEOUT))


@pytest.mark.parametrize("started", [True, False])
async def test_the_deferred_may_be_cancelled(one_thread: ThreadPoolExecutor, started: bool) -> None:
    proceed = threading.Event()
    if not started:
        one_thread.submit(proceed.wait, 10)
    deferred = _as_deferred(one_thread.submit(proceed.wait, 10), CALL_TIMEOUT)
    await sleep(0.05)
    failures: list[Any] = []
    deferred.addErrback(failures.append)
    deferred.cancel()
    proceed.set()
    await sleep(0.05)
    assert failures[0].check(CancelledError)


async def test_the_deferred_times_out(one_thread: ThreadPoolExecutor) -> None:
    proceed = threading.Event()
    with pytest.raises(StoreError, match="not answered"):
        await maybe_deferred_to_future(_as_deferred(one_thread.submit(proceed.wait, 10), 0.05))
    proceed.set()
    await sleep(0.05)


@pytest.mark.parametrize("shield", [True, False])
async def test_a_cancelled_deferred_cancels_the_work_unless_it_is_shielded(
    one_thread: ThreadPoolExecutor, shield: bool
) -> None:
    proceed, done = threading.Event(), list[str]()
    one_thread.submit(proceed.wait, 10)
    deferred = _as_deferred(one_thread.submit(done.append, "done"), CALL_TIMEOUT, shield=shield)
    deferred.addErrback(lambda failure: None)
    deferred.cancel()
    proceed.set()
    await sleep(0.05)
    assert done == ["done"] * shield
