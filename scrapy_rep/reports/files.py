"""How files are named, appended to without waiting for the disk, and replaced as a whole.

A crawl appends to a :class:`BackgroundFile`. One thread writes. A part that the disk does not take
is lost, and the file is as it was before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timezone
from errno import EINVAL
from hashlib import sha256
from itertools import count
from pathlib import Path
from secrets import token_hex
from stat import S_IMODE, S_ISREG
from typing import TypeVar

from ..exceptions import SettingError
from ..stores.threaded import result_of

T = TypeVar("T")

QUEUE_LIMIT = 1 << 26  # bytes that may wait for the disk
CLOSE_TIMEOUT = 30.0  # seconds that `BackgroundFile.close` waits at most for the disk

_write = os.write


class BackgroundFile:
    """A new file that only this object writes. Raises OSError or ValueError if it cannot be made.

    Neither an existing file nor what a symbolic link leads to changes: the path gets a number.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        suffix = "".join(path.suffixes[-2:])
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        for number in count(1):
            more = f"-{number}" if number > 1 else ""
            self.path = str(path.with_name(f"{path.name.removesuffix(suffix)}{more}{suffix}"))
            with suppress(FileExistsError):
                self._file = os.open(self.path, flags, 0o666)
                break
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="robotstxt-file")
        self._digest = sha256()
        self.sha256: str | None = None
        """The SHA-256 of the file, when it is closed. None if the disk did not answer."""
        self.failure = ""
        """Why records were lost, at first."""
        self._queued = self._added = self._refused = 0
        """The bytes and the records that were added, and the records that were not."""
        # Only the thread changes these.
        self.written = self._unwritten = 0
        """How many records the file has, and how many the disk did not take."""
        self._done = self._end = 0
        """The bytes of the parts that do not wait any more, and those of the file."""

    @property
    def lost(self) -> int:
        return self._refused + self._unwritten

    def append(self, size: int, make: Callable[[], bytes], records: int = 1) -> None:
        """Add what ``make`` returns to the end of the file. The thread calls it.

        While it waits, it uses ``size`` bytes. If too many wait already, its records are lost.
        """
        if self._queued - self._done + size > QUEUE_LIMIT:
            return self._refuse(records, "records arrive faster than the disk can write them")
        try:
            self._thread.submit(self._write, size, make, records)
        except RuntimeError:
            return self._refuse(records, "a record arrived after the file was closed")
        self._queued += size
        self._added += records
        return None

    def _refuse(self, records: int, failure: str) -> None:
        self._refused += records
        self.failure = self.failure or failure

    async def call(self, function: Callable[[], T], timeout: float) -> T:
        """Return the result of a function that the thread calls after all writes.

        Raises TimeoutError after ``timeout`` seconds, and what the function raises.
        """
        try:
            work = self._thread.submit(function)
        except RuntimeError as error:  # the interpreter is shutting down
            raise TimeoutError(str(error)) from None
        return await result_of(work, timeout)

    async def close(
        self, then: Callable[[], object] | None = None, timeout: float = CLOSE_TIMEOUT
    ) -> None:
        """Close the file after all writes, or give up if the disk does not answer.

        The thread then calls ``then``, for ``timeout`` seconds at most. Raises what that raises.
        """
        try:
            await self.call(lambda: os.close(self._file), CLOSE_TIMEOUT)
            self.sha256 = self._digest.hexdigest()
        except TimeoutError:
            left = self._added - self.written - self._unwritten
            self._refuse(left, "the disk did not write all records in time")
        except OSError as error:
            self.failure = self.failure or str(error)
        last = self._thread.submit(then) if then is not None else None
        self._thread.shutdown(wait=False)
        if last is not None:
            await result_of(last, timeout)

    def _write(self, size: int, make: Callable[[], bytes], records: int) -> None:
        """Write a part. The thread calls this."""
        try:
            data = make()
            left = memoryview(data)
            while left:
                left = left[_write(self._file, left) :]
        # No other code sees it: nothing that happens here may end in silence.
        except Exception as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
                os.lseek(self._file, self._end, os.SEEK_SET)
            self.failure = self.failure or str(error) or type(error).__name__
            self._unwritten += records
        else:
            self._digest.update(data)
            self._end += len(data)
            self.written += records
        self._done += size


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file. Raises OSError."""
    digest = sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    return digest.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file. A reader finds the old file or the new one. Raises OSError.

    The new file has the permissions of the old one, and its owner where that is possible. If the
    path is a symbolic link, the file that it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    old = None
    with suppress(FileNotFoundError):
        old = path.stat()
    if old is not None and not S_ISREG(old.st_mode):
        raise OSError(EINVAL, "it is not a regular file")
    temporary = path.with_name(f".{token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            if old is not None:
                # Only root can give a file to another user. Windows has no such function.
                with suppress(OSError, AttributeError):
                    os.chown(temporary, old.st_uid, old.st_gid)
                temporary.chmod(S_IMODE(old.st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def path_from(setting: str, template: str, spider: object, now: float) -> str:
    """Return the path that a setting names, with the parameters of Scrapy's FEEDS.

    ``%(pid)s`` is the number of the process. Any other parameter is an attribute of the spider.
    Raises :class:`SettingError`.
    """
    names = re.findall(r"%\((.*?)\)", template)
    values = {name: getattr(spider, name) for name in names if hasattr(spider, name)}
    values["name"] = str(getattr(spider, "name", None) or "spider")
    values["time"] = f"{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%dT%H-%M-%S+00-00}"
    values["pid"] = str(os.getpid())
    try:
        return template % values
    except KeyError as error:
        problem = f"the spider has no attribute {error}"
    except (TypeError, ValueError) as error:
        problem = f"it is not a template such as '%(name)s.json': {error}"
    raise SettingError(f"{setting} is {template!r}: {problem}")
