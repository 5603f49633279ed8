"""Distributions of whole numbers, in bounded memory."""

from __future__ import annotations

import pytest

from scrapy_rep.reports.distribution import Distribution


def of(*numbers: int, digits: int = 8) -> Distribution:
    made = Distribution(digits)
    for number in numbers:
        made.add(number)
    return made


def test_nothing() -> None:
    empty = Distribution().as_json()
    assert set(empty.values()) == {0}


def test_small_numbers_are_exact() -> None:
    found = of(*range(101)).as_json()
    assert found == {
        "count": 101,
        "mean": 50,
        "p10": 10,
        "p25": 25,
        "median": 50,
        "p75": 75,
        "p90": 90,
        "p99": 99,
        "max": 100,
    }


@pytest.mark.parametrize("number", [255, 256, 257, 1_000, 123_456, 10**9])
def test_a_quantile_is_less_than_1_percent_too_small(number: int) -> None:
    assert 0.99 * number < of(number).quantile(0.5) <= number
    assert of(number).as_json()["max"] == number


def test_memory_grows_with_the_digits_only() -> None:
    assert len(of(*range(0, 2_000_000, 97)).histogram) < 256 + 128 * 13


def test_more_digits() -> None:
    assert of(10_000, digits=12).quantile(0.5) == 10_000


def test_merged_distributions() -> None:
    one = of(1, 2, 300)
    one.merge(of(3, 4_000))
    assert one.as_json() == of(1, 2, 3, 300, 4_000).as_json()
