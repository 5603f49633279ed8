"""Crawls scenarios of :mod:`testing.simulation` several times, each with another defect.

    python -m tests.defects

Prints a JSON object: the problems that the simulation finds, by the name of the defect.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from testing import simulation
from testing.simulation import Answer, Ask, Scenario, Site, run

DEFECTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the pace": {"scrapy_rep.scheduling.hosts.Host.seconds_left": lambda *_: 0},
    "the rules": {
        "scrapy_rep.crawl.middleware.RobotsTxtMiddleware.process_request_2": lambda *_: None,
    },
    "the order": {
        "scrapy_rep.scheduling.queues.add": lambda entries, entry: entries.insert(0, entry),
    },
    "the counters": {"scrapy_rep.scheduling.engine.Engine.include": lambda *_: None},
    "nothing in an outage": {},
    "the limits": {"scrapy_rep.scheduling.blocks.Blocks.overdue": lambda *_: None},
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
        "REP_MAX_WAITING": 10_000,
        "REP_RETRY_TIMES": 0,
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    },
)


OUTAGE = Scenario(
    sites=(Site(0, 8000, (Answer(status=503, retry_after=5),), page_latency=0.2),),
    asks=(Ask(0, 0, "/a"),) * 60,
    settings={
        **SCENARIO.settings,
        "REP_MAX_WAIT": 60,
        "REP_MAX_WAITING": 2,
        "REP_UNREACHABLE": "wait",
    },
    turn=1.5,
)
"""The next attempt begins before all requests that are overdue are dropped."""

SCENARIOS = {"nothing in an outage": OUTAGE, "the limits": OUTAGE}
"""By defect, if it is not the first scenario."""

MOST_TURNS = 4_000
"""The limit of a crawl in turns of its event loop. Without a defect, it needs some 300."""


def main() -> None:
    """Run all crawls, and print the problems."""
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
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
