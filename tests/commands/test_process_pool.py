"""A pool of processes that call one function."""

from __future__ import annotations

import multiprocessing
import operator
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.commands import process_pool
from scrapy_rep.commands.interrupts import delayed_interrupts
from scrapy_rep.commands.process_pool import ProcessPool, ProcessPoolError

from .conftest import TIMEOUT, FakeProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def results_of(pool: ProcessPool[Any, Any], items: Iterable[Any]) -> list[Any]:
    found = [result for item in items for result in pool.submit(item)]
    return [*found, *pool.results()]


def test_processes() -> None:
    with ProcessPool[int, int](operator.neg, 2) as pool:
        assert results_of(pool, range(20)) == [-number for number in range(20)]
    assert multiprocessing.active_children() == []


def test_a_process_that_ends() -> None:
    with (
        pytest.raises(ProcessPoolError, match="has ended, perhaps for lack of memory"),
        ProcessPool(os._exit, 1) as pool,
    ):
        results_of(pool, [1])
    assert multiprocessing.active_children() == []


@pytest.mark.usefixtures("threads")
def test_results_have_the_order_of_their_items() -> None:
    called: list[int] = []
    go_on = Event()

    def function(item: int) -> int:
        called.append(item)
        if item == 0:
            assert go_on.wait(TIMEOUT)
            # The other process makes no more calls than may wait for the result of this one.
            assert sorted(called) == [0, 1, 2, 3]
        elif item == 3:
            go_on.set()
        return item

    with ProcessPool(function, 2) as pool:
        assert results_of(pool, range(10)) == list(range(10))


@pytest.mark.usefixtures("threads")
def test_an_error_of_the_function_is_reported() -> None:
    with (
        pytest.raises(RuntimeError, match="in a process: ZeroDivisionError: "),
        ProcessPool[int, float](lambda number: 1 / number, 1) as pool,
    ):
        results_of(pool, [1, 0])


@pytest.mark.usefixtures("threads")
def test_a_pool_in_a_thread() -> None:
    with ThreadPoolExecutor(1) as executor, ProcessPool[int, int](operator.neg, 2) as pool:
        assert executor.submit(results_of, pool, [1, 2]).result() == [-1, -2]


def with_pipe(monkeypatch: pytest.MonkeyPatch, use: Callable[[Any], object]) -> list[FakeProcess]:
    """Have processes that only do something with their end of the pipe. Returns those started."""
    started = []

    def start(_: object) -> Any:
        connection, other = multiprocessing.Pipe()
        use(other)
        started.append(FakeProcess(other))
        return connection, started[-1]

    monkeypatch.setattr(process_pool, "_start", start)
    return started


def test_a_process_that_ends_before_it_gets_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(other: Any) -> None:
        other.send(("ready", None))
        other.close()

    started = with_pipe(monkeypatch, use)
    with pytest.raises(ProcessPoolError, match="has ended"), ProcessPool(len, 1) as pool:
        results_of(pool, [bytes(1_000_000)])
    assert [process.is_killed for process in started] == [True]


def test_a_process_that_ends_while_it_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    def use(other: Any) -> None:
        os.write(other.fileno(), b"\0\0\1\0part")  # of 256 octets
        other.close()

    with_pipe(monkeypatch, use)
    with pytest.raises(ProcessPoolError, match="has ended"), ProcessPool(len, 1) as pool:
        results_of(pool, [b""])


def test_a_process_that_never_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "MAX_CHECKS", 3)
    monkeypatch.setattr(process_pool, "CHECK_INTERVAL", 0.01)
    started = with_pipe(monkeypatch, lambda _: None)
    with pytest.raises(ProcessPoolError, match="has not answered for"), ProcessPool(len, 2) as pool:
        results_of(pool, [b""])
    assert [process.is_killed for process in started] == [True, True]


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: BaseProcess) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(BaseProcess, "start", start)
    with pytest.raises(ProcessPoolError, match="cannot be started: Resource temporarily"):
        ProcessPool(len, 2)


def test_a_message_is_whole_after_ctrl_c() -> None:
    sent = []

    def send() -> None:
        with delayed_interrupts():
            signal.raise_signal(signal.SIGINT)
            sent.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        send()
    assert sent == ["all of it"]
