"""How long a robots.txt holds (RFC 9309, section 2.4; RFC 9111, section 4.2).

    lifetime   = 0 for no-store, no-cache; else s-maxage (shared caches), max-age, Expires - Date;
                 else the default
    age        = max(Age, response time - Date, 0); 0 where the lifetime is the default
    expires_at = response time + clamp(lifetime - age, least, most)

All in seconds. A value that cannot be read counts as stale (RFC 9111, section 4.2.1).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from email.utils import parsedate_to_datetime
from math import inf
from typing import NamedTuple

DEFAULT_LIFETIME = 86_400
"""RFC 9309, section 2.4: a cached version SHOULD NOT be used for more than 24 hours."""
ERROR_LIFETIME = 3600
"""For statuses that caches do not keep of their own accord (RFC 9110, section 15.1)."""

# RFC 9111, section 5.2: Cache-Control   = #cache-directive
#                        cache-directive = token [ "=" ( token / quoted-string ) ]
# Linear in whatever a server sends: no part of a match can be given back to another.
_PART = re.compile(r"""(?:[^,"]|"(?:[^"\\]|\\.)*"?)+""")
_DIRECTIVE = re.compile(r"""\s*([^\s=;"]+)\s*(?:=\s*("[^"]*"?|[^\s;]*))?""")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class CacheHeaders(NamedTuple):
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
    own = lifetime(headers, response_time, shared=shared)
    remaining = default if own is None else own - _age(headers, response_time)
    return response_time + min(max(remaining, least), most)


def lifetime(headers: CacheHeaders, response_time: float, *, shared: bool = False) -> float | None:
    """The seconds that an answer says it holds from its Date on; None where it says nothing."""
    directives = _directives(headers.cache_control or "")
    if "no-store" in directives or None in directives.get("no-cache", ()):
        return 0
    for name in ("s-maxage", "max-age") if shared else ("max-age",):
        if name in directives:
            return min(_delta_seconds(value) or 0 for value in directives[name])
    if headers.expires is not None:
        expires = http_date(headers.expires)
        date = response_time if headers.date is None else http_date(headers.date)
        return 0 if expires is None or date is None else expires - date
    return None


def _age(headers: CacheHeaders, response_time: float) -> float:
    age: float | None = 0
    date: float | None = response_time
    if headers.age is not None:
        # RFC 9111, section 5.1: of a list "a cache SHOULD use the first member".
        age = _delta_seconds(headers.age.partition(",")[0])
    if headers.date is not None:
        date = http_date(headers.date)
    return inf if age is None or date is None else max(age, response_time - date)


def _directives(cache_control: str) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for part in _PART.findall(cache_control):
        directive = _DIRECTIVE.match(part)
        if directive:
            # no-cache="field" limits the fields, not the whole answer (section 5.2.2.4).
            value = (directive[2] or "").strip('"')
            found.setdefault(directive[1].lower(), []).append(value or None)
    return found


def _delta_seconds(value: str | None) -> float | None:
    """Section 1.2.2: ``1*DIGIT``, however many; None for anything else."""
    value = (value or "").strip()
    return float(value[:20]) if value.isascii() and value.isdecimal() else None


def http_date(value: str) -> float | None:
    """A date of HTTP (RFC 9110, section 5.6.7) as seconds since 1970; None where it is none."""
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:  # asctime() form: GMT (RFC 9110, section 5.6.7)
        date = date.replace(tzinfo=timezone.utc)
    return (date - _EPOCH).total_seconds()


def utc(seconds: float) -> datetime | None:
    """A time in seconds since 1970 as a datetime; None outside of its years, 1 to 9999.

    A date of the year 9999 with a zone is in the year 10000 in UTC.
    """
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
