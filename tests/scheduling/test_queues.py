"""Which requests of a shared queue move to the overflow without being read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request

from scrapy_rep.scheduling.hosts import BlockReason
from scrapy_rep.scheduling.overflow import MemoryOverflow

from .doubles import FakeClock, FakeEngine, make_throttle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy_rep.scheduling.throttle import Throttle

HOST, KEY = "slow.example", "http://slow.example"


class Shared(MemoryOverflow):
    """An overflow beside a queue of stored requests."""

    def __init__(self, *stored: Mapping[str, Any]) -> None:
        super().__init__()
        self.stored = stored

    def move_waiting(self, queue_of: Callable[[Mapping[str, Any]], str | None]) -> list[str]:
        return [name for each in self.stored if (name := queue_of(each)) is not None]


def stored(url: str = f"{KEY}/", priority: int = 0, **meta: Any) -> dict[str, Any]:
    """Return a request as Scrapy stores it."""
    return Request(url, priority=priority, meta=meta).to_dict()


def busy(
    waiting: int = 8, reason: BlockReason | None = BlockReason.POLICY, seconds: float = 1
) -> Throttle:
    """Return a throttle with a queue in which so many requests have waited.

    The queue is blocked for a reason. Without one, its host has a long delay.
    """
    clock = FakeClock()
    throttle = make_throttle(clock, FakeEngine())
    if reason is None:
        throttle.set_delay(HOST, KEY, 60, clock.now)
    else:
        throttle.blocks.block(HOST, KEY, reason)
    for number in range(waiting):
        throttle.enqueue(Request(f"{KEY}/{number}", priority=1), HOST, KEY)
    clock.now += seconds
    return throttle


@pytest.mark.parametrize(
    ("request_stored", "moves"),
    [
        (stored(), True),
        (stored(priority=1, depth=3), True),
        pytest.param(stored(priority=2), False, id="comes before those that are queued"),
        pytest.param(stored(dont_obey_robotstxt=True), False, id="exempt"),
        pytest.param(stored(_splash_processed=True), False, id="of a rendering service"),
        pytest.param(stored("https://slow.example/"), False, id="another origin of the host"),
        pytest.param(stored("http://live.example/"), False, id="another host"),
        pytest.param(stored("data:,"), False, id="no origin"),
    ],
)
def test_requests_that_have_to_wait_move_unread(
    request_stored: dict[str, Any], moves: bool
) -> None:
    queues = busy().queues
    queues.overflow = Shared(request_stored, request_stored)
    assert queues.move_waiting() == 2 * moves
    assert queues.overflowed == 2 * moves
    assert queues.hosts[HOST].waiting == 8 + 2 * moves


@pytest.mark.parametrize(
    "throttle",
    [
        pytest.param(busy(7, None), id="not busy"),
        pytest.param(busy(0), id="no request waits"),
        pytest.param(busy(seconds=0.4), id="not silent for long"),
        pytest.param(busy(reason=BlockReason.UNREACHABLE), id="has a share of the capacity"),
        pytest.param(busy(1, BlockReason.UNREACHABLE), id="not busy, and has a share"),
    ],
)
def test_other_requests_are_read(throttle: Throttle) -> None:
    throttle.queues.overflow = Shared(stored())
    assert throttle.queues.move_waiting() == 0


@pytest.mark.parametrize("throttle", [busy(1), busy(8, None)], ids=["blocked", "slow"])
def test_a_host_is_busy_if_no_more_requests_of_it_may_start(throttle: Throttle) -> None:
    throttle.queues.overflow = Shared(stored())
    assert throttle.queues.busy == {HOST}
    assert throttle.queues.move_waiting() == 1


@pytest.mark.parametrize("is_blocked", [True, False])
def test_a_queue_that_is_not_blocked_needs_a_request_that_may_start(is_blocked: bool) -> None:
    queues = busy().queues
    queue = queues.hosts[HOST].queues[KEY]
    queue.from_scheduler.clear()
    queue.overflowed[KEY] = 1
    queues.overflow = Shared(stored())
    if not is_blocked:
        queue.unblock_all()
    assert queues.move_waiting() == is_blocked


def test_other_overflows_move_nothing() -> None:
    assert busy().queues.move_waiting() == 0


def test_requests_that_are_overdue_leave_the_others_their_capacity() -> None:
    """Ten sites with two requests each turn out to be unreachable at the same moment."""
    throttle = make_throttle(FakeClock(), FakeEngine(), capacity=4)
    names = [f"{number}.example" for number in range(10)]
    for name in names:
        throttle.blocks.block(name, f"http://{name}", BlockReason.UNREACHABLE)
        for path in "ab":
            throttle.enqueue(Request(f"http://{name}/{path}"), name, f"http://{name}")
    for name in names:
        throttle.blocks.postpone(name, f"http://{name}", 60, most=300, then=ignore)
    queues = [throttle.queues.find(name, f"http://{name}") for name in names]
    assert sum(len(queue or ()) for queue in queues) == 4


def ignore(*_: object) -> None:
    """Do nothing after the wait."""
