"""Crawls scenarios of :mod:`testing.simulation` several times, each with another defect."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from scrapy import Request

from scrapy_rep.frontier.queue import OriginQueue
from scrapy_rep.protocol.access import Cancelled
from testing import simulation
from testing.faults import ErrorFault
from testing.simulation import Answer, Ask, Scenario, Site, run

push = OriginQueue.push


def push_first(queue: OriginQueue, request: Request) -> None:
    """Add a request before the one that would be next."""
    first = queue.pop() if queue.size else None
    push(queue, request)
    if first is not None:
        push(queue, first)


DEFECTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the pace": {"scrapy_rep.frontier.hosts.Host.seconds_left": lambda *_: 0},
    "the rules": {
        "scrapy_rep.crawl.middleware.RobotsTxtMiddleware.process_request_2": lambda *_: None,
    },
    "the order": {"scrapy_rep.frontier.queue.OriginQueue.push": push_first},
    "nothing with calls": {},
    "the counters": {"scrapy_rep.frontier.engine.Engine.include": lambda *_: None},
    "the alarms": {"scrapy_rep.frontier.frontier.Frontier._ring": lambda *_: None},
    "nothing with a back-off": {},
    "the back-off": {"scrapy_rep.frontier.frontier.Frontier.note_answer": lambda *_: None},
    "nothing with an error": {},
    "the schedule": {"scrapy_rep.fetch.fetcher.Fetcher.unexpected": lambda *_: Cancelled()},
}
"""By name: what is replaced, and by what."""

SCENARIO = Scenario(
    sites=(Site(0, 8000, (Answer("private", latency=1, delay=3),), page_latency=0.2),),
    asks=tuple(Ask(0, 0, path) for path in ("/a", "/private/a", "/b", "/a", "/private/b")),
    settings={
        "CONCURRENT_REQUESTS": 2,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "DOWNLOAD_DELAY": 0,
        "REP_CACHE_SIZE": 1000,
        "REP_RETRY_TIMES": 0,
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    },
)

ERROR = replace(
    SCENARIO, faults=(ErrorFault("scrapy_rep.fetch.fetcher.Fetcher._event", ValueError, 1.0, 0),)
)

CALLS = replace(SCENARIO, asks=(Ask(0, 0, "/a", called=True),) * 2)
"""Requests that did not come from the queue wait in the downloader."""

BACKOFF = replace(
    SCENARIO,
    sites=(Site(0, 8000, (Answer(),), page_latency=0.2),),
    asks=(Ask(0, 0, "/a", fate="slow down for long"), Ask(0, 0, "/b"), Ask(2, 0, "/a")),
)

SCENARIOS = {
    "nothing with a back-off": BACKOFF,
    "the back-off": BACKOFF,
    "nothing with calls": CALLS,
    "the counters": CALLS,
    "nothing with an error": ERROR,
    "the schedule": ERROR,
}
"""By defect, if it is not the first scenario."""

MOST_TURNS = 4_000
"""The limit of a crawl in turns of its event loop. Without a defect, it needs some 300."""


def problems() -> dict[str, list[str]]:
    """Run all crawls, and return the problems that the simulation finds, by the defect."""
    simulation.MOST_TURNS = MOST_TURNS
    logging.disable(logging.CRITICAL)
    found = {}
    for name, replacements in DEFECTS.items():
        with ExitStack() as stack:
            for target, replacement in replacements.items():
                stack.enter_context(patch(target, replacement))
            try:
                found[name] = run(SCENARIOS.get(name, SCENARIO))
            except AssertionError as error:  # the crawl hangs, or does not end
                found[name] = [str(error)]
    return found
