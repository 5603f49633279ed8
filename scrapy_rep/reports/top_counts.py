"""Counts of the most frequent of many texts, in bounded memory.

This is the algorithm of Misra and Gries ("Finding repeated elements", 1982), with a batch of
reductions at once. Two records can be merged (Agarwal et al., "Mergeable summaries", 2012).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TEXT = 100
"""Characters of a text that are kept."""


class TopCounts:
    """How often texts occur. At least the ``capacity`` most frequent ones are kept."""

    __slots__ = ("capacity", "counts", "error")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.counts: Counter[str] = Counter()
        self.error = 0
        """A text occurs at least as often as its count says, and at most this much more often. 0:
        all counts are exact, and no text is missing."""

    def add(self, texts: Iterable[str]) -> None:
        """Count texts."""
        self.counts.update(text[:MAX_TEXT] for text in texts)
        if len(self.counts) > 2 * self.capacity:
            self._reduce()

    def merge(self, other: TopCounts) -> None:
        """Add the counts of another record."""
        self.counts.update(other.counts)
        self.error += other.error
        if len(self.counts) > 2 * self.capacity:
            self._reduce()

    def most(self, number: int) -> list[tuple[str, int]]:
        """Return the most frequent texts with their counts, in an order that is always the same."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:number]

    def _reduce(self) -> None:
        """Subtract the count of the first text beyond the capacity from all counts."""
        least = sorted(self.counts.values(), reverse=True)[self.capacity]
        self.error += least
        kept = {text: count - least for text, count in self.counts.items() if count > least}
        self.counts = Counter(kept)
