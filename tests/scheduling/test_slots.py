"""The limits that Scrapy's throttler keeps: which it gets, and which it has afterwards."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.scheduling.slots import PacedScopes, ThrottlingScopes
from tests.throttler import Scope, Throttler

from .doubles import begin, settle

HOST = "example.com"
PAGE = Request("http://example.com/")


def limits(scope: Scope) -> tuple[float, int, float]:
    return scope.get_base_delay(), scope.get_concurrency(), scope._jitter


def make(throttler: Throttler) -> PacedScopes:
    return PacedScopes(throttler, SimpleNamespace(_in_download_handler={PAGE}))


@pytest.mark.parametrize(
    ("configured", "pace", "expected"),
    [
        pytest.param(0, 2, 2, id="none is configured"),
        pytest.param(1, 2, 2, id="a shorter one is configured"),
        pytest.param(3, 2, 3, id="a longer one is configured"),
    ],
)
def test_a_scope_gets_the_pace_of_its_host_until_it_is_removed(
    configured: float, pace: float, expected: float
) -> None:
    throttler = Throttler(delay=configured)
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, pace)
    scope = throttler.scopes[HOST]
    assert limits(scope) == (expected, 1, 0)
    slots.set_pace(PAGE, HOST, 0)
    assert limits(scope) == (configured, 8, 0.5)
    slots.remove_pace(HOST)  # there is none
    assert limits(scope) == (configured, 8, 0.5)


def test_a_pace_may_change() -> None:
    throttler = Throttler(delay=1)
    slots = make(throttler)
    for pace, expected in ((5, 5), (2, 2), (0.5, 1), (4, 4)):
        slots.set_pace(PAGE, HOST, pace)
        assert limits(throttler.scopes[HOST]) == (expected, 1, 0)
    slots.remove_pace(HOST)
    assert limits(throttler.scopes[HOST]) == (1, 8, 0.5)


def test_a_scope_that_the_throttler_forgot_gets_the_pace_again() -> None:
    throttler = Throttler()
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, 2)
    throttler.forget(HOST)
    assert limits(throttler.get_scope_manager(HOST)) == (0, 8, 0.5)
    slots.set_pace(PAGE, HOST, 2)
    assert limits(throttler.scopes[HOST]) == (2, 1, 0)
    slots.remove_pace(HOST)
    assert limits(throttler.scopes[HOST]) == (0, 8, 0.5)


@pytest.mark.parametrize(
    ("set_to", "next_one"),
    [
        pytest.param(0.3, 2, id="shorter than the pace"),
        pytest.param(5, 5, id="longer than the pace"),
    ],
)
def test_a_delay_that_autothrottle_sets_is_no_shorter_than_the_pace(
    set_to: float, next_one: float
) -> None:
    throttler = Throttler()
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, 2)
    scope = throttler.scopes[HOST]
    scope.set_base_delay(set_to, only_increase=False)
    slots.set_pace(PAGE, HOST, 2)
    assert scope.get_base_delay() == next_one
    slots.remove_pace(HOST)
    assert limits(scope) == (set_to, 8, 0.5)


def test_a_delay_that_was_set_since_the_last_request_stays() -> None:
    throttler = Throttler()
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, 2)
    throttler.scopes[HOST].set_base_delay(3)
    slots.remove_pace(HOST)
    assert limits(throttler.scopes[HOST]) == (3, 8, 0.5)


def test_a_scope_with_another_name_gets_no_pace() -> None:
    throttler = Throttler()
    slots = make(throttler)
    request = Request(PAGE.url, meta={"throttling_scopes": ["shared"]})
    slots.set_pace(request, HOST, 2)
    assert throttler.scopes == {}


async def test_a_request_that_is_not_sent_gives_back_its_place_and_its_delay() -> None:
    throttler = Throttler(concurrency=1)
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, 600)
    await throttler.acquire(PAGE)
    scope = throttler.scopes[HOST]
    assert (scope.holders, scope.is_delayed) == ({PAGE}, True)
    slots.release(PAGE)
    assert (scope.holders, scope.is_delayed) == (set(), False)
    await slots.acquire(PAGE)
    assert (scope.holders, scope.is_delayed) == ({PAGE}, True)


async def test_the_delay_of_a_host_without_a_pace_is_not_given_back() -> None:
    throttler = Throttler(delay=600)
    slots = make(throttler)
    await throttler.acquire(PAGE)
    slots.release(PAGE)
    scope = throttler.scopes[HOST]
    assert (scope.holders, scope.is_delayed) == (set(), True)


@pytest.mark.parametrize(
    ("configured", "is_delayed"), [pytest.param(0, False, id="none"), pytest.param(600, True)]
)
async def test_after_a_pace_the_configured_delay_applies(
    configured: float, is_delayed: bool
) -> None:
    throttler = Throttler(delay=configured, jitter=0)
    slots = make(throttler)
    slots.set_pace(PAGE, HOST, 1200)
    await throttler.acquire(PAGE)
    slots.remove_pace(HOST)
    scope = throttler.scopes[HOST]
    assert scope.is_delayed == is_delayed
    assert scope._next_allowed_time is not None
    assert scope._next_allowed_time <= time.monotonic() + configured


async def test_a_request_that_the_throttler_holds_back_is_queued() -> None:
    throttler = Throttler(delay=600)
    slots = make(throttler)
    await throttler.acquire(Request("http://example.com/other"))
    acquired = begin(slots.acquire(PAGE))
    await settle()
    assert slots.is_queued(PAGE)
    acquired.addErrback(lambda _: None).cancel()
    await settle()
    assert not slots.is_queued(PAGE)


async def test_a_request_that_waited_may_be_what_another_one_waits_for() -> None:
    """Both hold up each other if the throttler does not lend a place."""
    page, robots = Request("http://example.com/page"), Request("http://example.com/robots.txt")
    throttler = Throttler(concurrency=1, is_in_middlewares=lambda request: request is page)
    slots = make(throttler)
    await throttler.acquire(page)
    acquired = begin(slots.acquire(robots))
    await settle()
    assert acquired.called


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        pytest.param([HOST], (4, 2), id="one"),
        pytest.param([HOST, "slow", "narrow"], (1, 9), id="the lowest of several"),
        pytest.param([], (8, 0), id="none"),
    ],
)
def test_the_limits_are_those_of_the_scopes(scopes: list[str], expected: tuple[int, float]) -> None:
    throttler = Throttler(delay=2, concurrency=4)
    throttler.get_scope_manager("slow").set_base_delay(9)
    throttler.get_scope_manager("narrow").set_concurrency(1)
    slots = make(throttler)
    assert slots.limits(Request(PAGE.url, meta={"throttling_scopes": scopes})) == expected
    assert slots.transfers == {PAGE}


async def test_without_a_pace_only_the_place_is_given_back() -> None:
    throttler = Throttler(delay=600)
    downloader: Any = SimpleNamespace(_in_download_handler=set())
    slots = ThrottlingScopes(throttler, downloader)
    slots.set_pace(PAGE, HOST, 2)
    slots.remove_pace(HOST)
    await throttler.acquire(PAGE)
    slots.release(PAGE)
    scope = throttler.scopes[HOST]
    assert (limits(scope), scope.holders, scope.is_delayed) == ((600, 8, 0.5), set(), True)
    assert not slots.is_queued(PAGE)
    assert slots.remove_queued([PAGE]) == ()
