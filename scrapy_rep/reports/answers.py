"""What a reader of a report asks, decided from its record. Templates have the sentences.

A crawl is also held against draft-illyes-webbotauth-cbcp-01, "Crawler best practices" (October
2026), where no answer says it already.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from math import inf
from typing import NamedTuple

from ..protocol.verdict import NO_MATCH, Reason
from . import records
from .records import Deciding, HostPace, OriginReport, Report, Run

REASONS: dict[str, str] = {
    Reason.RULES: "a rule of the robots.txt",
    Reason.NO_RULES: "no rule for this crawler",
    Reason.UNAVAILABLE: "the site has no robots.txt",
    Reason.NOT_ROBOTS_TXT: "the site has another page instead of its robots.txt",
    Reason.REFUSED: "the site refuses access to its robots.txt",
    Reason.CHALLENGE: "the site has a challenge instead of its robots.txt",
    Reason.DISALLOWED_STATUS: "the status of the robots.txt (REP_DISALLOW_STATUSES)",
    Reason.UNREACHABLE: "the robots.txt was unreachable",
    Reason.TOO_COMPLEX: "the rules were too complex to compare",
    Reason.INVALID_HOST: "the URL has no valid host",
    Reason.VISIT_TIME: "the Visit-time of the site",
    Reason.LOCAL_RULE: "a local rule (REP_LOCAL_RULES)",
    records.EXEMPT: "exempt (dont_obey_robotstxt)",
    records.UNCHECKED: "sent without a check",
}
"""What each reason of a verdict means."""


def reason_text(reason: str) -> str:
    """Return what a reason means. A later version may have others."""
    return REASONS.get(reason, reason) if reason.strip() else "unknown"


_CLAUSES = {
    *(Reason.UNAVAILABLE, Reason.NOT_ROBOTS_TXT, Reason.REFUSED, Reason.CHALLENGE),
    *(Reason.UNREACHABLE, Reason.TOO_COMPLEX, Reason.INVALID_HOST),
}


def because(reason: str) -> str:
    """Return what a reason means, after "because" or "because of"."""
    return f"because {'' if reason in _CLAUSES else 'of '}{reason_text(reason)}"


def is_rule(deciding: Deciding) -> bool:
    """Whether a rule of a robots.txt decided. An exception has the rule that it breaks."""
    return deciding.rule is not None and deciding.reason not in (records.EXEMPT, Reason.LOCAL_RULE)


def deciding_text(deciding: Deciding) -> str:
    """Return a rule as it is written, or what the reason means."""
    if is_rule(deciding):
        return str(deciding.rule)
    return NO_MATCH if deciding.reason == Reason.RULES else reason_text(deciding.reason)


STATES = {
    "rules": ("Rules", "good"),
    records.EMPTY: ("Empty", "warn"),
    "not-robots-txt": ("Not a robots.txt", "warn"),
    "challenge": ("Challenge", "warn"),
    "unavailable": ("No robots.txt", "warn"),
    "refused": ("Refused", "warn"),
    records.REDIRECT_LOOP: ("Redirect loop", "warn"),
    "disallowed": ("All disallowed", "warn"),
    "unreachable": ("Unreachable", "bad"),
    "unknown": ("Not fetched", "plain"),
}
"""What each state of a robots.txt is called, and its kind, in the order of charts."""


def states(report: Report) -> list[tuple[str, int]]:
    """Return how many origins are in each state."""
    found = Counter(origin.state for origin in report.origins)
    order = [*STATES, *sorted(found.keys() - STATES.keys())]
    return [(state, found[state]) for state in order if found[state]]


class Obedience(Enum):
    """Whether the crawl requested a disallowed page, by its own record."""

    OBEYED = "obeyed"
    EXCEPTED = "excepted"
    """Only with an exception, or with `dont_obey_robotstxt` and a robots.txt that may disallow."""
    NOT_KNOWN = "not known"
    """The record does not show each request that was sent with its verdict, or it is damaged."""
    DISALLOWED = "disallowed"


def is_whole(report: Report) -> bool:
    """Whether the record shows all that was sent. If not, no sentence says that a thing was not."""
    return all(run.sent_is_known and run.damage is None for run in report.runs)


def obedience(report: Report) -> Obedience:
    """Return whether the crawl requested a disallowed page."""
    totals = report.totals
    if totals.disallowed:
        return Obedience.DISALLOWED
    if totals.sent_unchecked or not is_whole(report):
        return Obedience.NOT_KNOWN
    return Obedience.EXCEPTED if totals.excepted else Obedience.OBEYED


_GIVEN_BY = re.compile(r"[^()]* \(([^()]+)\)")


def exceptions(report: Report) -> list[tuple[OriginReport, Deciding]]:
    """Return what was sent under an exception or exempt, with its origin."""
    reasons = (records.EXEMPT, Reason.LOCAL_RULE)
    return [
        (origin, each)
        for origin in report.origins
        for each in origin.deciding
        if each.sent and each.reason in reasons and each.allowed is not False
    ]


def givers(report: Report) -> list[str]:
    """Return who gave the exceptions of the local rules; their details if that is unclear."""
    details = {each.detail or "": None for _, each in exceptions(report) if each.allowed}
    found = ((_GIVEN_BY.fullmatch(detail), detail) for detail in details)
    return [match[1] if match else detail for match, detail in found if detail]


def disallowed(report: Report) -> list[Deciding]:
    """Return what disallowed pages that were requested or received, most requests first."""
    found = [
        each
        for origin in report.origins
        for each in origin.deciding
        if each.allowed is False and (each.sent or each.final_url)
    ]
    return sorted(found, key=lambda each: -(each.sent + each.final_url))


class Pace(NamedTuple):
    """The hosts with gaps: with a delay, worst first, and without a delay, fastest first."""

    asked: list[HostPace]
    unasked: list[HostPace]
    limited: list[HostPace]
    """The hosts with requests in a shorter time than the site asked for, the shortest first."""
    asking: list[HostPace]
    """All hosts that asked for one."""
    limit: str
    """What the delay that they asked for was longer than."""


def pace(report: Report) -> Pace:
    """Return the pace that sites asked for, and the pace that the crawl kept."""
    asked = [host for host in report.hosts if host.delay and host.gaps]
    asked.sort(key=lambda host: round((host.smallest_gap or 0) / host.delay, 3))
    unasked = [host for host in report.hosts if not host.delay and host.gaps]
    unasked.sort(key=lambda host: host.smallest_gap or 0)
    limited = [host for host in asked if host.below_asked]
    longest = max(run.max_crawl_delay or inf for run in report.runs)
    asking = [host for host in report.hosts if host.asked]
    is_limited = all((host.asked or 0) > longest for host in asking if host.capped)
    limit = "REP_MAX_CRAWL_DELAY" if is_limited else "was applied"
    return Pace(asked, unasked, limited, asking, limit)


def closed(report: Report) -> list[OriginReport]:
    """Return the listed origins whose robots.txt has disallowed all requests of the crawl."""
    return [
        origin
        for origin in report.origins
        if not origin.counts.sent
        and origin.counts.dropped
        and origin.counts.dropped_for.keys() <= {Reason.RULES, Reason.DISALLOWED_STATUS}
    ]


def runs_without(report: Report, setting: str) -> list[Run]:
    """Return the runs in which a setting is False."""
    return [run for run in report.runs if run.settings.get(setting) == "False"]


def intended_uses(report: Report) -> list[str]:
    """Return the values of REP_INTENDED_USES of all runs, each once."""
    values = (run.settings.get("REP_INTENDED_USES", "") for run in report.runs)
    return list(dict.fromkeys(use for value in values for use in re.findall("'([^']+)'", value)))


def stated(report: Report) -> list[tuple[str, int, int]]:
    """Return what pages state, as a text, on how many responses, and how much was dropped."""
    responses: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for each in (each for origin in report.origins for each in origin.statements):
        is_use = each.kind == "usage"
        name = f"{each.name}, refused" if is_use else each.name.replace("_", " ")
        responses[name] += each.refused if is_use else each.responses
        dropped[name] += each.dropped
    names = responses.keys() | dropped.keys()
    rows = [(-dropped[name], -responses[name], name) for name in names]
    return [(name, -number, -lost) for lost, number, name in sorted(rows) if number or lost]


def evidence(report: Report) -> list[tuple[str, str, str | None]]:
    """Return what each file of the evidence is, its name, and its SHA-256 if that is known."""
    logs = [("event log", run.log, run.log_sha256) for run in report.runs]
    archives = [("archive", run.archive, run.archive_sha256) for run in report.runs]
    return [(kind, name, digest) for kind, name, digest in logs + archives if name is not None]


def unreachable(report: Report) -> list[OriginReport]:
    """Return the origins whose robots.txt was unreachable at the end, most requests first."""
    found = [each for each in report.origins if each.state == "unreachable" and each.versions]
    return sorted(found, key=lambda origin: (-origin.counts.dropped, origin.origin))


SETTINGS = ("USER_AGENT", "HTTPCACHE_ENABLED", "HTTPCACHE_POLICY")
"""The settings of Scrapy on which the judgment depends."""

# The lookbehind lets a mail address begin only where a word begins, so that a search is linear.
_CONTACT = re.compile(r"https?://[^\s/]+\.[^\s);,]+|(?<![^\s@])[^\s@]+@[^\s@]+\.[^\s@);,]+")
_DEFAULT_USER_AGENT = re.compile(r"Scrapy/\S+ \(\+https://scrapy\.org\)")


def user_agents(report: Report) -> dict[str, str]:
    """Return each user agent, and its contact: a URL or an address of its own, or nothing."""
    names = {run.scrapy_settings.get("USER_AGENT", run.user_agent) for run in report.runs}
    found = {name: _CONTACT.search(name) for name in sorted(names)}
    return {
        name: contact[0] if contact and not _DEFAULT_USER_AGENT.fullmatch(name) else ""
        for name, contact in found.items()
    }


def downloads(runs: Sequence[Run], kind: str) -> dict[str, int]:
    """Return some of Scrapy's counts of downloads, of some runs, by what follows their kind."""
    counts: Counter[str] = Counter()
    for run in runs:
        for name, number in run.downloads.items():
            if name.startswith(kind):
                counts[name.removeprefix(kind)] += number
    return dict(sorted(counts.items()))


def judged(report: Report) -> dict[str, bool | None]:
    """Return whether all methods are GET or HEAD, and whether all runs obey the caching of pages.

    None: not known.
    """
    methods = downloads(report.runs, "request_method_count/").keys()
    caches = all(
        run.scrapy_settings.get("HTTPCACHE_ENABLED", "").lower() in {"true", "1"}
        and run.scrapy_settings.get("HTTPCACHE_POLICY", "").endswith("RFC2616Policy")
        for run in report.runs
    )
    return {"methods": methods <= {"GET", "HEAD"} if methods else None, "caches": caches}
