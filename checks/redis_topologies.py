"""Crawls on Redis Cluster and Sentinel while servers fail.

Several workers share the store. Meanwhile a primary is killed and started again, one is suspended
for some seconds, a replica takes over, and slots with their keys move to other nodes. Each worker
must get each page, no server may receive a disallowed page, no worker may fetch a robots.txt twice,
and each worker logs one warning at most. ``REDIS_SERVER=path`` selects another server, such as
Valkey.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess

from scrapy_rep import Addon
from scrapy_rep.frontier.clock import sleep
from scrapy_rep.stores import fallback
from scrapy_rep.stores import redis as redis_store
from testing.harness import Duration, Parameter, Result, Row
from testing.processes import call
from testing.redis_server import RedisCluster, RedisServer, RedisWithSentinel
from testing.web import Web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from testing.harness import Options
    from testing.web import Site

DURATION = Duration(180, 90)
PARAMETERS = {
    "seconds": Parameter(60, 30, "how long each crawl takes"),
    "sites": Parameter(600, 200, "sites of each crawl"),
    "workers": Parameter(3, 2, "processes that share the store"),
    "options": Parameter("", "", "options of the URL, such as replicas=true"),
}

PRIVATE = "User-agent: *\nDisallow: /private\n"
MOVED_SLOTS = 100
SUSPENDED_SECONDS = 3.0
RETRY_INTERVAL = 1.0
"""In place of 30 s, so that the store is used again during the crawl."""
SOCKET_TIMEOUT = 1.0
"""In place of 5 s."""
FAILED_AFTER = 1000
"""Milliseconds after which a server that does not answer is replaced."""


def run(options: Options) -> Result:
    """Count the problems of each crawl."""
    rows: list[Row] = []
    details: list[str] = []
    for name, crawl in (("cluster", _on_cluster), ("Sentinel", _with_sentinel)):
        with TemporaryDirectory() as folder:
            found, problems = crawl(Path(folder), options)
        rows += [Row(f"{name}: {each}", *figures) for each, *figures in found]
        details += [f"{name}: {problem}" for problem in problems]
    return Result(rows, details)


def _on_cluster(folder: Path, options: Options) -> tuple[list[Any], list[str]]:
    cluster = RedisCluster(folder, FAILED_AFTER)

    def kill(site: Site) -> None:
        primary = cluster.primary_of(_key(site))
        primary.kill()
        cluster.wait()
        primary.start()
        cluster.wait()

    def suspend(site: Site) -> None:
        _suspend(cluster.primary_of(_key(site)))
        cluster.wait()

    def fail_over(site: Site) -> None:
        cluster.fail_over(_key(site))

    def move(site: Site) -> None:
        cluster.begin_to_move(_key(site))
        time.sleep(0.05)
        cluster.end_move()

    try:
        moves = [move] * (MOVED_SLOTS // 2)
        events = [*moves, fail_over, kill, *moves, suspend, fail_over]
        return _crawl(cluster.url, events, options, cluster.key_names)
    finally:
        cluster.close()


def _with_sentinel(folder: Path, options: Options) -> tuple[list[Any], list[str]]:
    servers = RedisWithSentinel(folder, FAILED_AFTER)

    def kill(_: Site) -> None:
        primary = servers.primary
        primary.kill()
        servers.wait_for_another(primary)
        primary.start()
        servers.wait()

    def suspend(_: Site) -> None:
        _suspend(servers.primary)
        servers.wait()

    def fail_over(_: Site) -> None:
        servers.fail_over()
        servers.wait()

    def key_names() -> set[str]:
        return _key_names(servers.primary)

    try:
        return _crawl(servers.url, [fail_over, kill, suspend, kill], options, key_names)
    finally:
        servers.close()


def _suspend(server: RedisServer) -> None:
    server.suspend()
    time.sleep(SUSPENDED_SECONDS)
    server.resume()


def _crawl(
    url: str,
    events: Sequence[Callable[[Site], None]],
    options: Options,
    key_names: Callable[[], set[str]],
) -> tuple[list[Any], list[str]]:
    """Crawl while the events happen. Returns the rows and the problems."""
    web = Web()
    number, seconds = options.number("workers"), options.number("seconds")
    sites = [
        web.site(PRIVATE, host=f"127.0.3.{each % 250 + 1}")
        for each in range(options.number("sites"))
    ]
    if options.text("options"):
        url += f"?{options.text('options')}"
    try:
        with ThreadPoolExecutor(number) as threads:
            roots = [site.root for site in sites]
            crawls = [
                threads.submit(call, work, url, roots, each, seconds, timeout=seconds * 3 + 60)
                for each in range(number)
            ]
            time.sleep(seconds / 6)  # the processes start
            for each, event in enumerate(events):
                event(sites[each % len(sites)])
            outcomes = [crawl.result() for crawl in crawls]
        names = key_names()
    finally:
        web.close()
    problems = [problem for outcome in outcomes for problem in outcome["problems"]]
    for site in sites:
        expected = sorted(f"/{each}/{page}" for each in range(number) for page in "ab")
        if site.page_paths != expected:
            problems.append(f"{site.root} received {site.page_paths}")
        if site.robots_fetches > number:
            problems.append(f"{site.root}: {site.robots_fetches} requests for its robots.txt")
    warnings = sum(len(outcome["warnings"]) for outcome in outcomes)
    more = sum(site.robots_fetches - 1 for site in sites)
    rows = [
        ("sites", len(sites), "sites"),
        ("events", len(events), "events"),
        ("robots.txt fetched by another worker, too", more, "requests"),
        ("calls to the store that failed", sum(each["failed"] for each in outcomes), "calls"),
        ("entries at the end", sum(_key(site) in names for site in sites), "entries"),
        ("warnings", warnings, "warnings", number),
        ("problems", len(problems), "problems", 0),
    ]
    warned = {warning for outcome in outcomes for warning in outcome["warnings"]}
    return rows, [*problems, *sorted(warned)]


def work(store: str, roots: list[str], number: int, seconds: float) -> dict[str, Any]:
    """Crawl in this process: two pages of each site, and one that is disallowed."""
    fallback.RETRY_INTERVAL = RETRY_INTERVAL
    redis_store.SOCKET_TIMEOUT = SOCKET_TIMEOUT
    log = _Log()
    logging.getLogger().addHandler(log)
    failed = 0
    mark_failed = fallback.FallbackStore.mark_failed

    def count(self: Any, error: Any) -> None:
        nonlocal failed
        failed += 1
        mark_failed(self, error)

    fallback.FallbackStore.mark_failed = count  # type: ignore[method-assign]
    process = CrawlerProcess(
        {
            "ADDONS": {Addon: 500},
            "CONCURRENT_REQUESTS": 16,
            "DOWNLOAD_DELAY": 0,
            "LOG_ENABLED": False,
            "REP_STORE": store,
            "TELNETCONSOLE_ENABLED": False,
            "USER_AGENT": "testbot/1.0 (+https://example.com/testbot)",
        }
    )
    crawler = process.create_crawler(_Worker)
    process.crawl(crawler, roots=roots, number=number, seconds=seconds)
    process.start()
    spider = crawler.spider
    assert isinstance(spider, _Worker)
    missing = 2 * len(roots) - spider.received
    problems = [*log.errors, *([f"{missing} pages are missing"] * bool(missing))]
    return {"problems": problems, "warnings": log.warnings, "failed": failed}


class _Worker(Spider):
    name = "worker"
    received = 0
    roots: list[str]
    number: int
    seconds: float

    async def start(self) -> AsyncIterator[Any]:
        for root in self.roots:
            for path in (f"/{self.number}/a", f"/private/{self.number}", f"/{self.number}/b"):
                yield Request(root + path)
            await sleep(self.seconds / len(self.roots))

    def parse(self, _: Any) -> None:
        self.received += 1


class _Log(logging.Handler):
    """The warnings of the package, and all errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warnings: list[str] = []
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.errors.append(record.getMessage())
        elif record.name.startswith("scrapy_rep"):
            self.warnings.append(record.getMessage())


def _key(site: Site) -> str:
    return f"rep:5:{{{site.root}}}"


def _key_names(server: RedisServer) -> set[str]:
    with server.client as client:
        return {key.decode() for key in client.keys("*")}
