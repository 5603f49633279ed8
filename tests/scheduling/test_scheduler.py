"""Which request the engine gets next, and when the crawl's scheduler is read."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.scheduling.hosts import BlockReason
from scrapy_rep.scheduling.scheduler import MAX_PER_PASS, PAUSE_FACTOR, WaitingScheduler

from .doubles import FakeClock, FakeEngine, make_throttle

SLOW, LIVE = "slow.example", "live.example"


class Fifo:
    """A scheduler whose clock passes as it is read."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        """Seconds that it takes to read one request."""
        self.requests: list[Request] = []
        self.reads = 0

    def __len__(self) -> int:
        return len(self.requests)

    def has_pending_requests(self) -> bool:
        return bool(self.requests)

    def enqueue_request(self, request: Request) -> bool:
        self.requests.append(request)
        return True

    def next_request(self) -> Request | None:
        self.reads += 1
        self.clock.now += self.seconds
        return self.requests.pop(0) if self.requests else None


class Crawl:
    """A scheduler of the package around a scheduler that takes its time."""

    def __init__(self, *, capacity: int = 1, seconds: float = 0.03) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.throttle = make_throttle(self.clock, self.engine, capacity=capacity)
        self.inner = Fifo(self.clock, seconds)
        fake: Any = self.engine
        self.scheduler = WaitingScheduler(
            self.inner,
            self.throttle,
            fake,
            self.clock,
            self._queue_for,
            lambda request, queue: self.throttle.enqueue(request, *queue),
        )

    def _queue_for(self, request: Request) -> tuple[str, str] | None:
        host = request.url.split("/")[2]
        queue = host, f"http://{host}"
        if self.throttle.has_queue(*queue):
            return None if self.throttle.blocks.is_full(*queue) else queue
        return queue if self.throttle.is_throttled(host, request) else None

    def add(self, host: str, count: int) -> None:
        for number in range(count):
            self.scheduler.enqueue_request(Request(f"http://{host}/{number}"))

    def next(self) -> str | None:
        request = self.scheduler.next_request()
        return request.url if request is not None else None


def full(count: int = MAX_PER_PASS + 50) -> Crawl:
    """Return a crawl that has read many requests of a slow site, for which there is no capacity."""
    crawl = Crawl()
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.throttle.blocks.block(LIVE, f"http://{LIVE}", BlockReason.POLICY)
    crawl.add(SLOW, count)
    assert crawl.next() is None
    assert crawl.throttle.queues.queued == 1
    return crawl


def test_a_pause_is_ten_times_as_long_as_the_pass_before_it() -> None:
    began = 1000.0
    crawl = full()
    took = crawl.clock.now - began
    reads = crawl.inner.reads
    assert reads == MAX_PER_PASS
    crawl.clock.advance(PAUSE_FACTOR * took - 0.1)
    assert crawl.next() is None
    assert crawl.inner.reads == reads
    wakes = crawl.engine.wakes
    crawl.clock.advance(0.1)
    assert crawl.engine.wakes == wakes + 1
    assert crawl.next() is None
    assert crawl.inner.reads > reads


@pytest.mark.parametrize("change", ["unblocked", "unreachable"])
def test_a_pause_ends_when_requests_of_the_scheduler_no_longer_have_to_wait(change: str) -> None:
    began = 1000.0
    crawl = full(MAX_PER_PASS)
    took = crawl.clock.now - began
    host = LIVE if change == "unblocked" else SLOW
    if change == "unblocked":
        # One request was read before its site's robots.txt was there.
        crawl.inner.requests.insert(0, Request(f"http://{LIVE}/0"))
        crawl.throttle.blocks.unblock(LIVE, f"http://{LIVE}", BlockReason.POLICY)
    else:
        crawl.throttle.blocks.block_for(SLOW, f"http://{SLOW}", 600, BlockReason.UNREACHABLE)
    assert crawl.next() is None, "passes take half of the time at most"
    crawl.clock.advance(took)
    assert crawl.engine.wakes
    found = crawl.next()
    assert found is not None
    assert found.startswith(f"http://{host}/")


def test_a_pause_ends_when_there_is_capacity() -> None:
    crawl = full()
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    reads = crawl.inner.reads
    assert crawl.next() == f"http://{SLOW}/0"
    crawl.next()
    assert crawl.inner.reads > reads


def test_a_new_request_ends_a_pause_soon() -> None:
    crawl = full()
    crawl.inner.requests.clear()
    crawl.scheduler.enqueue_request(Request("http://new.example/"))
    crawl.clock.advance(0.02)
    assert crawl.next() == "http://new.example/"


def test_no_timer_outlives_the_scheduler() -> None:
    crawl = full()
    assert crawl.clock.pending
    count = len(crawl.scheduler)
    crawl.scheduler.close("finished")
    assert crawl.clock.pending == []
    assert len(crawl.inner) == count == MAX_PER_PASS + 50


def test_requests_of_equal_priority_alternate() -> None:
    crawl = Crawl(capacity=10, seconds=0)
    crawl.engine.limits = (100, 0)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, 3)
    assert crawl.next() is None
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(LIVE, 3)
    found = [crawl.next() for _ in range(7)]
    assert [url and url.split("/")[2] for url in found] == [SLOW, LIVE] * 3 + [None]
