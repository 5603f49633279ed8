"""Two workers of one crawl, on a fake clock each, and a real Redis server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from redis import RedisError

from scrapy_rep.clock import Clock
from scrapy_rep.policies.gate import Place

pytest.importorskip("scrapy_redis")

from scrapy_rep.frontier import redis_queue
from scrapy_rep.frontier.redis_queue import RedisQueue
from scrapy_rep.stores.base import LEASE
from testing.redis_server import RedisServer

from .doubles import FakeCrawl

A, B = "http://a.example", "http://b.example"
HOUR = 3600

Start = Callable[..., FakeCrawl]


@pytest.fixture
def worker(redis_server: RedisServer) -> Iterator[Start]:
    """Starts workers of one crawl, each with other settings."""
    clients = []

    def start(settings: dict[str, Any] | None = None) -> FakeCrawl:
        client = redis_server.client
        clients.append(client)

        def from_crawler(crawler: Any, *_: Any, **__: Any) -> Any:
            spider: Any = SimpleNamespace(name="spider", crawler=crawler)
            return RedisQueue(client, spider, "%(spider)s:requests")

        return FakeCrawl(settings, queue=SimpleNamespace(from_crawler=from_crawler))

    yield start
    for client in clients:
        client.close()


def set_delay(crawl: FakeCrawl, seconds: float) -> None:
    crawl.frontier.set_delay("a.example", A, seconds)


async def test_a_back_off_holds_for_all_workers(worker: Start) -> None:
    one, other = worker(), worker()
    one.push(f"{A}/1", f"{A}/2", f"{B}/1")
    for crawl in (one, other):
        crawl.set_ready(A, B)
    request = one.take()
    assert request.url == f"{A}/1"
    one.frontier.note_answer(one.frontier.in_progress[request], 429, 60)
    one.end(request)
    await Clock().sleep(0)
    assert other.pop() is None
    assert one.pop_all() == [f"{B}/1"]
    assert len(other.queue) == 1


async def test_a_delay_holds_for_a_request_that_comes_after_the_last_one(worker: Start) -> None:
    one, other = worker(), worker()
    for crawl in (one, other):
        crawl.set_ready(A)
        set_delay(crawl, HOUR)
    one.push(f"{A}/1")
    request = one.take()
    one.push(f"{A}/2")
    assert one.pop() is other.pop() is None
    one.end(request)
    other.push(f"{A}/3")
    assert one.pop() is other.pop() is None
    assert len(one.queue) == 2


async def test_a_request_that_was_not_sent_begins_no_delay(worker: Start) -> None:
    crawl = worker()
    crawl.set_ready(A)
    set_delay(crawl, HOUR)
    crawl.push(f"{A}/1", f"{A}/2")
    crawl.end(crawl.take(), sent=False)
    crawl.end(crawl.take(), sent=False)  # the last one
    crawl.push(f"{A}/3")
    assert crawl.pop_url() == f"{A}/3"


async def test_a_higher_priority_comes_first_and_then_the_older_request(worker: Start) -> None:
    crawl = worker()
    crawl.set_ready(A)
    crawl.push(f"{A}/z", f"{A}/z", f"{A}/a")
    crawl.push(f"{A}/first", priority=1)
    crawl.push(f"{A}/last", priority=-1)
    paths = [url.removeprefix(A) for url in crawl.pop_all()]
    assert paths == ["/first", "/z", "/z", "/a", "/last"]


async def test_the_next_request_of_a_known_site_comes_before_a_new_site(worker: Start) -> None:
    crawl = worker({"CONCURRENT_REQUESTS": 1})
    crawl.set_ready(A)
    crawl.push(f"{B}/1")
    crawl.push(*(f"{A}/{number}" for number in range(20)))
    for number in range(20):
        request = crawl.take()
        assert request.url == f"{A}/{number}"
        crawl.end(request)
        if number == 15:
            assert crawl.policies.fetched == []
    assert crawl.policies.fetched == [B]  # after some pages it is its turn


async def test_another_worker_may_add_another_origin_of_a_leased_host(worker: Start) -> None:
    one, other = worker(), worker()
    one.push(f"{A}/1")
    assert one.pop() is None  # a fetch has begun
    secure = A.replace("http", "https")
    one.set_ready(secure)
    other.push(f"{secure}/1")
    assert one.pop() is other.pop() is None
    one.clock.advance(LEASE / 3)
    assert one.pop_url() == f"{secure}/1"


async def test_a_host_may_have_hundreds_of_download_slots(worker: Start) -> None:
    crawl = worker()
    crawl.set_ready(A)
    for number in range(400):
        crawl.push(f"{A}/{number}", download_slot=f"slot {number}")
    crawl.end(crawl.take())  # its other queues go back to Redis together
    assert len(crawl.queue) == 399
    assert crawl.take() is not None


async def test_requests_that_will_be_dropped(worker: Start) -> None:
    crawl = worker()
    crawl.set(A, Place.DROPS)
    crawl.push(f"{A}/1", f"{A}/2")
    for _ in range(2):
        crawl.end(crawl.take())
    assert crawl.pop() is None
    assert len(crawl.queue) == 0
    assert crawl.places() == {}
    other = worker()
    other.set_ready(A)
    other.push(f"{A}/3")
    assert other.pop_url() == f"{A}/3"


async def test_a_lease_ends_with_its_worker(worker: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_queue, "LEASE", 0.001)
    dead, other = worker(), worker()
    dead.push(f"{A}/1", f"{A}/2")
    assert dead.pop() is None
    other.set_ready(A)
    set_delay(other, HOUR)
    await Clock().sleep(0.02)
    assert other.pop_url() == f"{A}/1"
    dead.set_ready(A)  # it was only stopped
    assert dead.places() == {A: Place.READY}
    assert dead.pop() is None
    assert dead.places() == {}
    assert len(dead.queue) == 1


async def test_the_lease_of_a_host_with_a_request_in_progress_includes_its_delay(
    worker: Start, redis_server: RedisServer
) -> None:
    """Its worker may die at any time."""
    crawl = worker()
    crawl.set_ready(A)
    set_delay(crawl, HOUR)
    crawl.push(f"{A}/1")
    request = crawl.take()
    with redis_server.client as client:
        for _ in range(2):
            began = client.time()[0]
            assert client.zscore("{spider:requests}:hosts", "a.example") >= (began + HOUR) * 1000
            crawl.clock.advance(LEASE / 3)
    crawl.end(request)


async def test_leases_are_renewed(worker: Start, redis_server: RedisServer) -> None:
    one, other = worker(), worker()
    one.push(f"{A}/1", f"{B}/1")
    assert one.pop() is None
    with redis_server.client as client:
        before = client.zscore("{spider:requests}:hosts", "a.example")
        client.zincrby("{spider:requests}:hosts", -5000, "a.example")  # as if 5 s had passed
        client.hset("{spider:requests}:leases", "b.example", "another worker")
        one.clock.advance(LEASE / 3)
        after = client.zscore("{spider:requests}:hosts", "a.example")
    assert after >= before
    assert one.places() == {A: Place.FETCHING}
    assert other.pop() is None


async def test_hosts_that_are_not_in_use_are_returned(worker: Start) -> None:
    one, other = worker(), worker()
    other.set_ready(A)
    one.set_ready(B)
    one.push(f"{A}/1", f"{B}/1", f"{B}/2")
    assert one.pop_url() == f"{B}/1"
    assert one.pop_url() == f"{B}/2"
    assert one.policies.fetched == [A]
    one.set_ready(A)
    assert other.pop() is None
    one.clock.advance(LEASE / 3)
    assert other.pop_url() == f"{A}/1"


async def test_a_crawl_that_ends_returns_its_hosts(worker: Start) -> None:
    one, other = worker(), worker()
    one.push(f"{A}/1", f"{A}/2")
    one.set_ready(A)
    set_delay(one, HOUR)
    request = one.take()
    one.push(f"{B}/1")
    assert one.pop() is None
    other.set_ready(A, B)
    assert other.pop() is None
    queue: Any = one.queue
    queue.close()
    assert not one.frontier.queues
    assert other.pop_url() == f"{B}/1"
    assert other.pop() is None  # a request to A is in progress
    one.end(request)
    assert one.clock.pending == []


async def test_a_host_is_reserved_for_a_request_that_comes_from_no_queue(worker: Start) -> None:
    one, other = worker(), worker()
    queue: Any = one.queue
    assert await queue.reserve_host("a.example", LEASE) == 0
    other.push(f"{A}/1")
    other.set_ready(A)
    assert other.pop() is None
    left = await other.queue.reserve_host("a.example", LEASE)  # type: ignore[attr-defined]
    assert 0 < left <= LEASE
    await queue.release_host("a.example", 0)
    assert other.pop_url() == f"{A}/1"


async def test_a_server_that_fails_leaves_leases_to_end_by_themselves(
    worker: Start, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = worker()
    crawl.set_ready(A)
    set_delay(crawl, HOUR)
    crawl.push(f"{A}/1", f"{B}/1")
    request = crawl.take()
    queue: Any = crawl.queue
    queue._script = Mock(side_effect=RedisError)
    crawl.end(request)
    crawl.clock.advance(LEASE / 3)
    assert caplog.text.count("The queue in Redis cannot be reached") == 2
    with pytest.raises(RedisError):
        crawl.push(f"{A}/2")
