"""A crawl of a part of the soak. It says one line for each event:

* ``NUMBER END``: a request has ended, with a letter of :data:`ENDS`;
* ``M KIB BLOCKS``: the memory that the process uses, and how many blocks of it objects use;
* ``U ORIGIN FAILURE``: the robots.txt of an origin was unreachable;
* ``E TEXT``: an error in which a request for a page without a fault has ended;
* ``S TIME MESSAGE``: a call to the store has failed, at a time of the monotonic clock;
* ``P TEXT``: a problem.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from scrapy import Request, Spider
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from twisted.python.failure import Failure

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.clock import Clock
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.stores import StoreError
from scrapy_rep.stores.fallback import FallbackStore

Say = Callable[..., None]
ENDS = {
    "r": "response",
    "d": "disallowed",
    "u": "unreachable robots.txt",
    "c": "too complex a comparison",
    "e": "error",
}
"""The ends of requests, and the letter of each."""

_REASONS = {Reason.UNREACHABLE: "u", Reason.TOO_COMPLEX: "c"}
_PRIORITIES = (0, 0, 0, 5, -2)

WINDOW = 4000
"""How many requests are unfinished at most."""

REPORT_INTERVAL = 0.5
"""Seconds between two reports of the ends, and of the memory."""

MOST_PROBLEMS = 1000
"""How many problems of a worker are kept."""


class SoakWorker(Spider):
    """Sends its requests, each with its number, and says how each of them ended."""

    name = "soak_worker"

    def __init__(self, asked: Iterable[tuple[int, str]], say: Say, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asked = asked
        self.say = say
        self.unfinished = 0
        self.ended: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        self.reporting = create_looping_call(self.report)
        self.reporting.start(REPORT_INTERVAL, now=False)
        for number, url in self.asked:
            while self.unfinished >= WINDOW:
                await Clock().sleep(0.05)
            self.unfinished += 1
            yield Request(
                url,
                self.parse,
                errback=self.failed,
                cb_kwargs={"number": number},
                dont_filter=True,
                priority=_PRIORITIES[number % len(_PRIORITIES)],
            )

    def parse(self, _: Response, number: int) -> None:
        self.end(number, "r")

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        error = failure.value
        if isinstance(error, RobotsTxtDisallowed):
            end = _REASONS.get(error.verdict.reason, "d")
        else:
            end = "e"
            if "/p" in request.url:
                self.say(f"E {request.url[:100]}: {' '.join(repr(error).split())[:200]}")
        self.end(request.cb_kwargs["number"], end)

    def end(self, number: int, letter: str) -> None:
        """Note how a request has ended."""
        self.unfinished -= 1
        self.ended.append(f"{number} {letter}")

    def report(self) -> None:
        """Say what has happened since the last report."""
        ended, self.ended = self.ended, []
        self.say(*ended, f"M {memory()} {sys.getallocatedblocks()}")

    def closed(self, reason: str) -> None:
        self.reporting.stop()
        self.report()
        if reason != "finished":
            self.say(f"P the spider was closed: {reason}")


def memory() -> int:
    """Return the memory that this process uses, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


class _Log(logging.Handler):
    """Says errors in the log, and origins whose robots.txt was unreachable."""

    def __init__(self, say: Say) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        values = record.args if isinstance(record.args, dict) else {}
        if record.exc_info and "unforeseen" in str(record.exc_info[1]):  # it was injected
            if "origin" in values:
                self._say(f"U {values['origin']} unforeseen")
        elif record.levelno >= logging.ERROR:
            self._say(f"P {record.name}: {' '.join(self.format(record).split())[-1000:]}")
        elif "failure" in values:
            self._say(f"U {values.get('origin')} {' '.join(str(values['failure']).split())}")


@contextmanager
def observed(say: Say, store_retry_interval: float) -> Iterator[None]:
    """Say what the log has, and each failure of the store. It is tried again after the interval."""
    mark_failed = FallbackStore.mark_failed

    def report_failure(store: FallbackStore, error: StoreError) -> None:
        message = " ".join(str(error).split())
        if "unforeseen" not in message:
            say(f"S {time.monotonic()} {message}")
        mark_failed(store, error)

    log = _Log(say)
    logging.getLogger().addHandler(log)
    try:
        with (
            patch("scrapy_rep.stores.fallback.RETRY_INTERVAL", store_retry_interval),
            patch.object(FallbackStore, "mark_failed", report_failure),
        ):
            yield
    finally:
        logging.getLogger().removeHandler(log)


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


class Notes:
    """What a worker has said. Each of its requests must end once."""

    def __init__(self) -> None:
        self.ends: dict[int, str] = {}
        self.memory: list[Memory] = []
        """What the running process has used, twice a second."""
        self.unreachable: dict[str, str] = {}
        """Origins whose robots.txt was unreachable for this worker, and why."""
        self.failures: list[StoreFailure] = []
        self.errors: list[str] = []
        """Errors in which requests for pages in order have ended."""
        self.problems: list[str] = []

    def note(self, *lines: str) -> None:
        """Note what lines of the worker say."""
        for line in lines:
            kind, _, rest = line.partition(" ")
            first, _, text = rest.partition(" ")
            if kind == "P":
                self.add_problem(rest)
            elif kind == "M":
                self.memory.append(Memory(int(first), int(text)))
            elif kind == "U":
                self.unreachable[first] = text
            elif kind == "E":
                self.errors.append(rest)
            elif kind == "S":
                self.failures.append(StoreFailure(float(first), text))
            elif int(kind) in self.ends:
                self.add_problem(f"request {kind} has ended again: {rest}")
            else:
                self.ends[int(kind)] = rest

    def add_problem(self, problem: str) -> None:
        """Note a problem."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
