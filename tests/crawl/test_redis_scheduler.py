"""Workers of one crawl, whose requests are in Redis (:mod:`scrapy_rep.frontier.redis`).

The tests check what the sites received. No worker waits for a time that a test measures.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse, Response

from scrapy_rep.frontier import shared_queue
from testing.faults import answer_when, silence
from testing.redis_server import RedisCluster, RedisServer, wait_until
from testing.web import Page, Web, between, gaps
from tests.stores.worker import TIMEOUT, workers

from .conftest import PRIVATE, Crawl, Visitor, in_turn, needs_connections, numbers

DELAY = 0.4
PACED = f"{PRIVATE}Crawl-delay: {DELAY}\n"
LEASE = 3
"""Seconds that a lease lasts in these tests."""


def settings(redis_url: str) -> dict[str, Any]:
    return {
        "SCHEDULER": "scrapy_rep.frontier.redis.Scheduler",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": redis_url,
    }


def arguments(server: RedisServer, **others: object) -> list[str]:
    """The arguments of a worker, but for its URLs."""
    worker = f"{QueueWorker.__module__}.{QueueWorker.__name__}"
    # Few requests at once, so that each worker gets a part of the queue.
    values = {"SPIDER": worker, "CONCURRENT_REQUESTS": 4, "LEASE": LEASE, **others}
    return [server.url, *(f"{name}={value}" for name, value in values.items())]


def test_killed_and_stopped_workers_are_replaced(web: Web, redis_server: RedisServer) -> None:
    """Both have a page in progress then, which another worker requests again."""
    pages = numbers(5)
    released = threading.Event()
    late = answer_when(released.is_set, Page())
    killed = web.site(PACED, {"/0": in_turn(silence)}, host="127.0.3.1")
    stopped = web.site(PACED, {"/0": in_turn(late)}, host="127.0.3.2")
    free = web.site(PRIVATE, host="127.0.3.3")
    one = arguments(redis_server, CONCURRENT_REQUESTS=1, DOWNLOAD_TIMEOUT=600)
    with workers([*one, *killed.urls(*pages, "/private")]) as (first,):
        wait_until(lambda: killed.page_paths, "the first worker", TIMEOUT)
        urls = stopped.urls(*pages, "/private")
        with workers([*one, *urls]) as (second,):
            wait_until(lambda: stopped.page_paths, "the second worker", TIMEOUT)
            urls = free.urls(*pages, "/private")
            with workers([*one, *urls]) as (third,):
                wait_until(lambda: free.received, "the third worker")
                first.kill()
                second.send_signal(signal.SIGSTOP)
                count, log = result_of(third)
                assert count == 5 + 5 + 5
                assert log.count("does not answer: ") == log.count("WARNING") == 2
            second.send_signal(signal.SIGCONT)
            released.set()
            count, log = result_of(second)
            assert count == 1
            assert "This worker stood still for so long" in log
    assert killed.page_paths == stopped.page_paths == ["/0", *pages]
    assert free.page_paths == pages
    assert min(gaps(killed)) > DELAY - 0.001
    assert min(gaps(stopped)) > DELAY - 0.001


def links(*paths: str) -> Page:
    return Page("".join(f'<a href="{path}">{path}</a>' for path in paths))


def result_of(process: Any) -> tuple[int, str]:
    """Return how many pages a worker has scraped, when it has ended, and its warnings."""
    output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    return int(output), "\n".join(
        line for line in errors.splitlines() if "] WARNING: " in line or "] ERROR: " in line
    )


def pages_of(process: Any) -> int:
    """Return how many pages a worker has scraped, without a warning."""
    count, warnings = result_of(process)
    assert warnings == ""
    return count


def test_two_workers_crawl_like_one(web: Web, redis_server: RedisServer) -> None:
    """Both follow links. Each page is requested once, and each delay is kept."""
    late = Page(PRIVATE, delay=0.2)
    alike = {"/": links("/", "/a", "/b", "/private/a")}
    sites = [web.site(late, alike, host=f"127.0.3.{number}") for number in range(1, 9)]
    numbered = [f"/{number}" for number in range(1, 7)]
    paced = web.site(PACED, {"/": links("/", *numbered, "/private/a")}, host="127.0.3.30")
    other = web.site(PACED, {"/": links("/", "/1", "/2")}, host="127.0.3.30")  # of the same host
    asked = arguments(redis_server, LEASE=30, LONGEST_IDLE=3)
    asked += [site.url("/") for site in (*sites, paced, other)]
    with workers(*[asked] * 2) as running:
        done = [pages_of(process) for process in running]
    assert sum(done) == 8 * 3 + 7 + 3
    assert all(site.page_paths == ["/", "/a", "/b"] for site in sites)
    assert paced.page_paths == ["/", *numbered]
    assert other.page_paths == ["/", "/1", "/2"]
    assert [site.robots_fetches for site in (*sites, paced, other)] == [1] * 10
    received = [*paced.received, *other.received]
    assert min(between(each.at for each in received if each.path != "/robots.txt")) > DELAY - 0.001
    with redis_server.client as client:
        assert client.hlen("{visitor:requests}:1:bodies") == 0


async def test_a_crawl_that_stops_leaves_its_requests_to_the_next_one(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    paced = web.site(PACED)
    late = web.site(Page(PRIVATE, delay=1), host="127.0.0.2")
    paths = numbers(8)
    asked = [Request(url) for site in (paced, late) for url in site.urls(*paths, "/private")]
    for _ in range(3):
        await crawl(asked, {**settings(redis_server.url), "CLOSESPIDER_PAGECOUNT": 1})
        assert len(paced.page_paths) + len(late.page_paths) < 16
        asked = asked[:3]  # which are known
    outcome = await crawl([], settings(redis_server.url))
    assert paced.page_paths == late.page_paths == paths
    assert min(gaps(paced)) > DELAY - 0.001
    assert outcome.stats["finish_reason"] == "finished"
    assert outcome.warnings == []
    assert redis_server.client.hlen("{visitor:requests}:1:bodies") == 0


async def test_sites_that_do_not_answer_do_not_delay_others(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    needs_connections()
    silent = [web.site(Page(PRIVATE, delay=60), host=f"127.0.4.{n}") for n in range(1, 21)]
    live = web.site(PRIVATE)
    asked = [Request(url) for site in silent for url in site.urls("/1", "/2")]
    asked += [Request(url) for url in live.urls("/1", "/2", "/private", "/3")]
    stop = {"CONCURRENT_REQUESTS": 8, "CLOSESPIDER_PAGECOUNT": 3, "CLOSESPIDER_TIMEOUT": 120}
    outcome = await crawl(asked, {**settings(redis_server.url), **stop})
    assert outcome.stats["finish_reason"] == "closespider_pagecount"
    assert live.page_paths == ["/1", "/2", "/3"]
    assert not any(site.page_paths for site in silent)


@pytest.mark.filterwarnings("ignore:.*cluster_error_retry_attempts:DeprecationWarning")
async def test_all_keys_are_in_one_cluster_slot(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    sites = [web.site(PRIVATE, host=f"127.0.3.{number}") for number in range(1, 5)]
    paced = web.site(PACED)
    asked = [Request(url) for site in (*sites, paced) for url in site.urls("/1", "/2", "/private")]
    cluster = RedisCluster(tmp_path)
    try:
        values = {
            **settings(cluster.url),
            "SCHEDULER_PERSIST": False,
        }
        await crawl(asked, values)
        assert cluster.key_names() == set()
    finally:
        cluster.close()
    assert all(site.page_paths == ["/1", "/2"] for site in (*sites, paced))
    assert min(gaps(paced)) > DELAY - 0.001


# Worker processes


class QueueWorker(Visitor):
    """All workers yield the same URLs. The duplicate filter gives each URL to one of them.

    It follows links. At its end it prints how many pages it has fetched. The queue and the
    duplicate filter are those of scrapy-redis.
    """

    pages = 0
    last_page = 0.0

    @classmethod
    def update_settings(cls, values: Any) -> None:
        super().update_settings(values)
        values.setdict(settings(values["REP_STORE"]), "spider")
        vars(shared_queue)["LEASE"] = values.getfloat("LEASE")

    async def start(self) -> AsyncIterator[Request]:
        self.crawler.signals.connect(self.idle, signals.spider_idle)
        self.last_page = time.monotonic()
        async for request in super().start():
            yield request.replace(callback=self.parse, errback=None, dont_filter=False)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        self.pages += 1
        self.last_page = time.monotonic()
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a", callback=self.parse)

    def idle(self) -> None:
        # Another worker may still find pages.
        if time.monotonic() - self.last_page < self.settings.getfloat("LONGEST_IDLE"):
            raise DontCloseSpider

    def closed(self, reason: str) -> None:
        sys.stdout.write(str(self.pages))
