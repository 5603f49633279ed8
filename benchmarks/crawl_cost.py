"""CPU time of a crawl, compared with Scrapy's own middleware.

Crawls 20 origins of 60 pages each on loopback, with each middleware in turn, in processes of their
own. The spider makes one item of each page. Compare the ratios of the pairs: the speed of the
machine changes over time.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from statistics import median
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response

from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.web import Web

DURATION = Duration(60, 12)
PARAMETERS = {"pairs": Parameter(10, 2, "pairs of crawls")}

ORIGINS = 20
PAGES = 60
MOST = 1.1
"""The largest median of the ratios to Scrapy's own middleware. README.md has it."""
ROBOTS = "User-agent: *\nDisallow: /private/\nDisallow: /*.pdf$\nAllow: /private/open/\n"

MIDDLEWARES: dict[str, dict[str, Any]] = {
    "ours": {"ADDONS": {"scrapy_rep.Addon": 500}},
    "Scrapy's": {"ROBOTSTXT_OBEY": True},
}


class Visitor(Spider):
    """Requests every page of every origin."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        for page in range(PAGES):
            for root in self.settings["ROOTS"]:
                yield Request(f"{root}/articles/{page}.html")

    def parse(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url}


def crawl(middleware: str, roots: list[str]) -> tuple[float, int]:
    """Crawl in this process. Returns the CPU seconds and the number of pages."""
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
    return seconds, crawler.stats.get_value("downloader/response_status_count/200") - ORIGINS


def run(options: Options) -> Result:
    """Return the medians, with each pair as a detail."""
    web = Web()
    sites = [web.site(ROBOTS, host=f"127.0.1.{number + 1}") for number in range(ORIGINS)]
    roots = [site.root for site in sites]
    seconds: dict[str, list[float]] = {middleware: [] for middleware in MIDDLEWARES}
    pairs = []
    for pair in range(options.number("pairs")):
        order = list(MIDDLEWARES) if pair % 2 else list(reversed(MIDDLEWARES))
        for middleware in order:
            took, pages = call(crawl, middleware, roots)
            assert pages == ORIGINS * PAGES, pages
            seconds[middleware].append(took)
            for site in sites:
                site.received.clear()
        ours, theirs = (times[-1] for times in seconds.values())
        pairs.append(f"pair {pair + 1}: {ours:.3f} s, Scrapy's {theirs:.3f} s, {ours / theirs:.3f}")
    web.close()
    ratios = [ours / theirs for ours, theirs in zip(*seconds.values(), strict=True)]
    return Result(
        [
            Row("CPU of a crawl, median", median(seconds["ours"]), "s"),
            Row("the same with Scrapy's own middleware", median(seconds["Scrapy's"]), "s"),
            Row("median ratio to Scrapy's", median(ratios), "ratio", MOST),
        ],
        pairs,
    )
