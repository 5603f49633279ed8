"""The order of the requests of one host, and its pace."""

from __future__ import annotations

from math import inf

import pytest
from scrapy import Request
from twisted.internet.defer import Deferred

from scrapy_rep.scheduling.clock import Timer
from scrapy_rep.scheduling.hosts import (
    OVERDUE,
    BlockReason,
    Host,
    Limit,
    WaitingRequest,
    WaitQueue,
    add,
)

from .doubles import FakeClock

ORIGIN = "http://example.com"


def entry(number: int, priority: int = 0) -> WaitingRequest:
    return WaitingRequest((-priority, number), Request(f"{ORIGIN}/{number}"))


def numbers(entries: list[WaitingRequest]) -> list[int]:
    return [each.sort_key[1] for each in entries]


@pytest.mark.parametrize(
    ("delays", "slot_delay", "since", "left"),
    [
        pytest.param([], 0, 0, 0, id="no delay"),
        pytest.param([], 5, 0, 0, id="the downloader keeps the delay of the crawl itself"),
        pytest.param([3], 0, 0, 3, id="delay"),
        pytest.param([3], 0, 1, 2, id="part of it is over"),
        pytest.param([3], 0, 3, 0, id="over"),
        pytest.param([3], 0, 99, 0, id="long over"),
        pytest.param([3], 2, 1, 2, id="the delay of the slot is shorter"),
        pytest.param([3], 5, 1, 4, id="the delay of the slot is longer"),
        pytest.param([3, 7, 5], 0, 1, 6, id="the longest of three origins"),
        pytest.param([0.001], 0, 1, 0, id="short"),
    ],
)
def test_seconds_until_the_next_request(
    delays: list[float], slot_delay: float, since: float, left: float
) -> None:
    host = Host("example.com", FakeClock())
    for port, delay in enumerate(delays):
        host.set_delay(f"http://example.com:{port}", delay)
    host.last_end = 100.0
    assert host.seconds_left(100.0 + since, 8, slot_delay) == left


def test_the_first_request_to_a_host_does_not_wait() -> None:
    host = Host("example.com", FakeClock())
    host.set_delay(ORIGIN, 60)
    assert host.seconds_left(0, 8) == 0


@pytest.mark.parametrize(
    ("delay", "in_progress", "concurrency", "left"),
    [
        (0, 7, 8, 0),
        (0, 8, 8, inf),
        (0, 9, 8, inf),
        (3, 1, 8, inf),
        (3, 0, 1, 0),
    ],
)
def test_a_delay_allows_one_request_at_once(
    delay: float, in_progress: int, concurrency: int, left: float
) -> None:
    host = Host("example.com", FakeClock())
    host.set_delay(ORIGIN, delay)
    for number in range(in_progress):
        host.in_progress[Request(f"{ORIGIN}/{number}")] = entry(number)
    assert host.seconds_left(0, concurrency) == left


def test_a_delay_that_an_origin_no_longer_asks_for_is_removed() -> None:
    host = Host("example.com", FakeClock())
    host.set_delay("a", 3)
    host.set_delay("b", 7)
    host.set_delay("b", 0)
    assert (host.delay, host.delays) == (3, {"a": 3})
    host.set_delay("a", 0)
    host.set_delay("a", 0)
    assert (host.delay, host.delays) == (0, {})


def test_requests_are_sorted_by_priority_and_arrival() -> None:
    queue = WaitQueue(ORIGIN)
    for each in (entry(1), entry(2, priority=5), entry(0), entry(3, priority=-2)):
        add(queue.from_scheduler, each)
    add(queue.from_callers, entry(4, priority=1))
    assert numbers(queue.from_scheduler) == [2, 0, 1, 3]
    assert numbers(queue.entries()) == [2, 4, 0, 1, 3]
    assert len(queue) == 5


def test_the_first_request_is_of_a_queue_that_is_not_blocked() -> None:
    host = Host("example.com", FakeClock())
    add(host.queue("a").from_scheduler, entry(1))
    add(host.queue("b").from_scheduler, entry(2))
    add(host.queue("b").from_callers, entry(3))
    host.queue("a").blocks[BlockReason.POLICY] = None
    assert host.first_from_scheduler() == host.queue("b").from_scheduler[0]
    assert host.first_immediate() == host.first_from_callers() == host.queue("b").from_callers[0]
    host.queue("b").blocks[BlockReason.VISIT_TIME] = None
    assert host.first_from_scheduler() is host.first_from_callers() is None
    host.queue("a").unblock(BlockReason.POLICY)
    assert host.first_from_scheduler() == host.queue("a").from_scheduler[0]


def test_a_robots_txt_comes_first() -> None:
    host = Host("example.com", FakeClock())
    add(host.queue("a").from_callers, entry(1, priority=9))
    host.robots_txt.append(entry(2))
    assert host.first_immediate() == host.robots_txt[0]


def test_a_request_is_removed_wherever_it_waits() -> None:
    host = Host("example.com", FakeClock())
    one, two, three = entry(1), entry(2), entry(3)._replace(waiter=Deferred())
    host.robots_txt.append(one)
    add(host.queue("a").from_scheduler, two)
    add(host.queue("b").from_callers, three)
    assert list(host.entries()) == [one, two, three]
    assert all(map(host.remove, (one, two, three)))
    assert not any(map(host.remove, (one, two, three)))
    host.remove_empty_queues()
    assert host.is_idle


def test_overdue_requests_move_to_a_queue_that_is_not_blocked() -> None:
    host = Host("example.com", FakeClock())
    queue = host.queue(ORIGIN)
    for number in range(4):
        add(queue.from_scheduler, entry(number))
    add(queue.from_callers, entry(4))
    queue.blocks[BlockReason.UNREACHABLE] = None
    host.move_overdue(queue, {(0, 1): Limit.TIME, (0, 3): Limit.NUMBER, (0, 4): None})
    assert numbers(queue.entries()) == [0, 2]
    overdue = host.queues[OVERDUE].entries()
    assert numbers(overdue) == [1, 3, 4]
    assert [entry.limit for entry in overdue] == [Limit.TIME, Limit.NUMBER, None]
    assert host.first_from_scheduler() is overdue[0]


def test_the_timers_of_a_host_are_canceled() -> None:
    clock = FakeClock()
    host = Host("example.com", clock)
    host.timer.start(5, print)
    timer = host.queue(ORIGIN).blocks[BlockReason.VISIT_TIME] = Timer(clock)
    timer.start(7, print)
    host.queue(ORIGIN).blocks[BlockReason.POLICY] = None
    host.remove_empty_queues()
    assert list(host.queues) == [ORIGIN], "a blocked queue stays"
    host.cancel_timers()
    assert clock.pending == []
    host.remove_empty_queues()
    assert not host.queues
