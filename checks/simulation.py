"""Random crawls on a virtual clock, which must obey laws.

The crawls use no network. :mod:`testing.simulation` lists the laws. The check stops at the first
crawl that breaks one, and prints it. ``--set shrink=1`` finds the smallest. The check needs Scrapy
2.15 or later.
"""

from __future__ import annotations

import scrapy

from testing import simulation
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(60, 10)
PARAMETERS = {
    "crawls": Parameter(1000, 100, "random crawls"),
    "seed": Parameter(0, 0, "chooses others than those of every run"),
    "shrink": Parameter(0, 0, "1: finds the smallest crawl that breaks a law"),
}


def run(options: Options) -> Result:
    """Run the crawls. A crawl that breaks a law is the detail."""
    if scrapy.version_info < (2, 15):
        return Result([], ["not run: it needs Scrapy 2.15 or later"])
    problems = []
    try:
        seed = options.number("seed") or None
        simulation.check(options.number("crawls"), seed, bool(options.number("shrink")))
    except AssertionError as problem:
        problems = [str(problem), *getattr(problem, "__notes__", ())]
    return Result(
        [
            Row("random crawls, at most", options.number("crawls"), "crawls"),
            Row("crawls that break a law", bool(problems), "crawls", 0),
        ],
        [line for problem in problems for line in problem.splitlines()],
    )
