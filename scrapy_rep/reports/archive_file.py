"""The file of an archive: gzip members, to which several processes append at the same time.

Each append writes whole members, under a lock of the file (flock). A process that is killed while
it writes may leave an incomplete member. The next append detects it, because no member ends at the
end of the file. It moves the incomplete member to a file of its own, because most tools cannot read
the records that follow one.
"""

from __future__ import annotations

import fcntl
import os
import time
import zlib
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .members import MAGIC, member_end, whole_end

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_TIMEOUT = 20.0
"""Seconds that an append waits at most for the lock. Another process has it for one append."""

LOCK_POLL_INTERVAL = 0.01

MAX_TAIL = 1 << 22
"""The most octets of an incomplete member. A record has a body of at most 1,000 KiB, and the header
fields that a download handler accepts, so that its member is shorter."""

SMALL_TAIL = 1 << 16
"""The octets that are read first to find the last member."""

MAX_TRIES = 1000
"""How many places near the end of a file are tried as the start of its last member."""

_write = os.write


class ArchiveFileError(ValueError):
    """A file is not an archive, or is damaged before its end. It was not changed."""


class ArchiveFile:
    """One archive that a process has open. The methods raise OSError and ArchiveFileError."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.moved: list[tuple[str, int]] = []
        """The files to which incomplete ends were moved, and their sizes."""
        self._end = 0
        """The end of the last whole member when this process last had the lock."""
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with self._lock():
                self._repair()
        except BaseException:
            self.close()
            raise

    def append(self, octets: bytes) -> None:
        """Append whole members. If this fails, the file is as it was before."""
        with self._lock():
            self._repair()
            try:
                left = memoryview(octets)
                while left:
                    left = left[_write(self._file, left) :]
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._file, self._end)
                raise
            self._end += len(octets)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        until = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError(
                        f"another process has locked it for {LOCK_TIMEOUT:g} s"
                    ) from None
            time.sleep(LOCK_POLL_INTERVAL)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _repair(self) -> None:
        """Move an incomplete member from the end of the file to a file of its own."""
        size = os.fstat(self._file).st_size
        if size == self._end:
            return
        if not self._has_whole_end(size):
            end = whole_end(self._file)
            if size - end > MAX_TAIL or not self._may_be_record(end):
                raise ArchiveFileError(
                    f"not a WARC file with one gzip member for each record, at offset {end}"
                )
            if end < size:
                self._move(end, size)
                size = end
        self._end = size

    def _has_whole_end(self, size: int) -> bool:
        """Whether a record ends at the end of the file. Reads only the end."""
        tries = 0
        for window in (SMALL_TAIL, MAX_TAIL):
            tail = os.pread(self._file, window, max(size - window, 0))
            start = len(tail)
            while tries < MAX_TRIES and (start := tail.rfind(MAGIC, 0, start)) >= 0:
                tries += 1
                if member_end(tail, start) == len(tail):
                    return True
        return False

    def _may_be_record(self, offset: int) -> bool:
        """Whether the octets at ``offset`` are the start of the member of a record."""
        start = os.pread(self._file, 1024, offset)
        if not start.startswith(MAGIC[: len(start)]):
            return False
        try:
            text = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(start, 5)
        except zlib.error:
            return False
        return b"WARC/".startswith(text)

    def _move(self, start: int, end: int) -> None:
        octets = os.pread(self._file, end - start, start)
        name = f"{self.path}.torn-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"
        with open(name, "xb") as torn:
            torn.write(octets)
        os.ftruncate(self._file, start)
        self.moved.append((name, end - start))
