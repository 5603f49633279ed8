"""Requests that wait beyond the limit: their order, and what cannot be stored."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core.scheduler import Scheduler

from scrapy_rep.scheduling.clock import Clock
from scrapy_rep.scheduling.hosts import WaitingRequest
from scrapy_rep.scheduling.overflow import (
    DiskOverflow,
    MemoryOverflow,
    Overflow,
)
from scrapy_rep.scheduling.shared_overflow import overflow_for


class Reader(Spider):
    name = "reader"

    def parse_page(self, response: Any) -> None:
        """The callback of a request."""


SPIDER = Reader()


def in_memory() -> Overflow:
    return MemoryOverflow()


def on_disk() -> Overflow:
    crawler: Any = SimpleNamespace(spider=SPIDER)
    return DiskOverflow(crawler)


KINDS = pytest.mark.parametrize("make", [in_memory, on_disk])


def entry(number: int, priority: int = 0, **meta: Any) -> WaitingRequest:
    request = Request(
        f"http://example.com/{number}",
        callback=SPIDER.parse_page,
        priority=priority,
        meta=meta,
    )
    return WaitingRequest((-priority, number), request, arrived=number / 10)


def popped(overflow: Overflow, queue: str) -> list[str]:
    urls = []
    while (found := overflow.pop(queue)) is not None:
        urls.append(found.request.url.rpartition("/")[2])
    return urls


@KINDS
def test_requests_leave_by_priority_and_in_their_order(make: Any) -> None:
    overflow = make()
    for number, priority in enumerate([0, 5, 5, 0, 9, -3, 0]):
        overflow.push("a", entry(number, priority))
        overflow.push("b", entry(number))
    assert popped(overflow, "a") == ["4", "1", "2", "0", "3", "6", "5"]
    assert popped(overflow, "a") == []
    assert popped(overflow, "b") == ["0", "1", "2", "3", "4", "5", "6"]
    assert list(overflow.drain()) == []


@KINDS
def test_requests_come_back_as_they_were(make: Any) -> None:
    overflow = make()
    overflow.push("a", entry(7, 3, mine=[1]))
    found = overflow.pop("a")
    assert found is not None
    assert (found.sort_key, found.arrived, found.waiter) == ((-3, 7), 0.7, None)
    request = found.request
    assert (request.url, request.priority, request.meta) == (
        "http://example.com/7",
        3,
        {"mine": [1]},
    )
    assert request.callback == SPIDER.parse_page
    assert not request.dont_filter
    list(overflow.drain())


@KINDS
def test_an_empty_overflow(make: Any) -> None:
    assert make().pop("a") is None
    assert list(make().drain()) == []


def unserializable() -> dict[str, Any]:
    return {"lock": threading.Lock()}


@KINDS
def test_requests_that_cannot_be_serialized_keep_their_order(make: Any) -> None:
    def fill() -> Overflow:
        overflow: Overflow = make()
        for number, priority in enumerate([0, 5, 5, 0, 9, -3, 0]):
            meta = unserializable() if number % 2 else {}
            overflow.push("ab"[number % 3 == 0], entry(number, priority, **meta))
        overflow.push("c", entry(7, priority=10**30))
        return overflow

    overflow = fill()
    assert popped(overflow, "a") == ["4", "1", "2", "5"]
    assert popped(overflow, "b") == ["0", "3", "6"]
    assert popped(overflow, "c") == ["7"]
    assert list(overflow.drain()) == []
    drained = [found.request.url[-1] for found in fill().drain()]
    assert drained == ["5", "6", "3", "0", "2", "1", "4", "7"]


class Unreadable:
    """Can be serialized, but not read again."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_a_request_that_cannot_be_read_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    def fill() -> Overflow:
        overflow = on_disk()
        overflow.push("a", entry(1, mine=Unreadable()))
        overflow.push("a", entry(2))
        return overflow

    assert popped(fill(), "a") == ["2"]
    assert [found.request.url[-1] for found in fill().drain()] == ["2"]
    assert caplog.text.count("cannot be read again") == 2


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        pytest.param({"mqs": [], "dqs": None}, MemoryOverflow, id="Scrapy's without JOBDIR"),
        pytest.param({"mqs": [], "dqs": []}, DiskOverflow, id="Scrapy's with JOBDIR"),
        pytest.param({"queue": []}, DiskOverflow, id="another one"),
    ],
)
def test_requests_are_kept_as_the_scheduler_keeps_them(
    attributes: dict[str, Any], kind: type[Overflow]
) -> None:
    crawler: Any = SimpleNamespace(spider=SPIDER)
    scheduler = SimpleNamespace(**attributes)
    assert isinstance(overflow_for(scheduler, crawler, Clock()), kind)


def test_scrapys_scheduler_has_these_attributes() -> None:
    assert {"mqs", "dqs"} <= set(Scheduler.open.__code__.co_names)
