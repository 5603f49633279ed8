"""A crawl of a part of many requests, in a process that may be killed at any time.

``python -m testing.soak_worker FILE SETTINGS``: each line of the file has the number and the URL of
a request, and the settings are JSON. The worker prints one line for each event:

* ``NUMBER END``: a request has ended, with a letter of :data:`ENDS`;
* ``M KIB``: the memory that the process uses;
* ``P TEXT``: a problem.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from scrapy import Request, Spider
from scrapy.utils.asyncio import create_looping_call

from scrapy_rep import RobotsTxtDisallowed
from testing.counters import left_over
from testing.measure import process_on
from testing.soak import logged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

ENDS = {"r": "response", "d": "disallowed", "e": "error"}
"""The ends of requests, and the letter of each."""

WINDOW = 3000
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
        end = "d" if failure.check(RobotsTxtDisallowed) else "e"
        self.end(request.cb_kwargs["number"], end)

    def end(self, number: str, letter: str) -> None:
        """Note how a request has ended."""
        self.unfinished -= 1
        self.ended.append(f"{number} {letter}")

    def report(self) -> None:
        """Print what has happened since the last report."""
        ended, self.ended = self.ended, []
        try:
            say(*ended, f"M {memory()}")
        except BrokenPipeError:  # the process that started this one has ended
            os._exit(1)

    def closed(self, reason: str) -> None:
        self.reporting.stop()
        self.report()
        if reason != "finished":
            say(f"P the spider was closed: {reason}")


def say(*lines: str) -> None:
    """Print whole lines at once: a killed process leaves no part of a line."""
    octets = "".join(f"{line}\n" for line in lines).encode()
    while octets:
        octets = octets[os.write(sys.stdout.fileno(), octets) :]


def memory() -> int:
    """Return the memory that this process uses, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def main(path: str, settings: dict[str, Any]) -> None:
    """Crawl in this process."""
    retry_interval = settings.pop("store_retry_interval")
    with logged() as log, patch("scrapy_rep.stores.fallback.RETRY_INTERVAL", retry_interval):
        process = process_on("asyncio", {**settings, "LOG_ENABLED": False})
        crawler = process.create_crawler(SoakWorker)
        process.crawl(crawler, path=path)
        process.start()
    say(*(f"P {' '.join(problem.split())}" for problem in [*log.errors, *left_over(crawler)]))


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
