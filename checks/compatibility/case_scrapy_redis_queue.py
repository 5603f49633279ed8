"""scrapy-redis with the queue class of this package, in a real Redis server."""

from __future__ import annotations

from typing import Any

from scrapy import Request

from testing.web import Page, Web

from . import case_scrapy_redis
from .crawling import crawl
from .standard import RULES, Standard

REQUIREMENTS = case_scrapy_redis.REQUIREMENTS

QUEUE = "scrapy_rep.frontier.redis_queue.RedisQueue"


def prepare(web: Web) -> dict[str, Any]:
    """The settings for a server of its own."""
    return {**case_scrapy_redis.prepare(web), "SCHEDULER_QUEUE_CLASS": QUEUE}


async def two_workers_share_a_queue(web: Web) -> None:
    await case_scrapy_redis.check_sharing(web, QUEUE)


async def requests_that_waited_leave_by_priority_and_age(web: Web) -> None:
    for priorities in ([n * 7 % 16 for n in range(16)], [0] * 16):
        site = web.site(Page(RULES, delay=2))
        asked = [Request(site.url(f"/{n}"), priority=each) for n, each in enumerate(priorities)]
        await crawl(asked, {**prepare(web), "CONCURRENT_REQUESTS": 1})
        wanted = [f"/{n}" for n in sorted(range(16), key=lambda n: -priorities[n])]
        assert site.paths == ["/robots.txt", *wanted], f"received: {site.paths}"


CHECKS = (
    *Standard(prepare=prepare).checks,
    two_workers_share_a_queue,
    requests_that_waited_leave_by_priority_and_age,
)
