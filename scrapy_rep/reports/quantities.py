"""Numbers, times and lengths of time, as a reader of a report sees them."""

from __future__ import annotations

from datetime import datetime, timezone
from math import isfinite

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
    """Return a length of time, such as ``0.25 s``, ``12 s``, ``3 min 20 s`` and ``3 d 4 h``."""
    if not isfinite(number):
        return "unknown"
    if number < 0.0005:
        return "< 0.001 s" if number > 0 else "0 s"
    if number < 1:
        return f"{number:.3f}".rstrip("0").rstrip(".") + " s"
    if number < 100:
        return f"{number:.3g}" + " s"
    whole = round(number)
    if whole >= 86_400:
        return _two_units(whole, 86_400, "d", 3_600, "h")
    if whole >= 3_600:
        return _two_units(whole, 3_600, "h", 60, "min")
    return _two_units(whole, 60, "min", 1, "s")


def _two_units(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large:,} {large_name}" + (f" {rest} {small_name}" if rest else "")


def octets(number: int) -> str:
    """Return a size: ``120 B``, ``4.2 KiB``, ``500 KiB``."""
    if number < 1_024:
        return f"{number:,} B"
    kibibytes = number / 1_024
    return f"{kibibytes:.1f} KiB" if kibibytes < 10 else f"{kibibytes:,.0f} KiB"


def moment(time: datetime | float, parts: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in UTC; seconds are since 1970. A file may have any time."""
    try:
        if not isinstance(time, datetime):
            return datetime.fromtimestamp(time, timezone.utc).strftime(parts)
        return time.astimezone(timezone.utc).strftime(parts)
    except (OverflowError, OSError, ValueError):
        return "unknown"
