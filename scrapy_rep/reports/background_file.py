"""A file to which a crawl appends without waiting for the disk.

One thread writes. What it cannot write waits in memory, up to a limit, and is tried again.
"""

from __future__ import annotations

import os
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..frontier.clock import Clock

T = TypeVar("T")

QUEUE_LIMIT = 1 << 26
"""Bytes that may wait for the disk."""

CLOSE_TIMEOUT = 30.0
"""Seconds that :meth:`BackgroundFile.close` waits at most for the disk."""

POLL_INTERVAL = 0.02

_write = os.write

_NAME = re.compile(r"(.*?)((?:\.[A-Za-z]{2,6}){0,2})", re.DOTALL)
"""The name of a file, and its suffixes."""


def new_file(path: str, most: int = 1_000) -> tuple[int, str]:
    """Create a file. Returns its descriptor and its path, which may have a number.

    Neither an existing file nor what a symbolic link leads to is ever changed. Raises OSError.
    """
    folder, name = os.path.split(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    found = _NAME.fullmatch(name)
    assert found is not None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    for number in range(1, most):
        numbered = name if number == 1 else f"{found[1]}-{number}{found[2]}"
        with suppress(FileExistsError):
            path = os.path.join(folder, numbered)
            return os.open(path, flags, 0o666), path
    raise FileExistsError(f"there are {most - 1} files of this name already")


class BackgroundFile:
    """A file that only this object writes. If a write fails, the file is as it was before."""

    def __init__(self, file: int, size_limit: int = QUEUE_LIMIT) -> None:
        self._file = file
        self._size_limit = size_limit
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="robotstxt-report")
        self._appended = 0
        """The bytes of all parts. Of the next four attributes, only the thread changes numbers."""
        self._done = 0
        self.written = 0
        """How many parts the file has."""
        self.waiting: deque[tuple[int, Callable[[], bytes]]] = deque()
        """The parts that the disk has not taken."""
        self._failures: deque[Exception] = deque()

    def append(self, size: int, make: Callable[[], bytes]) -> bool:
        """Add what ``make`` returns to the end of the file. The thread calls it.

        While it waits, it uses ``size`` bytes. Returns False if too many wait already.
        """
        if self._appended - self._done + size > self._size_limit:
            return False
        self._appended += size
        self.waiting.append((size, make))
        self.retry()
        return True

    def retry(self) -> None:
        """Try to write what waits."""
        with suppress(RuntimeError):  # the interpreter is shutting down
            self._thread.submit(self._write_all)

    def failures(self) -> Iterator[Exception]:
        """Yield why writes have failed since the last call."""
        while self._failures:
            yield self._failures.popleft()

    async def call(self, function: Callable[[], T], clock: Clock, timeout: float) -> T:
        """Return the result of a function that the thread calls after all writes.

        Raises TimeoutError after ``timeout`` seconds, and what the function raises.
        """
        try:
            future = self._thread.submit(function)
        except RuntimeError as error:  # the interpreter is shutting down
            raise TimeoutError(str(error)) from None
        until = clock.monotonic() + timeout
        while not future.done():
            if clock.monotonic() > until:
                future.cancel()
                raise TimeoutError(f"it took more than {timeout:g} s")
            await clock.sleep(POLL_INTERVAL)
        return future.result()

    async def close(self, clock: Clock) -> None:
        """Close the file after all writes. Raises TimeoutError if the disk does not answer."""
        try:
            await self.call(lambda: os.close(self._file), clock, CLOSE_TIMEOUT)
        finally:
            self._thread.shutdown(wait=False)

    def abandon(self) -> None:
        """Close the file once the thread is idle. Nobody waits for it."""
        with suppress(RuntimeError):
            self._thread.submit(os.close, self._file)
        self._thread.shutdown(wait=False)

    def _write_all(self) -> None:
        """Write what waits. The thread calls this."""
        while self.waiting:
            size, make = self.waiting[0]
            try:
                self._write(make())
                self.written += 1
            except OSError as error:
                self._failures.append(error)
                return
            # No other code reads the result: nothing that happens here may end in silence.
            except Exception as error:
                self._failures.append(error)
            self.waiting.popleft()
            self._done += size

    def _write(self, octets: bytes) -> None:
        end = os.lseek(self._file, 0, os.SEEK_CUR)
        try:
            left = memoryview(octets)
            while left:
                left = left[_write(self._file, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, end)
                os.lseek(self._file, end, os.SEEK_SET)
            raise
