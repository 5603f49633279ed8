"""How often requests start that are dropped then."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.scheduling.drop_pace import MAX_PER_TURN, MAX_REST, MIN_REST, REST, DropPace

from .doubles import FakeClock, FakeEngine


class Drops:
    """Requests that are dropped, on an engine that downloads pages."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.engine.is_downloading = True
        fake: Any = self.engine
        self.pace = DropPace(fake, self.clock)

    def start(self, count: int = 1) -> list[Request]:
        requests = [Request(f"http://a.example/{number}") for number in range(count)]
        for request in requests:
            self.pace.start(request)
            self.engine.in_downloader.add(request)
        return requests


def test_few_start_in_one_turn_of_the_event_loop() -> None:
    drops = Drops()
    for _ in range(MAX_PER_TURN):
        assert drops.pace.may_start()
        drops.start()
    assert not drops.pace.may_start()
    assert not drops.pace.may_start_alone()


@pytest.mark.parametrize(("turn", "rest"), [(0, MIN_REST), (0.005, REST * 0.005), (10, MAX_REST)])
def test_none_starts_for_many_times_as_long_as_the_turn_took(turn: float, rest: float) -> None:
    drops = Drops()
    drops.start()
    drops.clock.now += turn
    drops.clock.advance(0)
    assert drops.engine.wakes == 1
    drops.clock.advance(rest - 0.001)
    assert not drops.pace.may_start()
    assert drops.engine.wakes == 1
    drops.clock.advance(0.002)
    assert drops.pace.may_start()
    assert drops.engine.wakes == 2


def test_they_need_not_rest_if_nothing_else_is_downloaded() -> None:
    drops = Drops()
    drops.engine.is_downloading = False
    for _ in range(3):
        drops.start(MAX_PER_TURN)
        assert not drops.pace.may_start_alone(), "the event loop has to run"
        drops.clock.advance(0)
        assert drops.pace.may_start_alone()
        assert not drops.pace.may_start()
    drops.engine.is_downloading = True
    assert not drops.pace.may_start_alone()


def test_they_use_up_no_capacity_until_they_have_ended() -> None:
    drops = Drops()
    first, second = drops.start(2)
    assert drops.engine.excluded == {first, second}
    drops.engine.in_downloader = {second}
    drops.clock.advance(MIN_REST)
    assert drops.engine.excluded == {second}
    assert drops.pace.may_start()
    wakes = drops.engine.wakes
    drops.clock.advance(10 * MIN_REST)
    assert drops.engine.excluded == {second}
    assert drops.engine.wakes == wakes
    drops.engine.in_downloader.clear()
    drops.clock.advance(MIN_REST)
    assert drops.engine.excluded == set()
    assert drops.clock.pending == []


def test_nothing_is_left_when_the_crawl_is_over() -> None:
    drops = Drops()
    drops.start()
    drops.pace.cancel()
    assert drops.clock.pending == []
    assert drops.engine.excluded == set()
