"""Answers for a known origin, compared with Scrapy's middleware.

Crawls a page of each of 20 origins on loopback, and then passes new requests to the middleware of
that crawl: plain ones, and requests as in a crawl, with a Referer and after OffsiteMiddleware has
parsed their URL. It does so again with another site that has a Crawl-delay. For the requests of
that site it measures the time in the scheduler and the middleware together, from arrival to
release. Each middleware runs in a process of its own. Each figure is the best of several rounds.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from math import inf
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import RobotsTxtMiddleware
from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.web import Web

from .crawl_cost import MIDDLEWARES, ORIGINS, ROBOTS

DURATION = Duration(15, 10)

PARAMETERS = {"rounds": Parameter(15, 3, "rounds, of which the best counts")}
PAGES = 200

FORMS = (
    "new request",
    "as in a crawl",
    "beside a paced site",
    "of a paced site, with the scheduler",
)


class Asker(Spider):
    """Crawls every origin, and then measures the answers about it."""

    name = "asker"
    costs: list[float] = []  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        self.unpaced = self.settings["ROOTS"][:-1]
        self.left = len(self.unpaced)
        for root in self.unpaced:
            yield Request(f"{root}/articles/first.html")

    def parse(self, _: Response) -> Iterator[Any]:
        self.left -= 1
        if not self.left:
            self._measure(self.unpaced, as_in_a_crawl=False)
            self._measure(self.unpaced)
            yield Request(f"{self.settings['ROOTS'][-1]}/articles/first.html", self.parse_paced)

    def parse_paced(self, _: Response) -> None:
        self._measure(self.unpaced)
        self.costs.append(min(self._paced_rounds(self.settings["ROOTS"][-1])))

    def _measure(self, roots: list[str], *, as_in_a_crawl: bool = True) -> None:
        """Record the average seconds of one answer in the best round."""
        self.costs.append(min(self._rounds(roots, as_in_a_crawl=as_in_a_crawl)))

    def _rounds(self, roots: list[str], *, as_in_a_crawl: bool) -> Iterator[float]:
        find = self.crawler.get_downloader_middleware
        middleware: Any = find(RobotsTxtMiddleware) or find(BuiltInMiddleware)
        for number in range(self.settings["ROUNDS"]):
            requests = [
                Request(f"{root}/articles/{number}/{page}.html")
                for page in range(PAGES)
                for root in roots
            ]
            if as_in_a_crawl:
                for request in requests:
                    request.headers["Referer"] = "http://127.0.0.1/"
                    urlparse_cached(request)
            began = time.perf_counter()
            for request in requests:
                try:
                    middleware.process_request(request).send(None)
                except StopIteration:
                    continue
                raise AssertionError("it waits for something")
            yield (time.perf_counter() - began) / len(requests)
            for request in requests:
                if isinstance(middleware, RobotsTxtMiddleware):
                    middleware.frontier.end(request, sent=False)

    def _paced_rounds(self, root: str) -> Iterator[float]:
        engine: Any = self.crawler.engine
        scheduler = engine._slot.scheduler
        ours: Any = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        middleware: Any = ours or self.crawler.get_downloader_middleware(BuiltInMiddleware)
        for number in range(self.settings["ROUNDS"]):
            requests = [
                Request(f"{root}/articles/{number}/{page}.html", dont_filter=True)
                for page in range(PAGES * 10)
            ]
            if ours:
                for host in ours.frontier.hosts:
                    host.last_end = -inf  # no time passes here
            began = time.perf_counter()
            for request in requests:
                scheduler.enqueue_request(request)
            for _ in requests:
                request = scheduler.next_request()
                assert request is not None, "no event can make a request ready here"
                with contextlib.suppress(StopIteration):
                    middleware.process_request(request).send(None)
                    raise AssertionError("it waits for something")
                if ours:
                    ours.frontier.end(request, sent=False)
            yield (time.perf_counter() - began) / len(requests)


def ask(middleware: str, roots: list[str], rounds: int) -> list[float]:
    """Crawl in this process. Returns the seconds of an answer in each form."""
    process = AsyncCrawlerProcess(
        {
            "CONCURRENT_REQUESTS_PER_DOMAIN": 10**6,  # no request ends in a round
            "LOG_ENABLED": False,
            "ROOTS": roots,
            "ROUNDS": rounds,
            "TELNETCONSOLE_ENABLED": False,
        }
        | MIDDLEWARES[middleware]
    )
    process.crawl(Asker)
    process.start()
    return Asker.costs


def run(options: Options) -> Result:
    """Return the time of an answer of each middleware, and the ratio."""
    web = Web()
    roots = [web.site(ROBOTS, host=f"127.0.1.{number + 1}").root for number in range(ORIGINS)]
    roots.append(web.site(f"{ROBOTS}Crawl-delay: 1\n", host="127.0.2.1").root)
    costs = [call(ask, middleware, roots, options.number("rounds")) for middleware in MIDDLEWARES]
    web.close()
    rows = []
    for form, ours, theirs in zip(FORMS, *costs, strict=True):
        rows += [
            Row(form, ours * 1e6, "us"),
            Row("  Scrapy's", theirs * 1e6, "us"),
            Row("  ratio to Scrapy's", ours / theirs, "ratio"),
        ]
    return Result(rows)
