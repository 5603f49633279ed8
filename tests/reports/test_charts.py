from __future__ import annotations

import pytest
from parsel import Selector

from scrapy_rep.reports.charts import Bar, bars, scatter, timeline
from scrapy_rep.reports.gaps import Gaps
from scrapy_rep.reports.model import HostPace, Time, Timeline, TimeSlot


def host(delay: float, gap: float, too_short: int = 0) -> HostPace:
    gaps = Gaps()
    gaps.add(gap)
    return HostPace(
        "a.example", shortest_delay=delay, longest_delay=delay, paced_gaps=gaps, too_short=too_short
    )


def test_bars_are_relative_to_the_longest() -> None:
    chart = bars(
        "a", ("b", "c"), [Bar("x", 200, "sent"), Bar("y", 50, "sent"), Bar("z", 0, "sent")]
    )
    page = Selector(str(chart))
    assert page.css("rect::attr(width)").getall() == ["100.00", "25.00", "0.00"]
    assert page.css("tbody th::text").getall() == ["x", "y", "z"]
    assert page.css("strong::text").getall() == ["200", "50", "0"]


def test_a_small_bar_is_visible() -> None:
    chart = bars("a", ("b", "c"), [Bar("x", 1_000_000, "sent"), Bar("y", 1, "sent")])
    assert Selector(str(chart)).css("rect::attr(width)").getall() == ["100.00", "0.50"]


def test_bars_of_nothing() -> None:
    rows = [Bar("x", 0, "sent")]
    assert Selector(str(bars("a", ("b", "c"), rows))).css("rect::attr(width)").getall() == ["0.00"]
    assert "<tbody></tbody>" in str(bars("a", ("b", "c"), []))


def test_a_timeline_is_stacked() -> None:
    page = Selector(
        str(timeline(Timeline(2, [TimeSlot(Time(10), 2, {"rules": 1}, 1), TimeSlot(Time(14), 2)])))
    )
    assert page.css("path::attr(d)").getall() == [
        "M0.0 100.0h320.0v100.0h-320.0zM640.0 100.0h320.0v100.0h-320.0z",
        "M0.0 50.0h320.0v50.0h-320.0z",
        "M0.0 0.0h320.0v50.0h-320.0z",
    ]
    assert page.css(".y span::text").getall() == ["4", "2", "0"]
    assert page.css(".x span::text").getall() == ["00:00:10", "00:00:13", "00:00:16"]
    assert page.css("svg[role=img] title::text").get() == (
        "Requests over time. Pages requested: 4, Pages not requested: 1, robots.txt: 1. "
        "The table below has the numbers."
    )
    assert page.css("tbody tr:first-child ::text").getall() == [
        "1970-01-01 00:00:10", "2", "1", "1", "1 rules",
    ]  # fmt: skip


def test_a_long_timeline_has_longer_intervals() -> None:
    slots = [TimeSlot(Time(second), 1) for second in range(0, 200_000, 100)]
    page = Selector(str(timeline(Timeline(1, slots))))
    numbers = [int(text) for text in page.css("tbody td:nth-child(2)::text").getall()]
    assert len(numbers) <= 24
    assert sum(numbers) == len(slots)
    assert page.css(".x span::text").get() == "1970-01-01 00:00"


def test_the_table_of_a_timeline_has_the_reasons() -> None:
    reasons = {"rules": 3, "<b>\u202e": 1000, **dict.fromkeys("abcd", 1)}
    line = Timeline(1, [TimeSlot(Time(0), 0, reasons), TimeSlot(Time(1000), 0, {"rules": 1})])
    cells = Selector(str(timeline(line))).css("tbody td:last-child ::text").getall()
    assert cells == [
        r"1,000 <b>\u202e, 3 rules, 1 a, 1 b, 1 c, and 1 other reason", "1 rules",
    ]  # fmt: skip


def test_a_gap_as_long_as_the_delay_is_on_the_diagonal() -> None:
    page = Selector(str(scatter([host(1, 1), host(10, 10), host(10, 1, too_short=3)])))
    points = [
        (circle.attrib["cx"], circle.attrib["cy"], circle.attrib["class"])
        for circle in page.css("circle")
    ]
    assert points == [
        ("60.0", "260.0", "kept"), ("310.0", "10.0", "kept"), ("310.0", "260.0", "short"),
    ]  # fmt: skip
    assert page.css("text::text").getall()[:4] == ["1 s", "1 s", "10 s", "10 s"]
    assert "of 3 hosts." in page.css("title::text").get("")


def test_hosts_at_the_same_place_share_a_circle() -> None:
    page = Selector(str(scatter([host(5, 5.1)] * 1_000)))
    assert len(page.css("circle")) == 1
    assert page.css("circle::attr(r)").get() == "9.0"


@pytest.mark.parametrize("delay", [1e-9, 0.001, 1, 1e6, 1e12, float("inf")])
def test_any_delay_is_inside(delay: float) -> None:
    page = Selector(str(scatter([host(delay, 1), host(1, delay), host(delay, delay)])))
    for circle in page.css("circle"):
        assert 60 <= float(circle.attrib["cx"]) <= 310
        assert 10 <= float(circle.attrib["cy"]) <= 260
