"""What a robots.txt says beyond allow and disallow.

None of it is in RFC 9309: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol … [they] MUST NOT interfere with the parsing of explicitly defined records"
(§2.2.4). So it is read apart from the rules, and only when it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin

from .agents import line_tokens
from .matcher import matches
from .parser import records
from .paths import pattern_of
from .usage import combined, content_signals, content_usage

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP_FIELDS = frozenset(
    [b"crawl-delay", b"request-rate", b"visit-time", b"content-signal", b"content-usage"]
)
"""The fields that hold for the crawlers named above them."""

_ANY = re.compile(
    rb"\n(?i:site-?map|crawl-delay|request-rate|visit-time|host|clean-param|noindex|content-)"
).search
_DELAY = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_WINDOW = r"([0-9]{4})(?:[ \t]*-[ \t]*|[ \t]+)([0-9]{4})"
_VISIT_TIME = re.compile(_WINDOW)
_RATE = re.compile(
    rf"([0-9]{{1,9}})[ \t]*/[ \t]*([0-9]{{1,9}})[ \t]*([smhd]?)(?:[ \t]+{_WINDOW})?", re.IGNORECASE
)
_SPACES = re.compile(r"[ \t\v\f]+")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY = 24 * 60


class Window(NamedTuple):
    """A time of day: minutes after midnight UTC, from the first to before the second."""

    start: int
    end: int

    def contains(self, minute: float) -> bool:
        """Whether a minute of the day is in the window, which may wrap around midnight."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


class RequestRate(NamedTuple):
    """So many requests in so many seconds, all day or in a window of it."""

    requests: int
    seconds: int
    window: Window | None = None


class CleanParam(NamedTuple):
    """Query parameters that do not change what pages below a path show (Yandex)."""

    parameters: tuple[str, ...]
    path: str = "/"


class UsageRule(NamedTuple):
    """A Content-Usage record: its path in comparable form, the path's length, what it states."""

    pattern: str
    length: int
    stated: dict[str, bool]


@dataclass(slots=True)
class GroupRecords:
    """What is said to the crawlers of one token."""

    crawl_delay: float | None = None
    request_rates: list[RequestRate] = field(default_factory=list)
    visit_time: Window | None = None
    content_signals: dict[str, bool] = field(default_factory=dict)
    content_usage: list[UsageRule] = field(default_factory=list)

    def add(self, name: bytes, octets: bytes) -> None:
        """Take in one record; of those that exclude each other the last valid one counts."""
        value = octets.decode("utf-8", "replace")
        if name == b"crawl-delay":
            delay = parse_delay(value)
            self.crawl_delay = self.crawl_delay if delay is None else delay
        elif name == b"request-rate":
            rate = parse_request_rate(value)
            self.request_rates += [rate] if rate else []
        elif name == b"visit-time":
            self.visit_time = parse_visit_time(value) or self.visit_time
        elif name == b"content-signal":
            self.content_signals.update(content_signals(value))
        else:
            self.content_usage.append(parse_usage_rule(octets))

    def usage_of(self, path: str) -> dict[str, bool]:
        """What the longest of the paths that match states: the whole of it, and no more."""
        found = [rule for rule in self.content_usage if matches(rule.pattern, path)]
        longest = max((rule.length for rule in found), default=0)
        return combined(rule.stated for rule in found if rule.length == longest)


class Records:
    """All that a file says beyond its rules."""

    __slots__ = ("clean_params", "everyone", "groups", "host", "noindex", "sitemaps")

    def __init__(self, text: bytes, *, strict: bool, url: str | None = None) -> None:
        self.sitemaps: tuple[str, ...] = ()
        self.host: str | None = None
        self.clean_params: tuple[CleanParam, ...] = ()
        self.noindex: tuple[str, ...] = ()
        self.groups: dict[bytes, GroupRecords] = {}
        self.everyone: dict[str, bool] = {}
        """The Content-Signals that stand before any group."""
        if _ANY(text):
            self._read(text, strict=strict, url=url)

    def _read(self, text: bytes, *, strict: bool, url: str | None) -> None:
        sitemaps: dict[str, None] = {}
        named: list[GroupRecords] = []
        naming = started = False
        for _, name, octets in records(text, strict=strict):
            if name == b"user-agent":
                if not naming:
                    named = []
                naming = started = True
                for token in line_tokens(octets):
                    named.append(self.groups.setdefault(token, GroupRecords()))
                continue
            value = octets.decode("utf-8", "replace")
            if name in GROUP_FIELDS:
                # For themselves these end a run of user-agent lines, so that a crawl-delay
                # after each of two stays with its own.
                naming = False
                if not started and name == b"content-signal":
                    self.everyone.update(content_signals(value))
                for group in unique(named):
                    group.add(name, octets)
            elif name in (b"allow", b"disallow"):
                naming = False
            elif not value:
                continue
            elif name == b"sitemap":
                sitemap = absolute(value, url)
                if sitemap is not None:
                    sitemaps[sitemap] = None
            elif name == b"host":
                self.host = self.host or value
            elif name == b"clean-param":
                self.clean_params += (parse_clean_param(value),)
            elif name == b"noindex":
                self.noindex += (value,)
        self.sitemaps = tuple(sitemaps)


def unique(groups: Iterable[GroupRecords]) -> Iterable[GroupRecords]:
    """A token may stand in a run twice."""
    return {id(group): group for group in groups}.values()


def parse_delay(value: str) -> float | None:
    """Finite seconds, zero or more."""
    if not _DELAY.fullmatch(value):
        return None
    delay = float(value)
    return delay if isfinite(delay) else None


def parse_request_rate(value: str) -> RequestRate | None:
    """``1/10``, ``1/10m``, ``1/10m 0600-0845``; seconds where there is no unit."""
    match = _RATE.fullmatch(value)
    if not match:
        return None
    requests, period, unit, start, end = match.groups()
    seconds = int(period) * _SECONDS[unit.lower()]
    window = _window(start, end) if start else None
    if not int(requests) or not seconds or (start and window is None):
        return None
    return RequestRate(int(requests), seconds, window)


def parse_visit_time(value: str) -> Window | None:
    """``0600-0845`` or ``0600 0845``."""
    match = _VISIT_TIME.fullmatch(value)
    return _window(match[1], match[2]) if match else None


def parse_clean_param(value: str) -> CleanParam:
    """``ref&sid /some/path``; everywhere where no path is given."""
    parameters, *path = _SPACES.split(value, maxsplit=1)
    return CleanParam(tuple(filter(None, parameters.split("&"))), *path)


def parse_usage_rule(value: bytes) -> UsageRule:
    """``[path] train-ai=n``; a statement that cannot be read leaves everything unknown."""
    path, *rest = value.split(maxsplit=1) if value.startswith(b"/") else (b"", value)
    pattern, length = pattern_of(path) if path else ("/", 0)
    stated = content_usage(b"".join(rest).decode("utf-8", "replace"))
    return UsageRule(pattern, length, stated or {})


def absolute(sitemap: str, url: str | None) -> str | None:
    """A sitemap's URL, resolved against that of the robots.txt where it is known."""
    try:
        return urljoin(url, sitemap) if url else sitemap
    except ValueError:
        return None


def _window(start: str, end: str) -> Window | None:
    minutes = [int(time[:2]) * 60 + int(time[2:]) for time in (start, end)]
    if max(minutes) > _DAY or int(start[2:]) > 59 or int(end[2:]) > 59:
        return None
    return Window(*minutes)
