from __future__ import annotations

from statistics import median_high

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.reports.gaps import LONGEST, MAX_ERROR, SHORTEST, Gaps


def gaps_of(lengths: list[float]) -> Gaps:
    gaps = Gaps()
    for length in lengths:
        gaps.add(length)
    return gaps


@pytest.mark.parametrize(
    "lengths",
    [
        [1.0],
        [0.3, 0.31, 5.0],
        [2.0] * 99 + [0.001],
        [0.5, 1.5],  # the longer one of the two in the middle
        [SHORTEST, LONGEST, 86_400.0],
    ],
)
def test_the_median_is_near_the_exact_one(lengths: list[float]) -> None:
    assert gaps_of(lengths).median == pytest.approx(median_high(lengths), rel=MAX_ERROR + 1e-5)


@given(st.lists(st.floats(SHORTEST, LONGEST), min_size=1, max_size=50))
def test_the_error_of_the_median_is_bounded(lengths: list[float]) -> None:
    assert gaps_of(lengths).median == pytest.approx(median_high(lengths), rel=MAX_ERROR + 1e-5)


def test_the_error_is_what_the_documentation_says() -> None:
    assert pytest.approx(0.0443, abs=0.0001) == MAX_ERROR


def test_the_smallest_gap_and_the_number_are_exact() -> None:
    gaps = gaps_of([0.5, 0.0, 1e9])
    assert (gaps.count, gaps.smallest) == (3, 0.0)


def test_without_gaps_there_is_no_median() -> None:
    assert (Gaps().median, Gaps().smallest, Gaps().count) == (None, None, 0)


def test_memory_does_not_grow_with_the_gaps() -> None:
    gaps = gaps_of([0.0005 * number for number in range(50_000)])
    assert len(gaps.histogram) < 250


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_merged_gaps_are_those_of_one_list(cut: int) -> None:
    lengths = [0.1, 0.0, 3.0, 0.1, 60.0]
    merged = gaps_of(lengths[:cut])
    merged.merge(gaps_of(lengths[cut:]))
    assert merged == gaps_of(lengths)


@pytest.mark.parametrize(
    ("bucket", "expected"), [(10**400, LONGEST), (-(10**400), SHORTEST), (8, 2.0)]
)
def test_a_bucket_of_any_length_has_a_median(bucket: int, expected: float) -> None:
    gaps = Gaps(1, 1.0, {bucket: 1})
    assert gaps.median == pytest.approx(expected, rel=MAX_ERROR + 1e-5)
