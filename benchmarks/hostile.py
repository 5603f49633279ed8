"""How long hostile input takes: a parse and ten answers of each, in milliseconds.

Of files with records beyond the rules the answers are the pace and what content may be used for.

    python -m benchmarks.hostile

Ends with status 1 if any of them takes more than 100 ms, the best of three.
"""

from __future__ import annotations

import sys
import time

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.agents import product_tokens
from scrapy_rep.protocol.pacing import Pacing
from tests.protocol.hostile import HEADERS, HOSTILE, LONG_URL, RECORDS

MOST = 0.1
"""Seconds."""


def seconds(body: bytes, url: str) -> float:
    """A parse and ten answers, each for a URL of its own."""
    start = time.perf_counter()
    robots = RobotsTxt.parse(body)
    for number in range(10):
        robots.verdict(url + str(number), "a-bad")
    return time.perf_counter() - start


def seconds_of_records(body: bytes) -> float:
    """A parse, the pace at ten times, and the preferences for ten URLs."""
    start = time.perf_counter()
    robots = RobotsTxt.parse(body, url="https://example.com/robots.txt")
    pacing = Pacing.of(robots, ("a-bad",))
    for number in range(10):
        if pacing is not None:
            pacing.seconds_between(number)
        robots.content_usage(f"{LONG_URL}{number}", "a-bad")
    return time.perf_counter() - start


def seconds_of_header(header: str) -> float:
    """The token of a header, as it is and within a comment."""
    start = time.perf_counter()
    product_tokens(header)
    product_tokens("Mozilla/5.0 (" + header)
    return time.perf_counter() - start


def main() -> int:
    """Print every figure; the exit status."""
    figures = {name: min(seconds(*hostile) for _ in range(3)) for name, hostile in HOSTILE.items()}
    for name, body in RECORDS.items():
        figures[name] = min(seconds_of_records(body) for _ in range(3))
    for header in HEADERS:
        name = f"header of {len(header)} {header[:2]!r}"
        figures[name] = seconds_of_header(header)
    for name, figure in sorted(figures.items(), key=lambda item: -item[1]):
        print(f"{figure * 1000:7.1f} ms  {name}")
    return int(max(figures.values()) > MOST)


if __name__ == "__main__":
    sys.exit(main())
