"""What a reader of a report asks first, decided from its record. Templates have the sentences."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.verdict import Reason
from .records import EXEMPT, UNCHECKED

if TYPE_CHECKING:
    from .records import Deciding, HostPace, OriginReport, Report

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


def deciding_text(deciding: Deciding) -> str:
    """Return a rule as it is written, or what the reason means."""
    if deciding.rule is not None:
        return str(deciding.rule)
    return "no rule matches" if deciding.reason == Reason.RULES else reason_text(deciding.reason)


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
    if totals.disallowed:
        return Obedience.DISALLOWED
    is_whole = all(run.sent_is_known and run.damage is None for run in report.runs)
    if totals.sent_unchecked or not is_whole:
        return Obedience.NOT_KNOWN
    return Obedience.EXEMPT if totals.sent_exempt else Obedience.OBEYED


class Pace(NamedTuple):
    """The pace that sites asked for, and the pace that the crawl kept."""

    asked: list[HostPace]
    """The hosts with a delay and with at least one gap while it applied, worst first: by the ratio
    of the smallest gap to the delay."""
    unasked: list[HostPace]
    """The hosts without a delay and with at least one gap, fastest first."""
    gaps: int
    """The gaps while a delay applied."""
    too_short: int
    """Those of them that were shorter than the delay."""


def pace(report: Report) -> Pace:
    """Return the pace that sites asked for, and the pace that the crawl kept."""
    asked = [
        host
        for host in report.hosts
        if host.shortest_delay
        and host.paced_gaps.count
        # Another program may have left them out.
        and None not in (host.paced_gaps.smallest, host.paced_gaps.median)
    ]
    asked.sort(
        key=lambda host: round((host.paced_gaps.smallest or 0) / (host.shortest_delay or 1), 3)
    )
    unasked = [host for host in report.hosts if not host.shortest_delay and host.gaps.count]
    unasked.sort(key=lambda host: host.gaps.smallest or 0)
    return Pace(
        asked,
        unasked,
        sum(host.paced_gaps.count for host in report.hosts),
        sum(host.too_short for host in report.hosts),
    )


def unreachable(report: Report) -> list[OriginReport]:
    """Return the origins whose robots.txt was unreachable at the end, most requests first."""
    found = [each for each in report.origins if each.state == "unreachable" and each.versions]
    return sorted(found, key=lambda origin: (-origin.counts.dropped, origin.origin))


class Rule(NamedTuple):
    """A rule or another reason, and the requests of all origins that it decided."""

    text: str
    is_rule: bool
    """Whether the text is a rule as it is written. Otherwise it says what a reason means."""
    allowed: bool | None
    requests: int
    origins: int


def frequent(report: Report) -> list[Rule]:
    """Return what decided requests, most requests first. Of several origins, a rule is one."""
    requests: dict[tuple[str, bool, bool | None], int] = {}
    origins: dict[tuple[str, bool, bool | None], set[str]] = {}
    for origin in report.origins:
        for deciding in origin.deciding:
            key = deciding_text(deciding), deciding.rule is not None, deciding.allowed
            requests[key] = requests.get(key, 0) + deciding.requests
            origins.setdefault(key, set()).add(origin.origin)
    rules = [Rule(*key, number, len(origins[key])) for key, number in requests.items()]
    return sorted(rules, key=lambda rule: (-rule.requests, rule.text))
