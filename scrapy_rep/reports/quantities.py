"""Numbers, times and lengths of time, as a reader of a report sees them."""

from __future__ import annotations

from datetime import datetime, timezone

ABSENT = "\N{EN DASH}"
"""Is in place of a number that there is not."""


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 request``, ``1,200 requests``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def percent(part: float, whole: float) -> str:
    """Return a share. A share above 0 % never reads 0 %, and one below 100 % never 100 %."""
    if not whole:
        return ABSENT
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "< 0.1 %"
    if 99.9 < share < 100:
        return "> 99.9 %"
    return f"{share:.0f} %" if share in (0, 100) or share >= 10 else f"{share:.1f} %"


def seconds(number: float) -> str:
    """Return a length of time: ``0.25 s``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``, ``3 d 4 h``."""
    if number < 0.0005:
        return "0 s"
    if number < 1:
        return f"{number:.3f}".rstrip("0").rstrip(".") + " s"
    if number < 100:
        return f"{number:.3g}" + " s"
    whole = round(number)
    for large, size, small in (("d", 86_400, "h"), ("h", 3_600, "min"), ("min", 60, "s")):
        if whole >= size:
            rest = whole % size // {"h": 3_600, "min": 60, "s": 1}[small]
            return f"{whole // size:,} {large}" + (f" {rest} {small}" if rest else "")
    raise AssertionError(number)  # at least 100


def octets(number: int) -> str:
    """Return a size: ``120 B``, ``4.2 KiB``, ``500 KiB``."""
    if number < 1_024:
        return f"{number:,} B"
    kibibytes = number / 1_024
    return f"{kibibytes:.1f} KiB" if kibibytes < 10 else f"{kibibytes:,.0f} KiB"


def moment(time: float, parts: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in UTC. A damaged report may have any number."""
    try:
        return datetime.fromtimestamp(time, timezone.utc).strftime(parts)
    except (OverflowError, OSError, ValueError):
        return "unknown"
