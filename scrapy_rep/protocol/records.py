"""The records of a robots.txt other than user-agent, allow and disallow: a row of a table for each.

None of them is in RFC 9309: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol" (RFC 9309 §2.2.4).

To support one more record, add a row to `RECORD_TYPES`. `parser` takes the spellings of a field
from it. `record_reader` takes the scope, the parser and how several values combine. `lint` takes
the checks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from .lint_codes import Code
from .usage import (
    PathPreferences,
    PathSignals,
    has_current_labels,
    has_known_signals,
    has_readable_signals,
    has_usage_names,
    has_usage_values,
    parse_signal_rule,
    parse_usage_rule,
    usage_preferences,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = TypeVar("Value")
Combined = TypeVar("Combined", covariant=True)

_SECONDS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86400}
"""The seconds in each unit of a Request-rate."""
_MINUTES_PER_DAY = 24 * 60

_SPACES = re.compile(rb"[ \t\v\f]+")

# delay = 1*DIGIT ["." *DIGIT] / "." 1*DIGIT
_DELAY = re.compile(
    rb"""
    [0-9]+ (?: \. [0-9]* )?
  | \. [0-9]+
    """,
    re.VERBOSE,
)

# Yandex: "you can only use the characters A-Za-z0-9.-/*_", and at most 500 characters for a rule.
_CLEAN_PARAM_PATH = re.compile(r"[A-Za-z0-9.\-/*_]+")
_MAX_CLEAN_PARAM = 500

# Each SP below stands for a run of white space, which `_SPACES` replaces first. With runs in the
# expression itself, the time to match would grow with the square of their length.
#
#   visit-time   = window
#   request-rate = requests [SP] "/" [SP] period [SP] [unit] [SP window]
#   requests     = 1*9DIGIT                   period = 1*9DIGIT
#   unit         = "s" / "m" / "h" / "d"
#   window       = time ([SP] "-" [SP] / SP) time
#   time         = 2DIGIT [":" / "."] 2DIGIT
_TIME = rb"( [0-9]{2} [:.]? [0-9]{2} )"
_WINDOW = _TIME + rb"(?: [ ]? - [ ]? | [ ] )" + _TIME
_VISIT_TIME = re.compile(_WINDOW, re.VERBOSE)
_REQUEST_RATE = re.compile(
    rb"""
    ( [0-9]{1,9} ) [ ]? / [ ]? ( [0-9]{1,9} ) [ ]?
    ( [smhd]? )
    (?: [ ] %b )?
    """
    % _WINDOW,
    re.VERBOSE | re.IGNORECASE,
)


class Window(NamedTuple):
    """A time of day in UTC, in minutes after midnight. It may wrap around midnight."""

    start: int
    """The first minute of the window."""
    end: int
    """The first minute after the window."""

    def contains(self, minute: float) -> bool:
        """Return whether a minute of the day is in the window."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        (first, second), (third, fourth) = divmod(self.start, 60), divmod(self.end, 60)
        return f"{first:02}:{second:02} to {third:02}:{fourth:02} UTC"


class RequestRate(NamedTuple):
    """A number of requests in a number of seconds."""

    requests: int
    seconds: int
    window: Window | None = None
    """The time of day for which the rate is meant. None: all day."""

    def __str__(self) -> str:
        rate = f"{self.requests}/{self.seconds}s"
        return rate if self.window is None else f"{rate} from {self.window}"


class CleanParam(NamedTuple):
    """Query parameters that do not change the content of the pages below a path (Yandex)."""

    parameters: tuple[str, ...]
    path: str = "/"


def text_of(value: bytes) -> str | None:
    """Return a value as text, or None if it is empty."""
    return value.decode("utf-8", "replace") or None


def parse_delay(value: bytes) -> float | None:
    """Return the seconds of a Crawl-delay: finite, zero or more. None if it is unreadable."""
    if not _DELAY.fullmatch(value):
        return None
    delay = float(value)
    return delay if isfinite(delay) else None


def parse_request_rate(value: bytes) -> RequestRate | None:
    """Return the rate of ``1/10``, ``1/10m`` or ``1/10m 0600-0845``. None if it is unreadable.

    Without a unit the period is in seconds. The times may be ``06:00`` or ``06.00``.
    """
    match = _REQUEST_RATE.fullmatch(_SPACES.sub(b" ", value))
    if not match:
        return None
    requests, period, unit, start, end = match.groups()
    seconds = int(period) * _SECONDS[unit.lower()]
    window = _window(start, end) if start else None
    if not int(requests) or not seconds or (start and window is None):
        return None
    return RequestRate(int(requests), seconds, window)


def parse_visit_time(value: bytes) -> Window | None:
    """Return the window of ``0600-0845`` or ``0600 0845``. None if it is unreadable.

    The times may be ``06:00`` or ``06.00``.
    """
    match = _VISIT_TIME.fullmatch(_SPACES.sub(b" ", value))
    return _window(match[1], match[2]) if match else None


def parse_clean_param(value: bytes) -> CleanParam | None:
    """Return the parameters and the path of ``ref&sid /some/path``. None if the value is empty."""
    if not value:
        return None
    parameters, *path = (part.decode("utf-8", "replace") for part in _SPACES.split(value, 1))
    return CleanParam(tuple(filter(None, parameters.split("&"))), *path)


def _clean_param_names(value: bytes) -> tuple[str, ...] | None:
    record = parse_clean_param(value)
    return (record.parameters or None) if record else None


def _clean_param_path(value: bytes) -> str:
    record = parse_clean_param(value)
    return record.path if record else "/"


def _window(start: bytes, end: bytes) -> Window | None:
    minutes = [int(time[:2]) * 60 + int(time[-2:]) for time in (start, end)]
    if max(minutes) > _MINUTES_PER_DAY or int(start[-2:]) > 59 or int(end[-2:]) > 59:
        return None
    return Window(*minutes)


class Scope(Enum):
    """The crawlers to which a record applies."""

    FILE = "file"
    """For all crawlers, in a group or outside."""
    GROUP = "group"
    """For the crawlers that the user-agent lines above it name. Ignored above the first of them."""
    GROUP_OR_FILE = "group or file"
    """As `GROUP`. Above any user-agent line, for all crawlers whose group has no such record."""


class Check(NamedTuple):
    """What lint reports if a value does not pass a test."""

    code: Code
    passes: Callable[[bytes], bool]
    message: str
    """The message. ``{value}`` stands for the quoted value."""
    advice: str
    correct: Callable[[bytes], bytes] | None = None
    """Returns the value that means the same and passes, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordType(Generic[Value, Combined]):
    """A row of the table: one field, and how it is read."""

    field: bytes
    """The name in lower case."""
    scope: Scope
    parse: Callable[[bytes], Value | None]
    """Returns the meaning of one value. None: the line is skipped."""
    combine: Callable[[Sequence[Value]], Combined]
    """Returns the meaning of all lines together. No lines is a sequence without values."""
    prefixes: tuple[bytes, ...] = ()
    """Google's parser accepts every name that begins with one of these, unless strict."""
    typos: tuple[bytes, ...] = ()
    """Other names that are accepted, unless strict."""
    checks: tuple[Check, ...] = ()
    """What lint tests. It reports the first check that a value does not pass."""


def first(values: Sequence[Value]) -> Value | None:
    """Return the first of the values, or None without values."""
    return values[0] if values else None


def last(values: Sequence[Value]) -> Value | None:
    """Return the last of the values, or None without values."""
    return values[-1] if values else None


def every(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return all values in their order."""
    return tuple(values)


def unique(values: Sequence[Value]) -> tuple[Value, ...]:
    """Return the values in their order, each once."""
    return tuple(dict.fromkeys(values))


def is_absolute(value: bytes) -> bool:
    """Return whether a value is a URL with a scheme and a host."""
    try:
        parts = urlsplit(value.decode("utf-8", "replace"))
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def _readable(field: str, parse: Callable[[bytes], object], expected: str) -> Check:
    message = f"{field} {{value}} cannot be read and is ignored"
    passes = _is_read_by(parse)
    return Check(Code.UNREADABLE_VALUE, passes, message, f"write {expected}")


def _is_read_by(parse: Callable[[bytes], object]) -> Callable[[bytes], bool]:
    return lambda value: parse(value) is not None


def _plain_times(field: str) -> Check:
    return Check(
        Code.TIME_FORMAT,
        lambda value: b":" not in value and b"." not in value,
        f"the times of day of {field} {{value}} are not read by every crawler",
        "write them as 0600-0845",
        correct=lambda value: value.translate(None, b":."),
    )


# https://www.sitemaps.org/protocol.html, "Specifying the Sitemap location in your robots.txt file".
SITEMAP = RecordType(
    field=b"sitemap",
    scope=Scope.FILE,
    parse=text_of,
    combine=unique,
    prefixes=(b"sitemap", b"site-map"),
    checks=(
        Check(
            Code.RELATIVE_URL,
            is_absolute,
            "the sitemap {value} is no absolute URL",
            "write its whole URL, such as https://example.com/sitemap.xml",
        ),
    ),
)
# Yandex, Bing and others. The other spellings are those that Protego accepts.
CRAWL_DELAY = RecordType(
    field=b"crawl-delay",
    scope=Scope.GROUP,
    parse=parse_delay,
    combine=last,
    typos=(b"crawl delay", b"crawldelay"),
    checks=(_readable("crawl-delay", parse_delay, "seconds, such as 10 or 0.5"),),
)
# An Extended Standard for Robot Exclusion (Sean Conner, 1996), with Protego's other spellings.
REQUEST_RATE = RecordType(
    field=b"request-rate",
    scope=Scope.GROUP,
    parse=parse_request_rate,
    combine=every,
    typos=(b"request rate",),
    checks=(
        _readable(
            "request-rate",
            parse_request_rate,
            "requests/seconds, such as 1/10 or 1/10m 0600-0845",
        ),
        _plain_times("request-rate"),
    ),
)
VISIT_TIME = RecordType(
    field=b"visit-time",
    scope=Scope.GROUP,
    parse=parse_visit_time,
    combine=last,
    typos=(b"visit time",),
    checks=(
        _readable("visit-time", parse_visit_time, "two times of day in UTC, such as 0600-0845"),
        _plain_times("visit-time"),
    ),
)
# Yandex.
HOST = RecordType(field=b"host", scope=Scope.FILE, parse=text_of, combine=first)
CLEAN_PARAM = RecordType(
    field=b"clean-param",
    scope=Scope.FILE,
    parse=parse_clean_param,
    combine=every,
    checks=(
        _readable("clean-param", _clean_param_names, "names, and perhaps a path: ref&sid /shop/"),
        Check(
            Code.CLEAN_PARAM_PATH,
            lambda value: _clean_param_path(value)[0] in "/*",
            "the path of clean-param {value} never matches",
            "begin it with a slash, as every path does",
        ),
        Check(
            Code.CLEAN_PARAM_CHARACTERS,
            lambda value: _CLEAN_PARAM_PATH.fullmatch(_clean_param_path(value)) is not None,
            "Yandex reads only letters, digits and . - / * _ in the path of clean-param {value}",
            "write '*' for other characters",
        ),
        Check(
            Code.CLEAN_PARAM_LENGTH,
            lambda value: len(value) <= _MAX_CLEAN_PARAM,
            f"Yandex reads at most {_MAX_CLEAN_PARAM} characters of clean-param {{value}}",
            "write several lines",
        ),
    ),
)
# Google until 2019.
NOINDEX = RecordType(field=b"noindex", scope=Scope.FILE, parse=text_of, combine=every)
# https://contentsignals.org
CONTENT_SIGNAL = RecordType(
    field=b"content-signal",
    scope=Scope.GROUP_OR_FILE,
    parse=parse_signal_rule,
    combine=PathSignals,
    checks=(
        Check(
            Code.UNREADABLE_SIGNAL,
            has_readable_signals,
            "a part of content-signal {value} cannot be read and is skipped",
            "write an optional path and then a list such as 'search=yes, ai-train=no'",
        ),
        Check(
            Code.UNKNOWN_SIGNAL,
            has_known_signals,
            "content-signal {value} has a name that is not defined",
            "write search, ai-input, ai-train or use",
        ),
    ),
)
# draft-ietf-aipref-attach
CONTENT_USAGE = RecordType(
    field=b"content-usage",
    scope=Scope.GROUP,
    parse=parse_usage_rule,
    combine=PathPreferences,
    checks=(
        Check(
            Code.UNREADABLE_USAGE,
            _is_read_by(usage_preferences),
            "content-usage {value} cannot be read, so nothing is stated",
            "write an optional path and then a list such as 'train-ai=n, search=y'",
        ),
        Check(
            Code.USAGE_VALUE,
            has_usage_values,
            "content-usage {value} has a value that states nothing",
            "write y or n, such as 'train-ai=n, search=y'",
        ),
        Check(
            Code.OBSOLETE_LABEL,
            has_current_labels,
            "content-usage {value} has a label of an earlier draft of AIPREF, which states nothing",
            "write train-ai, ai-use or search",
        ),
        Check(
            Code.SIGNAL_NAME_IN_USAGE,
            has_usage_names,
            "content-usage {value} has a label of content-signal, which states nothing",
            "write train-ai for ai-train, and ai-use for ai-input",
        ),
    ),
)
# Really Simple Licensing 1.0, https://rslstandard.org
LICENSE = RecordType(
    field=b"license",
    scope=Scope.GROUP_OR_FILE,
    parse=text_of,
    combine=unique,
    checks=(
        Check(
            Code.RELATIVE_URL,
            is_absolute,
            "the license {value} is no absolute URL",
            "write its whole URL, such as https://example.com/license.xml",
        ),
    ),
)

RECORD_TYPES: tuple[RecordType[Any, Any], ...] = (
    SITEMAP,
    CRAWL_DELAY,
    REQUEST_RATE,
    VISIT_TIME,
    HOST,
    CLEAN_PARAM,
    NOINDEX,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    LICENSE,
)
"""The table."""

PACING = (CRAWL_DELAY, REQUEST_RATE, VISIT_TIME)
"""The records that limit how fast and when a crawler sends requests."""

USAGE = (CONTENT_SIGNAL, CONTENT_USAGE)
"""The records that state how content may be used."""

GROUP_FIELDS = frozenset(row.field for row in RECORD_TYPES if row.scope is not Scope.FILE)
"""The fields that apply to the crawlers named above them."""
