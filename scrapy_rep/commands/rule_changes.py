"""The rules by which the verdicts of two groups differ.

Two lists of rules are compared by what they decide. A rule that is in one list only makes no
difference if a stronger rule of its list covers it, or if the other list decides the same for all
of its paths. Rules that are in both lists make none: a path that they decide in both lists has the
same verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..protocol.paths import ROBOTS_TXT
from .patterns import covers, may_overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..protocol.matcher import RankedRule

MAX_STEPS = 1_000_000
"""Comparisons of two patterns for a whole file. Rules that are left after them count as changed."""

_OCTETS_PER_STEP = 16
"""Octets of two patterns whose comparison counts as one more step."""


class Steps:
    """The number of comparisons that are left."""

    def __init__(self, number: int = MAX_STEPS) -> None:
        self.left = number

    def use(self, one: str, two: str) -> None:
        """Count one comparison of two patterns. Long patterns count as more."""
        self.left -= 1 + (len(one) + len(two)) // _OCTETS_PER_STEP

    @property
    def are_used_up(self) -> bool:
        """Whether no comparison is left."""
        return self.left <= 0


class RuleChanges(NamedTuple):
    """The rules that make a difference."""

    removed: list[RankedRule]
    added: list[RankedRule]


def rule_changes(old: Sequence[RankedRule], new: Sequence[RankedRule], steps: Steps) -> RuleChanges:
    """Return the rules whose loss or gain changes verdicts. Both lists are ranked."""
    old_keys, new_keys = {_key(rule) for rule in old}, {_key(rule) for rule in new}
    removed = [rule for rule in old if _key(rule) not in new_keys]
    added = [rule for rule in new if _key(rule) not in old_keys]
    return RuleChanges(
        [rule for rule in removed if _has_effect(rule, old, new, added, steps)],
        [rule for rule in added if _has_effect(rule, new, old, removed, steps)],
    )


def _key(rule: RankedRule) -> tuple[int, bool, str]:
    length, disallow, _, pattern = rule
    return length, disallow, pattern


def _has_effect(
    rule: RankedRule,
    own: Sequence[RankedRule],
    other: Sequence[RankedRule],
    only_other: Sequence[RankedRule],
    steps: Steps,
) -> bool:
    """Return whether a rule of one list decides paths that the other list may decide otherwise."""
    length, disallow, _, pattern = rule
    if pattern == f"{ROBOTS_TXT}$":  # which is always allowed
        return False
    strength = (length, disallow)
    for one in own:
        if one[:2] >= strength:
            break
        if steps.are_used_up:
            return True
        steps.use(one[3], pattern)
        if covers(one[3], pattern):
            return False
    # Where this rule decides, no stronger rule of both lists matches. So the other list decides by
    # a stronger rule of its own, or by a weaker one.
    stronger = (one for one in only_other if one[:2] < strength)
    weaker = (one for one in other if one[:2] >= strength)
    for rules in (stronger, weaker):
        for _, other_disallow, _, other_pattern in rules:
            if steps.are_used_up:
                return True
            steps.use(other_pattern, pattern)
            if other_disallow == disallow:
                if covers(other_pattern, pattern):
                    return False
            elif may_overlap(other_pattern, pattern):
                return True
    return disallow
