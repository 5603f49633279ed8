"""Which paths a pattern matches, compared with another pattern (RFC 9309 §2.2.3).

Patterns are in the comparable form of `protocol.paths`. The answers are exact or on the safe side:
`covers` may say False and `may_overlap` may say True where that is not so, never the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.comparison import matches
from ..protocol.paths import pattern_has_reserved_query

if TYPE_CHECKING:
    from collections.abc import Iterator

_ANY = "\0"
"""Stands for any octets where a pattern has a star or ends. No pattern contains it."""

_FILLS = ("", "x", "x/x")
"""What stands for a star in an example of a path."""


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every path that another pattern matches.

    >>> covers("/a", "/a/*.gif$"), covers("/a$", "/a")
    (True, False)
    """
    if pattern == other:
        return True
    # Most patterns of a file differ before their first star. This check is fast.
    if not other.startswith((_before_star(pattern), "*")):
        return False
    if pattern_has_reserved_query(other):
        # It also matches paths with another spelling of its query.
        other = other[: other.find("?") + 1]
    # A star of the other pattern is any text, so a star of this one must match all of it.
    return all(matches(pattern, word) for word in _words(other))


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
        tail, other_tail = _tail(pattern), _tail(other)
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


def _words(pattern: str) -> Iterator[str]:
    """Yield texts that a second pattern matches if it matches all paths of this one."""
    stem, end = (pattern[:-1], "") if pattern.endswith("$") else (pattern, _ANY)
    if not stem.startswith("*"):
        yield stem.replace("*", _ANY) + end
        return
    rest = stem.lstrip("*").replace("*", _ANY) + end
    yield f"/{_ANY}{rest}"
    if rest.startswith("/"):
        yield rest


def _head(pattern: str) -> str:
    """Return a text with which every path begins that a pattern matches."""
    if pattern_has_reserved_query(pattern):
        pattern = pattern[: pattern.find("?") + 1]
    return pattern.removesuffix("$").partition("*")[0]


def _before_star(pattern: str) -> str:
    before, star, _ = pattern.partition("*")
    return before if star else pattern.removesuffix("$")


def _tail(pattern: str) -> str:
    return pattern[:-1].rpartition("*")[2]
