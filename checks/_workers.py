"""The processes of the soak: the server, workers that can be killed, and the stores they share.

``python -m checks._workers serve ORIGINS SEED`` prints its port. When its stdin is closed, it
prints as JSON what it has received, and ends. ``python -m checks._workers crawl FILE NAME OPTIONS``
crawls: each line of the file has the number and the URL of a request, and the options are JSON.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from checks._soak import LARGE_MIX, VARIANTS, origins
from checks._soak_server import IDENTITY, Server
from checks._soak_worker import Notes, SoakWorker, observed
from testing.counters import left_over
from testing.harness import ROOT
from testing.measure import process_on
from testing.redis_server import RedisServer

if TYPE_CHECKING:
    from typing_extensions import Self

FAULT_SECONDS = 6.0
"""How long a fault of a store lasts: longer than the time-outs of the stores."""

CHEAP = {
    "COOKIES_ENABLED": False,
    "LOG_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "REFERER_ENABLED": False,
}
"""Settings without which Scrapy would need more time for the same requests."""

IDLE = 3.0
"""Seconds for which a connection stays open without a request, so that there are not too many."""

START_SECONDS = 60.0
"""How long a worker has time to start."""


class ServerProcess:
    """A process that serves origins of the large mix. It ends at the end of the block."""

    def __init__(self, count: int, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "checks._workers", "serve", str(count), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> dict[str, Any]:
        """End the process, and return what it has received."""
        output, _ = self._process.communicate(timeout=60)
        found: dict[str, Any] = json.loads(output)
        return found


class Worker(Notes):
    """A process of :mod:`checks._soak_worker`, and its part of the requests."""

    def __init__(
        self, path: Path, name: str, urls: dict[int, str], options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.name = name
        self.urls = urls
        self.killed_at = 0.0
        self._path = path
        self._log = path.with_suffix(".log")
        self._options = options
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
        arguments = [str(self._path), self.name, json.dumps(self._options)]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "checks._workers", "crawl", *arguments],
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
            self.add_problem(f"a worker ended with status {status}: {errors}")

    def _read(self, lines: Any) -> None:
        for line in lines:
            self.note(line.rstrip("\n"))


Faults: TypeAlias = "dict[str, Callable[[list[Worker]], bool]]"
"""Each call returns at the end of the fault. It returns whether the store is empty then."""


class SharedStore(Protocol):
    """A store, and the faults that it can have."""

    url: str
    faults: Faults

    def damage(self) -> list[str]:
        """Return what is wrong with the data."""

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
        limits = {each.process.pid: 4096 for each in workers if each.is_running}
        for pid, limit in limits.items():
            _limit_files(pid, limit)
        time.sleep(FAULT_SECONDS)
        for pid in limits:
            _limit_files(pid, resource.RLIM_INFINITY)
        return False

    def damage(self) -> list[str]:
        """Return what SQLite finds wrong in the file."""
        with closing(sqlite3.connect(self._path)) as db:
            return [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]

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

    def damage(self) -> list[str]:
        """Return nothing: a server that is killed loses all data, which is no damage."""
        return []

    def close(self) -> None:
        """End the store."""
        self._server.kill()


STORES: dict[str, Callable[[Path], SharedStore]] = {
    "sqlite": SharedSQLite,
    "redis": SharedRedis,
}


@contextmanager
def shared_store(name: str, folder: Path) -> Iterator[SharedStore]:
    """Yield a store during the block."""
    store = STORES[name](folder)
    try:
        yield store
    finally:
        store.close()


def print_whole(*lines: str) -> None:
    """Print whole lines at once: a killed process leaves no part of a line."""
    octets = "".join(f"{line}\n" for line in lines).encode()
    try:
        while octets:
            octets = octets[os.write(sys.stdout.fileno(), octets) :]
    except BrokenPipeError:  # the process that started this one has ended
        os._exit(1)


async def serve(count: int, seed: int) -> None:
    """Serve the origins until stdin is closed."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    server = Server(IDLE)
    listening = await asyncio.start_server(
        server.answer_all, "0.0.0.0", 0, backlog=4096, start_serving=False
    )
    port = listening.sockets[0].getsockname()[1]
    server.origins = {origin.host: origin for origin in origins(count, seed, port, LARGE_MIX)}
    await listening.start_serving()
    print_whole(str(port))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    listening.close()
    print_whole(json.dumps({**server.records.as_json(), "cpu": time.process_time()}))


def crawl(path: str, name: str, options: dict[str, Any]) -> None:
    """Crawl in this process."""
    variant = VARIANTS[options["variant"]]
    settings = {**options["settings"], **variant.settings, **CHEAP}
    settings["USER_AGENT"] = f"{IDENTITY}{name})"
    logging.disable(logging.INFO)  # Scrapy makes a record for each response
    with (
        Path(path).open() as lines,
        observed(print_whole, options["store_retry_interval"]),
        variant.applied(),
    ):
        process = process_on(options["loop"], settings)
        asked = ((int(number), url) for number, url in map(str.split, lines))
        crawler = process.create_crawler(SoakWorker)
        process.crawl(crawler, asked=asked, say=print_whole)
        process.start()
    print_whole(*(f"P {problem}" for problem in left_over(crawler)))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        with suppress(KeyboardInterrupt):
            asyncio.run(serve(int(sys.argv[2]), int(sys.argv[3])))
    else:
        crawl(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
