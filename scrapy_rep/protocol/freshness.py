"""Computes how long a robots.txt is fresh (RFC 9309 §2.4, RFC 9111 §4.2), and reads dates.

    lifetime   = 0 for no-store, no-cache; else s-maxage (shared caches), max-age, Expires - Date;
                 else the default
    age        = max(Age, response time - Date, 0); 0 where the lifetime is the default

`access.AccessPolicy` limits what is left of the lifetime. All values are in seconds. An unreadable
value makes a response stale (RFC 9111 §4.2.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from math import inf

DEFAULT_LIFETIME = 86_400
"""RFC 9309 §2.4: a cached version SHOULD NOT be used for more than 24 hours."""
ERROR_LIFETIME = 3600
"""The default for statuses that are not heuristically cacheable (RFC 9110 §15.1)."""

# RFC 9111 §5.2:
#
#   Cache-Control   = #cache-directive
#   cache-directive = token [ "=" ( token / quoted-string ) ]
#
# The time is linear in the length of a value: no part of a match can be given to another part.
_DIRECTIVE = re.compile(
    r"""
    ( [^\s=;,"]+ ) \s*
    (?: = \s* ( " (?: [^"\\] | \\. )* "? | [^\s;,]* ) )?   # the end of a string may be missing
    """,
    re.VERBOSE,
)

_UTC = re.compile(r" ?(?:Z|UTC|GMT)\Z", re.IGNORECASE)
"""The end of a date in ISO 8601 format whose time zone Python does not read in all versions."""

_UNREADABLE = ValueError, TypeError, IndexError, OverflowError
"""What Python raises for a text that is not a date, and for a year before 1 or after 9999."""


def lifetime(
    headers: Mapping[str, str], response_time: float, *, shared: bool = False
) -> float | None:
    """Return the freshness lifetime in seconds from the Date on. None if the headers state none.

    `shared` is true for a copy that several crawlers use, so that s-maxage applies.
    """
    directives = _directives(headers.get("cache-control", ""))
    if "no-store" in directives or None in directives.get("no-cache", ()):
        return 0
    for name in ("s-maxage", "max-age") if shared else ("max-age",):
        if name in directives:
            return min(delta_seconds(value) or 0 for value in directives[name])
    if "expires" in headers:
        expires, date = http_date(headers["expires"]), _date(headers, response_time)
        return 0 if expires is None or date is None else expires - date
    return None


def age_of(headers: Mapping[str, str], response_time: float) -> float:
    """Return the age of a response in seconds when it arrives. Infinite if it is unreadable."""
    # RFC 9111 §5.1: of a list "a cache SHOULD use the first member".
    age = delta_seconds(headers.get("age", "0").partition(",")[0])
    date = _date(headers, response_time)
    return inf if age is None or date is None else max(age, response_time - date)


def _date(headers: Mapping[str, str], response_time: float) -> float | None:
    return http_date(headers["date"]) if "date" in headers else response_time


def _directives(cache_control: str) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for name, value in _DIRECTIVE.findall(cache_control):
        # no-cache="field" is about some fields, not the whole response (RFC 9111 §5.2.2.4).
        found.setdefault(name.lower(), []).append(value.strip('"') or None)
    return found


def delta_seconds(value: str | None) -> float | None:
    """Return the seconds of ``1*DIGIT`` (RFC 9111 §1.2.2). None for any other value."""
    value = (value or "").strip()
    return float(value[:20]) if value.isascii() and value.isdecimal() else None


def http_date(value: str) -> float | None:
    """Return an HTTP date as seconds since 1970 (RFC 9110 §5.6.7). None for any other value."""
    try:
        return _with_zone(parsedate_to_datetime(value)).timestamp()
    except _UNREADABLE:
        return None


def parse_date(text: str) -> datetime | None:
    """Return a date in RFC 850, RFC 822 or ISO 8601 format as UTC. None for any other text.

    A date without a time zone, or with an unknown one, is taken as UTC.
    """
    try:
        try:
            date = datetime.fromisoformat(_UTC.sub("+00:00", text.strip())).replace(microsecond=0)
        except ValueError:
            date = parsedate_to_datetime(text)
        return _with_zone(date).astimezone(timezone.utc)
    except _UNREADABLE:
        return None


def _with_zone(date: datetime) -> datetime:
    """Return a date with its time zone. One without is in UTC, as those of asctime() are."""
    return date if date.tzinfo else date.replace(tzinfo=timezone.utc)
