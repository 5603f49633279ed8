"""When requests start: the pace of a host, blocked queues, capacity, and the end of a crawl."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_rep.scheduling.hosts import EXEMPT, BlockReason, Limit
from scrapy_rep.scheduling.overflow import MemoryOverflow

from .doubles import FakeClock, FakeEngine, begin, make_throttle

HOST = "example.com"
ORIGIN = "http://example.com"
OTHER = "https://example.com"


class Crawl:
    """A throttle, and an engine that takes each request that may start."""

    def __init__(self, *, capacity: int = 100, max_hosts: int = 100, took: float = 0.0) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.throttle = make_throttle(
            self.clock, self.engine, capacity=capacity, max_hosts=max_hosts
        )
        self.took = took
        """Seconds that a request takes."""
        self.began = self.clock.now
        self.starts: list[tuple[float, str]] = []

    def enqueue(self, *paths: str, key: str = ORIGIN, host: str = HOST) -> list[Request]:
        requests = [Request(f"{ORIGIN}{path}") for path in paths]
        for request in requests:
            assert self.throttle.enqueue(request, host, key)
        return requests

    def run(self, seconds: float) -> None:
        """Let time pass. The engine asks after each call, as after a wake."""
        until = self.clock.now + seconds
        self._take()
        while self.clock._step(until):
            self._take()
        self.clock.now = until

    def _take(self) -> None:
        while self.throttle.peek() is not None:
            request = self.throttle.pop()
            assert request is not None
            self.engine.in_downloader.add(request)
            self.starts.append((self.clock.now - self.began, request.url.removeprefix(ORIGIN)))
            assert self.throttle.try_start(request, HOST)
            self.clock.call_later(self.took, self._end, request)

    def _end(self, request: Request) -> None:
        self.engine.in_downloader.discard(request)
        self.throttle.finish(request, sent=True)

    @property
    def times(self) -> list[float]:
        return [round(at, 6) for at, _ in self.starts]


def request(path: str = "/", **arguments: Any) -> Request:
    return Request(ORIGIN + path, **arguments)


# The pace


@pytest.mark.parametrize(
    ("delays", "limits", "took", "times"),
    [
        pytest.param({ORIGIN: 3}, (8, 0), 0, [0, 3, 6, 9], id="delay"),
        pytest.param({ORIGIN: 3}, (8, 0), 2, [0, 5, 10, 15], id="it begins when a request ended"),
        pytest.param({ORIGIN: 3}, (8, 2.5), 0, [0, 3, 6, 9], id="slot quicker"),
        pytest.param({ORIGIN: 1}, (8, 3), 0, [0, 3, 6, 9], id="slot slower"),
        pytest.param({ORIGIN: 1, OTHER: 4}, (8, 0), 0, [0, 4, 8, 12], id="slower origin"),
        pytest.param({ORIGIN: 300}, (1, 0), 10, [0, 310, 620, 930], id="minutes"),
        pytest.param({ORIGIN: 0.01}, (8, 0), 0, [0, 0.01, 0.02, 0.03], id="short"),
        pytest.param({}, (8, 0), 5, [0, 0, 0, 0], id="no delay"),
        pytest.param({}, (2, 0), 5, [0, 0, 5, 5], id="no delay, two at once"),
        pytest.param({}, (8, 3), 0, [0, 0, 0, 0], id="no delay, slot with one"),
    ],
)
def test_the_pace_of_a_host(
    delays: dict[str, float], limits: tuple[int, float], took: float, times: list[float]
) -> None:
    crawl = Crawl(took=took)
    crawl.engine.limits = limits
    for key, seconds in delays.items():
        crawl.throttle.set_delay(HOST, key, seconds, None)
    crawl.enqueue("/0", "/1", "/2", "/3")
    crawl.run(2000)
    assert crawl.times == times
    assert [path for _, path in crawl.starts] == ["/0", "/1", "/2", "/3"]
    assert len(crawl.throttle.queues) == len(crawl.throttle.in_progress) == 0
    assert crawl.clock.pending == []
    assert not crawl.engine.counted


def test_the_last_request_before_the_delay_counts() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 10, crawl.clock.now - 4)
    crawl.enqueue("/0")
    crawl.run(20)
    assert crawl.times == [6]


def test_a_shorter_delay_holds_at_once() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 100, crawl.clock.now)
    crawl.enqueue("/0", "/1")
    crawl.run(5)
    crawl.throttle.set_delay(HOST, ORIGIN, 10, None)
    assert crawl.clock.pending == [5]
    crawl.run(5)
    crawl.throttle.set_delay(HOST, ORIGIN, 0, None)
    crawl.run(0)
    assert crawl.times == [10, 10]
    assert HOST not in crawl.throttle.hosts, "there is nothing left to keep"


def test_a_request_that_was_not_sent_causes_no_delay() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 10, None)
    crawl.enqueue("/0", "/1")
    first = crawl.throttle.pop()
    assert first is not None
    assert crawl.throttle.peek() is None
    crawl.throttle.finish(first, sent=False)
    assert crawl.throttle.peek() is not None


@pytest.mark.parametrize(
    ("meta", "is_checked", "sent"),
    [
        pytest.param({}, True, False, id="dropped before its slot"),
        pytest.param({"download_slot": HOST}, True, True, id="sent"),
        pytest.param({"download_slot": HOST}, False, False, id="answered before it was checked"),
        pytest.param(
            {"download_slot": HOST, "_splash_processed": True}, True, False, id="replaced"
        ),
    ],
)
def test_a_request_that_ended_without_a_signal(
    meta: dict[str, Any], is_checked: bool, sent: bool
) -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 10, None)
    one = request("/0", meta=meta)
    crawl.throttle.enqueue(one, HOST, ORIGIN)
    crawl.enqueue("/1")
    assert crawl.throttle.pop() is one
    if is_checked:
        assert crawl.throttle.try_start(one, HOST)
    assert crawl.throttle.peek() is None
    crawl.throttle.recheck()  # the downloader of this test has never had it
    assert (crawl.throttle.peek() is None) == sent
    assert not crawl.throttle.is_in_progress(one)


def test_a_slot_that_becomes_slower_is_noticed() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 1, crawl.clock.now - 2)
    crawl.enqueue("/0")
    assert crawl.throttle.peek() is not None
    crawl.engine.limits = (8, 5)  # as AutoThrottle does
    assert crawl.throttle.peek() is None
    assert crawl.clock.pending == [], "a query starts no timer"
    crawl.throttle.recheck()
    assert crawl.clock.pending == [3]
    crawl.run(10)
    assert crawl.times == [3]


def test_queries_change_nothing() -> None:
    crawl = Crawl()
    throttle = crawl.throttle
    throttle.set_delay(HOST, ORIGIN, 10, crawl.clock.now)
    before = crawl.clock.pending, crawl.engine.wakes, list(throttle.hosts)
    one = request()
    for _ in range(3):
        assert throttle.is_throttled(HOST, one)
        assert throttle.peek() is None
        assert throttle.delay(HOST) == 10
        assert throttle.delay("other.example") == 0
        assert not throttle.is_throttled("other.example", one)
        assert not throttle.has_queue(HOST, ORIGIN)
        assert not throttle.has_waiting(HOST, ORIGIN)
        assert not throttle.is_in_use(HOST, ORIGIN)
        assert not throttle.is_in_use("other.example", ORIGIN)
        assert not throttle.blocks.is_full(HOST, ORIGIN)
        assert not throttle.is_waiting(one)
        assert throttle.blocks.first_waiting(HOST, ORIGIN) is None
        assert throttle.blocks.limit(one, HOST, ORIGIN, 5, 10) is None
    assert (crawl.clock.pending, crawl.engine.wakes, list(throttle.hosts)) == before


def test_requests_of_hosts_alternate() -> None:
    crawl = Crawl()
    requests = [
        (host, Request(f"http://{host}/{number}"))
        for number in range(2)
        for host in ("a.example", "b.example", "c.example")
    ]
    for host, each in requests[::2] + requests[1::2]:
        crawl.throttle.enqueue(each, host, f"http://{host}")
    order = []
    while crawl.throttle.peek() is not None:
        popped = crawl.throttle.pop()
        assert popped is not None
        order.append(popped.url[7])
    assert order == ["a", "c", "b"] * 2


def test_the_delays_of_idle_hosts_are_bounded() -> None:
    crawl = Crawl(max_hosts=3)
    for number in range(10):
        crawl.throttle.set_delay(f"{number}.example", f"http://{number}.example", 5, None)
    assert list(crawl.throttle.hosts) == ["7.example", "8.example", "9.example"]
    crawl.enqueue("/0", host="7.example", key="http://7.example")
    for number in range(10, 13):
        crawl.throttle.set_delay(f"{number}.example", f"http://{number}.example", 5, None)
    crawl.throttle.prune()
    assert "7.example" in crawl.throttle.hosts, "a request waits for it"


# Requests that wait inside of the downloader


async def test_a_caller_waits_for_the_delay() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 10, crawl.clock.now)
    one = request()
    assert not crawl.throttle.try_start(one, HOST)
    waiting = begin(crawl.throttle.wait(one, HOST, ORIGIN))
    results: list[bool] = []
    waiting.addCallback(results.append)
    await crawl.clock.run(9)
    assert results == []
    assert crawl.throttle.is_waiting(one)
    assert crawl.engine.excluded == crawl.engine.counted == {one}
    await crawl.clock.run(1)
    assert results == [True]
    assert crawl.throttle.is_in_progress(one)
    assert crawl.throttle.is_in_use(HOST, ORIGIN), "it is not checked"
    assert crawl.throttle.try_start(one, HOST)
    assert not crawl.throttle.is_in_use(HOST, ORIGIN)
    assert crawl.engine.excluded == crawl.engine.counted == set()


async def test_a_wait_that_is_canceled_leaves_nothing() -> None:
    crawl = Crawl()
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.POLICY)
    one = request()
    waiting = begin(crawl.throttle.wait(one, HOST, ORIGIN))
    waiting.addErrback(lambda _: None)
    await crawl.clock.run()
    assert len(crawl.throttle.queues) == 1
    waiting.cancel()
    await crawl.clock.run()
    assert len(crawl.throttle.queues) == 0
    assert crawl.engine.excluded == set()
    crawl.throttle.blocks.unblock(HOST, ORIGIN, BlockReason.POLICY)
    assert not crawl.throttle.hosts


async def test_a_request_that_waits_again_keeps_its_order() -> None:
    crawl = Crawl()
    first, second = crawl.enqueue("/0", "/1")
    popped = crawl.throttle.pop()
    assert popped is first
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.POLICY)
    waiting = begin(crawl.throttle.wait(first, HOST, ORIGIN))
    waiting.addErrback(lambda _: None)
    await crawl.clock.run()
    assert crawl.throttle.blocks.first_waiting(HOST, ORIGIN) is first
    waiting.cancel()
    await crawl.clock.run()
    assert crawl.throttle.blocks.first_waiting(HOST, ORIGIN) is second


def test_the_first_delay_holds_for_requests_that_the_downloader_has() -> None:
    crawl = Crawl()
    sent, queued = request("/sent"), request("/queued")
    elsewhere = Request("http://other.example/")
    download: Deferred[Any] = Deferred()
    puts: list[str] = []
    crawl.engine.in_downloader = {sent, elsewhere}
    crawl.engine.queued = [(queued, download, lambda: puts.append(queued.url))]
    crawl.throttle.set_delay(HOST, ORIGIN, 10, None)
    assert crawl.throttle.is_in_progress(sent)
    assert not crawl.throttle.is_in_progress(elsewhere)
    assert crawl.throttle.is_waiting(queued)
    crawl.run(20)
    assert puts == [], "the other one has not ended"
    crawl.throttle.finish(sent, sent=True)
    crawl.run(9)
    assert puts == []
    crawl.run(1)
    assert puts == [queued.url]
    assert crawl.throttle.is_in_progress(queued)


@pytest.mark.parametrize("end", ["close", "reschedule", "cancel"])
def test_a_queued_download_ends_with_the_crawl(end: str) -> None:
    crawl = Crawl()
    queued = request()
    download: Deferred[Any] = Deferred()
    results: list[Any] = []
    crawl.engine.queued = [(queued, download, lambda: results.append("put back"))]
    crawl.throttle.try_reschedule = lambda _: end == "reschedule"
    crawl.throttle.set_delay(HOST, ORIGIN, 10, crawl.clock.now)
    download.addBoth(results.append)
    if end == "cancel":
        download.cancel()
        crawl.run(10)
    else:
        crawl.throttle.close()
    if end == "reschedule":
        assert results == [queued]
    else:
        expected = {"close": "the spider is closing", "cancel": ""}[end]
        assert [str(failure.value) for failure in results] == [expected]
    crawl.throttle.finish(queued, sent=False)
    assert len(crawl.throttle.queues) == len(crawl.throttle.in_progress) == 0


# Blocked queues


def test_a_blocked_queue_starts_nothing_until_every_reason_is_gone() -> None:
    crawl = Crawl()
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.POLICY)
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.FETCH_LIMIT)
    crawl.enqueue("/0")
    crawl.enqueue("/exempt", key=EXEMPT)
    crawl.throttle.blocks.unblock(HOST, ORIGIN, BlockReason.POLICY)
    crawl.run(100)
    assert [path for _, path in crawl.starts] == ["/exempt"]
    crawl.throttle.blocks.unblock(HOST, ORIGIN, BlockReason.FETCH_LIMIT)
    crawl.run(0)
    assert [path for _, path in crawl.starts] == ["/exempt", "/0"]


def test_a_queue_is_blocked_for_a_time() -> None:
    crawl = Crawl()
    crawl.throttle.blocks.block_for(HOST, ORIGIN, 60, BlockReason.VISIT_TIME)
    crawl.throttle.blocks.block_for(
        HOST, ORIGIN, 30, BlockReason.VISIT_TIME
    )  # it is blocked already
    crawl.enqueue("/0")
    crawl.run(100)
    assert crawl.times == [60]
    assert crawl.clock.pending == []


def test_the_caller_may_unblock_later() -> None:
    crawl = Crawl()
    calls: list[tuple[str, str, BlockReason]] = []
    crawl.throttle.blocks.block_for(
        HOST, ORIGIN, 60, BlockReason.UNREACHABLE, lambda *call: calls.append(call)
    )
    crawl.enqueue("/0")
    crawl.run(100)
    assert calls == [(HOST, ORIGIN, BlockReason.UNREACHABLE)]
    assert crawl.times == []
    crawl.throttle.blocks.unblock(*calls[0])
    crawl.run(0)
    assert crawl.times == [100]


def test_overdue_requests_do_not_wait_for_an_unreachable_origin() -> None:
    crawl = Crawl()
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.POLICY)
    crawl.enqueue("/old")
    crawl.run(100)
    crawl.enqueue("/new")
    crawl.throttle.blocks.postpone(HOST, ORIGIN, 60, most=150, then=crawl.throttle.blocks.unblock)
    crawl.throttle.blocks.unblock(HOST, ORIGIN, BlockReason.POLICY)
    crawl.run(100)
    assert crawl.starts == [(100, "/old"), (160, "/new")]


def test_postponing_where_no_request_waits_does_nothing() -> None:
    crawl = Crawl()
    crawl.throttle.blocks.postpone(HOST, ORIGIN, 60, most=150, then=crawl.throttle.blocks.unblock)
    crawl.throttle.set_delay(HOST, OTHER, 5, None)
    crawl.throttle.blocks.postpone(HOST, ORIGIN, 60, most=150, then=crawl.throttle.blocks.unblock)
    assert not crawl.throttle.has_queue(HOST, ORIGIN)
    assert crawl.clock.pending == []


@pytest.mark.parametrize(
    ("seconds", "most", "queued", "limit"),
    [
        (60, 300, 1, None),
        (301, 300, 1, Limit.TIME),
        (300, 300, 1, None),
        (60, 300, 4, Limit.NUMBER),
    ],
)
def test_why_a_request_may_not_wait(
    seconds: float, most: float, queued: int, limit: Limit | None
) -> None:
    crawl = Crawl(capacity=4)
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.UNREACHABLE)
    crawl.enqueue(*(f"/{number}" for number in range(queued)))
    assert crawl.throttle.blocks.limit(request(), HOST, ORIGIN, seconds, most) is limit
    assert crawl.throttle.blocks.is_full(HOST, ORIGIN) == (limit is Limit.NUMBER)


# Capacity


def fill(crawl: Crawl, host: str, *priorities: int) -> list[bool]:
    """Queue requests with these priorities. Return whether each is not in the overflow."""
    return [
        crawl.throttle.enqueue(Request(f"http://{host}/{n}", priority=n), host, f"http://{host}")
        for n in priorities
    ]


def started(crawl: Crawl) -> list[str]:
    """Start all requests that may start."""
    urls = []
    while crawl.throttle.peek() is not None:
        request = crawl.throttle.pop()
        assert request is not None
        urls.append(request.url)
    return urls


def test_the_number_of_queued_requests_is_bounded() -> None:
    crawl = Crawl(capacity=3)
    queues = crawl.throttle.queues
    for host in ("a.example", "b.example"):
        crawl.throttle.blocks.block(host, f"http://{host}", BlockReason.POLICY)
    assert fill(crawl, "a.example", 0, 0, 0, 0) == [True, True, True, False]
    assert fill(crawl, "b.example", 0, 0) == [False, False]
    assert (queues.queued, queues.overflowed, len(queues)) == (3, 3, 3)
    assert len(crawl.engine.counted) == 3
    crawl.throttle.blocks.unblock("b.example", "http://b.example", BlockReason.POLICY)
    assert (queues.queued, queues.overflowed) == (4, 2), "the next request of an unblocked queue"
    assert started(crawl) == ["http://b.example/0"] * 2
    crawl.throttle.blocks.unblock("a.example", "http://a.example", BlockReason.POLICY)
    assert started(crawl) == ["http://a.example/0"] * 4
    assert (queues.queued, queues.overflowed) == (0, 0)
    assert not crawl.engine.counted


def test_a_queue_that_is_not_blocked_has_a_request_that_may_start() -> None:
    crawl = Crawl(capacity=1)
    crawl.throttle.blocks.block("a.example", "http://a.example", BlockReason.POLICY)
    assert fill(crawl, "a.example", 0) == [True]
    assert fill(crawl, "b.example", 0, 0) == [True, False]
    assert started(crawl) == ["http://b.example/0"] * 2


def test_higher_priorities_leave_the_overflow_first() -> None:
    crawl = Crawl(capacity=2)
    crawl.engine.limits = (100, 0)
    host, key = "a.example", "http://a.example"
    crawl.throttle.blocks.block(host, key, BlockReason.POLICY)
    fill(crawl, host, 1, 5, 3, 0, 9, 7, 2)
    assert crawl.throttle.queues.queued == 2
    queue = crawl.throttle.queues.find(host, key)
    assert queue is not None
    assert [entry.request.priority for entry in queue.entries()] == [9, 7]
    crawl.throttle.blocks.unblock(host, key, BlockReason.POLICY)
    fill(crawl, host, 4, 8)
    assert started(crawl) == [f"http://a.example/{n}" for n in (9, 8, 7, 5, 4, 3, 2, 1, 0)]


def test_requests_in_the_overflow_wait_for_the_delay() -> None:
    crawl = Crawl(capacity=1)
    crawl.throttle.set_delay(HOST, ORIGIN, 3, None)
    for number in range(4):
        crawl.throttle.enqueue(request(f"/{number}"), HOST, ORIGIN)
    assert len(crawl.throttle.queues) == 1
    crawl.run(20)
    assert crawl.starts == [(3.0 * number, f"/{number}") for number in range(4)]


@pytest.mark.parametrize(("capacity", "dropped"), [(6, 0), (4, 2), (1, 5)])
def test_requests_in_the_overflow_are_overdue_if_there_is_no_capacity(
    capacity: int, dropped: int
) -> None:
    crawl = Crawl(capacity=capacity)
    crawl.throttle.blocks.block("b.example", "http://b.example", BlockReason.POLICY)
    fill(crawl, "b.example", *[0] * capacity)
    crawl.throttle.blocks.block(HOST, ORIGIN, BlockReason.POLICY)
    for number in range(6):
        assert not crawl.throttle.enqueue(request(f"/{number}"), HOST, ORIGIN)
    crawl.throttle.blocks.unblock("b.example", "http://b.example", BlockReason.POLICY)
    started(crawl)
    crawl.throttle.blocks.postpone(HOST, ORIGIN, 60, most=150, then=crawl.throttle.blocks.unblock)
    assert crawl.throttle.is_in_use(HOST, ORIGIN)
    crawl.throttle.blocks.unblock(HOST, ORIGIN, BlockReason.POLICY)
    paths = [url.removeprefix(ORIGIN) for url in started(crawl)]
    assert paths == [f"/{number}" for number in range(6 - dropped, 6)]
    crawl.clock.advance(60)
    assert [url.removeprefix(ORIGIN) for url in started(crawl)] == [
        f"/{number}" for number in range(6 - dropped)
    ]
    assert crawl.throttle.queues.overflowed == 0


class Emptied(MemoryOverflow):
    """Has lost all requests."""

    def pop(self, queue: str) -> None:
        return None


def test_requests_that_the_overflow_has_lost_do_not_count() -> None:
    crawl = Crawl(capacity=1)
    crawl.throttle.queues.overflow = Emptied()
    fill(crawl, "a.example", 0, 0, 0)
    assert started(crawl) == ["http://a.example/0"]
    assert crawl.throttle.queues.overflowed == 0
    assert not crawl.throttle.has_queue("a.example", "http://a.example")


# The end


async def test_closing_ends_what_waits_in_the_downloader_and_keeps_what_is_queued() -> None:
    crawl = Crawl()
    crawl.throttle.set_delay(HOST, ORIGIN, 60, crawl.clock.now)
    crawl.throttle.blocks.block_for(HOST, OTHER, 90, BlockReason.VISIT_TIME)
    queued = crawl.enqueue("/0", "/1")
    caller = request("/caller")
    results: list[bool] = []
    begin(crawl.throttle.wait(caller, HOST, ORIGIN)).addCallback(results.append)
    await crawl.clock.run()
    assert len(crawl.clock.pending) == 2
    crawl.throttle.close()
    await crawl.clock.run()
    assert results == [False]
    assert crawl.clock.pending == [], "no timer outlives the crawl"
    crawl.throttle.blocks.block_for(HOST, OTHER, 90, BlockReason.VISIT_TIME)
    assert crawl.clock.pending == []
    late: list[bool] = []
    begin(crawl.throttle.wait(request(), HOST, ORIGIN)).addCallback(late.append)
    await crawl.clock.run(100)
    assert late == [False]
    assert crawl.throttle.peek() is None
    assert list(crawl.throttle.drain()) == queued[::-1]
    assert len(crawl.throttle.queues) == 0
    assert not crawl.engine.counted


@pytest.mark.parametrize("capacity", [100, 3])
def test_draining_returns_the_requests_of_all_hosts_the_last_one_first(capacity: int) -> None:
    crawl = Crawl(capacity=capacity)
    requests = [
        Request(f"http://{number % 3}.example/", priority=number // 4) for number in range(8)
    ]
    for number, each in enumerate(requests):
        host = f"{number % 3}.example"
        crawl.throttle.set_delay(host, f"http://{host}", 60, crawl.clock.now)
        crawl.throttle.enqueue(each, host, f"http://{host}")
    assert crawl.clock.pending == [60, 60, 60]
    assert list(crawl.throttle.drain()) == (requests[4:] + requests[:4])[::-1]
    assert crawl.clock.pending == []
    assert list(crawl.throttle.drain()) == []
    assert len(crawl.throttle.queues) == crawl.throttle.queues.overflowed == 0
