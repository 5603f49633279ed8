"""The records of a robots.txt other than user-agent, allow and disallow.

None of them is in RFC 9309: "Crawlers MAY interpret other records that are not part of the
robots.txt protocol" (RFC 9309 §2.2.4). They are read apart from the rules, for they "MUST NOT
interfere with the parsing of explicitly defined records", and when the first one is needed.

To support one more record, add a row to `RECORD_TYPES`. If it is for a group, add its field to
`parser.GROUP_FIELDS`. `lint_checks.CHECKS` has what lint tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from .matcher import TOO_COMPLEX, matching
from .parser import GROUP_FIELDS, PREFIXES, RULE_FIELDS, TYPOS, USER_AGENT, records_of_groups
from .paths import path_of, pattern_of, resolve
from .usage import PathPreferences, PathSignals, parse_signal_rule, parse_usage_rule

Value = TypeVar("Value")
Combined = TypeVar("Combined", covariant=True)

MAX_NAMED_RATES = 3  # Request-rates that `pace_text` lists
MAX_CLEAN_PARAM_NAMES = 10_000
"""How many names of the Clean-params of a file are read (ours). No file of the corpus has 20."""

_SECONDS = {b"": 1, b"s": 1, b"m": 60, b"h": 3600, b"d": 86400}
"""The seconds in each unit of a Request-rate."""
MINUTES = 24 * 60  # of a day

_SPACES = re.compile(rb"[ \t\v\f]+")
# delay = 1*DIGIT ["." *DIGIT] / "." 1*DIGIT
_DELAY = re.compile(rb"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")

# Each SP below stands for a run of white space, which `_SPACES` replaces first. With runs in the
# expression itself, the time to match would grow with the square of their length.
#
#   visit-time   = window
#   request-rate = requests [SP] "/" [SP] period [SP] [unit] [SP window]
#   requests     = 1*9DIGIT                   period = 1*9DIGIT
#   unit         = "s" / "m" / "h" / "d"
#   window       = time ([SP] "-" [SP] / SP) time
#   time         = 2DIGIT [":" / "."] 2DIGIT     from 0000 to 2400
_TIME = rb"((?:[01][0-9]|2[0-3])[:.]?[0-5][0-9]|24[:.]?00)"
_WINDOW = _TIME + rb"(?: ?- ?| )" + _TIME
_VISIT_TIME = re.compile(_WINDOW)
_REQUEST_RATE = re.compile(
    rb"([0-9]{1,9}) ?/ ?([0-9]{1,9}) ?([smhd]?)(?: %b)?" % _WINDOW, re.IGNORECASE
)


class VisitTime(NamedTuple):
    """A time of day in UTC, in minutes after midnight. It may wrap around midnight."""

    start: int
    """The first minute of the window."""
    end: int
    """The first minute after the window."""

    def contains(self, minute: float) -> bool:
        """Return whether a minute of the day is in the window."""
        return any(start <= minute < end for start, end in self.spans())

    def spans(self) -> list[tuple[int, int]]:
        """Return the first minute and the end. Two pairs if the window wraps around midnight."""
        if self.start < self.end:
            return [(self.start, self.end)]
        return [(0, self.end), (self.start, MINUTES)]

    def __str__(self) -> str:
        (first, second), (third, fourth) = divmod(self.start, 60), divmod(self.end, 60)
        return f"{first:02}:{second:02} to {third:02}:{fourth:02} UTC"


class RequestRate(NamedTuple):
    """A number of requests in a number of seconds."""

    requests: int
    seconds: int
    window: VisitTime | None = None
    """The time of day for which the rate is meant. None: all day."""

    def __str__(self) -> str:
        rate = f"{self.requests}/{self.seconds}s"
        return rate if self.window is None else f"{rate} from {self.window}"


class CleanParam(NamedTuple):
    """Query parameters that do not change the content of the pages below a path (Yandex)."""

    parameters: tuple[str, ...]
    path: str = "/"


def text_of(value: bytes) -> str | None:
    return value.decode("utf-8", "replace") or None


def parse_delay(value: bytes) -> float | None:
    """Return the seconds of a Crawl-delay: finite, zero or more. None if it is unreadable."""
    delay = float(value) if _DELAY.fullmatch(value) else inf
    return delay if delay < inf else None


def parse_request_rate(value: bytes) -> RequestRate | None:
    """Return the rate of ``1/10``, ``1/10m`` or ``1/10m 0600-0845``. None if it is unreadable."""
    match = _REQUEST_RATE.fullmatch(_SPACES.sub(b" ", value))
    if not match or not int(match[1]) or not int(match[2]):
        return None
    requests, period, unit, start, end = match.groups()
    seconds = int(period) * _SECONDS[unit.lower()]
    return RequestRate(int(requests), seconds, _window(start, end) if start else None)


def parse_visit_time(value: bytes) -> VisitTime | None:
    """Return the window of ``0600-0845`` or ``06:00 08:45``. None if it is unreadable."""
    match = _VISIT_TIME.fullmatch(_SPACES.sub(b" ", value))
    return _window(match[1], match[2]) if match else None


def parse_clean_param(value: bytes) -> CleanParam | None:
    """Return the parameters and the path of ``ref&sid /some/path``. None if the value is empty."""
    if not value:
        return None
    parameters, *path = (part.decode("utf-8", "replace") for part in _SPACES.split(value, 1))
    return CleanParam(tuple(filter(None, parameters.split("&"))), *path)


def _window(*times: bytes) -> VisitTime:
    return VisitTime(*(int(time[:2]) * 60 + int(time[-2:]) for time in times))


@dataclass(frozen=True, slots=True)
class RecordType(Generic[Value, Combined]):
    """A row of the table: one field, and how it is read."""

    field: bytes
    parse: Callable[[bytes], Value | None]
    """Returns the meaning of one value. None: the line is skipped."""
    combine: Callable[[Sequence[Value]], Combined]
    """Returns the meaning of all lines together. No lines is a sequence without values."""


def last(values: Sequence[Value]) -> Value | None:
    return values[-1] if values else None


def unique(values: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


RECORD_TYPES: tuple[RecordType[Any, Any], ...] = (
    # https://www.sitemaps.org/protocol.html, "Specifying the Sitemap location in your robots.txt".
    SITEMAP := RecordType(b"sitemap", text_of, unique),
    # Yandex, Bing and others.
    CRAWL_DELAY := RecordType(b"crawl-delay", parse_delay, last),
    # An Extended Standard for Robot Exclusion (Sean Conner, 1996).
    REQUEST_RATE := RecordType(b"request-rate", parse_request_rate, tuple),
    VISIT_TIME := RecordType(b"visit-time", parse_visit_time, last),
    # Yandex.
    HOST := RecordType(b"host", text_of, lambda values: next(iter(values), None)),
    CLEAN_PARAM := RecordType(b"clean-param", parse_clean_param, tuple),
    # https://contentsignals.org
    CONTENT_SIGNAL := RecordType(b"content-signal", parse_signal_rule, PathSignals),
    # draft-ietf-aipref-attach
    CONTENT_USAGE := RecordType(b"content-usage", parse_usage_rule, PathPreferences),
    # Really Simple Licensing 1.0, https://rslstandard.org
    LICENSE := RecordType(b"license", text_of, unique),
)
"""Fields that are not in `parser.GROUP_FIELDS` hold for all crawlers, wherever they stand."""

PACING = (CRAWL_DELAY, REQUEST_RATE, VISIT_TIME)  # how fast and when a crawler sends requests
USAGE = (CONTENT_SIGNAL, CONTENT_USAGE)  # how content may be used

_FIELDS = frozenset(row.field for row in RECORD_TYPES)
KNOWN_FIELDS = frozenset([USER_AGENT, *RULE_FIELDS, *_FIELDS])
"""The fields of all records that the package reads."""
HELD_ABOVE = frozenset([CONTENT_SIGNAL.field])
"""Above any user-agent line, this holds for all crawlers whose group has no such record."""

# Every line that may be a known record begins so, in any spelling.
_NAMES = [*TYPOS, *(name for field in sorted(_FIELDS) for name in PREFIXES.get(field, (field,)))]
_ANY = re.compile(rb"\n(?i:%b)" % b"|".join(map(re.escape, _NAMES))).search

_Run: TypeAlias = list[tuple[bytes, bytes]]
"""Field and value of the records below one run of user-agent lines."""


class RecordValues:
    """The values of the records of a file, or of all groups of one token."""

    __slots__ = ("_combined", "_written")

    def __init__(self, written: Iterable[tuple[bytes, bytes]]) -> None:
        self._written: dict[bytes, list[bytes]] = {}
        for field, value in written:
            self._written.setdefault(field, []).append(value)
        self._combined: dict[bytes, Any] = {}

    def get(self, record_type: RecordType[Any, Combined]) -> Combined:
        """Return what all readable values of a record state together."""
        field = record_type.field
        if field not in self._combined:
            found = map(record_type.parse, self._written.get(field, ()))
            self._combined[field] = record_type.combine([one for one in found if one is not None])
        combined: Combined = self._combined[field]
        return combined

    @property
    def pace(self) -> str:
        """The pace as text, or "" without one."""
        return pace_text(self.get(CRAWL_DELAY), self.get(REQUEST_RATE), self.get(VISIT_TIME))


class Records:
    """All records of one file."""

    __slots__ = ("_groups", "_runs", "_url", "fields", "file")

    def __init__(self, text: bytes, *, strict: bool, url: str | None = None) -> None:
        self._url = url
        self._runs: dict[bytes, list[_Run]] = {}
        self._groups: dict[bytes, RecordValues] = {}
        self.fields: set[bytes] = set()
        """The fields of `RECORD_TYPES` that the file has, with a readable value or not."""
        self.file = RecordValues(self._read(text, strict=strict) if _ANY(text) else ())

    def of(self, token: bytes) -> RecordValues:
        """Return the records of all groups of one token."""
        if token not in self._groups:
            written = (record for run in self._runs.get(token, ()) for record in run)
            self._groups[token] = RecordValues(written)
        return self._groups[token]

    def _read(self, text: bytes, *, strict: bool) -> _Run:
        """Note the records of groups, and return those for all crawlers."""
        file: _Run = []
        agents: list[bytes] | None = None
        run: _Run = []
        ends = {*RULE_FIELDS, *GROUP_FIELDS}
        for (_, field, value), tokens in records_of_groups(text, strict=strict, ends=ends):
            if field not in _FIELDS:
                continue
            self.fields.add(field)
            if field not in GROUP_FIELDS or (tokens is None and field in HELD_ABOVE):
                file.append((field, value))
            elif tokens is not None:
                if tokens is not agents:
                    agents, run = tokens, []
                    for token in dict.fromkeys(tokens):
                        self._runs.setdefault(token, []).append(run)
                run.append((field, value))
        return file

    def resolved(self, record_type: RecordType[str, tuple[str, ...]]) -> tuple[str, ...]:
        """Return the URLs of a record, each once, resolved if that of the robots.txt is known."""
        found = (resolve(reference, self._url) for reference in self.file.get(record_type))
        return unique([url for url in found if url is not None])


def pace_text(delay: float | None, rates: Sequence[RequestRate], hours: VisitTime | None) -> str:
    """Return a pace as text, with at most `MAX_NAMED_RATES` rates."""
    parts = [f"Crawl-delay: {delay:g}"] if delay else []
    parts += [f"Request-rate: {rate}" for rate in rates[:MAX_NAMED_RATES]]
    if len(rates) > MAX_NAMED_RATES:
        parts.append(f"and {len(rates) - MAX_NAMED_RATES} more")
    if hours:
        parts.append(f"Visit-time: {hours}")
    return ", ".join(parts)


class ParameterCleaner:
    """Removes the query parameters that a site declares irrelevant (Clean-param, Yandex).

        clean-param = name *("&" name) [1*WS path]

    A name is case-sensitive. The record applies to pages that begin with the path, in which ``*``
    is any run of bytes: "the * character is always implicitly appended to the end of the prefix"
    (https://yandex.com/support/webmaster/en/robot-workings/clean-param).
    """

    __slots__ = ("_patterns",)

    def __init__(self, records: Iterable[CleanParam]) -> None:
        self._patterns: dict[str, list[str]] = {}
        """For each name, in comparable form, the paths below which it is removed."""
        left = MAX_CLEAN_PARAM_NAMES
        for record in records:
            names = record.parameters[:left] if record.path[0] in "/*" else ()
            left -= len(names)
            # A "$" is not an anchor for Yandex, nor here with the "*" behind it.
            pattern, _ = pattern_of(record.path.encode() + b"*")
            for name in names:
                self._patterns.setdefault(_comparable(name), []).append(pattern)

    def clean(self, url: str) -> str:
        """Return a URL without these parameters.

        The order of the others, and the fragment, stay as they are. If the comparison takes too
        many steps, the URL stays as it is. Raises ValueError as `path_of` does.
        """
        page = path_of(url).partition("?")[0]
        if not self._patterns:
            return url
        address, number_sign, fragment = url.partition("#")
        address, question_mark, query = address.partition("?")
        parameters = query.split("&")
        names = [_comparable(parameter.partition("=")[0]) for parameter in parameters]
        patterns_of = {name: self._patterns[name] for name in names if name in self._patterns}
        patterns = list(dict.fromkeys(chain.from_iterable(patterns_of.values())))
        numbers = list(matching(patterns, page))
        if not numbers or TOO_COMPLEX in numbers:
            return url
        matched = {patterns[number] for number in numbers}
        removed = {name for name, those in patterns_of.items() if not matched.isdisjoint(those)}
        rest = "&".join(
            each for each, name in zip(parameters, names, strict=True) if name not in removed
        )
        return address + (question_mark if rest else "") + rest + number_sign + fragment


def _comparable(name: str) -> str:
    """Return a name in the form in which paths are compared, so that escapes do not matter."""
    return path_of("/" + name)
