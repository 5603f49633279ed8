"""A crawl of a part of many requests, in a process that may be killed at any time.

``python -m testing.soak_worker FILE NAME SETTINGS``: each line of the file has the number and the
URL of a request, and the settings are JSON. The worker prints one line for each event:

* ``NUMBER END``: a request has ended, with a letter of :data:`ENDS`;
* ``M KIB BLOCKS``: the memory that the process uses, and how many blocks of it objects use;
* ``U ORIGIN``: the robots.txt of an origin was unreachable;
* ``E TEXT``: an error in which a request for a page without a fault has ended;
* ``S TIME MESSAGE``: a call to the store has failed, at a time of the monotonic clock;
* ``P TEXT``: a problem.

After the signal SIGUSR1, the process is killed within its next transaction of SQLite.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from scrapy import Request, Spider
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.stores.fallback import FallbackStore
from testing.counters import left_over
from testing.measure import process_on
from testing.origin_records import IDENTITY
from testing.soak_defects import DEFECTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

    from scrapy_rep.stores import StoreError

ENDS = {
    "r": "response",
    "d": "disallowed",
    "u": "unreachable robots.txt",
    "c": "too complex a comparison",
    "e": "error",
}
"""The ends of requests, and the letter of each."""

CHEAP = {
    "COOKIES_ENABLED": False,
    "LOG_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "REFERER_ENABLED": False,
}
"""Settings without which Scrapy would need more time for the same requests."""

_REASONS = {Reason.UNREACHABLE: "u", Reason.TOO_COMPLEX: "c"}

WINDOW = 4000
"""How many requests are unfinished at most."""

REPORT_INTERVAL = 0.5
"""Seconds between two reports of the ends, and of the memory."""


class SoakWorker(Spider):
    """Sends its requests, and prints how each of them ended."""

    name = "soak_worker"

    def __init__(self, path: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.path = path
        self.unfinished = 0
        self.ended: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        self.reporting = create_looping_call(self.report)
        self.reporting.start(REPORT_INTERVAL, now=False)
        with Path(self.path).open() as lines:  # noqa: ASYNC230 - the lines are short
            for line in lines:
                number, url = line.split()
                while self.unfinished >= WINDOW:  # noqa: ASYNC110 - nothing else waits
                    await asyncio.sleep(0.05)
                self.unfinished += 1
                arguments = {"number": number}
                yield Request(
                    url, self.parse, errback=self.failed, cb_kwargs=arguments, dont_filter=True
                )

    def parse(self, _: Response, number: str) -> None:
        self.end(number, "r")

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        if isinstance(error, RobotsTxtDisallowed):
            end = _REASONS.get(error.verdict.reason, "d")
        else:
            end = "e"
            if "/p" in request.url:
                say(f"E {request.url[:100]}: {' '.join(repr(error).split())[:200]}")
        self.end(request.cb_kwargs["number"], end)

    def end(self, number: str, letter: str) -> None:
        """Note how a request has ended."""
        self.unfinished -= 1
        self.ended.append(f"{number} {letter}")

    def report(self) -> None:
        """Print what has happened since the last report."""
        ended, self.ended = self.ended, []
        say(*ended, f"M {memory()} {sys.getallocatedblocks()}")

    def closed(self, reason: str) -> None:
        self.reporting.stop()
        self.report()
        if reason != "finished":
            say(f"P the spider was closed: {reason}")


class _Log(logging.Handler):
    """Prints errors in the log, and origins whose robots.txt was unreachable."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            say(f"P {record.name}: {' '.join(self.format(record).split())[-1000:]}")
        elif isinstance(record.args, dict) and "failure" in record.args:
            say(f"U {record.args.get('origin')}")


def say(*lines: str) -> None:
    """Print whole lines at once: a killed process leaves no part of a line."""
    octets = "".join(f"{line}\n" for line in lines).encode()
    try:
        while octets:
            octets = octets[os.write(sys.stdout.fileno(), octets) :]
    except BrokenPipeError:  # the process that started this one has ended
        os._exit(1)


def memory() -> int:
    """Return the memory that this process uses, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _say_store_failed(_: FallbackStore, error: StoreError) -> None:
    say(f"S {time.monotonic()} {' '.join(str(error).split())}")


_dying: list[int] = []
"""The signal after which this process is killed within its next transaction."""


def _die_at_commit(statement: str) -> None:
    if _dying and statement.startswith("COMMIT"):
        os.kill(os.getpid(), signal.SIGKILL)


def _connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    connection = sqlite3.Connection(*arguments, **options)
    connection.set_trace_callback(_die_at_commit)
    return connection


def main(path: str, name: str, settings: dict[str, Any]) -> None:
    """Crawl in this process."""
    retry_interval = settings.pop("store_retry_interval")
    defects = settings.pop("defects", "")
    if defects:
        middlewares = {DEFECTS[each]: 50 + number for number, each in enumerate(defects.split())}
        settings["DOWNLOADER_MIDDLEWARES"] = middlewares
    settings |= {**CHEAP, "USER_AGENT": f"{IDENTITY}{name})"}
    logging.disable(logging.INFO)  # Scrapy makes a record for each response
    logging.getLogger().addHandler(_Log(logging.WARNING))
    signal.signal(signal.SIGUSR1, lambda number, _: _dying.append(number))
    mark_failed = FallbackStore.mark_failed

    def report_failure(store: FallbackStore, error: StoreError) -> None:
        _say_store_failed(store, error)
        mark_failed(store, error)

    with (
        patch("scrapy_rep.stores.fallback.RETRY_INTERVAL", retry_interval),
        patch.object(FallbackStore, "mark_failed", report_failure),
        patch("sqlite3.connect", _connect),
    ):
        process = process_on("asyncio", settings)
        crawler = process.create_crawler(SoakWorker)
        process.crawl(crawler, path=path)
        process.start()
    say(*(f"P {problem}" for problem in left_over(crawler)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
