"""A crawl of disallowed links, with and without REP_FILTER_LINKS.

Each of 20 sites on loopback has a chain of pages. Each page links to the next one, and to nine
pages that the robots.txt disallows. The spider makes the requests without parsing HTML and without
an errback. A crawl of the same pages without the disallowed links shows what a drop costs. Each
crawl runs in a process of its own. Compare the ratios: the speed of the machine changes over time.
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

from .crawl_cost import MIDDLEWARES, ORIGINS, ROBOTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

    from testing.harness import Options

DURATION = Duration(100, 20)
PARAMETERS = {
    "rounds": Parameter(5, 1, "rounds, of which the median counts"),
    "pages": Parameter(40, 20, "pages of each site"),
}
DISALLOWED = 9
"""The disallowed links of each page."""

CRAWLS: dict[str, tuple[dict[str, Any], int]] = {
    "with REP_FILTER_LINKS": ({**MIDDLEWARES["ours"], "REP_FILTER_LINKS": True}, DISALLOWED),
    "without": (MIDDLEWARES["ours"], DISALLOWED),
    "Scrapy's own middleware": (MIDDLEWARES["Scrapy's"], DISALLOWED),
    "no disallowed links": (MIDDLEWARES["ours"], 0),
}


class Follower(Spider):
    """Requests the next page, and the disallowed ones."""

    name = "follower"

    async def start(self) -> AsyncIterator[Any]:
        for root in self.settings["ROOTS"]:
            yield Request(f"{root}/articles/1", cb_kwargs={"root": root, "page": 1})

    def parse(self, _: Response, root: str, page: int) -> Iterator[Request]:
        for number in range(self.settings["DISALLOWED"]):
            yield Request(f"{root}/private/{page}/{number}")
        if page < self.settings["PAGES"]:
            url, arguments = f"{root}/articles/{page + 1}", {"root": root, "page": page + 1}
            yield Request(url, self.parse, cb_kwargs=arguments)


def crawl(name: str, roots: list[str], pages: int) -> tuple[float, int, int]:
    """Crawl in this process. Returns the CPU seconds, and the numbers of pages and of drops."""
    middleware, disallowed = CRAWLS[name]
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOTS": roots, "TELNETCONSOLE_ENABLED": False}
        | {"PAGES": pages, "DISALLOWED": disallowed}
        | middleware
    )
    crawler = process.create_crawler(Follower)
    process.crawl(crawler)
    before = time.process_time()
    process.start()
    seconds = time.process_time() - before
    assert crawler.stats is not None
    received = crawler.stats.get_value("downloader/response_status_count/200") - len(roots)
    return seconds, received, crawler.stats.get_value("robotstxt/forbidden", 0)


def run(options: Options) -> Result:
    """Return the CPU time of each crawl, and what a drop costs."""
    pages = options.number("pages")
    web = Web()
    sites = [web.site(ROBOTS, host=f"127.0.1.{number + 1}") for number in range(ORIGINS)]
    roots = [site.root for site in sites]
    seconds: dict[str, list[float]] = {name: [] for name in CRAWLS}
    for _ in range(options.number("rounds")):
        for name, (_settings, disallowed) in CRAWLS.items():
            took, received, dropped = call(crawl, name, roots, pages, timeout=300)
            expected = ORIGINS * pages, ORIGINS * pages * disallowed
            assert (received, dropped) == expected, (name, received, dropped)
            assert not any("private" in path for site in sites for path in site.paths)
            seconds[name].append(took)
            for site in sites:
                site.received.clear()
    web.close()
    took_by = {name: median(times) for name, times in seconds.items()}
    filtered, unfiltered, theirs, nothing = took_by.values()
    drops = ORIGINS * pages * DISALLOWED
    rows = [Row(f"CPU of a crawl: {name}", took, "s") for name, took in took_by.items()]
    rows += [
        Row("ratio of the filter to none", filtered / unfiltered, "ratio"),
        Row("ratio of the filter to Scrapy's", filtered / theirs, "ratio"),
        Row("a drop: with REP_FILTER_LINKS", (filtered - nothing) / drops * 1e6, "us"),
        Row("a drop: without", (unfiltered - nothing) / drops * 1e6, "us"),
        Row("a drop: Scrapy's own middleware", (theirs - nothing) / drops * 1e6, "us"),
    ]
    return Result(rows, [f"{ORIGINS * pages:,} pages, {drops:,} drops in each crawl"])
