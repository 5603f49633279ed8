"""Workers that share a store, which can be killed, and the faults of the store."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from testing.processes import ROOT
from testing.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAULT_SECONDS = 6.0
"""How long a fault of a store lasts: longer than the time-outs of the stores."""


WRITE_SECONDS = 10.0
"""How long a worker has time to write to the store before it is killed anyway."""

START_SECONDS = 60.0
"""How long a worker has time to start."""

MOST_PROBLEMS = 1000
"""How many problems of a worker are kept."""


class Outage(NamedTuple):
    """When a store was out of order, on the monotonic clock, which all processes share."""

    began: float
    ended: float
    """When each worker had time to use the store again."""
    is_loss: bool
    """Whether the store was empty after it."""

    def has(self, at: float) -> bool:
        """Whether the store was out of order at a time."""
        return self.began <= at <= self.ended


class StoreFailure(NamedTuple):
    """A call to the store that has failed in a worker."""

    at: float
    message: str


class Memory(NamedTuple):
    """The memory of a process."""

    kib: int
    """What the process uses, in KiB. It keeps some of what objects have used before."""
    blocks: int
    """How many blocks its objects use."""


class Worker:
    """A process of :mod:`testing.soak_worker`, and its part of the requests.

    It ends a request once if ``ends`` gets one letter for its number.
    """

    def __init__(
        self, path: Path, name: str, urls: dict[int, str], settings: dict[str, Any]
    ) -> None:
        self.name = name
        self.urls = urls
        self.ends: dict[int, str] = {}
        self.memory: list[Memory] = []
        """What the running process has used, twice a second."""
        self.unreachable: set[str] = set()
        """Origins whose robots.txt was unreachable for this worker."""
        self.failures: list[StoreFailure] = []
        self.errors: list[str] = []
        """Errors in which requests for pages in order have ended."""
        self.problems: list[str] = []
        self.killed_at = 0.0
        self._path = path
        self._log = path.with_suffix(".log")
        self._settings = settings
        self.start()

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def start(self) -> None:
        """Start a process for the requests that have not ended."""
        left = [f"{number} {url}\n" for number, url in self.urls.items() if number not in self.ends]
        self._path.write_text("".join(left))
        self.memory = []
        arguments = [str(self._path), self.name, json.dumps(self._settings)]
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

    def kill_in_write(self) -> bool:
        """Kill the process within its next transaction. Returns whether there was one in time."""
        self.process.send_signal(signal.SIGUSR1)
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(WRITE_SECONDS) == -signal.SIGKILL
        return False

    def restart(self) -> None:
        """Kill the process, and start another. Returns when that one crawls.

        A crawl does not start if its store cannot be opened, so the store must be in order.
        """
        self.process.kill()
        self.join()
        self.killed_at = time.monotonic()
        self.start()
        until = time.monotonic() + START_SECONDS
        while not self.memory and self.is_running and time.monotonic() < until:
            time.sleep(0.1)

    def join(self) -> None:
        """Wait until the process has ended. A status of its own above 0 is a problem."""
        status = self.process.wait()
        self._reader.join()
        if status > 0:
            errors = self._log.read_text().splitlines()[-1:]
            self._add(f"a worker ended with status {status}: {errors}")

    def _add(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def _read(self, lines: Any) -> None:
        for line in lines:
            self.note(line.rstrip("\n"))

    def note(self, line: str) -> None:
        """Note what a line of the process says."""
        kind, _, rest = line.partition(" ")
        if kind == "P":
            self._add(rest)
        elif kind == "M":
            self.memory.append(Memory(*map(int, rest.split())))
        elif kind == "U":
            self.unreachable.add(rest)
        elif kind == "E":
            self.errors.append(rest)
        elif kind == "S":
            at, _, message = rest.partition(" ")
            self.failures.append(StoreFailure(float(at), message))
        elif int(kind) in self.ends:
            self._add(f"{self.urls[int(kind)]} has ended again: {rest}")
        else:
            self.ends[int(kind)] = rest


Faults: TypeAlias = "dict[str, Callable[[list[Worker]], bool]]"
"""Each call returns at the end of the fault. It returns whether the store is empty then."""


class SharedStore(Protocol):
    """A store, and the faults that it can have."""

    url: str
    faults: Faults
    has_transactions: bool
    """Whether a worker can be killed within a transaction."""

    def damage(self) -> list[str]:
        """Return what is wrong with the data."""

    def close(self) -> None:
        """End the store."""


class SharedSQLite:
    """A SQLite file."""

    has_transactions = True

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
        limits = {each.process.pid: 4096 for each in workers if each.is_running}
        for pid, limit in limits.items():
            _limit_files(pid, limit)
        time.sleep(FAULT_SECONDS)
        for pid in limits:
            _limit_files(pid, resource.RLIM_INFINITY)
        return False

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong in the file, and files that a worker has put aside."""
        with closing(sqlite3.connect(self._path)) as db:
            lines = [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        aside = self._path.parent.glob(f"{self._path.name}.aside*")
        return lines + [f"the store was put aside as {path.name}" for path in aside]

    def close(self) -> None:
        """End the store."""


def _limit_files(pid: int, octets: int) -> None:
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (octets, resource.RLIM_INFINITY))
    except ProcessLookupError:
        return


class SharedRedis:
    """A Redis server. It has no file: a restart empties it."""

    has_transactions = False

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

    def damage(self) -> list[str]:
        """Return nothing: a server that is killed loses all data, which is no damage."""
        return []

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
