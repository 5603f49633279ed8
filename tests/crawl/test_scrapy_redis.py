"""With scrapy-redis: workers that stop store waiting requests again, unchanged."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request

from scrapy_rep.protocol.paths import origin_of
from scrapy_rep.scheduling import queues, shared_overflow
from scrapy_rep.scheduling.clock import Clock
from scrapy_rep.scheduling.hosts import WaitingRequest
from scrapy_rep.scheduling.shared_overflow import SharedOverflow
from testing.faults import silence
from testing.redis_server import RedisServer
from testing.web import Page, text

from ..scheduling.doubles import FakeClock
from .conftest import Visitor
from .test_scheduling import ALL, delayed, numbers
from .test_waiting import AtOnce

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Web

    from .conftest import Crawl

pytest.importorskip("scrapy_redis")

from scrapy_redis.queue import (  # type: ignore[import-untyped]
    FifoQueue,
    LifoQueue,
    PriorityQueue,
)

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


# Requests beyond REP_MAX_WAITING


QUEUES = pytest.mark.parametrize("kind", [PriorityQueue, FifoQueue, LifoQueue])


def queue_on(server: RedisServer, kind: Any) -> Any:
    return kind(server.client, Visitor([]), "%(spider)s:requests")


def fill(overflow: SharedOverflow, count: int) -> None:
    for number in range(count):
        for name in ("http://a.example", "http://b%20.example"):
            request = Request(f"{name}/{number}", priority=number % 3)
            overflow.push(name, WaitingRequest((-request.priority, number), request))


def left(queue: Any) -> list[str]:
    """The URLs in the queue of the workers, in their order."""
    urls = []
    while (request := queue.pop()) is not None:
        urls.append(request.url)
    return urls


@QUEUES
def test_requests_leave_the_overflow_in_the_order_of_the_queue(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    overflow = SharedOverflow(queue, Clock())
    fill(overflow, 12)
    found = []
    while (entry := overflow.pop("http://a.example")) is not None:
        assert entry.sort_key[0] == -entry.request.priority
        found.append(int(entry.request.url.rpartition("/")[2]))
    assert sorted(found) == list(range(12))
    if kind is PriorityQueue:
        assert [number % 3 for number in found] == [2] * 4 + [1] * 4 + [0] * 4
    else:
        assert found == (list(range(12)) if kind is FifoQueue else list(range(12))[::-1])
    assert left(queue) == []
    assert list(overflow.drain()) == []
    assert len(left(queue)) == 12
    assert redis_server.client.keys("*") == []


@QUEUES
def test_the_next_worker_puts_the_requests_of_a_killed_one_back(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    fill(SharedOverflow(queue, Clock()), 200)  # this worker is killed
    queue.push(Request("http://c.example/"))
    SharedOverflow(queue, Clock())
    urls = left(queue)
    assert len(urls) == len(set(urls)) == 401
    assert redis_server.client.keys("*") == []


# Requests that are moved without being read


def fill_workers_queue(queue: Any) -> None:
    """Push twelve requests for a.example, and two for b.example before the last three of these."""
    for number in range(12):
        if number == (9 if type(queue) is not LifoQueue else 3):
            queue.push(Request("http://b.example/0"))
            queue.push(Request("http://b.example/1"))
        queue.push(Request(f"http://a.example/{number:x}"))


def only_a(stored: Any) -> str | None:
    return "http://a.example" if stored["url"].startswith("http://a.example/") else None


@QUEUES
def test_the_first_requests_move_to_the_overflow_unread(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    fill_workers_queue(queue)
    overflow = SharedOverflow(queue, Clock())
    expected = left(queue)
    fill_workers_queue(queue)
    count = 12 if kind is PriorityQueue else 9  # which sorts requests of equal priority by URL
    assert overflow.move_waiting(only_a) == ["http://a.example"] * count
    assert overflow.move_waiting(only_a) == []
    assert len(queue) == 14 - count
    found = [overflow.pop("http://a.example") for _ in range(count + 1)]
    assert found.pop() is None
    assert [entry.request.url for entry in found if entry is not None] == expected[:count]
    assert len(left(queue)) == 14 - count
    assert list(overflow.drain()) == []
    assert redis_server.client.keys("*") == []


@QUEUES
def test_requests_that_were_moved_are_put_back(redis_server: RedisServer, kind: Any) -> None:
    queue = queue_on(redis_server, kind)
    for number in range(3):
        queue.push(Request(f"http://a.example/{number}", priority=number))
    killed = SharedOverflow(queue, Clock())
    assert killed.move_waiting(only_a) == ["http://a.example"] * 3
    SharedOverflow(queue, Clock())
    assert sorted(left(queue)) == [f"http://a.example/{number}" for number in range(3)]
    assert redis_server.client.keys("*") == []


@QUEUES
def test_requests_that_another_worker_has_taken_are_not_moved(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    for host in ("a", "b", "c", "d"):
        queue.push(Request(f"http://{host}.example/"))
    taken: list[str] = []

    def take_two(stored: Any) -> str | None:
        while len(taken) < 2:
            taken.append(queue.pop().url)
        return str(origin_of(stored["url"]))

    overflow = SharedOverflow(queue, Clock())
    moved = overflow.move_waiting(take_two)
    assert moved == [f"http://{host}.example" for host in ("ba" if kind is LifoQueue else "cd")]
    found = [overflow.pop(name) for name in moved]
    assert [entry.request.url for entry in found if entry is not None] == [
        f"{name}/" for name in moved
    ]
    assert not {*taken} & {f"{name}/" for name in moved}
    assert redis_server.client.keys("*") == [f"{queue.key}:waiting".encode()]


@pytest.mark.parametrize("kind", [PriorityQueue, LifoQueue])
def test_requests_are_not_moved_before_a_new_one_that_comes_first(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    queue.push(Request("http://a.example/0"))

    def push_another(stored: Any) -> str | None:
        queue.push(Request("http://a.example/1", priority=1))
        return only_a(stored)

    assert SharedOverflow(queue, Clock()).move_waiting(push_another) == []
    assert left(queue) == ["http://a.example/1", "http://a.example/0"]


class OtherQueue(FifoQueue):  # type: ignore[misc]
    """Reads requests in a way of its own."""

    def pop(self, timeout: int = 0) -> Any:
        return super().pop(timeout)


@pytest.mark.parametrize("kind", [OtherQueue, FifoQueue])
def test_requests_are_not_moved_where_they_cannot_be_read(
    redis_server: RedisServer, kind: Any
) -> None:
    queue = queue_on(redis_server, kind)
    if kind is FifoQueue:
        redis_server.client.lpush(queue.key, b"no pickle")
    else:
        queue.push(Request("http://a.example/0"))
    assert SharedOverflow(queue, Clock()).move_waiting(only_a) == []
    assert len(queue) == 1


def test_requests_that_may_have_moved_are_not_forgotten(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue = queue_on(redis_server, FifoQueue)
    for number in range(3):
        queue.push(Request(f"http://a.example/{number}"))
    overflow = SharedOverflow(queue, Clock())

    def fail(script: str, *arguments: Any) -> None:
        redis_server.client.eval(script, *arguments)
        raise ConnectionError("the server has moved them, and the answer is lost")

    monkeypatch.setattr(queue.server, "eval", fail)
    assert overflow.move_waiting(only_a) == ["http://a.example"] * 3
    assert "one by one" in caplog.text
    monkeypatch.undo()
    assert overflow.move_waiting(only_a) == []
    found = [overflow.pop("http://a.example") for _ in range(3)]
    urls = [entry.request.url for entry in found if entry is not None]
    assert urls == [f"http://a.example/{number}" for number in range(3)]


@QUEUES
def test_many_requests_are_put_back(
    redis_server: RedisServer, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_overflow, "MAX_PUT_BACK", 5)
    queue = queue_on(redis_server, kind)
    overflow = SharedOverflow(queue, Clock())
    fill(overflow, 12)
    requests = [Request(f"http://c.example/{number}") for number in range(12)]
    requests[7].meta["unreadable"] = lambda: None
    entries = [WaitingRequest((0, number), each) for number, each in enumerate(requests)]
    assert overflow.put_back(entries) == entries[5:10]
    assert list(overflow.drain()) == []
    assert len(left(queue)) == 24 + 7


async def test_requests_that_were_moved_leave_in_their_order(
    web: Web, crawl: Crawl, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "UNREAD_AFTER", 0)
    late = web.site(Page(ALL, delay=1))
    settings = {
        **settings_for(redis_server),
        "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
        "CONCURRENT_REQUESTS": 1,
    }
    asked = [Request(url) for url in late.urls(*numbers(60))]
    outcome = await crawl(asked, settings, spider=AtOnce, pages=60)
    assert late.paths == ["/robots.txt", *numbers(60)]
    assert outcome.stats["scheduler/dequeued/redis"] < 60, "most requests are moved in Redis"
    waited = outcome.stats["robotstxt/wait_seconds/robots_txt"]
    longest = outcome.stats["elapsed_time_seconds"]
    assert 40 < waited <= longest * outcome.stats["robotstxt/wait_count/robots_txt"]


def test_requests_keep_the_time_at_which_they_began_to_wait(redis_server: RedisServer) -> None:
    clock = FakeClock()
    queue = queue_on(redis_server, FifoQueue)
    fill_workers_queue(queue)
    began = clock.monotonic()
    overflow = SharedOverflow(queue, clock)
    count = len(overflow.move_waiting(only_a))
    for seconds in (30, 30.5, 40):
        request = Request(f"http://a.example/{seconds}")
        overflow.push("http://a.example", WaitingRequest((0, 0), request, arrived=began + seconds))
    clock.advance(60)
    found = []
    while (entry := overflow.pop("http://a.example")) is not None:
        found.append(entry.arrived - began)
    assert found == [0] * count + [30, 30, 40]


def test_a_request_of_another_worker_begins_to_wait_when_it_is_read(
    redis_server: RedisServer,
) -> None:
    clock = FakeClock()
    queue = queue_on(redis_server, FifoQueue)
    overflow = SharedOverflow(queue, clock)
    other = SharedOverflow(queue, clock)
    fill(other, 60)
    clock.advance(5)
    entry = overflow.pop("http://a.example")
    assert entry is not None
    assert entry.arrived == clock.monotonic()


def test_requests_wait_in_memory_while_redis_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = RedisServer(tmp_path)
    overflow = SharedOverflow(queue_on(server, FifoQueue), Clock())
    server.kill()
    fill(overflow, 60)
    first = overflow.pop("http://a.example")
    assert first is not None
    assert first.request.url == "http://a.example/2"
    assert len(list(overflow.drain())) == 119
    assert "stay in Redis until" in caplog.text
    assert overflow.pop("http://a.example") is None
    assert "cannot be read again" in caplog.text


async def test_silent_sites_beyond_the_limit_do_not_delay_others(
    web: Web, crawl: Crawl, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "UNREAD_AFTER", 0)
    silent = web.site(silence)
    live = web.site(ALL, host="127.0.0.2")
    asked = [Request(url) for url in live.urls(*numbers(5))]
    asked += [Request(url, priority=1) for url in silent.urls(*numbers(300))]
    settings = {
        **settings_for(redis_server),
        "SCHEDULER_PERSIST": True,
        "REP_MAX_WAITING": 5,
        "REP_TIMEOUT": 60,
        "CLOSESPIDER_TIMEOUT": 120,
    }
    outcome = await crawl(asked, settings, spider=AtOnce, pages=5)
    assert outcome.stats["finish_reason"] == "enough"
    assert live.page_paths == numbers(5)
    assert outcome.stats["scheduler/dequeued/redis"] < 50, "most requests are moved in Redis"
    assert len(queued(redis_server)) == 300
    with redis_server.client as client:
        assert sorted(client.keys("*")) == [b"visitor:dupefilter", b"visitor:requests"]
