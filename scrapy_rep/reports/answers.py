"""The questions that a reader of a report asks first, and their answers from the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.verdict import Reason
from .model import EXEMPT, UNCHECKED

if TYPE_CHECKING:
    from .gaps import Gaps
    from .model import Deciding, HostPace, OriginReport, Report

REASONS: dict[str, str] = {
    Reason.RULES: "a rule of the robots.txt",
    Reason.NO_RULES: "no rule for this crawler",
    Reason.UNAVAILABLE: "the site has no robots.txt",
    Reason.DISALLOWED_STATUS: "the status of the robots.txt (REP_DISALLOW_STATUSES)",
    Reason.UNREACHABLE: "the robots.txt was unreachable",
    Reason.TOO_COMPLEX: "the rules were too complex to compare",
    Reason.INVALID_HOST: "the URL has no valid host",
    Reason.VISIT_TIME: "the Visit-time of the site",
    Reason.LOCAL_RULE: "a local rule (REP_LOCAL_RULES)",
    EXEMPT: "exempt (dont_obey_robotstxt)",
    UNCHECKED: "sent without a check",
}
"""What each reason of a verdict means, to be read after "because of" or on its own."""


def reason_text(reason: str) -> str:
    """Return what a reason means. A later version may have others."""
    return REASONS.get(reason, reason) if reason.strip() else "unknown"


class Obedience(Enum):
    """Whether the crawl requested a disallowed page, by its own record."""

    OBEYED = "obeyed"
    EXEMPT = "exempt"
    """Some requests were exempt from the check."""
    NOT_KNOWN = "not known"
    """The record does not show each request that was sent with its verdict, or it is damaged."""
    DISALLOWED = "disallowed"
    """Disallowed pages were requested."""


def obedience(report: Report) -> Obedience:
    """Return whether the crawl requested a disallowed page."""
    totals = report.totals
    if totals.sent_disallowed or totals.final_url_disallowed:
        return Obedience.DISALLOWED
    is_whole = all(run.sent_is_known and run.damage is None for run in report.runs)
    if totals.sent_unchecked or not is_whole:
        return Obedience.NOT_KNOWN
    return Obedience.EXEMPT if totals.sent_exempt else Obedience.OBEYED


def drops(report: Report) -> list[tuple[str, int]]:
    """Return the reasons of requests that were not sent, with the number of each."""
    return sorted(report.totals.dropped_for.items(), key=lambda item: (-item[1], item[0]))


class Disallowed(NamedTuple):
    """A disallowed page that was requested or received."""

    origin: OriginReport
    deciding: Deciding


def disallowed_requests(report: Report) -> list[Disallowed]:
    """Return what disallowed the pages that were requested or received all the same."""
    found = [
        Disallowed(origin, deciding)
        for origin in report.origins
        for deciding in origin.deciding
        if deciding.allowed is False and (deciding.sent or deciding.final_url)
    ]
    return sorted(found, key=lambda one: -(one.deciding.sent + one.deciding.final_url))


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace that sites asked for, and the pace that the crawl kept."""

    asked: list[HostPace] = field(default_factory=list)
    """The hosts with a delay and with at least one gap while it applied, worst first: by the ratio
    of the smallest gap to the delay."""
    unasked: list[HostPace] = field(default_factory=list)
    """The hosts without a delay and with at least one gap, fastest first."""
    gaps: int = 0
    """The gaps while a delay applied."""
    too_short: int = 0
    """Those of them that were shorter than the delay."""

    @property
    def fastest(self) -> HostPace | None:
        """The host with the smallest gap while a delay applied."""
        return min(self.asked, key=lambda host: host.paced_gaps.smallest or 0, default=None)

    @property
    def slowest(self) -> HostPace | None:
        """The host with the longest median gap while a delay applied."""
        return max(self.asked, key=lambda host: median(host.paced_gaps), default=None)


def pace(report: Report) -> Pace:
    """Return the pace that sites asked for, and the pace that the crawl kept."""
    asked = [host for host in report.hosts if host.shortest_delay and host.paced_gaps.count]
    unasked = [host for host in report.hosts if not host.shortest_delay and host.gaps.count]
    return Pace(
        sorted(asked, key=lambda host: (round(kept_ratio(host), 3), host.host)),
        sorted(unasked, key=lambda host: (round(host.gaps.smallest or 0, 3), host.host)),
        sum(host.paced_gaps.count for host in report.hosts),
        sum(host.too_short for host in report.hosts),
    )


def median(gaps: Gaps) -> float:
    """Return the median gap. The estimate of :class:`Gaps` may be below the smallest gap."""
    return max(gaps.median or 0, gaps.smallest or 0)


def kept_ratio(host: HostPace) -> float:
    """Return the smallest gap of a host, relative to the shortest delay. 1 or more is kept."""
    return (host.paced_gaps.smallest or 0) / (host.shortest_delay or 1)


def unreachable(report: Report) -> list[OriginReport]:
    """Return the origins whose robots.txt was unreachable at the end, most requests first."""
    found = [origin for origin in report.origins if origin.state == "unreachable"]
    return sorted(found, key=lambda origin: (-origin.counts.dropped, origin.origin))


def states(report: Report) -> dict[str, int]:
    """Return how many origins have each state."""
    found: dict[str, int] = {}
    for origin in report.origins:
        found[origin.state] = found.get(origin.state, 0) + 1
    return found


class Rule(NamedTuple):
    """A rule or another reason, and the requests of all origins that it decided."""

    text: str
    is_rule: bool
    """Whether the text is a rule as it is written. Otherwise it says what a reason means."""
    allowed: bool | None
    requests: int
    origins: int


def frequent(report: Report, most: int = 12) -> tuple[list[Rule], int]:
    """Return what decided most requests, and how many other rules and reasons there are.

    The same rule of several origins counts as one.
    """
    numbers: dict[tuple[str, bool, bool | None], list[int]] = {}
    for origin in report.origins:
        seen = set()
        for deciding in origin.deciding:
            is_rule = deciding.rule is not None
            key = (deciding_text(deciding), is_rule, deciding.allowed)
            found = numbers.setdefault(key, [0, 0])
            found[0] += deciding.sent + deciding.dropped + deciding.final_url
            found[1] += key not in seen
            seen.add(key)
    rules = [Rule(*key, *found) for key, found in numbers.items()]
    rules.sort(key=lambda rule: (-rule.requests, rule.text))
    return rules[:most], max(len(rules) - most, 0)


def deciding_text(deciding: Deciding) -> str:
    """Return a rule as it is written, or what the reason means."""
    if deciding.rule is not None:
        field = "Allow" if deciding.rule.allow else "Disallow"
        return f"{field}: {deciding.rule.pattern}"
    if deciding.reason == Reason.RULES:
        return "no rule matches"
    return reason_text(deciding.reason)
