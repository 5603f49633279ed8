"""A broad crawl: CPU time of a request, with many sites at once.

Two requests for each origin, and a download handler that answers from memory, so that what is
measured is Scrapy and this package. Beside it, Scrapy crawls the same without robots.txt: with its
default queue, and with ScrapyPriorityQueue, which does not look at hosts. The latter shows how much
more a request costs Scrapy itself if there are more origins: Python's garbage collector has more
objects to look at. Each crawl runs in a process of its own.
"""

from __future__ import annotations

import resource
import time
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

from scrapy import Request, Spider
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse, Response, TextResponse

from testing.harness import Duration, Options, Parameter, Result, Row, call

from .crawl_cost import ROBOTS

DURATION = Duration(1500, 30)
PARAMETERS = {
    "origins": Parameter(30_000, 3_000, "origins of the second crawl"),
    "most": Parameter(100_000, 0, "origins of the third crawl; 0: no such crawl"),
}

PAGES = 2
FEW = 10
"""The first crawl has as many origins as the second divided by this."""

GROWTH_LIMIT, MOST_GROWTH_LIMIT = 1.2, 1.5
"""How much more a request may cost in the larger crawls."""

SCRAPY_LIMIT = 0.25
"""What a request may cost compared with Scrapy's default queue, without robots.txt."""

FETCHES_LIMIT = 1.1
"""How many robots.txt files may be fetched for each origin that got a page."""

CRAWLS: dict[str, dict[str, Any]] = {
    "ours": {"ADDONS": {"scrapy_rep.Addon": 500}},
    "Scrapy's": {"ROBOTSTXT_OBEY": False},
    "plain": {
        "ROBOTSTXT_OBEY": False,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue",
    },
}


class Handler(BaseDownloadHandler):
    """Answers each request from memory."""

    async def download_request(self, request: Request) -> Response:
        if request.url.endswith("/robots.txt"):
            return TextResponse(request.url, body=ROBOTS.encode())
        return HtmlResponse(request.url, body=b"<title>a page</title>", encoding="utf-8")


class Visitor(Spider):
    """Puts all of its requests into the queue, and then waits for the pages."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        engine = self.crawler.engine
        assert engine is not None
        engine.pause()
        for page in range(PAGES):
            for number in range(self.settings.getint("ORIGINS")):
                engine.crawl(Request(f"http://host{number}.example/{page}.html"))
        engine.unpause()
        self.began = time.process_time()
        yield Request("http://last.example/")

    def parse(self, _: Any) -> None:
        """Find nothing."""


def crawl(name: str, origins: int) -> tuple[float, float, int]:
    """Crawl in this process.

    Returns the CPU seconds of a request, the peak memory in bytes, and the robots.txt files.
    """
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ORIGINS": origins, "TELNETCONSOLE_ENABLED": False}
        | {"DOWNLOAD_HANDLERS": {"http": Handler}, "MEMUSAGE_ENABLED": False}
        | CRAWLS[name]
    )
    crawler = process.create_crawler(Visitor)
    with patch("scrapy_rep.settings.connection_limit", return_value=None):  # as of Scrapy's own
        process.crawl(crawler)
        process.start()
    spider: Any = crawler.spider
    seconds = (time.process_time() - spider.began) / (PAGES * origins)
    stats = crawler.stats
    assert stats is not None
    fetched = stats.get_value("robotstxt/request_count", 0)
    pages = stats.get_value("downloader/response_status_count/200") - fetched
    assert pages == PAGES * origins + 1, pages
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return seconds, memory, fetched


def run(options: Options) -> Result:
    """Return the CPU time of a request in crawls of several sizes."""
    origins, most = options.number("origins"), options.number("most")
    few, _, _ = call(crawl, "ours", origins // FEW, timeout=600)
    many, memory, fetched = call(crawl, "ours", origins, timeout=1200)
    theirs, their_memory, _ = call(crawl, "Scrapy's", origins, timeout=3600)
    plain_few, _, _ = call(crawl, "plain", origins // FEW, timeout=600)
    plain_many, _, _ = call(crawl, "plain", origins, timeout=1200)
    rows = [
        Row(f"CPU of a request, {origins // FEW} origins", few * 1e6, "us"),
        Row(f"  {origins} origins", many * 1e6, "us"),
        Row("  ratio of the two", many / few, "ratio", GROWTH_LIMIT),
        Row("  the same of Scrapy's ScrapyPriorityQueue", plain_many / plain_few, "ratio"),
        Row(f"  Scrapy's without robots.txt, {origins} origins", theirs * 1e6, "us"),
        Row("  ratio to Scrapy's", many / theirs, "ratio", SCRAPY_LIMIT),
        Row("robots.txt files for each origin", fetched / origins, "each", FETCHES_LIMIT),
        Row("peak memory", memory / 1e6, "MB"),
        Row("  Scrapy's without robots.txt", their_memory / 1e6, "MB"),
    ]
    if most:
        largest, memory, _ = call(crawl, "ours", most, timeout=3600)
        rows += [
            Row(f"CPU of a request, {most} origins", largest * 1e6, "us"),
            Row("  ratio to the smallest crawl", largest / few, "ratio", MOST_GROWTH_LIMIT),
            Row("  peak memory", memory / 1e6, "MB"),
        ]
    return Result(rows)
