from __future__ import annotations

import pytest

from scrapy_rep.reports.model import Time, TimeSlot
from scrapy_rep.reports.timeline import MAX_SECONDS, MAX_TIME_SLOTS, LiveTimeline, merged

START = 1_700_000_000


def test_requests_of_one_second_are_in_one_interval() -> None:
    live = LiveTimeline()
    for now in (START + 0.1, START + 0.9, START + 1.0):
        live.slot(now).sent += 1
    assert live.timeline.seconds == 1
    assert live.timeline.slots == [TimeSlot(Time(START), 2), TimeSlot(Time(START + 1), 1)]


def test_a_long_crawl_has_longer_intervals_and_the_same_sum() -> None:
    live = LiveTimeline()
    for number in range(10 * MAX_TIME_SLOTS):
        live.slot(START + number).sent += 1
    timeline = live.timeline
    assert len(timeline.slots) <= MAX_TIME_SLOTS
    assert timeline.seconds == 16
    assert sum(slot.sent for slot in timeline.slots) == 10 * MAX_TIME_SLOTS
    assert all(slot.at % timeline.seconds == 0 for slot in timeline.slots)


def test_a_clock_that_is_set_back_finds_the_earlier_interval() -> None:
    live = LiveTimeline()
    for now in (START, START + 5, START):
        live.slot(now).robots_txt += 1
    assert [slot.robots_txt for slot in live.timeline.slots] == [2, 1]


def test_intervals_of_two_timelines_add_up() -> None:
    first = [TimeSlot(Time(START), sent=1), TimeSlot(Time(START + 1), dropped_for={"rules": 1})]
    second = [TimeSlot(Time(START), robots_txt=1, dropped_for={"rules": 2, "unreachable": 1})]
    second.append(TimeSlot(Time(START + 2), dropped_for={"rules": 1}))
    assert START % 2 == 0
    timeline = merged(2, first + second)
    assert timeline.slots == [
        TimeSlot(Time(START), 1, {"rules": 3, "unreachable": 1}, 1),
        TimeSlot(Time(START + 2), 0, {"rules": 1}),
    ]
    assert [slot.dropped for slot in timeline.slots] == [4, 1]


@pytest.mark.parametrize(("seconds", "expected"), [(0, 1), (-8, 1), (10**400, MAX_SECONDS)])
def test_intervals_of_any_length_add_up(seconds: int, expected: int) -> None:
    timeline = merged(seconds, [TimeSlot(Time(START), 1), TimeSlot(Time(START), 2)])
    assert timeline.seconds == expected
    assert [slot.sent for slot in timeline.slots] == [3]
