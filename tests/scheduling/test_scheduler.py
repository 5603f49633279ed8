"""Which request the engine gets next, and when the crawl's scheduler is read."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.defer import maybe_deferred_to_future

from scrapy_rep.scheduling.drop_pace import MIN_REST
from scrapy_rep.scheduling.hosts import BlockReason
from scrapy_rep.scheduling.scheduler import (
    BACKOFF_READS,
    MAX_AT_ONCE,
    MAX_PER_PASS,
    MAX_PER_STEP,
    PAUSE,
    REST,
    WaitingScheduler,
)

from .doubles import FakeClock, FakeEngine, make_throttle

SLOW, LIVE = "slow.example", "live.example"

PASSES = BACKOFF_READS // MAX_PER_PASS
"""After so many passes that have found nothing a pause is as long as a pass."""

QUICK = 0.00001
"""Seconds to read a request, for passes that end because of the number of requests."""


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


class Aware(Fifo):
    """A scheduler that compares hosts, as Scrapy's DownloaderAwarePriorityQueue does."""

    engine: FakeEngine

    def next_request(self) -> Request | None:
        names = dict.fromkeys(request.url.split("/")[2] for request in self.requests)
        readable = set(self.engine.readable(names))
        found = [each for each in self.requests if each.url.split("/")[2] in readable]
        if not found:
            return None
        self.requests.remove(found[0])
        self.requests.insert(0, found[0])
        return super().next_request()


class Crawl:
    """A scheduler of the package around a scheduler that takes its time."""

    def __init__(
        self, *, capacity: int = 1, seconds: float = 0.03, scheduler: type[Fifo] = Fifo
    ) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.throttle = make_throttle(self.clock, self.engine, capacity=capacity)
        self.inner = scheduler(self.clock, seconds)
        vars(self.inner)["engine"] = self.engine
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
        if request.meta.get("dont_obey_robotstxt"):
            return None
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


def full(count: int, seconds: float = QUICK) -> Crawl:
    """Return a crawl that has requests of a slow site, which has used up the capacity."""
    crawl = Crawl(seconds=seconds)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, count)
    assert crawl.next() is None
    assert crawl.throttle.queues.queued == 1
    return crawl


def test_requests_beyond_the_capacity_do_not_hide_others() -> None:
    crawl = full(5 * MAX_PER_PASS, seconds=QUICK)
    crawl.inner.enqueue_request(Request(f"http://{LIVE}/0"))
    for _ in range(4):
        crawl.clock.advance(1)
        assert crawl.next() is None
    crawl.clock.advance(1)
    assert crawl.next() == f"http://{LIVE}/0"
    assert crawl.inner.reads == 5 * MAX_PER_PASS + 1, "each request is read once"
    assert len(crawl.scheduler) == 5 * MAX_PER_PASS
    assert crawl.scheduler.has_pending_requests()


def test_while_pages_are_downloaded_the_scheduler_is_read_for_half_of_the_time() -> None:
    crawl = Crawl(capacity=1000, seconds=QUICK)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, 5 * MAX_PER_PASS)
    crawl.engine.is_downloading = True
    assert crawl.next() is None
    assert crawl.inner.reads == MAX_PER_PASS
    assert crawl.next() is None
    assert crawl.inner.reads == MAX_PER_PASS
    wakes = crawl.engine.wakes
    crawl.clock.advance(MAX_PER_PASS * QUICK)
    assert crawl.engine.wakes == wakes + 1
    assert crawl.next() is None
    assert crawl.inner.reads == 2 * MAX_PER_PASS
    crawl.engine.is_downloading = False
    assert crawl.next() is None
    assert crawl.inner.reads == 3 * MAX_PER_PASS, "nothing else needs the time"


# The scheduler is read while the engine can start no request.


def read_ahead(*, behind: int) -> Crawl:
    """Return a crawl that reads its scheduler, with so many requests of a slow site, after it has
    started the first of two live requests that have waited."""
    crawl = Crawl(capacity=1000, seconds=QUICK)
    for host in (LIVE, SLOW):
        crawl.throttle.blocks.block(host, f"http://{host}", BlockReason.POLICY)
    crawl.add(LIVE, 2)
    assert crawl.next() is None
    crawl.throttle.blocks.unblock(LIVE, f"http://{LIVE}", BlockReason.POLICY)
    assert crawl.next() == f"http://{LIVE}/0"
    crawl.engine.has_capacity = False
    crawl.add(SLOW, behind)
    crawl.clock.advance(0)
    return crawl


def test_a_request_that_has_waited_starts_without_a_read() -> None:
    crawl = read_ahead(behind=10)
    assert not crawl.inner.requests
    crawl.inner.requests.append(Request(f"http://{SLOW}/10"))
    assert crawl.next() == f"http://{LIVE}/1"
    assert len(crawl.inner.requests) == 1
    crawl.clock.advance(0)
    assert not crawl.inner.requests, "it is read after the start"


def test_a_new_request_of_a_higher_priority_comes_first() -> None:
    crawl = read_ahead(behind=10)
    urgent = Request("http://urgent.example/", priority=1)
    crawl.scheduler.enqueue_request(urgent)
    assert crawl.next() == urgent.url


def test_one_request_is_read_ahead() -> None:
    crawl = read_ahead(behind=0)
    crawl.add("other.example", 2)
    crawl.clock.advance(0)
    reads = crawl.inner.reads
    crawl.clock.advance(10)
    assert crawl.inner.reads == reads
    assert crawl.scheduler.has_pending_requests()
    first = {crawl.next() for _ in range(MAX_PER_STEP)}
    assert crawl.next() is None, "the event loop has to run"
    crawl.clock.advance(0)
    assert first | {crawl.next()} == {
        f"http://{LIVE}/1",
        "http://other.example/0",
        "http://other.example/1",
    }


@pytest.mark.parametrize("change", ["has_capacity", "is_closing"])
def test_nothing_is_read_ahead_if_the_engine_reads_itself_or_closes(change: str) -> None:
    crawl = read_ahead(behind=0)
    assert crawl.next() == f"http://{LIVE}/1"
    setattr(crawl.engine, change, True)
    reads = crawl.inner.reads
    crawl.add(SLOW, 10)
    crawl.clock.advance(1)
    assert crawl.inner.reads == reads


# Requests of busy hosts stay in a scheduler that compares hosts.


def busy(count: int) -> Crawl:
    """Return a crawl in which many requests wait for a slow site, and others are not read."""
    crawl = Crawl(capacity=1000, seconds=QUICK, scheduler=Aware)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, count)
    assert crawl.next() is None
    assert crawl.inner.reads == MAX_PER_PASS
    assert crawl.throttle.queues.busy == {SLOW}
    return crawl


def test_requests_of_a_busy_host_are_passed_over() -> None:
    crawl = busy(5 * MAX_PER_PASS)
    crawl.add(LIVE, 2)
    assert [crawl.next() for _ in range(3)] == [f"http://{LIVE}/0", f"http://{LIVE}/1", None]
    assert crawl.inner.reads == MAX_PER_PASS + 2
    assert crawl.scheduler.has_pending_requests()


def test_requests_of_a_busy_host_are_read_for_a_share_of_the_time() -> None:
    crawl = busy(3 * MAX_PER_PASS)
    exempt = Request(f"http://{SLOW}/exempt", meta={"dont_obey_robotstxt": True})
    crawl.inner.requests.insert(MAX_PER_PASS, exempt)
    assert crawl.next() is None
    crawl.clock.advance(REST * MAX_PER_PASS * QUICK - 0.01)
    wakes = crawl.engine.wakes
    crawl.clock.advance(0.02)
    assert crawl.engine.wakes == wakes + 1
    assert crawl.next() is None
    assert crawl.inner.reads == 2 * MAX_PER_PASS
    assert crawl.next() is None
    crawl.clock.advance(1)
    assert crawl.next() == exempt.url


def test_a_host_of_which_a_request_has_started_is_read_again() -> None:
    crawl = busy(3 * MAX_PER_PASS)
    assert crawl.next() is None
    assert crawl.inner.reads == MAX_PER_PASS
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    assert crawl.next() == f"http://{SLOW}/0"
    assert crawl.next() == f"http://{SLOW}/1"
    assert crawl.inner.reads == MAX_PER_PASS + 1


# Requests that are dropped when they start.


def unreachable(count: int, live: int = 0) -> Crawl:
    """Return a crawl with requests of a site that is unreachable, and of one that is not."""
    crawl = Crawl(capacity=1000, seconds=QUICK)
    crawl.throttle.is_dropped = lambda entry: SLOW in entry.request.url
    for number in range(count):
        crawl.throttle.enqueue(Request(f"http://{SLOW}/{number}"), SLOW, f"http://{SLOW}")
    crawl.add(LIVE, live)
    return crawl


def test_requests_that_are_dropped_get_a_small_part_of_the_time() -> None:
    crawl = unreachable(10, live=3)
    crawl.engine.is_downloading = True
    dropped = [f"http://{SLOW}/{number}" for number in range(10)]
    assert [crawl.next() for _ in range(3)] == [*dropped[:2], f"http://{LIVE}/0"]
    crawl.clock.advance(0)
    assert [crawl.next() for _ in range(3)] == [f"http://{LIVE}/1", f"http://{LIVE}/2", None]
    wakes = crawl.engine.wakes
    crawl.clock.advance(MIN_REST + 0.001)
    assert crawl.engine.wakes > wakes
    assert [crawl.next() for _ in range(3)] == [*dropped[2:4], None]
    crawl.engine.is_downloading = False
    crawl.clock.advance(0)
    assert [crawl.next() for _ in range(3)] == [*dropped[4:6], None], "nothing else is left"
    assert len(crawl.scheduler) == 4


def test_requests_of_a_site_that_is_known_as_disallowed_are_queued() -> None:
    crawl = unreachable(0)
    crawl.add(SLOW, 1)
    crawl.add(LIVE, 1)
    crawl.scheduler._queue_for = lambda request: (
        (SLOW, f"http://{SLOW}") if SLOW in request.url else None
    )
    crawl.throttle.has_disallowed = True
    crawl.engine.is_downloading = True
    crawl.scheduler._drop_pace._rests = True
    assert not crawl.throttle.hosts
    assert [crawl.next() for _ in range(2)] == [f"http://{LIVE}/0", None]
    assert len(crawl.scheduler) == 1


def test_requests_that_are_dropped_come_last_if_nothing_is_downloaded() -> None:
    crawl = unreachable(4, live=4)
    crawl.scheduler._drop_pace._rests = True
    for first in (0, 2):
        pages = [f"http://{LIVE}/{number}" for number in (first, first + 1)]
        assert [crawl.next() for _ in range(2)] == pages
        crawl.clock.advance(0)
    assert crawl.next() == f"http://{SLOW}/0"


def test_no_timer_of_the_requests_that_are_dropped_is_left_when_the_crawl_is_over() -> None:
    crawl = unreachable(10)
    crawl.engine.is_downloading = True
    assert crawl.next() == f"http://{SLOW}/0"
    crawl.scheduler.close("finished")
    assert crawl.clock.pending == []


def test_requests_that_are_dropped_are_found_after_others_of_their_host() -> None:
    crawl = unreachable(1)
    crawl.throttle.is_dropped = lambda _: False
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.throttle.recheck()
    assert crawl.throttle.peek(drop=True) is not None, "it was added as one that is dropped"
    crawl.throttle.enqueue(Request(f"http://{SLOW}/b"), SLOW, f"http://{SLOW}")
    assert crawl.throttle.peek(drop=True) is None
    assert crawl.throttle.peek() is not None


def test_nothing_wakes_the_engine_when_the_crawl_is_over() -> None:
    crawl = busy(3 * MAX_PER_PASS)
    assert crawl.next() is None
    assert crawl.clock.pending
    crawl.scheduler.close("finished")
    assert not crawl.clock.pending
    assert len(crawl.inner) == 3 * MAX_PER_PASS


def test_pauses_grow_while_no_request_is_found() -> None:
    crawl = full(BACKOFF_READS + 5 * MAX_PER_PASS, seconds=QUICK)
    took = MAX_PER_PASS * QUICK
    pauses = []
    for _ in range(PASSES - 1):
        (pause,) = crawl.clock.pending
        pauses.append(pause)
        crawl.clock.advance(pause)
        assert crawl.next() is None
    assert pauses[0] == pytest.approx(took / PASSES)
    assert crawl.clock.pending == [pytest.approx(took)]
    assert sum(pauses) < PASSES * took
    crawl.inner.requests.insert(0, Request(f"http://{LIVE}/0"))
    crawl.clock.advance(took)
    assert crawl.next() == f"http://{LIVE}/0"
    crawl.clock.advance(0)
    assert crawl.next() is None
    assert crawl.clock.pending == [pytest.approx(took / PASSES)]


def test_a_pause_is_bounded() -> None:
    crawl = full(2 * MAX_PER_PASS, seconds=1000)
    assert crawl.clock.pending == [PAUSE]
    reads = crawl.inner.reads
    crawl.clock.advance(PAUSE - 0.01)
    assert crawl.next() is None
    assert crawl.inner.reads == reads
    wakes = crawl.engine.wakes
    crawl.clock.advance(0.01)
    assert crawl.engine.wakes == wakes + 1
    assert crawl.next() is None
    assert crawl.inner.reads > reads


def paused() -> Crawl:
    """Return a crawl that does not read its scheduler for a long time."""
    crawl = full(MAX_PER_PASS)
    crawl.scheduler._pause_timer.cancel()
    crawl.scheduler._paused_until = None
    crawl.scheduler._pause(100)
    return crawl


@pytest.mark.parametrize("change", ["unblocked", "unreachable"])
def test_a_pause_ends_when_requests_of_the_scheduler_no_longer_have_to_wait(change: str) -> None:
    crawl = paused()
    crawl.throttle.blocks.block(LIVE, f"http://{LIVE}", BlockReason.POLICY)
    crawl.inner.enqueue_request(Request(f"http://{LIVE}/0"))
    if change == "unblocked":
        crawl.throttle.blocks.unblock(LIVE, f"http://{LIVE}", BlockReason.POLICY)
    else:
        crawl.throttle.blocks.block_for(LIVE, f"http://{LIVE}", 600, BlockReason.UNREACHABLE)
        crawl.throttle.queues.capacity = 0
    assert crawl.next() is None, "passes take half of the time at most"
    crawl.clock.advance(0.02)
    assert crawl.next() == f"http://{LIVE}/0"


def test_a_pause_ends_when_there_is_capacity() -> None:
    crawl = paused()
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.throttle.queues.capacity = 2
    reads = crawl.inner.reads
    assert crawl.next() == f"http://{SLOW}/0"
    assert crawl.inner.reads > reads


def test_a_new_request_ends_a_pause_soon() -> None:
    crawl = paused()
    crawl.inner.requests.clear()
    crawl.scheduler.enqueue_request(Request("http://new.example/"))
    crawl.clock.advance(0.02)
    assert crawl.next() == "http://new.example/"


def test_no_timer_outlives_the_scheduler() -> None:
    crawl = full(MAX_PER_PASS + 50)
    assert crawl.clock.pending
    count = len(crawl.scheduler)
    assert crawl.scheduler.close("finished") is None
    assert crawl.clock.pending == []
    assert len(crawl.inner) == count == MAX_PER_PASS + 50


async def test_the_event_loop_runs_while_many_requests_return_to_the_scheduler() -> None:
    crawl = full(2 * MAX_AT_ONCE + 5, seconds=0)
    for _ in range(30):
        crawl.clock.advance(1)
        crawl.next()
    assert len(crawl.inner) == 0
    closed = crawl.scheduler.close("finished")
    assert closed is not None
    assert MAX_AT_ONCE <= len(crawl.inner) <= 2 * MAX_AT_ONCE
    await maybe_deferred_to_future(closed)
    urls = [request.url for request in crawl.inner.requests]
    assert urls == [f"http://{SLOW}/{n}" for n in reversed(range(2 * MAX_AT_ONCE + 5))]
    assert len(crawl.scheduler) == 2 * MAX_AT_ONCE + 5


def test_a_pass_of_a_slow_scheduler_is_short() -> None:
    crawl = full(MAX_PER_PASS, seconds=0.001)
    assert crawl.inner.reads == 10


def test_the_event_loop_runs_between_requests_that_have_waited() -> None:
    crawl = Crawl(capacity=10, seconds=0)
    crawl.engine.limits = (100, 0)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, 2 * MAX_PER_STEP)
    assert crawl.next() is None
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    for _ in range(2):
        assert [crawl.next() is None for _ in range(MAX_PER_STEP)] == [False] * MAX_PER_STEP
        wakes = crawl.engine.wakes
        assert crawl.next() is None
        crawl.clock.advance(0)
        assert crawl.engine.wakes > wakes
    assert not crawl.scheduler.has_pending_requests()


def test_requests_of_equal_priority_alternate() -> None:
    crawl = Crawl(capacity=10, seconds=0)
    crawl.engine.limits = (100, 0)
    crawl.throttle.blocks.block(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(SLOW, 3)
    assert crawl.next() is None
    crawl.throttle.blocks.unblock(SLOW, f"http://{SLOW}", BlockReason.POLICY)
    crawl.add(LIVE, 3)
    found = []
    for _ in range(7):
        found.append(crawl.next())
        crawl.clock.advance(0)
    assert [url and url.split("/")[2] for url in found] == [SLOW, LIVE] * 3 + [None]
