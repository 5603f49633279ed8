"""Compares one path with many patterns, within a number of steps (RFC 9309 §2.2.3).

Path and pattern are in the comparable form of `paths`. In a pattern, ``*`` is any run of octets and
a final ``$`` is the end of the path. Each piece between two stars is searched from where the piece
before it ends, so each star skips as little as possible. If that fails, a star that skips more
fails too.

A file of 500 KiB may hold 40,000 patterns whose pieces all occur in a path. Two measures limit the
time. If the patterns are compared in the order of their text, pieces that several patterns begin
with are searched once. And all comparisons of a path share a number of steps, each of about 0.1
microseconds. If no steps are left, the caller assumes the answer that disallows more.
"""

from __future__ import annotations

STEPS = 30_000
STEPS_PER_OCTET = 16
"""The steps for one path, and the further steps for each of its octets. No URL of the 2,108 real
files in the corpus needs a tenth of them."""
MAX_COUNTED_OCTETS = 16_384
"""The octets of a path that add steps. Further octets add none, so the time is bounded (ours)."""

_MAX_REMEMBERED_PIECES = 16
"""The pieces of a pattern whose ends are remembered for the next pattern. It affects speed only."""
_MIN_REMEMBERED_SEARCH = 64
"""The octets that a search has to pass for its result to be remembered. It affects speed only."""


def step_budget(length: int) -> int:
    """Return the steps for comparing a path of this many octets."""
    return STEPS + STEPS_PER_OCTET * min(length, MAX_COUNTED_OCTETS)


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path. Its pieces are searched once, from left to right."""
    star = pattern.find("*")
    if star < 0:
        return path == pattern[:-1] if pattern[-1] == "$" else path.startswith(pattern)
    if star > 0 and not path.startswith(pattern[:star]):
        return False
    position = begin = star
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


class BoundedMatcher:
    """Compares one path with patterns. It answers as `matches` does while there are steps left."""

    __slots__ = ("_ends", "_known", "_path", "_prefixes", "failed", "steps_left")

    def __init__(self, path: str, steps: int) -> None:
        self.steps_left = steps
        """The steps that are left. Below zero, the last answer and later ones have no meaning."""
        self._path = path
        # The parts of the last pattern up to each of its stars, and where each ends in the path.
        self._prefixes = [""]
        self._ends = [0]
        self.failed = ""
        """The beginning of the last pattern that failed. No pattern that begins so matches."""
        self._known: dict[str, tuple[int, int]] = {}
        """For a piece, where the search for it began and where it was found."""

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern matches. Without meaning if `steps_left` is below zero."""
        self.steps_left -= 5
        failed = self.failed
        if failed and pattern.startswith(failed):
            return False
        prefixes, ends = self._prefixes, self._ends
        while not pattern.startswith(prefixes[-1]):
            prefixes.pop()
            ends.pop()
        begin = len(prefixes[-1])
        position = ends[-1]
        star = pattern.find("*", begin)
        while star >= 0:
            self.steps_left -= 5
            if begin == 0:
                if not self._path.startswith(pattern[:star]):
                    self._fail_by_head(pattern, star)
                    return False
                position = star
            elif star > begin:
                position = self._end_of(pattern[begin:star], position)
            if position < 0:
                self.failed = pattern[:star]
            if position < 0 or self.steps_left < 0:
                return False
            begin = star + 1
            if len(prefixes) < _MAX_REMEMBERED_PIECES:
                prefixes.append(pattern[:begin])
                ends.append(position)
            star = pattern.find("*", begin)
        return self._matches_end(pattern, begin, position)

    def _matches_end(self, pattern: str, begin: int, position: int) -> bool:
        """Return whether the part after the last star matches, or a whole pattern without stars."""
        path = self._path
        if pattern[-1] == "$":
            tail = pattern[begin:-1]
            if begin == 0:
                return path == tail
            return len(path) - len(tail) >= position and path.endswith(tail)
        if begin == 0:
            found = path.startswith(pattern)
        else:
            found = begin == len(pattern) or self._end_of(pattern[begin:], position) >= 0
        if not found:
            self.failed = pattern
        return found

    def _fail_by_head(self, pattern: str, end: int) -> None:
        """Set `failed` to the shortest part of a pattern with which the path does not begin."""
        same = 0
        while same < end - 1:
            middle = (same + end) // 2
            if self._path.startswith(pattern[:middle]):
                same = middle
            else:
                end = middle
        self.failed = pattern[:end]

    def _end_of(self, piece: str, position: int) -> int:
        """Return where the first occurrence of a piece from a position on ends, or -1."""
        known = self._known.get(piece)
        if known is not None and known[0] <= position <= known[1]:
            at = known[1]
            return at + len(piece) if at <= len(self._path) else -1
        at = self._path.find(piece, position)
        seen = (at if at >= 0 else len(self._path)) - position
        if seen > _MIN_REMEMBERED_SEARCH:
            self._known[piece] = (position, at if at >= 0 else len(self._path) + 1)
            # The worst case: CPython compares most of a piece again at each octet.
            self.steps_left -= seen * (24 + len(piece)) >> 10 if len(piece) > 1 else seen >> 10
        return at + len(piece) if at >= 0 else -1
