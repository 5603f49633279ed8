"""Finds which rule of a group decides about a path (RFC 9309 §2.2.2 and §2.2.3).

"The most specific match found MUST be used. The most specific match is the match that has the
most octets." So the rules are ranked once, the best first, and the first rule that matches decides.
`PatternIndex` finds it: literal patterns by bisection, patterns with wildcards by a piece of theirs
that occurs in the path. No regular expression is made from what a server sent.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from .comparison import BoundedMatcher, matches, step_budget
from .paths import encode_query, path_has_reserved_query, pattern_has_reserved_query, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .parser import RawRule

# The numbers below affect speed only. benchmarks/parsers.py and benchmarks/hostile.py measure it.
_KEY_CODES: dict[int, Literal["B", "H", "I"]] = {1: "B", 2: "H", 4: "I"}
"""The lengths of keys, and the array type code of an integer of that length."""
_MAX_KEY_CANDIDATES = 8
"""The pieces of a pattern from which its key is chosen."""
_MAX_PATTERNS_OF_KEY = 16
"""The patterns with the same key above which another key is preferred."""
_MAX_WEIGHED_PATTERNS = 5_000
"""The patterns whose keys are compared with all others. Further patterns get a key faster."""
_MAX_FIRST_MATCH_PATTERNS = 100
"""The patterns of a single question up to which steps are not counted."""
_MAX_UNCOUNTED_LENGTH = 512
"""The octets of a path up to which some patterns are compared without counting steps."""
_MAX_UNCOUNTED_PATTERNS = 64
"""The number of these patterns, and of patterns that are compared in the order of their rank."""
_MAX_OCTETS_TO_SEARCH = 16_384
"""The octets of a path times the number of keys up to which each key is searched by itself."""
_FAILURES_BEFORE_SKIP = 8
"""The patterns in a row that fail alike before the end of all such patterns is searched."""
_STARS = re.compile(r"\*\*+")

TOO_COMPLEX = -1
"""Instead of an index: the comparison was stopped before it was known which pattern matches."""

_PatternsByKey: TypeAlias = dict[str, list[int]]

RankedRule: TypeAlias = tuple[int, bool, int, str]
"""Length times -1, whether it disallows, position, pattern. The smallest of these tuples wins."""


def rank(rules: Iterable[RawRule], *, strict: bool) -> list[RankedRule]:
    """Return the rules in their order of precedence.

    The longest is first, of equal lengths the one that allows, then the first of the file.
    """
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


def matching(patterns: Iterable[str], path: str) -> Iterator[int]:
    """Yield the index of each pattern that matches a path, in their order.

    The last index is `TOO_COMPLEX` if the comparison takes too many steps.
    """
    steps = step_budget(len(path)) // 2
    plain, encoded = BoundedMatcher(path, steps), None
    for number, pattern in enumerate(patterns):
        if plain.matches(pattern):
            yield number
        elif pattern_has_reserved_query(pattern):
            # RFC 9309 §2.2.2, figure 4: "?baz=https://foo.bar" matches its encoded form.
            encoded = encoded or BoundedMatcher(encode_query(path), steps)
            if encoded.matches(encode_query(pattern)):
                yield number
        if plain.steps_left < 0 or (encoded and encoded.steps_left < 0):
            break
    else:
        return
    yield TOO_COMPLEX


def first_match(patterns: Sequence[str], path: str) -> int:
    """Return the index of the first pattern that matches a path.

    If none matches, returns the number of patterns. Returns `TOO_COMPLEX` if the comparison takes
    too many steps. For many paths and the same patterns, use `PatternIndex`.
    """
    if len(path) >= _MAX_UNCOUNTED_LENGTH or len(patterns) > _MAX_FIRST_MATCH_PATTERNS:
        return next(matching(patterns, path), len(patterns))
    for number, pattern in enumerate(patterns):
        if matches(pattern, path):
            return number
        if pattern_has_reserved_query(pattern) and matches(
            encode_query(pattern), encode_query(path)
        ):
            return number
    return len(patterns)


class PatternIndex:
    """Finds what `first_match` finds, for many paths and the same patterns.

    Example. The rules of a group, in their order of precedence::

        0  Allow:    /private/press/
        1  Disallow: /private/
        2  Disallow: /search$
        3  Disallow: /*.gif

    >>> index = PatternIndex(["/private/press/", "/private/", "/search$", "/*.gif"])

    Three tables are built. The first holds the literal prefixes in the order of their text. For
    each there is the place of the longest other prefix with which it begins (-1: there is none),
    and the best index among all prefixes with which it begins.

    >>> list(zip(index._prefixes, index._shorter, index._best))
    [('/private/', -1, 1), ('/private/press/', 0, 0)]

    The second holds the literal paths that end in ``$``. The third holds the patterns with
    wildcards by a key: a piece that occurs in every path that the pattern matches.

    >>> index._exact, index._by_key
    ({'/search': 2}, {'.gif': [3]})

    For the path /private/logo.gif, bisection finds ``/private/``, the last prefix that does not
    sort behind the path. The path begins with it, so index 1 is the best so far. The key ``.gif``
    occurs in the path, but index 3 is not better than 1, so its pattern is not compared.

    >>> index.first("/private/logo.gif")
    1

    For the path /public/logo.gif, the last prefix is ``/private/press/``. The path begins neither
    with it nor with the shorter one, ``/private/``. The key ``.gif`` occurs in the path, so
    pattern 3 is compared, and it matches.

    >>> index.first("/public/logo.gif")
    3

    No pattern matches /about. The answer is their number.

    >>> index.first("/about")
    4

    Patterns with one of ``: / ? @`` in their query are in a second index, too, with these
    characters encoded. That index is searched with the path encoded likewise (RFC 9309 §2.2.2,
    figure 4).
    """

    __slots__ = (
        "_allows",
        "_best",
        "_by_key",
        "_encoded",
        "_exact",
        "_keys",
        "_max_length_to_search",
        "_order",
        "_patterns",
        "_places_in_order",
        "_prefixes",
        "_shorter",
        "_size",
    )

    def __init__(self, patterns: Sequence[str], allows: Sequence[bool] = ()) -> None:
        self._encoded: PatternIndex | None = None
        self._allows = allows
        self._order: array[int] | None = None
        self._build(range(len(patterns)), list(patterns))
        reserved = {
            number: encode_query(pattern)
            for number, pattern in enumerate(patterns)
            if "?" in pattern and pattern_has_reserved_query(pattern)
        }
        if reserved:
            encoded = [reserved.get(number, "") for number in range(len(patterns))]
            self._encoded = PatternIndex((), allows)
            self._encoded._build(reserved, encoded)

    def first(self, path: str, steps: int | None = None) -> int:
        """Return the index of the first pattern that matches a path.

        If none matches, it is the number of patterns. It is `TOO_COMPLEX` if the comparison runs
        out of steps while a pattern is left that disallows, as far as `allows` tells.
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
        by_key = self._by_key
        if by_key:
            if len(path) < self._max_length_to_search and len(path) < _MAX_UNCOUNTED_LENGTH:
                uncounted = _MAX_UNCOUNTED_PATTERNS
                for key in by_key:
                    if key in path:
                        for number in by_key[key]:
                            if number >= best:
                                break
                            if matches(self._patterns[number], path):
                                best = number
                                break
                            uncounted -= 1
                            if uncounted < 0:
                                break
                        if uncounted < 0:
                            break
                if uncounted < 0:
                    best, steps = self._first_of(self._keys_in(path), path, best, steps)
            else:
                best, steps = self._first_of(self._keys_in(path), path, best, steps)
        if self._encoded is not None and path_has_reserved_query(path):
            steps = step_budget(len(path)) if steps is None else steps
            return min(best, self._encoded.first(encode_query(path), steps))
        return best

    def _first_of(
        self, keys: Iterable[str], path: str, best: int, steps: int | None
    ) -> tuple[int, int]:
        """Return the first of the patterns with these keys, or `best`, and the steps left."""
        by_key, patterns = self._by_key, self._patterns
        numbers: list[int] = []
        for key in keys:
            of_key = by_key[key]
            numbers += of_key if of_key[-1] < best else of_key[: bisect_left(of_key, best)]
        text_order = len(numbers) > _MAX_UNCOUNTED_PATTERNS
        order = self._in_order(numbers) if text_order else sorted(numbers)
        comparison = BoundedMatcher(path, step_budget(len(path)) if steps is None else steps)
        index = 0
        while index < len(order):
            number = order[index]
            index += 1
            if number >= best:
                comparison.steps_left -= 1
            elif comparison.matches(patterns[number]):
                best = number
            elif comparison.steps_left < 0:
                for rest in islice(order, index - 1, None):
                    if rest < best and not (self._allows and self._allows[rest]):
                        return TOO_COMPLEX, comparison.steps_left
                break
            elif (
                text_order
                and index + _FAILURES_BEFORE_SKIP < len(order)
                and patterns[order[index + _FAILURES_BEFORE_SKIP]].startswith(
                    comparison.failed or "$"
                )
            ):
                # All patterns that begin so are neighbors. DEL sorts behind them: in comparable
                # form it is percent-encoded, so no pattern contains it.
                beyond = comparison.failed + "\x7f"
                index = bisect_left(order, beyond, index, key=patterns.__getitem__)
        return best, comparison.steps_left

    def _in_order(self, numbers: list[int]) -> Sequence[int]:
        """Return patterns in the order of their text. Those that begin alike are neighbors."""
        if self._order is None:
            ordered = [number for of_key in self._by_key.values() for number in of_key]
            ordered.sort(key=self._patterns.__getitem__)
            self._order = array("I", ordered)
            self._places_in_order = array("I", bytes(4 * self._size))
            for place, number in enumerate(ordered):
                self._places_in_order[number] = place
        if len(numbers) > len(self._order) // 4:
            return self._order
        places = sorted([self._places_in_order[number] for number in numbers])
        return [self._order[place] for place in places]

    def _build(self, numbers: Iterable[int], patterns: list[str]) -> None:
        prefixes: dict[str, int] = {}
        self._size = len(patterns)
        self._patterns = patterns
        self._exact: dict[str, int] = {}
        self._by_key: _PatternsByKey = {}
        self._keys: _Keys | None = None
        by_key = self._by_key
        weighed = 0
        for number in numbers:
            pattern = patterns[number]
            if "*" not in pattern:
                if pattern[-1] != "$":
                    prefixes.setdefault(pattern, number)
                else:
                    self._exact.setdefault(pattern[:-1], number)
                continue
            if "**" in pattern:
                pattern = patterns[number] = _STARS.sub("*", pattern)
            stem = pattern.removesuffix("$")
            if stem is pattern or stem[-1] == "*":
                stem = stem.rstrip("*")
            if "*" in stem:
                weighed += 1
                key = _key(stem, by_key, weigh=weighed < _MAX_WEIGHED_PATTERNS)
                if key in by_key:
                    by_key[key].append(number)
                else:
                    by_key[key] = [number]
            else:
                prefixes.setdefault(stem, number)
        self._max_length_to_search = _MAX_OCTETS_TO_SEARCH // (len(by_key) or 1)
        self._link(prefixes)

    def _link(self, prefixes: dict[str, int]) -> None:
        self._prefixes = tuple(sorted(prefixes))
        # For each prefix: the longest other prefix with which it begins, and the best index of all
        # prefixes with which it begins. All of them match the paths that it matches.
        links: list[int] = []
        best: list[int] = []
        for index, prefix in enumerate(self._prefixes):
            shorter = index - 1
            while shorter >= 0 and not prefix.startswith(self._prefixes[shorter]):
                shorter = links[shorter]
            number = prefixes[prefix]
            if shorter >= 0 and best[shorter] < number:
                number = best[shorter]
            links.append(shorter)
            best.append(number)
        self._shorter = tuple(links)
        self._best = tuple(best)

    def _keys_in(self, path: str) -> Iterable[str]:
        if len(path) < self._max_length_to_search:
            return [key for key in self._by_key if key in path]
        if self._keys is None:
            self._keys = _Keys(self._by_key)
        return self._keys.found(path)


class _Keys:
    """Finds the keys that occur in a text, in one pass for any number of keys.

    Each one, two or four octets of the text are read as an integer. Sets of integers are the
    fastest way to compare all of them with all keys.
    """

    __slots__ = ("_numbered",)

    def __init__(self, keys: Iterable[str]) -> None:
        self._numbered: list[tuple[int, dict[int, str]]] = []
        for length, code in _KEY_CODES.items():
            fitting = [key for key in keys if len(key) == length]
            if fitting:
                numbers = array(code, "".join(fitting).encode())
                self._numbered.append((length, dict(zip(numbers, fitting, strict=True))))

    def found(self, text: str) -> Iterator[str]:
        octets = memoryview(text.encode())
        for length, keys in self._numbered:
            numbers: set[int] = set()
            for start in range(length):
                end = len(octets) - (len(octets) - start) % length
                numbers.update(octets[start:end].cast(_KEY_CODES[length]))
            for number in numbers & keys.keys():
                yield keys[number]


def _key(stem: str, by_key: _PatternsByKey, *, weigh: bool) -> str:
    """Return a piece of every path that a pattern matches: a long one, which few patterns share."""
    head, *parts = stem.split("*", _MAX_KEY_CANDIDATES)[:_MAX_KEY_CANDIDATES]
    key = _end(max(parts, key=len))
    if not weigh or (
        len(key) > 1 and (key not in by_key or len(by_key[key]) < _MAX_PATTERNS_OF_KEY)
    ):
        return key
    keys = [_end(part) for part in [*parts, head] if part]
    return min(keys, key=lambda key: (len(by_key.get(key, ())) // _MAX_PATTERNS_OF_KEY, -len(key)))


def _end(part: str) -> str:
    return part[-4:] if len(part) > 3 else part[-2:]


def _add(ranked: dict[str, RankedRule], disallow: bool, position: int, value: bytes) -> None:
    pattern, length = pattern_of(value)
    rule = (-length, disallow, position, pattern)
    if pattern in ranked:
        # Rules with the same pattern are one rule, with the length of the longer spelling. Allow
        # wins (RFC 9309 §2.2.2).
        other = ranked[pattern]
        _, disallow, position, _ = min(rule, other, key=lambda one: (one[1], one[0], one[2]))
        rule = (min(rule[0], other[0]), disallow, position, pattern)
    ranked[pattern] = rule
