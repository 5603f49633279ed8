"""The rules of one group, and which of them decides about a path (RFC 9309 §2.2.2, §2.2.3).

"The most specific match found MUST be used. The most specific match is the match that has the
most octets." So the rules are ranked once, and the best of those that match is the answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from .parser import RawRule
from .paths import encode_query, has_doubtful_query, pattern_of


class Ranked(NamedTuple):
    """A rule in its comparable form."""

    pattern: str
    length: int
    rule: RawRule


class RuleIndex:
    """Finds the deciding rule of a group."""

    __slots__ = ("_encoded", "_literal", "rules")

    def __init__(self, rules: Iterable[RawRule], *, strict: bool) -> None:
        ranked = _rank(rules, strict=strict)
        self.rules = [entry.rule for entry in ranked]
        patterns = [entry.pattern for entry in ranked]
        self._literal = PatternIndex(enumerate(patterns))
        doubtful = [
            (rank, encode_query(pattern))
            for rank, pattern in enumerate(patterns)
            if has_doubtful_query(pattern)
        ]
        self._encoded = PatternIndex(doubtful) if doubtful else None

    def decide(self, path: str) -> int:
        """The rank of the rule that decides, or the number of rules if none matches."""
        nothing = len(self.rules)
        best = self._literal.best(path, nothing)
        if self._encoded is not None and "?" in path:
            best = self._encoded.best(encode_query(path), best)
        return best


class PatternIndex:
    """Finds the lowest rank among the patterns that match a path."""

    __slots__ = ("_best", "_exact", "_prefixes", "_shorter", "_wildcards")

    def __init__(self, patterns: Iterable[tuple[int, str]]) -> None:
        prefixes: dict[str, int] = {}
        self._exact: dict[str, int] = {}
        self._wildcards: list[tuple[int, str]] = []
        for rank, pattern in patterns:
            stem = pattern.rstrip("*") if not pattern.endswith("*$") else pattern[:-1].rstrip("*")
            if "*" in stem:
                self._wildcards.append((rank, pattern))
            elif stem != pattern or not pattern.endswith("$"):
                prefixes.setdefault(stem, rank)
            else:
                self._exact.setdefault(pattern[:-1], rank)
        self._prefixes = sorted(prefixes)
        self._shorter: list[int] = []
        self._best: list[int] = []
        for number, prefix in enumerate(self._prefixes):
            shorter = number - 1
            while shorter >= 0 and not prefix.startswith(self._prefixes[shorter]):
                shorter = self._shorter[shorter]
            rank = prefixes[prefix]
            self._shorter.append(shorter)
            self._best.append(min(rank, self._best[shorter]) if shorter >= 0 else rank)

    def best(self, path: str, best: int) -> int:
        """The lowest rank that matches, if it is lower than `best`."""
        number = bisect_right(self._prefixes, path) - 1
        while number >= 0:
            if path.startswith(self._prefixes[number]):
                best = min(best, self._best[number])
                break
            number = self._shorter[number]
        best = min(best, self._exact.get(path, best))
        for rank, pattern in self._wildcards:
            if rank >= best:
                break
            if matches(pattern, path):
                return rank
        return best


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern with wildcards matches, in one walk from left to right."""
    ended = pattern.endswith("$")
    head, *parts = (pattern[:-1] if ended else pattern).split("*")
    if not path.startswith(head):
        return False
    position = len(head)
    tail = parts.pop() if ended else ""
    for part in parts:
        found = path.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return not ended or (path.endswith(tail) and len(path) - len(tail) >= position)


def _rank(rules: Iterable[RawRule], *, strict: bool) -> list[Ranked]:
    """The rules in the order in which they win: longest first, then allow, then the first."""
    merged: dict[str, Ranked] = {}
    for rule in rules:
        for value in _readings(rule, strict=strict):
            pattern, length = pattern_of(value)
            entry = Ranked(pattern, length, rule)
            other = merged.get(pattern)
            if other is None:
                merged[pattern] = entry
                continue
            # The same pattern twice is one rule, and allow wins (§2.2.2).
            better = min(other, entry, key=lambda e: (not e.rule.allow, -e.length, e.rule.line))
            merged[pattern] = better._replace(length=max(other.length, length))
    return sorted(
        merged.values(), key=lambda e: (-e.length, not e.rule.allow, e.rule.line)
    )


def _readings(rule: RawRule, *, strict: bool) -> list[bytes]:
    value = rule.value
    if value[:1] not in (b"/", b"*"):
        return []
    if rule.allow and not strict:
        directory, _, last = value.rpartition(b"/")
        if last.startswith(b"index.htm"):
            return [value, directory + b"/$"]
    return [value]
