"""The first request to each origin, compared with Scrapy's own.

Each site on loopback has a robots.txt and one page. A crawl requests one page after the other: the
time between the two requests that a site receives is what lies between the fetch and the page.
Another crawl requests all pages at once, and its CPU time counts, from the first request to the
end. Each crawl runs in a process of its own, with each middleware in turn. Compare the ratios: the
speed of the machine changes over time.

A site costs more while more connections are open, with each middleware. The fetches of robots.txt
files do not use up CONCURRENT_REQUESTS here, so another crawl with Scrapy's middleware may have as
many connections.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

from testing.harness import Duration, Parameter, Result, Row
from testing.processes import call
from testing.web import Web

from .crawl_cost import MIDDLEWARES, ROBOTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

    from testing.harness import Options
    from testing.web import Site

DURATION = Duration(120, 25)
PARAMETERS = {
    "origins": Parameter(400, 100, "origins of each crawl"),
    "rounds": Parameter(7, 2, "rounds of five crawls"),
}

CONCURRENT_REQUESTS = 32
CONCURRENT_ROBOTSTXT_REQUESTS = 100
"""The default of REP_CONCURRENT_ROBOTSTXT_REQUESTS."""


class Visitor(Spider):
    """Requests a page of each site: all at once, or each when it has the one before."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        self.began = time.process_time()
        self.left = iter(self.settings["ROOTS"])
        for request in self.next_requests():
            yield request

    def next_requests(self) -> Iterator[Request]:
        for root in self.left:
            yield Request(f"{root}/articles/first.html")
            if self.settings["ONE_BY_ONE"]:
                break

    def parse(self, _: Response) -> Iterator[Request]:
        return self.next_requests()

    def closed(self, reason: str) -> None:
        assert reason == "finished"
        self.cpu = time.process_time() - self.began


def crawl(
    middleware: str, roots: list[str], one_by_one: bool, concurrency: int = CONCURRENT_REQUESTS
) -> float:
    """Crawl in this process. Returns the CPU seconds from the first request to the last page."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOTS": roots, "TELNETCONSOLE_ENABLED": False}
        | {"CONCURRENT_REQUESTS": concurrency, "ONE_BY_ONE": one_by_one}
        | MIDDLEWARES[middleware]
    )
    crawler = process.create_crawler(Visitor)
    process.crawl(crawler)
    process.start()
    assert isinstance(crawler.spider, Visitor)
    return crawler.spider.cpu


def seconds_between(sites: list[Site]) -> list[float]:
    """Return, for each site, the seconds between its two requests. Forget the requests."""
    gaps = []
    for site in sites:
        first, second = site.received
        assert (first.path, second.path) == ("/robots.txt", "/articles/first.html")
        gaps.append(second.at - first.at)
        site.received.clear()
    return gaps


def run(options: Options) -> Result:
    """Return the times and the connections of each middleware, and their ratios."""
    web = Web()
    sites = [
        web.site(ROBOTS, host=f"127.0.{1 + number // 250}.{1 + number % 250}")
        for number in range(options.number("origins"))
    ]
    roots = [site.root for site in sites]
    gaps: dict[str, list[float]] = {name: [] for name in MIDDLEWARES}
    cpu: dict[str, list[float]] = {name: [] for name in MIDDLEWARES}
    as_many: list[float] = []
    connections = dict.fromkeys(MIDDLEWARES, 0)
    for number in range(options.number("rounds")):
        for name in list(MIDDLEWARES) if number % 2 else list(reversed(MIDDLEWARES)):
            before = sum(site.connections for site in sites)
            call(crawl, name, roots, True)
            connections[name] += sum(site.connections for site in sites) - before
            gaps[name].append(median(seconds_between(sites)))
            cpu[name].append(call(crawl, name, roots, False) / len(roots))
            seconds_between(sites)
        concurrency = CONCURRENT_REQUESTS + CONCURRENT_ROBOTSTXT_REQUESTS
        as_many.append(call(crawl, "Scrapy's", roots, False, concurrency) / len(roots))
        seconds_between(sites)
    web.close()
    crawls = options.number("rounds") * len(sites)
    rows = []
    for what, values in (("from robots.txt to page", gaps), ("CPU of an origin", cpu)):
        ratios = [ours / theirs for ours, theirs in zip(*values.values(), strict=True)]
        rows += [
            Row(what, median(values["ours"]) * 1e6, "us"),
            Row("  Scrapy's", median(values["Scrapy's"]) * 1e6, "us"),
            Row("  median ratio to Scrapy's", median(ratios), "ratio"),
        ]
    ratios = [ours / theirs for ours, theirs in zip(cpu["ours"], as_many, strict=True)]
    rows.append(Row("  Scrapy's with as many connections", median(as_many) * 1e6, "us"))
    rows.append(Row("  median ratio to Scrapy's with as many", median(ratios), "ratio"))
    rows.append(Row("connections of an origin", connections["ours"] / crawls, "each", 1))
    rows.append(Row("  Scrapy's", connections["Scrapy's"] / crawls, "each"))
    return Result(rows)
