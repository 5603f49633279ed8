"""Finds which rule of a group decides about a path (RFC 9309 §2.2.1 to §2.2.3).

"The most specific match found MUST be used. The most specific match is the match that has the
most octets." So the rules are ranked once, the best first, and the first rule that matches decides.
`PatternIndex` finds it: literal patterns by bisection, patterns with wildcards by a piece of theirs
that occurs in the path. No regular expression is made from what a server sent.

Path and pattern are in the comparable form of `paths`. In a pattern, ``*`` is any run of bytes and
a final ``$`` is the end of the path. Each piece between two stars is searched from where the piece
before it ends, so each star skips as little as possible. If that fails, a star that skips more
fails too.

A file of 500 KiB may hold 40,000 patterns whose pieces all occur in a path. So all comparisons of a
path share a number of steps, each of about 0.1 microseconds. If no steps are left, the caller
assumes the answer that disallows more.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import TypeAlias

from . import paths
from .lines import line_number, line_numbers
from .parser import GroupText, RawRule
from .verdict import Reason, Rule, Verdict

STEPS = 150_000
STEPS_PER_BYTE = 16
"""The steps for one path, and the further steps for each of its bytes. No URL of the 2,108 real
files in the corpus needs a hundredth of them."""
MAX_COUNTED_BYTES = 16_384
"""The bytes of a path that add steps. Further bytes add none, so the time is bounded (ours)."""

# The numbers below affect speed only. benchmarks/parsers.py and benchmarks/hostile.py measure it.
_KEY_LENGTHS = (4, 2, 1)
_MAX_KEY_CANDIDATES = 8
"""The pieces of a pattern from which its key is chosen."""
_MAX_PATTERNS_OF_KEY = 16
"""The patterns with the same key above which another key is preferred."""
_MAX_KEYS_TO_SEARCH = 2_000
"""The number of keys up to which each of them is searched by itself."""
_MAX_RULES_WITHOUT_INDEX = 100
"""Rules that may match the first path, from which on the index is built at once. It bounds the
work that is done in vain if a second path follows: about 0.2 ms."""

TOO_COMPLEX = -1
"""Instead of an index: the comparison was stopped before it was known which pattern matches."""

RankedRule: TypeAlias = tuple[int, bool, int, str]
"""Length times -1, whether it disallows, position, pattern. The smallest of these tuples wins."""

_precedence = itemgetter(1, 0, 2)
"""Returns what decides between rules with the same pattern: allow, length, and position."""


def rank(rules: Iterable[RawRule], *, strict: bool) -> list[RankedRule]:
    """Return the rules in their order of precedence, those with the same pattern as one."""
    ranked: dict[str, RankedRule] = {}
    written: tuple[set[bytes], set[bytes]] = set(), set()
    for allow, value, position in rules:
        # A path begins with "/". A pattern may also begin with "*" (RFC 9309 §5.1).
        if value[0] not in b"/*" or value in written[allow]:
            continue
        written[allow].add(value)
        _add(ranked, not allow, position, value)
        if allow and not strict and b"/index.htm" in value:
            directory, _, name = value.rpartition(b"/")
            if name.startswith(b"index.htm"):
                # Google: "index.htm" and "index.html" also stand for their directory.
                _add(ranked, False, position, directory + b"/$")
    return sorted(ranked.values())


class Steps:
    """The steps that are left for comparisons that share them. Below zero, there are none."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    @classmethod
    def of(cls, path: str) -> Steps:
        return cls(STEPS + STEPS_PER_BYTE * min(len(path), MAX_COUNTED_BYTES))


def matches(pattern: str, path: str, steps: Steps) -> bool:
    """Return whether a pattern matches a path. Its pieces are searched once, from left to right."""
    steps.left -= 5
    pieces = pattern.split("*")
    head = pieces[0]
    if len(pieces) == 1:
        return path == head[:-1] if pattern[-1] == "$" else path.startswith(head)
    if not path.startswith(head):
        return False
    del pieces[0]
    tail = pieces.pop()[:-1] if pattern[-1] == "$" else ""
    position = len(head)
    for piece in pieces:
        at = path.find(piece, position)
        if len(piece) <= len(path) - position:
            # The worst case: CPython compares most of a piece again at each byte.
            seen = (at if at >= 0 else len(path)) - position
            steps.left -= 5 + (seen * (24 + 8 * len(piece)) >> 10)
        if at < 0:
            return False
        position = at + len(piece)
    return len(path) - len(tail) >= position and path.endswith(tail)


def matching(patterns: Iterable[str], path: str) -> Iterator[int]:
    """Yield the index of each pattern that matches a path, in their order.

    The last index is `TOO_COMPLEX` if the comparison takes too many steps.
    """
    steps = Steps.of(path)
    encoded = None
    for number, pattern in enumerate(patterns):
        matched = matches(pattern, path, steps)
        if not matched and paths.has_reserved_query(pattern):
            # RFC 9309 §2.2.2, figure 4: "?baz=https://foo.bar" matches its encoded form.
            encoded = encoded or paths.encode_query(path)
            matched = matches(paths.encode_query(pattern), encoded, steps)
        if steps.left < 0:
            yield TOO_COMPLEX
            return
        if matched:
            yield number


def one_star(pattern: str) -> str:
    """Return a pattern with one star in place of several in a row."""
    return re.sub(r"\*\*+", "*", pattern) if "**" in pattern else pattern


class PatternIndex:
    """Finds the first pattern that `matching` yields, for many paths and the same patterns.

    >>> index = PatternIndex(["/private/press/", "/private/", "/search$", "/*.gif"])

    The literal prefixes are in the order of their text. For each there is the place of the longest
    other prefix with which it begins (-1: there is none), and the best index among all of these.
    Literal paths that end in ``$`` are in a table, and patterns with wildcards in another one, by a
    key: a piece that occurs in every path that the pattern matches.

    >>> list(zip(index._prefixes, index._shorter, index._best))
    [('/private/', -1, 1), ('/private/press/', 0, 0)]
    >>> index._exact, index._by_key
    ({'/search': 2}, {'.gif': [3]})

    For the path /private/logo.gif, bisection finds ``/private/``, the last prefix that does not
    sort behind the path, so index 1 is the best so far. The key ``.gif`` occurs in the path, but
    index 3 is not better than 1, so its pattern is not compared. For the path /public/logo.gif it
    is. If no pattern matches, the answer is their number.

    >>> [index.first(path) for path in ("/private/logo.gif", "/public/logo.gif", "/about")]
    [1, 3, 4]

    Patterns with one of ``: / ? @`` in their query are in a second index, too, with these
    characters encoded. It is searched with the path encoded likewise (RFC 9309 §2.2.2, figure 4).
    """

    def __init__(self, patterns: Sequence[str], allows: Sequence[bool] = ()) -> None:
        self._encoded: PatternIndex | None = None
        self._allows = allows
        self._build(range(len(patterns)), list(patterns))
        reserved = {
            number: paths.encode_query(pattern)
            for number, pattern in enumerate(patterns)
            if "?" in pattern and paths.has_reserved_query(pattern)
        }
        if reserved:
            encoded = [reserved.get(number, "") for number in range(len(patterns))]
            self._encoded = PatternIndex((), allows)
            self._encoded._build(reserved, encoded)

    def first(self, path: str, steps: Steps | None = None) -> int:
        """Return the index of the first pattern that matches a path.

        If none matches, it is the number of patterns. It is `TOO_COMPLEX` if the comparison runs
        out of steps while a pattern is left that disallows, as far as `allows` tells. Steps that
        are passed become fewer.
        """
        best = self._size
        prefixes = self._prefixes
        number = bisect_right(prefixes, path) - 1
        while number >= 0:
            if path.startswith(prefixes[number]):
                best = self._best[number]
                break
            number = self._shorter[number]
        if self._exact and self._exact.get(path, best) < best:
            best = self._exact[path]
        if self._by_key and (keys := self._keys_in(path)):
            steps = steps or Steps.of(path)
            best = self._first_of(keys, path, best, steps)
        if self._encoded is not None and paths.has_reserved_query(path):
            return min(best, self._encoded.first(paths.encode_query(path), steps or Steps.of(path)))
        return best

    def _first_of(self, keys: Iterable[str], path: str, best: int, steps: Steps) -> int:
        """Return the first of the patterns with these keys, or `best`. It uses up steps."""
        numbers = sorted(number for key in keys for number in self._by_key[key] if number < best)
        for place, number in enumerate(numbers):
            if matches(self._patterns[number], path, steps):
                return number
            if steps.left < 0:
                all_allow = self._allows and all(self._allows[rest] for rest in numbers[place:])
                return best if all_allow else TOO_COMPLEX
        return best

    def _keys_in(self, path: str) -> Iterable[str]:
        by_key = self._by_key
        if len(by_key) < _MAX_KEYS_TO_SEARCH:
            return [key for key in by_key if key in path]
        found: list[str] = []
        for length in _KEY_LENGTHS:
            starts = range(len(path) - length + 1)
            found += by_key.keys() & {path[start : start + length] for start in starts}
        return found

    def _build(self, numbers: Iterable[int], patterns: list[str]) -> None:
        prefixes: dict[str, int] = {}
        self._size = len(patterns)
        self._patterns = patterns
        self._exact: dict[str, int] = {}
        self._by_key: dict[str, list[int]] = {}
        for number in numbers:
            pattern = patterns[number] = one_star(patterns[number])
            stem = pattern.removesuffix("$")
            is_prefix = stem is pattern or stem.endswith("*")
            stem = stem.rstrip("*") if is_prefix else stem
            if "*" in stem:
                self._by_key.setdefault(_key(stem, self._by_key), []).append(number)
            else:
                (prefixes if is_prefix else self._exact).setdefault(stem, number)
        self._prefixes = tuple(sorted(prefixes))
        self._shorter, self._best = _links(self._prefixes, prefixes)


def _links(prefixes: Sequence[str], numbers: dict[str, int]) -> tuple[tuple[int, ...], ...]:
    """Return for each prefix the longest other one with which it begins, and its best index.

    The best index is that of all prefixes with which it begins: each matches what it matches.
    """
    links: list[int] = []
    best: list[int] = []
    for index, prefix in enumerate(prefixes):
        shorter = index - 1
        while shorter >= 0 and not prefix.startswith(prefixes[shorter]):
            shorter = links[shorter]
        links.append(shorter)
        number = numbers[prefix]
        best.append(min(number, best[shorter]) if shorter >= 0 else number)
    return tuple(links), tuple(best)


def _key(stem: str, by_key: dict[str, list[int]]) -> str:
    """Return a piece of every path that a pattern matches: a long one, which few patterns share."""
    head, *parts = stem.split("*", _MAX_KEY_CANDIDATES)[:_MAX_KEY_CANDIDATES]
    key = _end(max(parts, key=len))
    if len(key) > 1 and len(by_key.get(key, ())) < _MAX_PATTERNS_OF_KEY:
        return key
    keys = [_end(part) for part in [*parts, head] if part]
    return min(keys, key=lambda key: (len(by_key.get(key, ())) // _MAX_PATTERNS_OF_KEY, -len(key)))


def _end(part: str) -> str:
    return part[-4:] if len(part) > 3 else part[-2:]


def _add(ranked: dict[str, RankedRule], disallow: bool, position: int, value: bytes) -> None:
    pattern, length = paths.pattern_of(value)
    rule = (-length, disallow, position, pattern)
    if pattern in ranked:
        # One rule, with the length of the longer spelling. Allow wins (RFC 9309 §2.2.2).
        other = ranked[pattern]
        _, disallow, position, _ = min(rule, other, key=_precedence)
        rule = (min(rule[0], other[0]), disallow, position, pattern)
    ranked[pattern] = rule


class GroupMatcher:
    """Compares the rules of one crawler with paths in the form of `paths.path_of`.

    A crawl compares most files with either one URL or very many. So the first path is compared with
    the few rules of the text that may match it. The second path builds an index.
    """

    __slots__ = ("_agent", "_asked", "_positions", "_text", "index", "verdicts")

    def __init__(self, agent: str | None, text: GroupText) -> None:
        self._agent = agent
        self._text = text
        self._asked = False
        self.index: PatternIndex | None = None
        """Numbers the rules, the best first. None until the second path."""
        self.verdicts: list[Verdict | None] = []
        """The verdict of each rule by its number, None until it is needed. Then the verdict if no
        rule matches. The last is that of `TOO_COMPLEX`, which is -1."""

    def verdict(self, path: str) -> Verdict:
        """Return the verdict for a path."""
        if path == paths.ROBOTS_TXT:
            return Verdict(allowed=True, reason=Reason.NO_RULES)
        if not self._asked:
            self._asked = True
            rules = list(islice(self._text.rules(path.encode()), _MAX_RULES_WITHOUT_INDEX))
            is_few = len(rules) < _MAX_RULES_WITHOUT_INDEX
            if is_few and (verdict := self._only_verdict(path, rules)) is not None:
                return verdict
        number = (self.index or self._build_index()).first(path)
        verdict = self.verdicts[number]
        if verdict is None:
            verdict = self.verdicts[number] = self._decided_by(self._positions[number])
        return verdict

    def matching_rules(self, path: str) -> tuple[Rule, ...]:
        """Return the rules that match a path, the best first.

        Rules with the same pattern count as one (RFC 9309 §2.2.2), so they follow each other.
        """
        if path == paths.ROBOTS_TXT:
            return ()
        rules = list(self._text.rules(path.encode()))
        patterns = [pattern for _, _, _, pattern in rank(rules, strict=self._text.strict)]
        numbers = list(matching(patterns, path))
        if numbers == [TOO_COMPLEX]:
            # The index may know the rule that decides: it skips rules that cannot match.
            deciding = self.verdict(path).rule
            return () if deciding is None else (deciding,)
        matched = {patterns[number]: number for number in numbers if number != TOO_COMPLEX}
        # Of rules with the same pattern the order is that of `rank`.
        found = sorted(
            (matched[one[3]], *_precedence(one))
            for rule in rules
            for one in rank([rule], strict=self._text.strict)
            if one[3] in matched
        )
        line_of = line_numbers(self._text.text)
        positions = dict.fromkeys(position for *_, position in found)
        return tuple(self._text.rule_at(position, line_of(position)) for position in positions)

    def _only_verdict(self, path: str, rules: list[RawRule]) -> Verdict | None:
        """Return the verdict by a few rules; None if the comparison takes too many steps."""
        ranked = rank(rules, strict=self._text.strict)
        number = next(matching((pattern for _, _, _, pattern in ranked), path), len(ranked))
        if number == TOO_COMPLEX:
            return None  # The index may skip the rules that take so many steps.
        if number == len(ranked):
            return self._undecided(ranked)
        return self._decided_by(ranked[number][2])

    def _build_index(self) -> PatternIndex:
        ranked = rank(self._text.rules(), strict=self._text.strict)
        allows = [not disallow for _, disallow, _, _ in ranked]
        self.index = PatternIndex([pattern for _, _, _, pattern in ranked], allows)
        self._positions = array("I", [position for _, _, position, _ in ranked])
        too_complex = Verdict(False, Reason.TOO_COMPLEX, None, self._agent)
        self.verdicts = [*[None] * len(ranked), self._undecided(ranked), too_complex]
        return self.index

    def _decided_by(self, position: int) -> Verdict:
        rule = self._text.rule_at(position, line_number(self._text.text, position))
        return Verdict(rule.allow, Reason.RULES, rule, self._agent)

    def _undecided(self, ranked: list[RankedRule]) -> Verdict:
        reason = Reason.RULES if ranked or any(self._text.rules()) else Reason.NO_RULES
        return Verdict(True, reason, None, self._agent)
