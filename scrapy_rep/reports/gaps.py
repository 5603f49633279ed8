"""The gaps between requests to a host, in bounded memory.

The smallest gap and the number of gaps are exact. The median is an estimate from a histogram whose
buckets grow by the factor 2^(1/8): it is at most 4.5 % away from the median, between
:data:`SHORTEST` and :data:`LONGEST`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2

BUCKETS_PER_OCTAVE = 8
"""Buckets between a gap and one that is twice as long."""

MAX_ERROR = 2 ** (0.5 / BUCKETS_PER_OCTAVE) - 1
"""The largest error of the median, relative to it: half of a bucket."""

SHORTEST = 0.001
LONGEST = 7 * 86_400.0
"""Seconds. A gap beyond one of them counts in the median as one of this length."""


def _bucket(length: float) -> int:
    return round(log2(length) * BUCKETS_PER_OCTAVE)


_FIRST_BUCKET, _LAST_BUCKET = _bucket(SHORTEST), _bucket(LONGEST)


@dataclass(slots=True)
class Gaps:
    """The gaps between consecutive requests, in seconds."""

    DERIVED = ("median",)

    count: int = 0
    smallest: float | None = None
    histogram: dict[int, int] = field(default_factory=dict)
    """How many gaps have each length: 2^(key / 8) seconds, and half of a bucket around it."""

    def add(self, gap: float) -> None:
        """Add one gap."""
        self.count += 1
        if self.smallest is None or gap < self.smallest:
            self.smallest = gap
        if not SHORTEST <= gap <= LONGEST:
            gap = min(max(gap, SHORTEST), LONGEST)
        bucket = _bucket(gap)
        self.histogram[bucket] = self.histogram.get(bucket, 0) + 1

    def merge(self, other: Gaps) -> None:
        """Add the gaps of another record."""
        self.count += other.count
        if other.smallest is not None:
            own = other.smallest if self.smallest is None else self.smallest
            self.smallest = min(own, other.smallest)
        for bucket, count in other.histogram.items():
            self.histogram[bucket] = self.histogram.get(bucket, 0) + count

    @property
    def median(self) -> float | None:
        """The median gap, at most :data:`MAX_ERROR` away from the exact one. None without gaps.

        Of an even number of gaps, this is the longer one of the two in the middle.
        """
        left = sum(self.histogram.values()) // 2
        for bucket in sorted(self.histogram):
            left -= self.histogram[bucket]
            if left < 0:
                # A file that another program has written may have a bucket of any length.
                known = min(max(bucket, _FIRST_BUCKET), _LAST_BUCKET)
                return round(2 ** (known / BUCKETS_PER_OCTAVE), 6)
        return None
