"""The rules of one group, and which of them decides about a path (RFC 9309 §2.2.2, §2.2.3).

"The most specific match found MUST be used. The most specific match is the match that has the
most octets." So the rules are ranked once, best first, and the lowest rank that matches decides.
Literal patterns are found by bisection. Patterns with wildcards are looked at only where a piece
of theirs occurs in the path. No regular expression is made from what a server sent.
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

_CODES: dict[int, Literal["B", "H", "I"]] = {1: "B", 2: "H", 4: "I"}
"""The lengths of keys, and the codes of numbers as long in memory."""
_PARTS = 8
"""Pieces of a pattern that are looked at for its key."""
_CROWDED = 16
"""Patterns with one key, from which on another key is looked for."""
_SOME = 100
"""How many these are for a single question."""
_SKIP = 8
"""Patterns that fail alike, from which on the end of them is looked for."""
_MANY = 5_000
"""Patterns with wildcards after which no more time is spent on finding good keys."""
_LITTLE = 16_384
"""Octets to be looked through for all keys together, below which one search for each is fastest."""
_SHORT = 512
"""Octets of a path up to which some patterns are compared without counting steps."""
_FEW = 64
"""How many these are for each of many questions."""
_STARS = re.compile(r"\*\*+")

TOO_COMPLEX = -1
"""Instead of an index: the comparison was stopped before it was known which pattern matches."""

_Wild: TypeAlias = dict[str, list[int]]

RankedRule: TypeAlias = tuple[int, bool, int, str]
"""Length times -1, whether it disallows, position, pattern: the first in this order wins."""


def rank(rules: Iterable[RawRule], *, strict: bool) -> list[RankedRule]:
    """The rules in the order in which they win: longest first, then allow, then the first."""
    ranked: dict[str, RankedRule] = {}
    written: tuple[set[bytes], set[bytes]] = set(), set()
    for allow, value, position in rules:
        # Only "/" begins a path, and "*" stands for one (RFC 9309 §5.1).
        if value[0] not in b"/*" or value in written[allow]:
            continue
        written[allow].add(value)
        _add(ranked, not allow, position, value)
        if allow and not strict and b"/index.htm" in value:
            directory, _, name = value.rpartition(b"/")
            if name.startswith(b"index.htm"):
                # Google: "index.htm" and "index.html" stand for their directory, too.
                _add(ranked, False, position, directory + b"/$")
    return sorted(ranked.values())


def matching(patterns: Iterable[str], path: str) -> Iterator[int]:
    """The indices of the patterns that match, in their order: for a single question.

    The last is `TOO_COMPLEX` if the comparison takes too many steps.
    """
    steps = step_budget(len(path)) // 2
    plain, encoded = BoundedMatcher(path, steps), None
    for number, pattern in enumerate(patterns):
        if plain.matches(pattern):
            yield number
        elif pattern_has_reserved_query(pattern):
            # RFC 9309 figure 4 has "?baz=https://foo.bar" match its encoded form.
            encoded = encoded or BoundedMatcher(encode_query(path), steps)
            if encoded.matches(encode_query(pattern)):
                yield number
        if plain.steps_left < 0 or (encoded and encoded.steps_left < 0):
            break
    else:
        return
    yield TOO_COMPLEX


def first_match(patterns: Sequence[str], path: str) -> int:
    """The index of the first of some patterns that matches, or their number, or `TOO_COMPLEX`."""
    if len(path) >= _SHORT or len(patterns) > _SOME:
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
    """The same as `first_match` for many questions."""

    __slots__ = (
        "_allows",
        "_best",
        "_encoded",
        "_exact",
        "_keys",
        "_order",
        "_patterns",
        "_places",
        "_prefixes",
        "_short",
        "_shorter",
        "_size",
        "_wild",
    )

    def __init__(self, patterns: Sequence[str], allows: Sequence[bool] = ()) -> None:
        self._encoded: PatternIndex | None = None
        self._allows = allows
        self._order: array[int] | None = None
        self._build(range(len(patterns)), list(patterns))
        doubtful = {
            number: encode_query(pattern)
            for number, pattern in enumerate(patterns)
            if "?" in pattern and pattern_has_reserved_query(pattern)
        }
        if doubtful:
            encoded = [doubtful.get(number, "") for number in range(len(patterns))]
            self._encoded = PatternIndex((), allows)
            self._encoded._build(doubtful, encoded)

    def first(self, path: str, steps: int | None = None) -> int:
        """The index of the first pattern that matches, or their number, or `TOO_COMPLEX`.

        `TOO_COMPLEX` only if a pattern that is left may disallow, by what `allows` says of each.
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
        wild = self._wild
        if wild:
            if len(path) < self._short and len(path) < _SHORT:
                few = _FEW
                for key in wild:
                    if key in path:
                        for number in wild[key]:
                            if number >= best:
                                break
                            if matches(self._patterns[number], path):
                                best = number
                                break
                            few -= 1
                            if few < 0:
                                break
                        if few < 0:
                            break
                if few < 0:
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
        """The first of the patterns with these keys, or `best`, and the steps that are left."""
        wild, patterns = self._wild, self._patterns
        numbers: list[int] = []
        for key in keys:
            of_key = wild[key]
            numbers += of_key if of_key[-1] < best else of_key[: bisect_left(of_key, best)]
        text_order = len(numbers) > _FEW
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
                and index + _SKIP < len(order)
                and patterns[order[index + _SKIP]].startswith(comparison.failed or "$")
            ):
                # All that begin so follow each other, and no pattern has an octet like this.
                beyond = comparison.failed + "\x7f"
                index = bisect_left(order, beyond, index, key=patterns.__getitem__)
        return best, comparison.steps_left

    def _in_order(self, numbers: list[int]) -> Sequence[int]:
        """Patterns by their text, so that those that begin alike are compared together."""
        if self._order is None:
            wild = [number for of_key in self._wild.values() for number in of_key]
            wild.sort(key=self._patterns.__getitem__)
            self._order = array("I", wild)
            self._places = array("I", bytes(4 * self._size))
            for place, number in enumerate(wild):
                self._places[number] = place
        if len(numbers) > len(self._order) // 4:
            return self._order
        places = sorted([self._places[number] for number in numbers])
        return [self._order[place] for place in places]

    def _build(self, numbers: Iterable[int], patterns: list[str]) -> None:
        prefixes: dict[str, int] = {}
        self._size = len(patterns)
        self._patterns = patterns
        self._exact: dict[str, int] = {}
        self._wild: _Wild = {}
        wild = self._wild
        weighed = 0
        for number in numbers:
            pattern = patterns[number]
            if "*" not in pattern:
                if pattern[-1] != "$":
                    prefixes.setdefault(pattern, number)
                else:
                    self._exact[pattern[:-1]] = number
                continue
            if "**" in pattern:
                pattern = patterns[number] = _STARS.sub("*", pattern)
            stem = pattern.removesuffix("$")
            if stem is pattern or stem[-1] == "*":
                stem = stem.rstrip("*")
            if "*" in stem:
                weighed += 1
                key = _key(stem, wild, weigh=weighed < _MANY)
                if key in wild:
                    wild[key].append(number)
                else:
                    wild[key] = [number]
            else:
                prefixes.setdefault(stem, number)
        self._prefixes = tuple(sorted(prefixes))
        # For each prefix the longest other one that it begins with, and the best of all those
        # that it begins with: they all match where it does.
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
        self._short = _LITTLE // (len(wild) or 1)
        self._keys: _Keys | None = None

    def _keys_in(self, path: str) -> Iterable[str]:
        if len(path) < self._short:
            return [key for key in self._wild if key in path]
        if self._keys is None:
            self._keys = _Keys(self._wild)
        return self._keys.found(path)


class _Keys:
    """Finds those of many keys that occur in a text, in one pass whatever their number.

    Octets become numbers of one, two and four octets, which is the fastest way to cut a text up.
    """

    __slots__ = ("_numbered",)

    def __init__(self, keys: Iterable[str]) -> None:
        self._numbered: list[tuple[int, dict[int, str]]] = []
        for length, code in _CODES.items():
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
                numbers.update(octets[start:end].cast(_CODES[length]))
            for number in numbers & keys.keys():
                yield keys[number]


def _key(stem: str, wild: _Wild, *, weigh: bool) -> str:
    """A piece of every path that a pattern matches; a long one that few patterns share."""
    head, *parts = stem.split("*", _PARTS)[:_PARTS]
    key = _end(max(parts, key=len))
    if not weigh or (len(key) > 1 and (key not in wild or len(wild[key]) < _CROWDED)):
        return key
    keys = [_end(part) for part in [*parts, head] if part]
    return min(keys, key=lambda key: (len(wild.get(key, ())) // _CROWDED, -len(key)))


def _end(part: str) -> str:
    return part[-4:] if len(part) > 3 else part[-2:]


def _add(ranked: dict[str, RankedRule], disallow: bool, position: int, value: bytes) -> None:
    pattern, length = pattern_of(value)
    rule = (-length, disallow, position, pattern)
    if pattern in ranked:
        # Rules with the same pattern are one: allow wins (§2.2.2), with the longer spelling.
        other = ranked[pattern]
        _, disallow, position, _ = min(rule, other, key=lambda one: (one[1], one[0], one[2]))
        rule = (min(rule[0], other[0]), disallow, position, pattern)
    ranked[pattern] = rule
