"""The records of a crawl that runs, in bounded memory.

The bounds are in :class:`~.model.Limits`, which also counts what is left out. Each origin needs
about 4 KB with a file of its own and a few example URLs.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..protocol.paths import host_of
from ..protocol.printable import cut
from ..protocol.verdict import Reason, Verdict
from .merging import version_key
from .model import (
    MAX_EXAMPLES,
    Deciding,
    HostPace,
    Limits,
    OriginReport,
    RobotsFile,
    RuleText,
    Time,
    Version,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TEXTS = 50
"""The directives, uses and licenses of one origin that are kept, of each kind."""

_FILE_REASONS = frozenset({Reason.RULES, Reason.NO_RULES, Reason.TOO_COMPLEX, Reason.VISIT_TIME})
"""The reasons for which the content of a robots.txt decided."""


def default_limits() -> Limits:
    """Return the bounds of a crawl, with nothing left out yet."""
    return Limits(
        max_origins=10_000,
        max_hosts=10_000,
        max_deciding=100_000,
        max_deciding_per_origin=100,
        max_versions=10,
        max_text=300,
        max_file_text=20_000,
        max_files_text=10_000_000,
        max_examples=MAX_EXAMPLES,
        max_example_text=20_000_000,
    )


class LiveHost:
    """The pace of one host."""

    __slots__ = ("_delay", "_last", "report")

    def __init__(self, name: str) -> None:
        self.report = HostPace(name)
        self._last: float | None = None
        self._delay = 0.0
        """The delay when the last request was sent."""

    def add(self, now: float, monotonic: float, delay: float) -> None:
        """Add a request that is sent now, on two clocks. ``delay`` is to be kept; 0 for none."""
        report = self.report
        report.requests += 1
        report.last_at = Time(now)
        if delay:
            report.shortest_delay = min(delay, report.shortest_delay or inf)
            report.longest_delay = max(delay, report.longest_delay or 0)
        if self._last is None:
            report.first_at = Time(now)
        else:
            gap = monotonic - self._last
            report.gaps.add(gap)
            # A request may have passed the middleware before the delay was known.
            if delay and (self._delay or gap >= delay):
                report.paced_gaps.add(gap)
                report.too_short += gap < min(delay, self._delay)
        self._last, self._delay = monotonic, delay


class LiveOrigin:
    """One origin, and the rules that have decided about its requests."""

    __slots__ = ("_all", "current", "host", "report", "sha256")

    def __init__(self, key: str, host: LiveHost | None) -> None:
        self.report = OriginReport(key, host_of(key))
        self.host = host
        """None if there are too many hosts."""
        self.sha256: str | None = None
        """The robots.txt whose rules apply. None without one, and if it is not known."""
        self._all: dict[tuple[str | None, Verdict | str], Deciding] = {}
        self.current: dict[Verdict | str, Deciding] = {}
        """By verdict, ``exempt`` or ``unchecked``: what decides under this robots.txt."""

    def set_file(self, sha256: str | None) -> None:
        """Apply the rules of another robots.txt, or of none."""
        if sha256 != self.sha256:
            self.sha256 = sha256
            self.current = {
                verdict: row for (file, verdict), row in self._all.items() if file in (None, sha256)
            }

    def add_deciding(self, verdict: Verdict | str, cut_text: Callable[[str], str]) -> Deciding:
        """Add what decides about a request for the first time."""
        if isinstance(verdict, Verdict):
            row = Deciding(verdict.reason.value, verdict.allowed)
            row.agent = None if verdict.agent is None else cut_text(verdict.agent)
            row.detail = None if verdict.detail is None else cut_text(verdict.detail)
            if verdict.rule is not None:
                allow, pattern, line = verdict.rule
                row.rule = RuleText(allow, cut_text(pattern), line)
            if verdict.reason in _FILE_REASONS:
                row.sha256 = self.sha256
        else:
            row = Deciding(verdict)
        self._all[row.sha256, verdict] = self.current[verdict] = row
        self.report.deciding.append(row)
        return row

    def add_version(self, version: Version, limits: Limits) -> None:
        """Add the result of a fetch of its robots.txt."""
        versions = self.report.versions
        last = versions[-1] if versions else None
        # A 304 says that the file is still the same.
        if last is not None and version.status == 304 and last.result == version.result:
            version.status = last.status
            version.url, version.redirects = last.url, last.redirects
        if last is not None and version_key(last) == version_key(version):
            last.last_at, last.expires_at = version.last_at, version.expires_at
            last.failure = version.failure
            last.fetches += 1
            return
        versions.append(version)
        if len(versions) > limits.max_versions:
            del versions[limits.max_versions // 2]
            self.report.versions_left_out += 1
            limits.versions_left_out += 1


class Texts:
    """Keeps texts within the bounds of a crawl."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._example_room = limits.max_example_text
        self._file_room = limits.max_files_text

    def cut(self, text: str) -> str:
        """Return a text that is not too long."""
        return cut(text, self._limits.max_text)

    def add_example(self, examples: list[str], url: str) -> None:
        """Add a URL to a list that is not full, unless the list has it."""
        url = self.cut(url)
        if url in examples:
            return
        if self._example_room < len(url):
            self._limits.examples_left_out += 1
            return
        self._example_room -= len(url)
        examples.append(url)

    def file(self, body: bytes, text: bytes | None) -> RobotsFile:
        """Return the record of a file. ``text`` is what was read of it."""
        room = min(self._limits.max_file_text, self._file_room)
        if text is None or len(text) > room:
            self._limits.files_left_out += 1
            return RobotsFile(len(body))
        self._file_room -= len(text)
        return RobotsFile(len(body), text.decode("utf-8", "replace"))
