"""One path compared with one pattern after the other, within a number of steps (RFC 9309 §2.2.3).

Both are in the form of `paths`. ``*`` is any run of octets, a final ``$`` the end. Each piece
between two stars is looked for where the piece before it ends first: what a star skips is as
short as can be, and if that fails nothing longer would do.

A file of 500 KiB may hold 40,000 patterns whose pieces all occur in a path. So comparisons share
what they have in common: patterns that begin with the same pieces are compared once up to where
they part, if they come in the order of their text. And all together they have a number of steps,
one for about 0.1 microseconds. A caller that runs out of them assumes what forbids more.
"""

from __future__ import annotations

STEPS = 30_000
STEPS_PER_OCTET = 16
"""The steps of a question: so many, and so many more for each octet of its path. Of the 2,108
files of real sites in the corpus none needs a tenth of them, for any of its URLs."""
LONGEST = 16_384
"""Octets of a path from which on there are no more steps."""

_DEPTH = 16
"""Pieces of a pattern of which it is remembered where they end."""
_FAR = 64
"""Octets beyond which it is remembered where a piece was found."""


def step_budget(length: int) -> int:
    """Return the steps for comparing a path of this many octets."""
    return STEPS + STEPS_PER_OCTET * min(length, LONGEST)


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern matches a path, in one walk from left to right."""
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
    """The comparisons of one path: the same answers as `matches` for as long as there are steps."""

    __slots__ = ("_ends", "_known", "_path", "_prefixes", "failed", "steps_left")

    def __init__(self, path: str, steps: int) -> None:
        self.steps_left = steps
        """The steps that are left. Below zero the last answer and all later ones are unknown."""
        self._path = path
        # Prefixes of the last pattern that end in a star, and where in the path they end.
        self._prefixes = [""]
        self._ends = [0]
        self.failed = ""
        """What the last pattern that failed begins with: nothing that begins so matches."""
        self._known: dict[str, tuple[int, int]] = {}
        """From where pieces were looked for, and where they were found."""

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern matches; without meaning if `steps_left` is below zero."""
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
            if len(prefixes) < _DEPTH:
                prefixes.append(pattern[:begin])
                ends.append(position)
            star = pattern.find("*", begin)
        return self._matches_end(pattern, begin, position)

    def _matches_end(self, pattern: str, begin: int, position: int) -> bool:
        """Whether what comes after the last star is there, or a pattern without any."""
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
        """Remember the shortest beginning of a pattern that the path does not begin with."""
        same = 0
        while same < end - 1:
            middle = (same + end) // 2
            if self._path.startswith(pattern[:middle]):
                same = middle
            else:
                end = middle
        self.failed = pattern[:end]

    def _end_of(self, piece: str, position: int) -> int:
        """Where the first occurrence of a piece from a position on ends, or -1."""
        known = self._known.get(piece)
        if known is not None and known[0] <= position <= known[1]:
            at = known[1]
            return at + len(piece) if at <= len(self._path) else -1
        at = self._path.find(piece, position)
        seen = (at if at >= 0 else len(self._path)) - position
        if seen > _FAR:
            self._known[piece] = (position, at if at >= 0 else len(self._path) + 1)
            # An octet takes about as long as this in the worst case: CPython looks at most of a
            # piece anew at each of them.
            self.steps_left -= seen * (24 + len(piece)) >> 10 if len(piece) > 1 else seen >> 10
        return at + len(piece) if at >= 0 else -1
