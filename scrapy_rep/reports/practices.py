"""A crawl held against draft-illyes-webbotauth-cbcp-01, "Crawler best practices" (October 2026).

Each of the six points of its section 2 is divided into what a crawl can show and what only the
operator can know. The judgment is by the record of the crawl. It is evidence, not a certificate.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .answers import Obedience, obedience, pace, unreachable
from .quantities import count, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .model import Report, Run

DRAFT = "draft-illyes-webbotauth-cbcp-01"
DRAFT_URL = f"https://datatracker.ietf.org/doc/html/{DRAFT}"

_CONTACT = re.compile(r"https?://[^\s/]+\.[^\s/]+|[^\s@]+@[^\s@]+\.[^\s@]+")
_DEFAULT_USER_AGENT = re.compile(r"Scrapy/\S+ \(\+https://scrapy\.org\)")
_URL = re.compile(r"https?://[^\s;,)]+")
_TRUE = frozenset({"true", "1", "yes", "on"})


class Judgment(str, Enum):
    """The result of one point."""

    MET = "met"
    NOT_MET = "not met"
    NOT_TOLD = "not for a machine to tell"

    def __str__(self) -> str:
        return self.value


class Point(NamedTuple):
    """One point of the draft, and what the record of the crawl says about it."""

    section: str
    """The section of the draft."""
    title: str
    judgment: Judgment
    evidence: list[str]
    """Sentences. They may quote texts of sites and settings, which are not escaped."""


def points(report: Report) -> Iterator[Point]:
    """Yield the points of the draft, in its order."""
    yield _robots_txt(report)
    yield _page_directives(report)
    yield _user_agent(report.runs)
    yield Point(
        "2.2",
        "The name makes the owner and the purpose of the crawler clear",
        Judgment.NOT_TOLD,
        [f"The user agent is: {name}" for name in _user_agents(report.runs)],
    )
    yield _back_off(report)
    yield _speed(report)
    yield _repeated(report)
    yield _access(report)
    yield Point(
        "2.3",
        "Pages are requested with GET",
        Judgment.NOT_TOLD,
        ["The report does not record the methods of requests."],
    )
    yield _robots_txt_caching(report)
    yield _page_caching(report.runs)
    yield Point(
        "2.5",
        "The IP ranges of the crawler are published, and linked from its page",
        Judgment.NOT_TOLD,
        ["A crawl does not know the addresses that its operator publishes."],
    )
    yield _documentation(report.runs)


def _robots_txt(report: Report) -> Point:
    totals = report.totals
    evidence = [
        f"Of {count(totals.sent + totals.dropped, 'request')}, {totals.sent_allowed:,} "
        f"were sent after a verdict that allows them, and {totals.dropped:,} were not sent."
    ]
    match obedience(report):
        case Obedience.DISALLOWED:
            judgment = Judgment.NOT_MET
            if totals.sent_disallowed:
                evidence.append(
                    f"{count(totals.sent_disallowed, 'request')} went to disallowed URLs."
                )
            if totals.final_url_disallowed:
                evidence.append(
                    f"{count(totals.final_url_disallowed, 'response')} came from disallowed URLs, "
                    "because a browser or a download handler followed a redirect. "
                    f"Dropped after that: {totals.final_url_dropped:,}."
                )
        case Obedience.NOT_KNOWN:
            judgment = Judgment.NOT_TOLD
            evidence.append("The record does not show a verdict for each request that was sent.")
        case Obedience.EXEMPT:
            judgment = Judgment.NOT_TOLD
        case Obedience.OBEYED:
            judgment = Judgment.MET
            evidence.append("No request went to a disallowed URL.")
    if totals.sent_exempt:
        evidence.append(
            f"{count(totals.sent_exempt, 'request')} had dont_obey_robotstxt and no check. The "
            "report does not know whether the sites agreed."
        )
    return Point("2.1", "The Robots Exclusion Protocol is respected", judgment, evidence)


def _page_directives(report: Report) -> Point:
    title = "X-Robots-Tag is respected"
    seen, dropped = 0, 0
    for origin in report.origins:
        for name, directive in origin.directives.items():
            if name in {"noindex", "none", "nofollow", "unavailable_after"}:
                seen += directive.responses
                dropped += directive.dropped
    drops = all(
        run.settings.get(name) == repr("drop")
        for name in ("REP_NOINDEX", "REP_NOFOLLOW")
        for run in report.runs
    )
    had = f"{count(seen, 'response')} had noindex or nofollow"
    were = (
        f"{count(dropped, 'item or request was', 'items and requests were')} dropped because of it"
    )
    if drops:
        evidence = f"REP_NOINDEX and REP_NOFOLLOW are drop. {had}, and {were}."
        return Point("2.1", title, Judgment.MET, [evidence])
    if not seen:
        evidence = "The record has no response with noindex or nofollow."
    else:
        evidence = (
            f"{had}, in a header or in the page. {were}. The report does not know how the project "
            "uses the others."
        )
    return Point("2.1", title, Judgment.NOT_TOLD, [evidence])


def _user_agents(runs: list[Run]) -> list[str]:
    return sorted({run.scrapy_settings.get("USER_AGENT", run.user_agent) for run in runs})


def _user_agent(runs: list[Run]) -> Point:
    title = "The user agent identifies the crawler, with a URL that describes it"
    evidence = []
    judgment = Judgment.MET
    for name in _user_agents(runs):
        if _DEFAULT_USER_AGENT.fullmatch(name):
            judgment = Judgment.NOT_MET
            evidence.append(f"The user agent is Scrapy's default: {name}")
        elif _CONTACT.search(name) is None:
            judgment = Judgment.NOT_MET
            evidence.append(f"The user agent has no URL and no e-mail address: {name}")
        else:
            evidence.append(f"The user agent has a URL or an e-mail address: {name}")
    if not all(run.tokens for run in runs):
        judgment = Judgment.NOT_MET
        evidence.append("A user agent has no product token, so no robots.txt can name it.")
    if judgment is Judgment.MET and not all("USER_AGENT" in run.scrapy_settings for run in runs):
        judgment = Judgment.NOT_TOLD
        evidence.append(
            "This is the text that selects the rules. The report does not have the header "
            "of the requests."
        )
    return Point("2.2", title, judgment, evidence)


def _back_off(report: Report) -> Point:
    down = unreachable(report)
    unsent = report.totals.dropped_for.get("unreachable", 0)
    evidence = [
        f"{count(len(down), 'origin')} had an unreachable robots.txt at the end. "
        f"{count(unsent, 'request')} were not sent because of an unreachable robots.txt."
    ]
    throttled = {run.scrapy_settings.get("AUTOTHROTTLE_ENABLED") for run in report.runs}
    if throttled and all(value is not None and value.lower() in _TRUE for value in throttled):
        evidence.append("AutoThrottle adapts the speed to the response time of each server.")
    evidence.append("The report does not record the statuses of pages.")
    title = "The crawler backs off when a site has errors (5xx)"
    return Point("2.3", title, Judgment.NOT_TOLD, evidence)


def _speed(report: Report) -> Point:
    title = "The speed is limited, as the robots.txt asks"
    found = pace(report)
    evidence = []
    if found.asked:
        evidence.append(
            f"{count(len(found.asked), 'host')} had a delay. Of {count(found.gaps, 'gap')} between "
            f"requests, {found.too_short:,} were shorter than the delay."
        )
    if found.unasked:
        fastest = found.unasked[0]
        evidence.append(
            f"{count(len(found.unasked), 'host')} had no delay. The smallest gap there was "
            f"{seconds(fastest.gaps.smallest or 0)} ({fastest.host})."
        )
    if report.limits.hosts_left_out:
        evidence.append(f"{count(report.limits.hosts_left_out, 'request')} are not in the record.")
    if not all(run.sent_is_known for run in report.runs):
        evidence.append("The record does not show each request that was sent.")
        judgment = Judgment.NOT_MET if found.too_short else Judgment.NOT_TOLD
    elif found.too_short:
        judgment = Judgment.NOT_MET
    elif found.asked:
        judgment = Judgment.MET
    else:
        judgment = Judgment.NOT_TOLD
        evidence.append(
            "No robots.txt asked for a delay. Whether a site was overloaded is not known."
        )
    return Point("2.3", title, judgment, evidence)


def _repeated(report: Report) -> Point:
    evidence = []
    for run in report.runs[:1]:
        for name in ("DUPEFILTER_CLASS", "DEPTH_LIMIT", "CONCURRENT_REQUESTS_PER_DOMAIN"):
            if name in run.scrapy_settings:
                evidence.append(f"{name} is {run.scrapy_settings[name]}.")
    evidence.append("The report does not record each URL.")
    title = "Pages are not requested too often, and loops end"
    return Point("2.3", title, Judgment.NOT_TOLD, evidence)


def _access(report: Report) -> Point:
    demands = {"payment": 0, "license": 0}
    for origin in report.origins:
        for name, demand in origin.terms.items():
            if name in demands:
                demands[name] += demand.responses
    evidence = [
        f"{count(demands['payment'], 'response')} demanded a payment, and "
        f"{count(demands['license'], 'response')} a license.",
        "The report does not know of logins and CAPTCHAs.",
    ]
    title = "Logins, CAPTCHAs and paywalls are not bypassed"
    return Point("2.3", title, Judgment.NOT_TOLD, evidence)


def _robots_txt_caching(report: Report) -> Point:
    files = [origin for origin in report.origins if origin.counts.robots_txt]
    requests = report.totals.robots_txt
    pages = report.totals.sent + report.totals.dropped
    evidence = [
        f"{count(requests, 'request')} for robots.txt files, for {count(pages, 'page')} of "
        f"{count(len(files), 'origin')}.",
        "A robots.txt is used as long as its response headers say, within REP_CACHE_MIN and "
        "REP_CACHE_MAX.",
    ]
    off = any(run.settings.get("REP_CONDITIONAL_GET") == "False" for run in report.runs)
    if off:
        evidence.append("REP_CONDITIONAL_GET is False, so a file that is unchanged is sent again.")
    title = "Caching directives of robots.txt files are supported"
    return Point("2.4", title, Judgment.NOT_MET if off else Judgment.MET, evidence)


def _page_caching(runs: list[Run]) -> Point:
    title = "Caching directives of pages are supported"
    if not all("HTTPCACHE_ENABLED" in run.scrapy_settings for run in runs):
        evidence = "The report does not have the settings of Scrapy's HTTP cache."
        return Point("2.4", title, Judgment.NOT_TOLD, [evidence])
    evidence = "Scrapy's HTTP cache is on in all runs, with the policy of RFC 2616."
    for run in runs:
        if run.scrapy_settings["HTTPCACHE_ENABLED"].lower() not in _TRUE:
            evidence = "Scrapy's HTTP cache is off (HTTPCACHE_ENABLED)."
            return Point("2.4", title, Judgment.NOT_MET, [evidence])
        policy = run.scrapy_settings.get("HTTPCACHE_POLICY", "")
        if not policy.endswith("RFC2616Policy"):
            evidence = f"Scrapy's HTTP cache does not use caching directives: {policy}"
            return Point("2.4", title, Judgment.NOT_MET, [evidence])
    return Point("2.4", title, Judgment.MET, [evidence])


def _documentation(runs: list[Run]) -> Point:
    links = sorted({found[0] for name in _user_agents(runs) for found in _URL.finditer(name)})
    evidence = [f"The user agent names {link}" for link in links]
    evidence.append(
        "No page was opened. It should say how the data is used, whether pages are rendered, how "
        "to reach the owner, and which robots.txt blocks the crawler."
    )
    title = "A page explains how the data is used, and how to block the crawler"
    return Point("2.6", title, Judgment.NOT_TOLD, evidence)
