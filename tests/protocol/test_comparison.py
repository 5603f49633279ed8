"""BoundedMatcher answers as `matches` does, in any order of the patterns."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.comparison import STEPS, BoundedMatcher, matches, step_budget

PATH = "/shop/item/42?size=m"

# Each pattern, and whether it matches PATH.
PATTERNS = [
    ("/", True),
    ("/shop", True),
    ("/shopping", False),
    ("/shop/item/42?size=m$", True),  # the whole path, without a star
    ("/shop/item$", False),
    ("/shop/*/42", True),
    ("/shop/*/43", False),
    ("/shop/*42?size=m$", True),
    ("/shop/*42$", False),
    ("/sh*p/**/42", True),  # two stars in a row
    ("/s*", True),
    ("/a*", False),  # fails at its first piece
    ("/shopping*cart", False),  # fails in the middle of its first piece
    ("/shopping*list", False),
    ("*", True),
    ("*item", True),
    ("*items", False),
    ("*size=m$", True),
    ("*" + "*".join(PATH) + "*", True),  # more pieces than are remembered
    ("*" + "*".join(PATH) + "*x", False),
    ("/shop*nothing*42", False),  # a piece in the middle is nowhere
]


@pytest.mark.parametrize("order", [PATTERNS, PATTERNS[::-1], sorted(PATTERNS)])
def test_the_order_of_patterns_does_not_change_the_answers(
    order: list[tuple[str, bool]],
) -> None:
    comparison = BoundedMatcher(PATH, STEPS)
    assert [comparison.matches(pattern) for pattern, _ in order] == [found for _, found in order]
    assert [matches(pattern, PATH) for pattern, _ in order] == [found for _, found in order]
    assert comparison.steps_left > 0


def test_a_long_search_is_not_repeated() -> None:
    comparison = BoundedMatcher("/" + "a" * 20_000 + "end", step_budget(20_004))
    assert comparison.matches("/*end")
    first = comparison.steps_left
    assert comparison.matches("/a*end")
    assert not comparison.matches("/*ends")
    second = comparison.steps_left
    assert not comparison.matches("/a*ends")
    assert first - second > second - comparison.steps_left


def test_a_comparison_counts_its_steps_below_zero() -> None:
    comparison = BoundedMatcher("/" + "ab" * 5_000, 200)
    comparison.matches("*" + "ba*" * 200)
    assert comparison.steps_left < 0


def test_the_number_of_steps_does_not_grow_beyond_a_path_of_16_kib() -> None:
    assert step_budget(0) < step_budget(16_384) == step_budget(10**9)
