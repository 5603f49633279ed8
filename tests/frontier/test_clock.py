"""Timers."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from scrapy_rep.frontier.clock import Timer, fire

from .doubles import FakeClock, begin


def test_a_timer_calls_once() -> None:
    clock = FakeClock()
    calls: list[str] = []
    timer = Timer(clock)
    timer.start(2, calls.append, "a")
    clock.advance(1.9)
    assert calls == []
    clock.advance(0.1)
    assert calls == ["a"]
    timer.cancel()
    assert clock.pending == []


def test_a_timer_is_active_until_it_calls() -> None:
    clock = FakeClock()
    timer = Timer(clock)
    activity = [timer.is_active]
    timer.start(2, lambda: activity.append(timer.is_active))
    activity.append(timer.is_active)
    clock.advance(2)
    assert activity == [False, True, False]


def test_a_new_start_replaces_the_old_one() -> None:
    clock = FakeClock()
    calls: list[str] = []
    timer = Timer(clock)
    timer.start(1, calls.append, "a")
    timer.start(2, calls.append, "b")
    clock.advance(5)
    assert calls == ["b"]


def test_a_timer_can_be_canceled_and_started_by_its_own_call() -> None:
    clock = FakeClock()
    calls: list[float] = []
    timer = Timer(clock)

    def again() -> None:
        calls.append(clock.now)
        if len(calls) < 3:
            timer.start(1, again)

    timer.start(1, again)
    clock.advance(10)
    assert len(calls) == 3
    timer.start(1, again)
    timer.cancel()
    assert clock.pending == []


async def test_a_canceled_sleep_leaves_no_timer() -> None:
    clock = FakeClock()
    sleeping = begin(clock.sleep(5))
    sleeping.addErrback(lambda _: None)
    await clock.run()
    assert clock.pending == [5]
    sleeping.cancel()
    await clock.run()
    assert clock.pending == []


def test_a_deferred_fires_once() -> None:
    results: list[int] = []
    deferred: Deferred[int] = Deferred()
    deferred.addCallback(results.append)
    fire(deferred, 1)
    fire(deferred, 2)
    assert results == [1]
