"""With scrapy-redis: workers that stop store waiting requests again, unchanged."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request

from testing.web import Page, text

from .test_scheduling import ALL, delayed, numbers

if TYPE_CHECKING:
    from testing.redis_server import RedisServer
    from testing.web import Web

    from .conftest import Crawl

pytest.importorskip("scrapy_redis")

from scrapy_redis.queue import FifoQueue  # type: ignore[import-untyped]

# scrapy-redis hands the spider to stats and imports what Scrapy has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore")


def settings_for(server: RedisServer) -> dict[str, Any]:
    return {
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "REDIS_URL": server.url,
    }


def queued(server: RedisServer) -> list[dict[str, Any]]:
    """What is in the queue of the workers."""
    key = "visitor:requests"
    with server.client as client:
        kind = client.type(key)
        stored: Any = client.zrange(key, 0, -1) if kind == b"zset" else client.lrange(key, 0, -1)
        return [pickle.loads(each) for each in stored]


@pytest.mark.parametrize("queue", ["PriorityQueue", "FifoQueue", "LifoQueue"])
@pytest.mark.parametrize("capacity", [2, 1000])
async def test_waiting_requests_are_stored_again_when_a_worker_stops(
    web: Web, crawl: Crawl, redis_server: RedisServer, queue: str, capacity: int
) -> None:
    paced = web.site(delayed(0.2))
    late = web.site(Page(ALL, delay=30), host="127.0.0.2")
    settings = {
        **settings_for(redis_server),
        "SCHEDULER_QUEUE_CLASS": f"scrapy_redis.queue.{queue}",
        "SCHEDULER_PERSIST": True,
        "REP_MAX_WAITING": capacity,
    }
    asked = [
        Request(url, meta={"mine": 1}) for site in (paced, late) for url in site.urls(*numbers(15))
    ]
    await crawl(asked, {**settings, "CLOSESPIDER_TIMEOUT": 3})
    left = queued(redis_server)
    assert len(left) == 30 - len(paced.page_paths)
    assert len(left) > 15
    assert not any(request["dont_filter"] or request["priority"] for request in left)
    assert all(request["meta"]["mine"] == 1 for request in left)
    assert not any("robotstxt" in request["meta"] for request in left)
    paced.pages["/robots.txt"] = late.pages["/robots.txt"] = text(ALL)
    await crawl(asked[:3], settings)
    assert paced.page_paths == late.page_paths == sorted(numbers(15))
    assert queued(redis_server) == []


async def test_without_persistence_nothing_is_left(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    paced = web.site(delayed(0.2))
    asked = [Request(url) for url in paced.urls(*numbers(30))]
    await crawl(asked, {**settings_for(redis_server), "CLOSESPIDER_TIMEOUT": 2})
    assert len(paced.page_paths) < 30
    with redis_server.client as client:
        assert client.keys("*") == []


class WatchedQueue(FifoQueue):  # type: ignore[misc]
    """Notes how many requests wait elsewhere each time it blocks."""

    waiting: list[int] = []  # noqa: RUF012

    def pop(self, timeout: int = 0) -> Any:
        if timeout and not len(self):
            self.waiting.append(len(self.spider.crawler.engine._slot.scheduler))
        return super().pop(timeout)


async def test_a_queue_that_blocks_is_not_read_while_requests_wait(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    WatchedQueue.waiting.clear()
    site = web.site(delayed(0.1))
    settings = {
        **settings_for(redis_server),
        "SCHEDULER_QUEUE_CLASS": WatchedQueue,
        "SCHEDULER_IDLE_BEFORE_CLOSE": 1,
    }
    await crawl([Request(url) for url in site.urls(*numbers(6))], settings)
    assert site.page_paths == sorted(numbers(6))
    assert WatchedQueue.waiting
    assert not any(WatchedQueue.waiting)
