"""What the middleware costs a crawl: CPU of the crawling process, beside Scrapy's own middleware.

    python -m benchmarks.crawl_cost [PAIRS]

Crawls 20 origins of 60 pages each on loopback, once with each middleware in turn, in processes of
their own. The figure to look at is the ratio, pair by pair: the machine's speed drifts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

from testing.web import Web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ORIGINS = 20
PAGES = 60
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\nAllow: /private/open/\n"

MIDDLEWARES: dict[str, dict[str, Any]] = {
    "ours": {"ADDONS": {"scrapy_rep.Addon": 500}},
    "Scrapy's": {"ROBOTSTXT_OBEY": True},
}


class Visitor(Spider):
    """Asks for every page of every origin."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        for page in range(PAGES):
            for root in self.settings["ROOTS"]:
                yield Request(f"{root}/articles/{page}.html")


def crawl(middleware: str, roots: list[str]) -> None:
    """One crawl in this process; prints its CPU seconds and the pages it got."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOTS": roots, "TELNETCONSOLE_ENABLED": False}
        | {"CONCURRENT_REQUESTS": 32}
        | MIDDLEWARES[middleware]
    )
    crawler = process.create_crawler(Visitor)
    process.crawl(crawler)
    before = time.process_time()
    process.start()
    seconds = time.process_time() - before
    assert crawler.stats is not None
    pages = crawler.stats.get_value("downloader/response_status_count/200") - ORIGINS
    print(json.dumps([seconds, pages]))


def run(middleware: str, roots: list[str]) -> float:
    """The CPU seconds of one crawl in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.crawl_cost", "--crawl", middleware, *roots]
    # Scrapy is installed with its bytecode, and so would we be.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    output = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, env=environment
    )
    seconds, pages = json.loads(output.stdout)
    assert pages == ORIGINS * PAGES, pages
    return float(seconds)


def main(pairs: int) -> None:
    """Print each pair, and the medians."""
    web = Web()
    sites = [web.site(ROBOTS, host=f"127.0.1.{number + 1}") for number in range(ORIGINS)]
    roots = [site.root for site in sites]
    seconds: dict[str, list[float]] = {middleware: [] for middleware in MIDDLEWARES}
    for pair in range(pairs):
        order = list(MIDDLEWARES) if pair % 2 else list(reversed(MIDDLEWARES))
        for middleware in order:
            seconds[middleware].append(run(middleware, roots))
            for site in sites:
                site.received.clear()
        ours, theirs = (times[-1] for times in seconds.values())
        print(f"pair {pair + 1}: ours {ours:.3f} s, Scrapy's {theirs:.3f} s, {ours / theirs:.3f}")
    ratios = [ours / theirs for ours, theirs in zip(*seconds.values(), strict=True)]
    print(f"median ratio ours / Scrapy's: {median(ratios):.3f}")
    web.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        crawl(sys.argv[2], sys.argv[3:])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
