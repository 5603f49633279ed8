"""How long a robots.txt holds (RFC 9309, section 2.4; RFC 9111, section 4.2).

    lifetime   = 0 for no-store, no-cache; else s-maxage (shared caches), max-age, Expires - Date;
                 else the default
    age        = max(Age, response time - Date, 0); 0 where the lifetime is the default
    expires_at = response time + clamp(lifetime - age, least, most)

All in seconds. A value that cannot be read counts as stale (RFC 9111, section 4.2.1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

DEFAULT_LIFETIME = 86_400
"""RFC 9309, section 2.4: a cached version SHOULD NOT be used for more than 24 hours."""
ERROR_LIFETIME = 3600
"""For statuses that caches do not keep of their own accord (RFC 9110, section 15.1)."""

# RFC 9111, section 5.2: cache-directive = token [ "=" ( token / quoted-string ) ]
_DIRECTIVE = re.compile(r"""\s*([^\s=,;"]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s,]*))?[^,]*(?:,|$)""")


@dataclass(frozen=True, slots=True)
class CacheHeaders:
    """The headers of an answer that say how long it holds, as they came; None where missing."""

    cache_control: str | None = None
    age: str | None = None
    date: str | None = None
    expires: str | None = None


def expires_at(
    headers: CacheHeaders,
    response_time: float,
    *,
    least: float,
    most: float,
    default: float = DEFAULT_LIFETIME,
    shared: bool = False,
) -> float:
    """When what was received at ``response_time`` is to be asked for again, on the same clock.

    ``shared``: the copy serves several crawlers, so s-maxage applies.
    """
    lifetime = _lifetime(headers, response_time, shared=shared)
    remaining = default if lifetime is None else lifetime - _age(headers, response_time)
    return response_time + min(max(remaining, least), most)


def _lifetime(headers: CacheHeaders, response_time: float, *, shared: bool) -> float | None:
    directives = _directives(headers.cache_control or "")
    if "no-store" in directives or None in directives.get("no-cache", ()):
        return 0
    for name in ("s-maxage", "max-age") if shared else ("max-age",):
        if name in directives:
            return min(_delta_seconds(value) for value in directives[name])
    if headers.expires is not None:
        expires = http_date(headers.expires)
        date = response_time if headers.date is None else http_date(headers.date)
        return 0 if expires is None or date is None else expires - date
    return None


def _age(headers: CacheHeaders, response_time: float) -> float:
    age = 0.0 if headers.age is None else _delta_seconds(headers.age, unread=float("inf"))
    if headers.date is None:
        return age
    date = http_date(headers.date)
    return float("inf") if date is None else max(age, response_time - date)


def _directives(cache_control: str) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for name, value in _DIRECTIVE.findall(cache_control):
        # no-cache="field" limits the fields, not the whole answer (RFC 9111, section 5.2.2.4).
        found.setdefault(name.lower(), []).append(value.strip('"') or None)
    return found


def _delta_seconds(value: str | None, *, unread: float = 0) -> float:
    value = (value or "").strip()
    return float(value[:20]) if value.isascii() and value.isdecimal() else unread


def http_date(value: str) -> float | None:
    """A date of HTTP (RFC 9110, section 5.6.7) as seconds since 1970; None where it is none."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:  # asctime() form: GMT (RFC 9110, section 5.6.7)
        date = date.replace(tzinfo=timezone.utc)
    try:
        return (date - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()
    except OverflowError:
        return None
