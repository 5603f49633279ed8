"""A crawl of thirty live sites, and of others that never answer or ask for fewer requests.

With the default of 16 CONCURRENT_REQUESTS, each middleware crawls the live sites alone, and then
together with twenty silent ones. A robots.txt times out after 4 seconds and is retried once. The
ratio compares the seconds from the first request to the last live page. This package also crawls
them beside three sites whose pages answer 429 with a Retry-After of 2 seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

from benchmarks.crawl_cost import MIDDLEWARES
from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.web import Page, Received, Site, Web

DURATION = Duration(100, 50)
PARAMETERS = {
    "silent": Parameter(20, 8, "sites that never answer"),
    "live": Parameter(30, 15, "sites that do"),
    "busy": Parameter(3, 3, "sites that ask for fewer requests"),
}
PAGES = 10
MOST_OWN, MOST_TO_SCRAPYS = 2, 1 / 2
"""The largest ratio of scrapy-rep beside silent sites to the live sites alone, and to Scrapy's own
middleware beside the same sites. README.md has both.
"""
MOST_BESIDE_BUSY = 1.05
"""The largest ratio of scrapy-rep beside sites that ask for fewer requests."""
ROBOTS = Page("User-agent: *\nDisallow: /private/\n", delay=0.05)


async def silence(
    _received: Received, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter
) -> None:
    """Never answers."""
    await reader.read()


class Visitor(Spider):
    """Requests every page of every origin, beginning with the first page of each."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        for page in range(PAGES):
            for root in self.settings["ROOTS"]:
                yield Request(f"{root}/{page}")


def crawl(middleware: str, roots: list[str]) -> None:
    """Crawl in this process."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOTS": roots, "TELNETCONSOLE_ENABLED": False}
        | {"DOWNLOAD_TIMEOUT": 4, "RETRY_TIMES": 1, "REP_TIMEOUT": 4, "REP_RETRY_TIMES": 1}
        | MIDDLEWARES[middleware]
    )
    process.crawl(Visitor)
    process.start()


def seconds_of_live(middleware: str, live: list[Site], others: list[Site]) -> float:
    """Return the seconds from the first request that a server received to the last live page."""
    sites = others + live
    call(crawl, middleware, [site.root for site in sites], timeout=300)
    assert all(len(site.page_paths) == PAGES for site in live)
    first = min(received.at for site in sites for received in site.received)
    last = max(received.at for site in live for received in site.received)
    for site in sites:
        site.received.clear()
    return last - first


def run(options: Options) -> Result:
    """Return the seconds of each middleware, and their ratios."""
    web = Web()
    page = Page(delay=0.1)
    silent = [
        web.site(silence, host=f"127.0.2.{number + 1}")
        for number in range(options.number("silent"))
    ]
    live = [
        web.site(ROBOTS, {"*": page}, host=f"127.0.3.{number + 1}")
        for number in range(options.number("live"))
    ]
    too_many = {"*": Page(b"", 429, {"Retry-After": "2"})}
    busy = [
        web.site(ROBOTS, too_many, host=f"127.0.4.{number + 1}")
        for number in range(options.number("busy"))
    ]
    rows = []
    besides = {}
    for middleware in MIDDLEWARES:
        alone = seconds_of_live(middleware, live, [])
        beside = besides[middleware] = seconds_of_live(middleware, live, silent)
        most = MOST_OWN if middleware == "ours" else None
        rows += [
            Row(f"{middleware}: live sites alone", alone, "s"),
            Row(f"{middleware}: beside silent sites", beside, "s"),
            Row(f"{middleware}: times as long", beside / alone, "ratio", most),
        ]
        if middleware == "ours":
            ratio = seconds_of_live(middleware, live, busy) / alone
            text = "ours: times as long beside sites that ask for less"
            rows.append(Row(text, ratio, "ratio", MOST_BESIDE_BUSY))
    web.close()
    ratio = besides["ours"] / besides["Scrapy's"]
    rows.append(Row("beside silent sites, Scrapy's is 1", ratio, "ratio", MOST_TO_SCRAPYS))
    return Result(rows)
