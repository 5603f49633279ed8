"""Crawl thousands of origins that misbehave at random, and see whether anything goes wrong.

    python -m benchmarks.soak [--origins 2000] [--seed 1] [--loop asyncio|default|none]

All of it on loopback, an address for each origin. Every request is to end in exactly one of a
response, RobotsTxtDisallowed or its own download error, and no server is to receive a page that
its robots.txt disallows.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import time

from tests.crawl.measure import process_on
from tests.crawl.soak import SETTINGS, Soak, SoakSpider
from tests.crawl.web import Web


class _Errors(logging.Handler):
    """Keeps what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def main() -> int:
    """Print what the requests ended in, and what was wrong; 1 if anything was."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--origins", type=int, default=2000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--loop", choices=("asyncio", "default", "none"), default="asyncio")
    options = arguments.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    web = Web()
    soak = Soak(web, options.origins, options.seed)
    process = process_on(options.loop, {**SETTINGS, "LOG_ENABLED": False})
    errors = _Errors()
    logging.getLogger().addHandler(errors)
    crawler = process.create_crawler(SoakSpider)
    began = time.monotonic()
    process.crawl(crawler, urls=soak.urls)
    process.start()
    took = time.monotonic() - began
    spider = crawler.spider
    assert isinstance(spider, SoakSpider)
    print(f"{len(soak.urls)} requests to {options.origins} origins in {took:.0f} s")
    for end, count in soak.summary(spider).most_common():
        print(f"{count:8} {end}")
    print(f"{len(soak.late(spider))} origins answered later than REP_TIMEOUT, and were unreachable")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"peak of the process, the servers included: {peak} MiB")
    problems = [*soak.problems(spider), *errors.messages]
    print(f"{len(problems)} problems")
    for problem in problems:
        print("  ", problem)
    web.close()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
