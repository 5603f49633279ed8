"""By which rules the verdicts of two groups differ, and an example of a URL for each.

Two lists of rules are compared by what they decide. A rule that is in one list only makes no
difference if a stronger rule of its list covers it, or if the other list decides the same for all
of its paths. Rules that are in both lists make none: a path that they decide in both lists has the
same verdict.

Patterns are in the comparable form of `protocol.paths`. The answers about them are exact or on the
safe side: `covers` may say False and `may_overlap` may say True where that is not so, never the
reverse.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from ..protocol.matcher import matches, sample_paths
from ..protocol.paths import ROBOTS_TXT, pattern_has_reserved_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..protocol.matcher import RankedRule

MAX_STEPS = 1_000_000
"""Comparisons of two patterns for a whole file. Rules that are left after them count as changed."""

_OCTETS_PER_STEP = 16
"""Octets of two patterns whose comparison counts as one more step."""

_FILLS = ("", "x", "x/x")
"""What stands for a star in an example of a path."""


class Steps:
    """The number of comparisons that are left."""

    def __init__(self, number: int = MAX_STEPS) -> None:
        self.left = number

    def use(self, one: str, two: str) -> bool:
        """Count one comparison of two patterns, and return whether there was one left."""
        self.left -= 1 + (len(one) + len(two)) // _OCTETS_PER_STEP
        return self.left > 0


def rule_changes(
    old: Sequence[RankedRule], new: Sequence[RankedRule], steps: Steps
) -> tuple[list[RankedRule], list[RankedRule]]:
    """Return the rules whose loss and whose gain changes verdicts. Both lists are ranked."""
    key = itemgetter(0, 1, 3)  # all but the line
    old_keys, new_keys = set(map(key, old)), set(map(key, new))
    removed = [rule for rule in old if key(rule) not in new_keys]
    added = [rule for rule in new if key(rule) not in old_keys]
    return (
        [rule for rule in removed if _has_effect(rule, old, new, added, steps)],
        [rule for rule in added if _has_effect(rule, new, old, removed, steps)],
    )


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
        if not steps.use(one[3], pattern):
            return True
        if covers(one[3], pattern):
            return False
    # Where this rule decides, no stronger rule of both lists matches. So the other list decides by
    # a stronger rule of its own, or by a weaker one.
    deciding = [one for one in only_other if one[:2] < strength]
    deciding += (one for one in other if one[:2] >= strength)
    for _, other_disallow, _, other_pattern in deciding:
        if not steps.use(other_pattern, pattern):
            return True
        if other_disallow == disallow:
            if covers(other_pattern, pattern):
                return False
        elif may_overlap(other_pattern, pattern):
            return True
    return disallow


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every path that another pattern matches.

    >>> covers("/a", "/a/*.gif$"), covers("/a$", "/a")
    (True, False)
    """
    if pattern == other:
        return True
    # Most patterns of a file differ before their first star. This check is fast.
    before, star, _ = pattern.partition("*")
    if not other.startswith((before if star else pattern.removesuffix("$"), "*")):
        return False
    if pattern_has_reserved_query(other):
        # It also matches paths with another spelling of its query.
        other = other[: other.find("?") + 1]
    # A star of the other pattern is any text, so a star of this one must match all of it.
    return all(matches(pattern, path) for path in sample_paths(other))


def may_overlap(pattern: str, other: str) -> bool:
    """Return False if no path matches both patterns.

    >>> may_overlap("/a", "/b*"), may_overlap("/*.gif$", "/a")
    (False, True)
    """
    head, other_head = _head(pattern), _head(other)
    if not (head.startswith(other_head) or other_head.startswith(head)):
        return False
    if pattern_has_reserved_query(pattern) or pattern_has_reserved_query(other):
        return True
    for one, two in ((pattern, other), (other, pattern)):
        if "*" not in one and one.endswith("$"):
            return matches(two, one[:-1])
    if pattern.endswith("$") and other.endswith("$"):
        tail, other_tail = (each[:-1].rpartition("*")[2] for each in (pattern, other))
        return tail.endswith(other_tail) or other_tail.endswith(tail)
    return True


def examples(pattern: str) -> Iterator[str]:
    """Yield a few paths that a pattern matches.

    >>> list(examples("/*.gif$"))
    ['/.gif', '/x.gif', '/x/x.gif']
    """
    for fill in _FILLS:
        path = pattern.removesuffix("$").replace("*", fill)
        yield path if path.startswith("/") else f"/{path}"
        if "*" not in pattern:
            if not pattern.endswith("$"):
                yield f"{path}x"
            return


def _head(pattern: str) -> str:
    """Return a text with which every path begins that a pattern matches."""
    if pattern_has_reserved_query(pattern):
        pattern = pattern[: pattern.find("?") + 1]
    return pattern.removesuffix("$").partition("*")[0]
