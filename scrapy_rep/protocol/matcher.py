"""The rules of one group, and which of them decides about a path (RFC 9309 §2.2.2, §2.2.3).

"The most specific match found MUST be used. The most specific match is the match that has the
most octets." So the rules are ranked once, best first, and the lowest rank that matches decides.
Literal patterns are found by bisection. Patterns with wildcards are looked at only where a piece
of theirs occurs in the path. No regular expression is made from what a server sent.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, TypeAlias

from .paths import encode_query, has_doubtful_query, is_doubtful, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .parser import RawRule

_CODES: dict[int, Literal["B", "H", "I"]] = {1: "B", 2: "H", 4: "I"}
"""The lengths of keys, and the codes of numbers as long in memory."""
_PARTS = 8
"""Pieces of a pattern that are looked at for its key."""
_CROWDED = 16
"""Patterns with one key, from which on another key is looked for."""
_LITTLE = 16_384
"""Octets to be looked through for all keys together, below which one search for each is fastest."""

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


def first_match(patterns: Sequence[str], path: str) -> int:
    """The index of the first pattern that matches, or their number: for a single question."""
    for number, pattern in enumerate(patterns):
        if matches(pattern, path):
            return number
    return len(patterns)


def matches(pattern: str, path: str) -> bool:
    """Whether one pattern matches a path, both in comparable form."""
    if _matches(pattern, path):
        return True
    # RFC 9309 figure 4 has "?baz=https://foo.bar" match its encoded form.
    return is_doubtful(pattern) and _matches(encode_query(pattern), encode_query(path))


def _matches(pattern: str, path: str) -> bool:
    """Whether one pattern matches literally, in one walk from left to right."""
    star = pattern.find("*")
    if star < 0:
        return path == pattern[:-1] if pattern[-1] == "$" else path.startswith(pattern)
    if star > 0 and not path.startswith(pattern[:star]):
        return False
    position = begin = star
    # What a "*" skips is as short as can be: if that fails nothing longer would do.
    while star >= 0:
        begin = star + 1
        star = pattern.find("*", begin)
        if star >= 0:
            position = path.find(pattern[begin:star], position)
            if position < 0:
                return False
            position += star - begin
    if pattern[-1] != "$":
        return path.find(pattern[begin:], position) >= 0
    tail = pattern[begin:-1]
    return len(path) - len(tail) >= position and path.endswith(tail)


class PatternIndex:
    """The same as `first_match` for many questions."""

    __slots__ = (
        "_best",
        "_encoded",
        "_exact",
        "_keys",
        "_patterns",
        "_prefixes",
        "_short",
        "_shorter",
        "_size",
        "_wild",
    )

    def __init__(self, patterns: Sequence[str]) -> None:
        self._encoded: PatternIndex | None = None
        self._build(range(len(patterns)), patterns)
        doubtful = [
            number
            for number, pattern in enumerate(patterns)
            if "?" in pattern and is_doubtful(pattern)
        ]
        if doubtful:
            self._encoded = PatternIndex(())
            self._encoded._build(doubtful, [encode_query(pattern) for pattern in patterns])

    def first(self, path: str) -> int:
        """The index of the first pattern that matches, or their number."""
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
            for key in wild if len(path) < self._short else self._keys_in(path):
                if key in path:
                    for number in wild[key]:
                        if number >= best:
                            break
                        if _matches(self._patterns[number], path):
                            best = number
                            break
        if self._encoded is not None and has_doubtful_query(path):
            return min(best, self._encoded.first(encode_query(path)))
        return best

    def _build(self, numbers: Iterable[int], patterns: Sequence[str]) -> None:
        prefixes: dict[str, int] = {}
        self._size = len(patterns)
        self._patterns = patterns
        self._exact: dict[str, int] = {}
        wild: _Wild = {}
        for number in numbers:
            pattern = patterns[number]
            if "*" not in pattern:
                if pattern[-1] != "$":
                    prefixes.setdefault(pattern, number)
                else:
                    self._exact[pattern[:-1]] = number
                continue
            stem = pattern.removesuffix("$")
            if stem is pattern or stem[-1] == "*":
                stem = stem.rstrip("*")
            if "*" in stem:
                key = _key(stem, wild)
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
        self._wild = wild
        self._short = _LITTLE // (len(wild) or 1)
        self._keys: _Keys | None = None

    def _keys_in(self, path: str) -> Iterable[str]:
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


def _key(stem: str, wild: _Wild) -> str:
    """A piece of every path that a pattern matches; a long one that few patterns share."""
    head, *parts = stem.split("*", _PARTS)[:_PARTS]
    key = _end(max(parts, key=len))
    if len(key) > 1 and (key not in wild or len(wild[key]) < _CROWDED):
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
