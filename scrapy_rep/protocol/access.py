"""What an answer to a request for robots.txt means for its origin (RFC 9309, section 2.3.1).

:func:`status_class` reads a status. The events are what a whole fetch, with its redirects, its body
or its failure, comes to; :mod:`scrapy_rep.origin` is driven by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .freshness import http_date

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from .robotstxt import RobotsTxt

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 5
"""Section 2.3.1.2: "Crawlers SHOULD follow at least five consecutive redirects"."""

MAX_RETRY_AFTER = 86_400
"""Seconds: a wish to be left alone for longer is heard as a day, the longest a file holds."""

FIRST_INTERVAL = 60
LAST_INTERVAL = 3600
"""Seconds until an unreachable robots.txt is asked for again, doubling from the first to the last.
Neither the RFC nor Google gives a number."""


class StatusClass(Enum):
    """What the status of an answer says about the origin."""

    RULES = "its body holds the rules"
    NOT_MODIFIED = "the copy that was asked about still holds"
    REDIRECT = "the rules are elsewhere"
    UNAVAILABLE = "there are no rules: everything is allowed"
    DISALLOWED = "a setting takes this status for a refusal of the whole site"
    UNREACHABLE = "whether there are rules cannot be told"


class StatusPolicy(NamedTuple):
    """The choices that a user may make about statuses; the defaults are those of the RFC."""

    disallow_statuses: AbstractSet[int] = frozenset()
    unreachable_statuses: AbstractSet[int] = frozenset({407, 429})
    server_errors_are_unavailable: bool = False


def status_class(status: int, terms: StatusPolicy, *, conditional: bool = False) -> StatusClass:
    """What ``status`` means; ``conditional``: the request carried a validator."""
    if status == 304:
        return StatusClass.NOT_MODIFIED if conditional else StatusClass.UNREACHABLE
    if status in REDIRECT_STATUSES:
        return StatusClass.REDIRECT
    if 200 <= status <= 299 and status != 206:  # a part of the rules is not the rules
        return StatusClass.RULES
    if 400 <= status <= 499:
        if status in terms.disallow_statuses:
            return StatusClass.DISALLOWED
        if status in terms.unreachable_statuses:
            return StatusClass.UNREACHABLE
        return StatusClass.UNAVAILABLE
    if 500 <= status <= 599 and terms.server_errors_are_unavailable:
        return StatusClass.UNAVAILABLE
    return StatusClass.UNREACHABLE


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds that a Retry-After header asks for (RFC 9110, section 10.2.3), at most a day.

    None for 0, a time that is past, and what is neither seconds nor a date.
    """
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdecimal():
        seconds = float(value[:20])
    else:
        date = http_date(value)
        seconds = 0.0 if date is None else date - now
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None


def retry_interval(failures: int) -> int:
    """Seconds until the next attempt after so many failed ones in a row."""
    return min(FIRST_INTERVAL << min(failures - 1, 10), LAST_INTERVAL)


class Rules(NamedTuple):
    """A 2xx answer: the rules, and the validators with which to ask for them again."""

    robots: RobotsTxt
    status: int
    url: str
    expires_at: float
    etag: str | None = None
    last_modified: str | None = None
    lifetime: float | None = None
    """What its headers say: it holds anew, where a later 304 says nothing of its own."""
    body: bytes = b""
    """The file as it came, up to the limit, for whoever keeps it."""
    from_cache: bool = False
    """An HTTP cache has answered: it says nothing of what the site says now."""


class NotModified(NamedTuple):
    """A 304 to a conditional request: the copy holds anew."""

    expires_at: float


class Unavailable(NamedTuple):
    """A 4xx, or redirects without an end: no rules; or refused, where a setting says so."""

    url: str
    expires_at: float
    status: int | None = None
    disallow: bool = False
    from_cache: bool = False


class Unreachable(NamedTuple):
    """A 5xx or a failure of the network. ``retry_after``: the seconds that the server asked for."""

    failure: str
    status: int | None = None
    url: str | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The fetch was given up by us: nothing was learnt."""


Event = Rules | NotModified | Unavailable | Unreachable | Cancelled
