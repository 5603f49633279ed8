"""The most frequent texts, in bounded memory."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.reports.top_counts import MAX_TEXT, TopCounts


def test_counts_are_exact_below_the_capacity() -> None:
    top = TopCounts(3)
    top.add(["b", "a", "b", "c"])
    assert top.most(2) == [("b", 2), ("a", 1)]
    assert top.error == 0


def test_a_frequent_text_is_kept_among_many_others() -> None:
    top, chance = TopCounts(10), random.Random(1)
    texts = ["often"] * 500 + [f"once {number}" for number in range(5000)]
    chance.shuffle(texts)
    for text in texts:
        top.add([text])
        assert len(top.counts) <= 2 * top.capacity
    assert top.most(1)[0][0] == "often"
    assert top.counts["often"] <= 500 <= top.counts["often"] + top.error


def test_a_long_text_is_cut() -> None:
    top = TopCounts(1)
    top.add(["x" * 10_000])
    assert list(top.counts) == ["x" * MAX_TEXT]


def test_merged_counts() -> None:
    one, other = TopCounts(2), TopCounts(2)
    one.add("aabcd")
    other.add("aaefg")
    one.merge(other)
    assert one.counts["a"] <= 4 <= one.counts["a"] + one.error
    assert len(one.counts) <= 4


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=20), max_size=8))
def test_every_count_is_within_the_error(parts: list[list[str]]) -> None:
    whole = TopCounts(2)
    for part in parts:
        top = TopCounts(2)
        top.add(part)
        whole.merge(top)
    real = Counter(text for part in parts for text in part)
    for text, number in real.items():
        assert whole.counts[text] <= number <= whole.counts[text] + whole.error
