"""Two workers that share hosts, on a fake clock each, and a real Redis server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.frontier.leased import LONG_WAIT, NO_HOST, LeasedQueues, PlainQueue
from scrapy_rep.frontier.queued import find_frontier
from scrapy_rep.frontier.shared_queue import Answer, Push, SharedQueue, Sizes, Wanted
from scrapy_rep.policies.gate import Place, Wait
from testing.redis_server import RedisServer

from .doubles import FakeCrawl
from .test_shared_queue import LossyClient

A, B = "http://a.example", "http://b.example"
HOST = "a.example"
HOUR = 3600


class Worker(FakeCrawl):
    """A worker. The bodies of its requests are their URLs."""

    def __init__(self, client: LossyClient, settings: dict[str, Any] | None = None) -> None:
        self.shared = SharedQueue(client, "", "spider:requests")

        def from_crawler(crawler: Any, *_: Any, **__: Any) -> LeasedQueues:
            frontier = find_frontier(crawler)
            assert frontier is not None
            return LeasedQueues(frontier, self.shared)

        super().__init__(settings, queue=SimpleNamespace(from_crawler=from_crawler))
        self.leased: Any = self.queue

    def push(self, *urls: str, priority: int = 0, **_: Any) -> None:
        for url in urls:
            address = self.policies.address(Request(url))
            is_new = self.policies.gate(address, 0).place is Place.UNKNOWN
            self.shared.push(Push(b"", address.host, is_new, priority, url.encode()))
            self.leased.note_push(address.host)

    async def lease(self, *urls: str) -> None:
        """Push requests and lease some of them, which takes two calls."""
        self.push(*urls)
        await self.sync()
        await self.sync()

    async def sync(self, *, closing: bool = False) -> Answer:
        for request in [each for each in self.leased.started if each not in self.engine.active]:
            self.shared.acknowledge(self.leased.started.pop(request))
        answer = await self.shared.call(self.leased.settle(closing=closing))
        for host, requests in answer.leased.items():
            if host:
                self.leased.note_turn(host, len(requests))
            for name, body in requests:
                self.leased.add(name, Request(body.decode()))
        return answer


@pytest.fixture
def clients(redis_server: RedisServer) -> Iterator[Callable[[], LossyClient]]:
    made: list[LossyClient] = []

    def client() -> LossyClient:
        made.append(LossyClient(redis_server))
        return made[-1]

    yield client
    for each in made:
        each.client.close()


@pytest.fixture
def worker(clients: Callable[[], LossyClient]) -> Callable[..., Any]:
    """Starts workers of one crawl, which know that some origins are ready."""

    async def start(*ready: str, **settings: Any) -> Worker:
        crawl = Worker(clients(), settings)
        crawl.set_ready(*ready)
        await crawl.shared.open()
        await crawl.sync()
        return crawl

    return start


Start = Callable[..., Any]


async def test_a_delay_holds_for_all_workers(worker: Start) -> None:
    one, other = await worker(A), await worker(A)
    for crawl in (one, other):
        crawl.frontier.set_delay(HOST, A, HOUR)
    await one.lease(f"{A}/1", f"{A}/2")
    request = one.take()
    await other.sync()
    assert one.pop() is other.pop() is None
    one.end(request)
    await one.sync()
    answer = await other.sync()
    assert (other.pop(), answer.leased) == (None, {})
    assert HOUR - 60 < answer.seconds <= HOUR


async def test_a_back_off_holds_for_all_workers(worker: Start) -> None:
    one, other = await worker(A, B), await worker(A, B)
    await one.lease(f"{A}/1", f"{A}/2", f"{B}/1")
    assert one.places() == {A: Place.READY, B: Place.READY}
    request = one.take()
    one.refuse(request, 60)
    await one.sync()  # /2 and the host go back, with the rest of the time
    assert one.places() == {B: Place.READY}
    answer = await other.sync()
    assert answer.leased == {}
    assert 50 < answer.seconds <= 60


async def test_a_short_wait_is_spent_by_the_worker(worker: Start) -> None:
    one = await worker(A)
    await one.lease(f"{A}/1", f"{A}/2")
    request = one.take()
    one.refuse(request, LONG_WAIT)
    await one.sync()
    assert one.places() == {A: Place.WAITING}


async def test_the_turn_of_a_host_goes_on_while_it_is_alone(worker: Start) -> None:
    one, other = await worker(A, B), await worker()
    await one.lease(f"{A}/first")
    one.leased.note_turn(HOST, 0)  # Redis has no more
    one.end(one.take())
    await one.sync()
    other.push(*(f"{A}/{number}" for number in range(20)))
    await other.sync(closing=True)
    await one.lease()
    assert one.leased.size == 8
    for _ in range(4):
        one.take()
    await one.sync()
    assert one.leased.size == 8


async def test_the_turn_of_a_host_ends_if_others_wait(worker: Start) -> None:
    one = await worker(CONCURRENT_REQUESTS=1)
    hosts = [f"http://{name}.example" for name in "abcdef"]
    one.set_ready(*hosts)
    for host in hosts:
        one.push(*(f"{host}/{number}" for number in range(9)))
    await one.lease()
    assert one.leased.size == 8
    for request in [one.take() for _ in range(8)]:
        one.end(request)
    await one.sync()
    await one.sync()
    assert one.leased.hosts == {"b.example"}


async def test_one_request_of_a_new_site_is_leased_and_its_robots_txt_fetched(
    worker: Start,
) -> None:
    one = await worker()
    await one.lease(f"{A}/1", f"{A}/2")
    assert one.leased.size == 1
    assert one.pop() is None
    assert one.policies.fetched == [A]
    one.set_ready(A)
    assert one.pop_url() == f"{A}/1"


async def test_new_sites_wait_until_a_fetch_may_begin(worker: Start) -> None:
    one = await worker()
    one.policies.free = 0
    await one.lease(f"{A}/1")
    assert one.leased.size == 0
    one.policies.free = 1
    await one.sync()
    assert one.places() == {A: Place.UNKNOWN}
    assert one.leased.settle() == Wanted(64, 31, 0, {})


async def test_requests_that_will_be_dropped_start(worker: Start) -> None:
    one = await worker()
    one.set(A, Place.DROPS)
    await one.lease(f"{A}/1", f"{A}/2")
    for _ in range(2):
        one.end(one.take(), sent=False)
    await one.sync()
    assert one.shared.sizes == Sizes(workers=1)


async def test_no_more_hosts_are_leased_while_many_are_dropped(worker: Start) -> None:
    one = await worker(CONCURRENT_REQUESTS=1)
    hosts = [f"http://{name}.example" for name in "abcdefghijkl"]
    for host in hosts:
        one.set(host, Place.DROPS)
        one.push(f"{host}/1")
    for _ in range(6):
        await one.sync()
    assert one.leased.size == 8  # of two calls, each for 4 requests


async def test_a_host_that_waits_long_goes_back(worker: Start) -> None:
    one = await worker(A)
    await one.lease(f"{A}/1")
    one.set(A, Place.WAITING, HOUR)
    one.leased.touch(HOST)
    await one.sync()
    assert one.places() == {}
    assert one.shared.sizes.waiting == 1
    answer = await one.sync()
    assert HOUR - 60 < answer.seconds <= HOUR


async def test_a_worker_knows_which_hosts_have_to_wait(worker: Start) -> None:
    one = await worker(A, B)
    await one.lease(f"{A}/1", f"{B}/1")
    assert list(one.leased.waits()) == []
    one.frontier.set_delay(HOST, A, 7)
    requests = [one.take(), one.take()]
    assert list(one.leased.waits()) == [(HOST, 7, 7)]
    for request in requests:
        one.refuse(request, 60)
    assert list(one.leased.waits()) == [(HOST, 60, 7), ("b.example", 60, 0)]


async def test_a_held_host_goes_back(worker: Start) -> None:
    one = await worker(A)
    await one.lease(f"{A}/1", f"{A}/2")
    request = one.take()
    await one.shared.run("hold", HOST, HOUR * 1000, "")
    await one.sync()
    one.end(request)
    await one.sync()
    assert one.places() == {}
    await one.sync()
    assert one.leased.size == 0


async def test_a_crawl_that_closes_returns_all_hosts(worker: Start) -> None:
    one, other = await worker(A), await worker(A)
    await one.lease(f"{A}/1", f"{A}/2", f"{B}/1")
    one.end(one.take())
    await one.sync(closing=True)
    assert one.leased.hosts == set()
    await other.sync()
    await other.sync()
    assert other.pop_all() == [f"{A}/2"]


async def test_a_host_is_reserved_for_a_request_that_comes_from_no_queue(worker: Start) -> None:
    one, other = await worker(A), await worker(A)
    for crawl in (one, other):
        crawl.frontier.set_delay(HOST, A, HOUR)
    request = Request(f"{A}/other")
    assert not one.try_start(request)
    (waiting,) = one.wait(request)
    await one.clock.run(1)
    assert waiting.called
    assert one.try_start(request)
    await other.lease(f"{A}/1")
    assert await other.leased.reserve_host(HOST, 30) > 0
    one.end(request)
    await one.clock.run(1)
    await one.sync()
    assert HOST not in one.leased.hosts
    assert await other.leased.reserve_host(HOST, 30) > HOUR - 60


async def test_nothing_starts_at_a_paced_host_whose_lease_has_ended(worker: Start) -> None:
    one = await worker(A)
    one.frontier.set_delay(HOST, A, 1)
    await one.lease(f"{A}/1")
    one.shared._leased_until = 0
    assert one.pop() is None
    (queue,) = one.frontier.hosts.all_queues()
    assert one.frontier.gate(queue).wait is Wait.RESERVATION
    one.frontier.close()
    await one.clock.run()  # the attempt to reserve the host ends


async def test_requests_that_redis_cannot_store_stay(worker: Start) -> None:
    one = await worker(A)
    one.leased.add(b"", Request(f"{A}/kept"))
    await one.lease(f"{A}/1")
    assert one.leased.take_all() != []
    assert one.pop_url() == f"{A}/kept"
    assert one.leased.started == {}


async def test_urls_without_a_host(worker: Start) -> None:
    one = await worker()
    await one.lease("data:,1", "data:,2")
    assert sorted(one.pop_all()) == ["data:,1", "data:,2"]
    assert one.leased.hosts == set()


async def test_requests_of_a_crawl_without_robots_txt(clients: Any) -> None:
    shared = SharedQueue(clients(), "", "spider:requests")
    await shared.open()
    plain = PlainQueue(shared, 1)
    for number in range(9):
        shared.push(Push(b"", NO_HOST, False, number, b"%d" % number))
    await shared.call(plain.settle())
    assert plain.settle() == Wanted(4, 4, 0, {NO_HOST: 4})
    answer = await shared.call(plain.settle())
    plain.note_turn(HOST, 1)  # of an earlier crawl with the frontier
    plain.note_push(HOST)
    assert shared.is_due
    for name, body in answer.leased[NO_HOST]:
        plain.add(name, Request(f"data:,{body.decode()}"))
    plain.add(b"", Request("data:,kept"))
    assert plain.settle() == plain.settle(closing=True) == Wanted()
    urls = [request.url for request in iter(plain.pop, None)]
    assert urls == ["data:,kept", "data:,8", "data:,7", "data:,6", "data:,5"]
    assert len(plain.started) == 4
    plain.add(b"name", Request("data:,4"))
    assert (plain.take_all(), plain.size) == ([b"name"], 0)
