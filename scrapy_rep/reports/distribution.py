"""The distribution of whole numbers, in bounded memory.

A number is rounded down to its first binary digits. With eight of them, numbers below 256 are
exact, and a quantile is less than 1 % too small.
"""

from __future__ import annotations

from collections import Counter

QUANTILES = {"p10": 0.1, "p25": 0.25, "median": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}
"""The quantiles of a summary."""


class Distribution:
    """How often whole numbers occur. None of them is negative. ``digits`` are kept of each."""

    __slots__ = ("count", "digits", "histogram", "largest", "sum")

    def __init__(self, digits: int = 8) -> None:
        self.digits = digits
        self.count = 0
        self.sum = 0
        self.largest = 0
        self.histogram: Counter[int] = Counter()
        """How often each rounded number occurs."""

    def add(self, number: int) -> None:
        """Count a number."""
        self.count += 1
        self.sum += number
        self.largest = max(self.largest, number)
        shift = max(number.bit_length() - self.digits, 0)
        self.histogram[number >> shift << shift] += 1

    def merge(self, other: Distribution) -> None:
        """Add the numbers of another distribution."""
        self.count += other.count
        self.sum += other.sum
        self.largest = max(self.largest, other.largest)
        self.histogram.update(other.histogram)

    def quantile(self, share: float) -> int:
        """Return the least number that this share of the numbers does not exceed. 0 without any."""
        left = share * self.count
        for number in sorted(self.histogram):
            left -= self.histogram[number]
            if left <= 0:
                return number
        return 0

    def as_json(self) -> dict[str, float]:
        """Return the quantiles, the mean and the largest number, as JSON types."""
        mean = round(self.sum / self.count, 3) if self.count else 0
        quantiles = {name: self.quantile(share) for name, share in QUANTILES.items()}
        return {"count": self.count, "mean": mean, **quantiles, "max": self.largest}
