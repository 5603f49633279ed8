"""Growth of a crawl's memory with each origin, beside Scrapy's.

Crawls two pages of each of many origins with robots.txt files. The download handler returns the
responses from memory, and the engine, the scheduler and the downloader are Scrapy's. The memory is
measured before and after the last part of the origins, when as many files are parsed as the package
parses at most, and when Scrapy's caches are full. Each middleware runs in a process of its own. The
crawl without a middleware shows what Scrapy itself keeps: above all, a fingerprint of each request.
"""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse, TextResponse

from testing.corpus import load
from testing.harness import Duration, Parameter, Result, Row
from testing.processes import call

from .crawl_cost import MIDDLEWARES
from .origins import resident

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from testing.harness import Options

DURATION = Duration(240, 45)
PARAMETERS = {
    "files": Parameter(2000, 500, "generated files"),
    "before": Parameter(10_500, 5_500, "origins before the memory is measured"),
    "origins": Parameter(4_000, 1_000, "origins that are measured"),
}
PAGES = 2


class Sites:
    """A download handler. The origins have the files in turn."""

    lazy = False
    bodies: list[bytes] = []  # noqa: RUF012

    @classmethod
    def from_crawler(cls, _: Crawler) -> Self:
        """Called by Scrapy."""
        return cls()

    async def download_request(self, request: Request) -> Response:
        """Return a robots.txt or a page."""
        parts = urlsplit(request.url)
        if parts.path != "/robots.txt":
            return HtmlResponse(request.url, body=b"<p>", request=request)
        number = int(parts.netloc.split(".")[1])
        # No response shares memory with another.
        body = bytes(bytearray(self.bodies[number % len(self.bodies)]))
        headers = {"ETag": f'"{number:x}"', "Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT"}
        return TextResponse(request.url, headers=headers, body=body, request=request)

    async def close(self) -> None:
        """Called by Scrapy."""


class Visitor(Spider):
    """Requests the pages of all origins, the last part of them after the first."""

    name = "visitor"
    grown = 0

    async def start(self) -> AsyncIterator[Any]:
        first, last = self.settings["PARTS"]
        for numbers in (range(first), range(first, first + last)):
            gc.collect()
            before = resident()
            for number in numbers:
                for page in range(PAGES):
                    url = f"https://www.{number}.example/pages/{page}.html"
                    yield Request(url, errback=self.failed)
            engine: Any = self.crawler.engine
            while engine.downloader.active or engine._slot.scheduler.has_pending_requests():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            gc.collect()
            Visitor.grown = resident() - before

    def parse(self, response: Response) -> None:
        pass

    def failed(self, _: object) -> None:
        pass


def crawl(folder: str | None, files: int, parts: list[int], settings: dict[str, Any]) -> int:
    """Crawl in this process. Returns by how many octets the last part of the crawl grew it."""
    Sites.bodies = load(Path(folder) if folder else None, files=files).bodies
    process = AsyncCrawlerProcess(
        {
            "CONCURRENT_REQUESTS": 100,
            "DOWNLOAD_HANDLERS": {"https": Sites},
            "LOG_ENABLED": False,
            "PARTS": parts,
            "REP_MAX_DELAY": 0.001,
            "REP_MAX_WAIT": 1,
            "TELNETCONSOLE_ENABLED": False,
            **settings,
        }
    )
    process.crawl(Visitor)
    process.start()
    return Visitor.grown


def run(options: Options) -> Result:
    """Return the growth with each middleware, and without one."""
    corpus = load(options.folder, files=options.number("files"))
    folder = str(options.folder) if options.folder else None
    origins = options.number("origins")
    parts = [options.number("before"), origins]
    rows = []
    for name, settings in {**MIDDLEWARES, "none": {}}.items():
        grown = call(crawl, folder, options.number("files"), parts, settings, timeout=3000)
        rows.append(Row(f"an origin, middleware: {name}", grown / origins, "octets"))
    return Result(rows, [corpus.source])
