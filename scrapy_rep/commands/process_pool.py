"""A pool of processes that call one function, for work that needs all cores.

Each process has a pipe of its own, and makes one call at a time. So a process that is killed leaves
no lock and no half-read queue behind, and each wait for a process has an end. With
``concurrent.futures.ProcessPoolExecutor``, both can block the whole program
(https://github.com/python/cpython/issues/94777).
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from contextlib import suppress
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .interrupts import delayed_interrupts, on_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from types import TracebackType

    from typing_extensions import Self

T = TypeVar("T")
R = TypeVar("R")

MAX_CHECKS = 600
"""How often the pool waits for a message in vain. Then something is wrong."""

CHECK_INTERVAL = 1.0
"""Seconds of one such wait. A program that is stopped (Ctrl-Z) meanwhile loses only one of them."""

END_TIMEOUT = 10.0
"""Seconds that a killed process has to end."""

_READY = "ready"
_RESULT = "result"
_ERROR = "error"


class ProcessPoolError(Exception):
    """A process has not done its work. The message begins with a verb: "has ended"."""


class _Call(Generic[R]):
    """A call, and its result once it is there."""

    def __init__(self) -> None:
        self.result: list[R] = []


class ProcessPool(Generic[T, R]):
    """Calls ``function`` in ``processes`` processes.

    ``function`` must be defined at the top of a module. At most two calls for each process have no
    result, or one that is not taken.
    """

    def __init__(self, function: Callable[[T], R], processes: int) -> None:
        self._max_calls = 2 * processes
        self._calls: deque[_Call[R]] = deque()
        """The calls whose results are not taken, in the order of their items."""
        self._processes: dict[Connection, BaseProcess] = {}
        self._idle: list[Connection] = []
        self._in_progress: dict[Connection, _Call[R]] = {}
        try:
            for _ in range(processes):
                connection, process = _start(function)
                self._processes[connection] = process
        except OSError as error:
            self.close()
            raise ProcessPoolError(f"cannot be started: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def submit(self, item: T) -> Iterator[R]:
        """Call the function with an item, and yield the results that are there by now.

        Results have the order of the items. Raises ProcessPoolError.
        """
        while not self._idle or (len(self._calls) >= self._max_calls and not self._calls[0].result):
            self._receive()
        self._send(item)
        yield from self._taken()

    def results(self) -> Iterator[R]:
        """Wait for the results that are missing, and yield them. Raises ProcessPoolError."""
        while self._calls:
            yield from self._taken()
            if self._calls:
                self._receive()

    def close(self) -> None:
        """End all processes, also those that make a call."""
        for connection, process in self._processes.items():
            connection.close()
            process.kill()
        for process in self._processes.values():
            process.join(END_TIMEOUT)
        self._processes.clear()

    def _taken(self) -> Iterator[R]:
        while self._calls and self._calls[0].result:
            yield from self._calls.popleft().result

    def _send(self, item: T) -> None:
        connection = self._idle.pop()
        call: _Call[R] = _Call()
        with delayed_interrupts():  # the item is sent as a whole
            try:
                connection.send(item)
            except OSError:
                raise _ended() from None
            self._in_progress[connection] = call
            self._calls.append(call)

    def _receive(self) -> None:
        """Wait for the message of a process, at least."""
        for _ in range(MAX_CHECKS):
            ready: list[Any] = wait(list(self._processes), CHECK_INTERVAL)
            if ready:
                break
        else:
            raise ProcessPoolError(f"has not answered for {MAX_CHECKS * CHECK_INTERVAL:,.0f} s")
        for connection in ready:
            with delayed_interrupts():  # the message is received as a whole
                self._receive_from(connection)

    def _receive_from(self, connection: Connection) -> None:
        try:
            kind, content = connection.recv()
        except (EOFError, OSError):
            raise _ended() from None
        if kind == _ERROR:
            raise RuntimeError(f"in a process: {content}")
        if kind == _RESULT:
            self._in_progress.pop(connection).result.append(content)
        self._idle.append(connection)


def _ended() -> ProcessPoolError:
    return ProcessPoolError("has ended, perhaps for lack of memory")


def _start(function: Callable[[T], R]) -> tuple[Connection, BaseProcess]:
    """Start a process. Ctrl-C, which goes to all processes of a terminal, does not end it."""
    # A fork is not safe, because a progress bar has a thread.
    context = multiprocessing.get_context("spawn")
    connection, other = context.Pipe()
    process = context.Process(target=serve, args=(other, function), daemon=True)
    try:
        with on_interrupt(signal.SIG_IGN):
            process.start()
    except OSError:
        connection.close()
        raise
    finally:
        other.close()  # so that the end of the process is the end of the pipe
    return connection, process


def serve(connection: Connection, function: Callable[[T], R]) -> None:
    """Make calls until the pipe ends. This runs in a process of the pool."""
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):  # the program has ended
        connection.send((_READY, None))
        while True:
            item: T = connection.recv()
            try:
                message = (_RESULT, function(item))
            except Exception as error:  # the program reports it
                connection.send((_ERROR, f"{type(error).__name__}: {error}"))
            else:
                connection.send(message)
