"""Thirty live sites beside 500 silent ones with 100,000 requests.

The scheduler has all requests before the crawl begins: one page of each site in turn. With 16
CONCURRENT_REQUESTS, each crawl runs for the live sites alone, and then together with the silent
ones, which never answer. A crawl stops after the last live page. The ratio compares the seconds
from the first request that a server received to the last live page. It is measured with each of
Scrapy's priority queues, with a disk queue (JOBDIR), and with Redis.

With Redis, the scheduler is that of this package, or that of scrapy-redis with FifoQueue. The
default queue of scrapy-redis sorts requests of equal priority by their octets, and so by host. Then
Scrapy downloads 8 pages at once (CONCURRENT_REQUESTS_PER_DOMAIN), with or without silent sites.

On a machine that does other work, both crawls wait for the processor, and the ratio is that of
their CPU times. Two figures do not depend on that: the number of requests that were read from the
scheduler, and the CPU time of a read in a crawl without this package, which no crawl can save where
the requests of silent sites come between those of live ones.

Scrapy starts CONCURRENT_ITEMS tasks for each response, 100 by default. They make Python's garbage
collector run often, and a full collection looks at each object of the fetches that are in progress.
``--set items=10`` measures crawls with 10, as docs/usage/scaling.md advises.

All other settings have their defaults, so that attempts to fetch a robots.txt end and are repeated.
With ``--set timeout=2``, silent sites become unreachable during the crawl, and their requests are
dropped. With ``--set fetches=150 --set timeout=600``, the first attempts go on until the end.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import CloseSpider

from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.measure import peak
from testing.web import Page, Site, Web

from .silent_sites import ROBOTS, silence

DURATION = Duration(500, 60)
PARAMETERS = {
    "cases": Parameter("", "downloader-aware", "of those below; all if empty"),
    "silent": Parameter(500, 100, "sites that never answer"),
    "live": Parameter(30, 15, "sites that do"),
    "requests": Parameter(200, 40, "requests of each site"),
    "fetches": Parameter(600, 600, "REP_CONCURRENT_ROBOTSTXT_REQUESTS"),
    "timeout": Parameter(30, 30, "REP_TIMEOUT, in seconds"),
    "items": Parameter(100, 100, "CONCURRENT_ITEMS"),
    "last": Parameter(0, 0, "1: the scheduler returns all silent sites first"),
}
PAGE_SECONDS = 0.1
PRIORITY_QUEUES = {
    "plain": "scrapy.pqueues.ScrapyPriorityQueue",
    "downloader-aware": "scrapy.pqueues.DownloaderAwarePriorityQueue",
}
REDIS = {
    "redis": {"SCHEDULER": "scrapy_rep.frontier.redis.Scheduler"},
    "redis-fifo": {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
    },
}
CASES = (*PRIORITY_QUEUES, "disk", *REDIS)
RATIO = 1.10


class Visitor(Spider):
    """Requests all pages, and stops after the last live page."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        engine = self.crawler.engine
        assert engine is not None
        self.left = self.settings["LIVE_PAGES"]
        for url in urls(self.settings["SILENT"], self.settings["LIVE"], self.settings["PATHS"]):
            engine.crawl(Request(url))
        self.began = time.process_time()
        no_more: tuple[Request, ...] = ()
        for request in no_more:
            yield request

    def parse(self, _: Any) -> None:
        self.left -= 1
        if not self.left:
            self.stopped_at = time.monotonic()
            self.cpu = time.process_time() - self.began
            raise CloseSpider("complete")


class Reader(Spider):
    """Reads all requests of the scheduler, and does nothing else."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        engine: Any = self.crawler.engine
        scheduler = engine._slot.scheduler
        for url in urls(self.settings["SILENT"], self.settings["LIVE"], self.settings["PATHS"]):
            scheduler.enqueue_request(Request(url))
        began, self.reads = time.process_time(), 0
        while scheduler.next_request() is not None:
            self.reads += 1
        self.cpu = time.process_time() - began
        no_more: tuple[Request, ...] = ()
        for request in no_more:
            yield request


def read(
    case: str, silent: list[str], live: list[str], order: dict[str, int], settings: dict[str, Any]
) -> float:
    """Read all requests in this process, without this package. Return the CPU time of a read."""
    spider = _crawled(Reader, case, silent, live, order, settings)
    return float(spider.cpu / spider.reads)


def urls(silent: list[str], live: list[str], order: Mapping[str, int]) -> list[str]:
    """Return all URLs in the order in which the scheduler gets them."""
    pages = range(order["pages"])
    if order["last"]:  # the schedulers return the latest request first
        return [f"{root}/{page}" for roots in (live, silent) for page in pages for root in roots]
    return [f"{root}/{page}" for page in pages for root in (*silent, *live)]


def crawl(
    case: str, silent: list[str], live: list[str], order: dict[str, int], settings: dict[str, Any]
) -> dict[str, float]:
    """Crawl in this process. Return its figures."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    settings["ADDONS"] = {"scrapy_rep.Addon": 500}
    spider = _crawled(Visitor, case, silent, live, order, settings)
    ended = time.monotonic()
    stats = spider.crawler.stats
    assert stats.get_value("finish_reason") == "complete"
    name = "scheduler/dequeued/redis" if case in REDIS else "scheduler/dequeued"
    return {
        "cpu": spider.cpu,
        "peak": peak(),
        "stop": ended - spider.stopped_at,
        "reads": stats.get_value(name),
    }


def _crawled(
    spider: type[Spider],
    case: str,
    silent: list[str],
    live: list[str],
    order: dict[str, int],
    settings: dict[str, Any],
) -> Any:
    """Run a crawl to its end. Return its spider."""
    if case in PRIORITY_QUEUES:
        settings["SCHEDULER_PRIORITY_QUEUE"] = PRIORITY_QUEUES[case]
    process = AsyncCrawlerProcess(
        {
            "LOG_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "SILENT": silent,
            "LIVE": live,
            "PATHS": order,
            "LIVE_PAGES": len(live) * order["pages"],
            **settings,
        }
    )
    crawler = process.create_crawler(spider)
    process.crawl(crawler)
    process.start()
    return crawler.spider


def run(options: Options) -> Result:
    """Return the figures of each case."""
    web = Web()
    page = Page(delay=PAGE_SECONDS)
    silent = [
        web.site(silence, host=f"127.0.{2 + number // 250}.{1 + number % 250}")
        for number in range(options.number("silent"))
    ]
    live = [
        web.site(ROBOTS, {"*": page}, host=f"127.1.0.{number + 1}")
        for number in range(options.number("live"))
    ]
    named = [name.strip() for name in options.text("cases").split(";") if name.strip()]
    rows = [row for case in named or CASES for row in _rows(options, case, silent, live)]
    web.close()
    return Result(rows)


def _rows(options: Options, case: str, silent: list[Site], live: list[Site]) -> list[Row]:
    alone, first = _measured(options, case, [], live)
    beside, found = _measured(options, case, silent, live)
    ratio = beside / alone
    waiting = len(silent) * options.number("requests")
    return [
        Row(f"{case}: live sites alone", alone, "s"),
        Row("  beside silent sites", beside, "s"),
        Row("  times as long", ratio, "ratio", RATIO if not options.number("last") else None),
        Row("  CPU of the live sites alone", first["cpu"], "s"),
        Row("  CPU beside silent sites", found["cpu"], "s"),
        Row("  CPU for a silent request", (found["cpu"] - first["cpu"]) / waiting * 1e6, "µs"),
        Row("  CPU for a read without this package", found["read"] * 1e6, "µs"),
        Row("  requests read of silent and live sites", found["reads"], "requests"),
        Row("  peak of memory", found["peak"] / 1024, "MiB"),
        Row(
            "  memory of a silent request",
            (found["peak"] - first["peak"]) * 1024 / waiting,
            "octets",
        ),
        Row("  seconds until the crawl had stopped", found["stop"], "s"),
    ]


def _measured(
    options: Options, case: str, silent: list[Site], live: list[Site]
) -> tuple[float, dict[str, float]]:
    """Return the seconds from the first request to the last live page, and other figures."""
    order = {"pages": options.number("requests"), "last": options.number("last")}
    settings: dict[str, Any] = {
        "REP_CONCURRENT_ROBOTSTXT_REQUESTS": options.number("fetches"),
        "REP_TIMEOUT": options.number("timeout"),
        "CONCURRENT_ITEMS": options.number("items"),
    }
    with tempfile.TemporaryDirectory() as name:
        server = None
        if case == "disk":
            settings["JOBDIR"] = f"{name}/crawl"
        elif case in REDIS:
            from testing.redis_server import RedisServer

            server = RedisServer(Path(name))
            settings |= {
                **REDIS[case],
                "SCHEDULER_PERSIST": True,
                "REDIS_URL": server.url,
            }
        roots = [[site.root for site in sites] for sites in (silent, live)]
        try:
            found = call(crawl, case, *roots, order, settings, timeout=900)
            if silent:
                if server is not None:
                    server.client.flushall()
                settings["JOBDIR"] = f"{name}/read" if case == "disk" else None
                found["read"] = call(read, case, *roots, order, settings, timeout=900)
        finally:
            if server is not None:
                server.kill()
    assert all(len(site.page_paths) == order["pages"] for site in live)
    first = min(received.at for site in (*silent, *live) for received in site.received)
    last = max(received.at for site in live for received in site.received)
    for site in (*silent, *live):
        site.received.clear()
    return last - first, found
