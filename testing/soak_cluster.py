"""Workers that share a store, which can be killed, and the faults of the store."""

from __future__ import annotations

import json
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from testing.processes import ROOT
from testing.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAULT_SECONDS = 6.0
"""How long a fault of a store lasts: longer than the time-outs of the stores."""


class Outage(NamedTuple):
    """When a store was out of order, on the monotonic clock, which all processes share."""

    began: float
    ended: float
    is_loss: bool
    """Whether the store was empty after it."""

    def has(self, at: float) -> bool:
        """Whether the store was out of order at a time."""
        return self.began <= at <= self.ended


class Worker:
    """A process of :mod:`testing.soak_worker`, and its part of the requests.

    It ends a request once if ``ends`` gets one letter for its number.
    """

    def __init__(self, path: Path, urls: dict[int, str], settings: dict[str, Any]) -> None:
        self.urls = urls
        self.ends: dict[int, str] = {}
        self.memory: list[int] = []
        """What the running process has used, in KiB, twice a second."""
        self.problems: list[str] = []
        self._path = path
        self._log = path.with_suffix(".log")
        self._settings = settings
        self.start()

    def start(self) -> None:
        """Start a process for the requests that have not ended."""
        left = [f"{number} {url}\n" for number, url in self.urls.items() if number not in self.ends]
        self._path.write_text("".join(left))
        self.memory.clear()
        arguments = [str(self._path), json.dumps(self._settings)]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "testing.soak_worker", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,))
        self._reader.start()

    def restart(self) -> None:
        """Kill the process, and start another. Returns when that one crawls.

        A crawl does not start if its store cannot be opened, so the store must be in order.
        """
        self.process.kill()
        self.join()
        self.start()
        while not self.memory and self.process.poll() is None:
            time.sleep(0.1)

    def join(self) -> None:
        """Wait until the process has ended. A status of its own above 0 is a problem."""
        status = self.process.wait()
        self._reader.join()
        if status > 0:
            errors = self._log.read_text().splitlines()[-1:]
            self.problems.append(f"a worker ended with status {status}: {errors}")

    def _read(self, lines: Any) -> None:
        for line in lines:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "P":
                self.problems.append(rest)
            elif kind == "M":
                self.memory.append(int(rest))
            elif int(kind) in self.ends:
                self.problems.append(f"{self.urls[int(kind)]} has ended again: {rest}")
            else:
                self.ends[int(kind)] = rest


Faults: TypeAlias = "dict[str, Callable[[list[Worker]], bool]]"
"""Each call returns at the end of the fault. It returns whether the store is empty then."""


class SharedStore(Protocol):
    """A store, and the faults that it can have."""

    url: str
    faults: Faults

    def close(self) -> None:
        """End the store."""


class SharedSQLite:
    """A SQLite file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "robots.db"
        self.url = f"sqlite:///{self._path}"
        self.faults: Faults = {"locked": self._lock, "full": self._fill}

    def _lock(self, _: list[Worker]) -> bool:
        """Keep the only lock."""
        db = sqlite3.connect(self._path, isolation_level=None, timeout=30)
        db.execute("BEGIN EXCLUSIVE")
        time.sleep(FAULT_SECONDS)
        db.execute("ROLLBACK")
        db.close()
        return False

    def _fill(self, workers: list[Worker]) -> bool:
        """Prevent the files of the workers from growing."""
        limits = {each.process.pid: 4096 for each in workers if each.process.poll() is None}
        for pid, limit in limits.items():
            _limit_files(pid, limit)
        time.sleep(FAULT_SECONDS)
        for pid in limits:
            _limit_files(pid, resource.RLIM_INFINITY)
        return False

    def close(self) -> None:
        """End the store."""


def _limit_files(pid: int, octets: int) -> None:
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (octets, resource.RLIM_INFINITY))
    except ProcessLookupError:
        return


class SharedRedis:
    """A Redis server. It has no file: a restart empties it."""

    def __init__(self, folder: Path) -> None:
        self._server = RedisServer(folder)
        self.url = self._server.url
        self.faults: Faults = {
            "killed": self._kill,
            "suspended": self._suspend,
            "full": self._fill,
        }

    def _kill(self, _: list[Worker]) -> bool:
        self._server.kill()
        time.sleep(FAULT_SECONDS / 2)
        self._server.start()
        return True

    def _suspend(self, _: list[Worker]) -> bool:
        self._server.suspend()
        time.sleep(FAULT_SECONDS)
        self._server.resume()
        return False

    def _fill(self, _: list[Worker]) -> bool:
        with self._server.client as client:
            client.config_set("maxmemory", 1)
            time.sleep(FAULT_SECONDS)
            client.config_set("maxmemory", 0)
        return False

    def close(self) -> None:
        """End the store."""
        self._server.kill()


STORES: dict[str, Callable[[Path], SharedStore]] = {"sqlite": SharedSQLite, "redis": SharedRedis}


@contextmanager
def shared_store(name: str, folder: Path) -> Iterator[SharedStore]:
    """Yield a store during the block."""
    store = STORES[name](folder)
    try:
        yield store
    finally:
        store.close()
