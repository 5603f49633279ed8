from __future__ import annotations

import pytest

from scrapy_rep.reports.quantities import count, moment, octets, percent, seconds


def test_count() -> None:
    assert [count(0, "gap"), count(1, "gap"), count(1200, "gap")] == [
        "0 gaps", "1 gap", "1,200 gaps",
    ]  # fmt: skip
    assert count(2, "page was", "pages were") == "2 pages were"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "\N{EN DASH}"), (0, 5, "0 %"), (5, 5, "100 %"), (1, 3, "33 %"), (1, 20, "5.0 %"),
        (1, 100_000, "< 0.1 %"), (99_999, 100_000, "> 99.9 %"),
    ],
)  # fmt: skip
def test_percent(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 s"), (0.0001, "< 0.001 s"), (0.05, "0.05 s"), (0.25, "0.25 s"), (0.9999, "1 s"),
        (1, "1 s"), (2.345, "2.35 s"), (59.96, "60 s"), (99.97, "100 s"), (100, "1 min 40 s"),
        (119.9, "2 min"), (3_600, "1 h"), (7_500, "2 h 5 min"), (86_400, "1 d"),
        (100_000, "1 d 3 h"), (float("nan"), "unknown"), (float("inf"), "unknown"), (-5, "0 s"),
    ],
)  # fmt: skip
def test_seconds(number: float, text: str) -> None:
    assert seconds(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1_023, "1,023 B"), (4_300, "4.2 KiB"), (512_000, "500 KiB")],
)
def test_octets(number: int, text: str) -> None:
    assert octets(number) == text


def test_moment() -> None:
    assert moment(0) == "1970-01-01 00:00:00"
    assert moment(86_399, "%H:%M") == "23:59"
    assert moment(1e300) == moment(float("nan")) == "unknown"
