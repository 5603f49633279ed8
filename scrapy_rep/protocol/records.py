"""What a robots.txt says beyond allow and disallow.

None of it is in RFC 9309: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol … [they] MUST NOT interfere with the parsing of explicitly defined records"
(§2.2.4). So it is read apart from the rules, and only when it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice, takewhile
from math import isfinite
from typing import NamedTuple, TypeAlias
from urllib.parse import urljoin

from .agents import tokens_of_line
from .matcher import TOO_COMPLEX, PatternIndex, matching
from .parser import records
from .paths import pattern_of
from .usage import combine, combined, content_signals, content_usage, refusals

GROUP_FIELDS = frozenset(
    [b"crawl-delay", b"request-rate", b"visit-time", b"content-signal", b"content-usage"]
)
"""The fields that hold for the crawlers named above them."""

_ANY = re.compile(
    rb"\n(?i:site-?map|crawl[ -]?delay|request[ -]rate|visit[ -]time|host|clean-param|noindex"
    rb"|content-)"
).search
_DELAY = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
# These are for values in which white space is one space: any number of it would take any time.
_TIME = r"([0-9]{2}[:.]?[0-9]{2})"
_WINDOW = rf"{_TIME}(?: ?- ?| ){_TIME}"
_VISIT_TIME = re.compile(_WINDOW)
_RATE = re.compile(rf"([0-9]{{1,9}}) ?/ ?([0-9]{{1,9}}) ?([smhd]?)(?: {_WINDOW})?", re.IGNORECASE)
_SPACES = re.compile(r"[ \t\v\f]+")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY = 24 * 60


_Ranked: TypeAlias = tuple[str, int, dict[str, bool]]
"""A pattern, its length, and what is stated of it."""


class Window(NamedTuple):
    """A time of day: minutes after midnight UTC, from the first to before the second."""

    start: int
    end: int

    def contains(self, minute: float) -> bool:
        """Whether a minute of the day is in the window, which may wrap around midnight."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def __str__(self) -> str:
        (first, second), (third, fourth) = divmod(self.start, 60), divmod(self.end, 60)
        return f"{first:02}:{second:02} to {third:02}:{fourth:02} UTC"


class RequestRate(NamedTuple):
    """So many requests in so many seconds, all day or in a window of it."""

    requests: int
    seconds: int
    window: Window | None = None

    def __str__(self) -> str:
        rate = f"{self.requests}/{self.seconds}s"
        return rate if self.window is None else f"{rate} from {self.window}"


class CleanParam(NamedTuple):
    """Query parameters that do not change what pages below a path show (Yandex)."""

    parameters: tuple[str, ...]
    path: str = "/"


@dataclass(slots=True)
class GroupRecords:
    """What is said to the crawlers of one token."""

    crawl_delay: float | None = None
    request_rates: list[RequestRate] = field(default_factory=list)
    visit_time: Window | None = None
    content_signals: dict[str, bool] = field(default_factory=dict)
    content_usage: dict[tuple[str, int], dict[str, bool]] = field(default_factory=dict)
    """What is stated of each path, in comparable form and with its length."""
    _ranked: list[_Ranked] = field(default_factory=list, init=False, repr=False)
    """The same, the longest first, when it has been asked for; and an index of it."""
    _index: PatternIndex | None = field(default=None, init=False, repr=False)
    _refusals: dict[str, bool] = field(default_factory=dict, init=False, repr=False)
    """What any of them refuses."""

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
            path, stated = parse_usage_rule(octets)
            combine(self.content_usage.setdefault(path, {}), stated)

    def usage_of(self, path: str) -> dict[str, bool]:
        """What the longest of the paths that match states: the whole of it, and no more.

        If it takes too many steps to find that path, what is refused for any is refused, and
        nothing is granted.
        """
        if self._index is None:
            self._ranked = sorted(
                (
                    (pattern, length, stated)
                    for (pattern, length), stated in self.content_usage.items()
                ),
                key=lambda one: (-one[1], one[0]),
            )
            self._index = PatternIndex([pattern for pattern, _, _ in self._ranked])
            self._refusals = refusals(self.content_usage.values())
        first = self._index.first(path)
        if first == TOO_COMPLEX:
            return dict(self._refusals)
        length = self._ranked[first][1] if first < len(self._ranked) else 0
        same = list(takewhile(lambda one: one[1] == length, islice(self._ranked, first, None)))
        found: list[dict[str, bool]] = []
        for number in matching((pattern for pattern, _, _ in same), path):
            if number == TOO_COMPLEX:
                return dict(self._refusals)
            found.append(same[number][2])
        return combined(found)


_Run: TypeAlias = list[tuple[bytes, bytes]]
"""What is said to the crawlers that are named one after the other: fields and values."""

_NOTHING = GroupRecords()


class Records:
    """All that a file says beyond its rules."""

    __slots__ = (
        "_groups",
        "_runs",
        "_sitemaps",
        "_url",
        "_written",
        "clean_params",
        "everyone",
        "has_pacing",
        "has_usage",
        "host",
        "noindex",
    )

    def __init__(self, text: bytes, *, strict: bool, url: str | None = None) -> None:
        self._url = url
        self._written: tuple[str, ...] = ()
        """The sitemaps as they stand in the file."""
        self._sitemaps: tuple[str, ...] | None = None
        self.host: str | None = None
        self.clean_params: tuple[CleanParam, ...] = ()
        self.noindex: tuple[str, ...] = ()
        self.has_pacing = False
        """Whether there is any Crawl-delay, Request-rate or Visit-time."""
        self.has_usage = False
        """Whether there is any Content-Signal or Content-Usage."""
        self.everyone: dict[str, bool] = {}
        """The Content-Signals that stand before any group."""
        self._runs: dict[bytes, list[_Run]] = {}
        self._groups: dict[bytes, GroupRecords] = {}
        if _ANY(text):
            self._read(text, strict=strict)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps, resolved where the URL of the robots.txt is known, each once."""
        if self._sitemaps is None:
            found = (absolute(sitemap, self._url) for sitemap in self._written)
            self._sitemaps = tuple(dict.fromkeys(url for url in found if url is not None))
        return self._sitemaps

    def of(self, token: bytes) -> GroupRecords:
        """What is said to the crawlers of one token."""
        if token not in self._runs:
            return _NOTHING
        group = self._groups.get(token)
        if group is None:
            group = self._groups[token] = GroupRecords()
            for run in self._runs[token]:
                for name, octets in run:
                    group.add(name, octets)
        return group

    def _read(self, text: bytes, *, strict: bool) -> None:
        sitemaps: dict[str, None] = {}
        clean_params: list[CleanParam] = []
        noindex: list[str] = []
        run: _Run = []
        naming = started = False
        for _, name, octets in records(text, strict=strict):
            if name == b"user-agent":
                if not naming:
                    run = []
                naming = started = True
                for token in tokens_of_line(octets):
                    runs = self._runs.setdefault(token, [])
                    if not runs or runs[-1] is not run:
                        runs.append(run)
                continue
            value = octets.decode("utf-8", "replace")
            if name in GROUP_FIELDS:
                # For themselves these end a run of user-agent lines, so that a crawl-delay
                # after each of two stays with its own.
                naming = False
                if name in (b"content-signal", b"content-usage"):
                    self.has_usage = True
                else:
                    self.has_pacing = True
                if not started and name == b"content-signal":
                    self.everyone.update(content_signals(value))
                run.append((name, octets))
            elif name in (b"allow", b"disallow"):
                naming = False
            elif not value:
                continue
            elif name == b"sitemap":
                sitemaps[value] = None
            elif name == b"host":
                self.host = self.host or value
            elif name == b"clean-param":
                clean_params.append(parse_clean_param(value))
            elif name == b"noindex":
                noindex.append(value)
        self._written = tuple(sitemaps)
        self.clean_params = tuple(clean_params)
        self.noindex = tuple(noindex)
        found = {token: [run for run in runs if run] for token, runs in self._runs.items()}
        self._runs = {token: runs for token, runs in found.items() if runs}


def parse_delay(value: str) -> float | None:
    """Finite seconds, zero or more."""
    if not _DELAY.fullmatch(value):
        return None
    delay = float(value)
    return delay if isfinite(delay) else None


def parse_request_rate(value: str) -> RequestRate | None:
    """``1/10``, ``1/10m``, ``1/10m 0600-0845``; seconds where there is no unit.

    A time may be written ``06:00`` or ``06.00``, too.
    """
    match = _RATE.fullmatch(_SPACES.sub(" ", value))
    if not match:
        return None
    requests, period, unit, start, end = match.groups()
    seconds = int(period) * _SECONDS[unit.lower()]
    window = _window(start, end) if start else None
    if not int(requests) or not seconds or (start and window is None):
        return None
    return RequestRate(int(requests), seconds, window)


def parse_visit_time(value: str) -> Window | None:
    """``0600-0845`` or ``0600 0845``, also with ``06:00`` or ``06.00``."""
    match = _VISIT_TIME.fullmatch(_SPACES.sub(" ", value))
    return _window(match[1], match[2]) if match else None


def parse_clean_param(value: str) -> CleanParam:
    """``ref&sid /some/path``; everywhere where no path is given."""
    parameters, *path = _SPACES.split(value, maxsplit=1)
    return CleanParam(tuple(filter(None, parameters.split("&"))), *path)


def parse_usage_rule(value: bytes) -> tuple[tuple[str, int], dict[str, bool]]:
    """``[path] train-ai=n``: the path, in comparable form and with its length, and what is stated.

    A statement that cannot be read leaves everything unknown.
    """
    path, *rest = value.split(maxsplit=1) if value.startswith(b"/") else (b"", value)
    stated = content_usage(b"".join(rest).decode("utf-8", "replace"))
    return pattern_of(path) if path else ("/", 0), stated or {}


def absolute(sitemap: str, url: str | None) -> str | None:
    """A sitemap's URL, resolved against that of the robots.txt where it is known."""
    try:
        return urljoin(url, sitemap) if url else sitemap
    except ValueError:
        return None


def _window(start: str, end: str) -> Window | None:
    minutes = [int(time[:2]) * 60 + int(time[-2:]) for time in (start, end)]
    if max(minutes) > _DAY or int(start[-2:]) > 59 or int(end[-2:]) > 59:
        return None
    return Window(*minutes)
