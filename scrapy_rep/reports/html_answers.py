"""The answers at the top of the page of a report, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answers import (
    Disallowed,
    Obedience,
    deciding_text,
    disallowed_requests,
    drops,
    median,
    obedience,
    pace,
    reason_text,
    unreachable,
)
from .elements import code, h, shown
from .quantities import count, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .answers import Pace
    from .elements import Child, Html
    from .model import HostPace, OriginReport, Report

_MOST = 8
"""Lines of a list in an answer."""


def answers(report: Report) -> Html:
    """Return the answers, one card for each question."""
    return h(
        "div",
        _obedience(report),
        _requests(report),
        _drops(report),
        _pace(report),
        _unreachable(report),
        class_="answers",
    )


def _card(question: str, answer: str, kind: str, *more: Child) -> Html:
    return h(
        "article",
        h("h3", question),
        h("p", answer, class_=f"answer {kind}"),
        more,
    )


def _obedience(report: Report) -> Html:
    totals = report.totals
    question = "Was a disallowed page requested?"
    more: list[Child] = []
    match obedience(report):
        case Obedience.OBEYED:
            answer, kind = "No", "good"
            more.append(
                h(
                    "p",
                    f"Each of {count(totals.sent, 'request')} was sent after a verdict that "
                    "allows it.",
                )
            )
        case Obedience.EXEMPT:
            answer, kind = "None that was checked", "warn"
        case Obedience.NOT_KNOWN:
            answer, kind = "Not known", "warn"
            more.append(
                h("p", "The record does not show a verdict for each request that was sent.")
            )
        case Obedience.DISALLOWED:
            total = totals.sent_disallowed + totals.final_url_disallowed
            answer, kind = f"Yes, {total:,}", "bad"
            if totals.sent_disallowed:
                more.append(
                    h("p", f"{count(totals.sent_disallowed, 'request')} went to disallowed URLs.")
                )
            if totals.final_url_disallowed:
                more.append(
                    h(
                        "p",
                        f"{count(totals.final_url_disallowed, 'response')} came from disallowed "
                        "URLs, because a browser or a download handler followed a redirect. "
                        f"Dropped after that: {totals.final_url_dropped:,}.",
                    )
                )
    for number, text in (
        (totals.sent_exempt, "exempt (dont_obey_robotstxt), and not checked"),
        (totals.sent_unchecked, "sent without a check"),
    ):
        if number:
            more.append(h("p", f"{count(number, 'request was', 'requests were')} {text}."))
    found = disallowed_requests(report)
    if found:
        more.append(_items(map(_disallowed, found[:_MOST]), len(found), "rule or reason"))
    until = "" if all(run.ended_at for run in report.runs) else ", up to its last entry"
    more.append(h("p", f"By the record of the crawl itself{until}.", class_="note"))
    return _card(question, answer, kind, *more)


def _disallowed(found: Disallowed) -> Child:
    deciding = found.deciding
    example = (", such as ", code(deciding.examples[0], 200)) if deciding.examples else None
    number = deciding.sent + deciding.final_url
    return (f"{number:,} by ", code(deciding_text(deciding), 100), example)


def _requests(report: Report) -> Html:
    totals = report.totals
    return _card(
        "How many requests were sent?",
        f"{totals.sent:,}",
        "plain",
        h(
            "p",
            f"and {totals.robots_txt:,} for robots.txt files, to "
            f"{count(len(report.origins), 'origin')}.",
        ),
        h(
            "p",
            f"{count(totals.delayed, 'request')} waited for the pace of their site, and "
            f"{totals.waited:,} for a robots.txt.",
        ),
    )


def _drops(report: Report) -> Html:
    totals = report.totals
    found = drops(report)
    whole = totals.sent + totals.dropped
    share = f" ({percent(totals.dropped, whole)})" if totals.dropped else ""
    lines = [
        (h("strong", number), f" {reason_text(shown(reason, 60))}") for reason, number in found
    ]
    return _card(
        "How many were not sent, and why?",
        f"{totals.dropped:,}{share}",
        "plain",
        _items(lines[:_MOST], len(lines), "reason")
        if lines
        else h("p", "Each request of the spider was sent."),
    )


def _pace(report: Report) -> Html:
    found = pace(report)
    question = "Was the pace kept that sites asked for?"
    more: list[Child] = []
    if not found.asked:
        answer, kind = "No site asked for one", "plain"
    else:
        more += _asked_pace(found)
        if found.too_short:
            answer, kind = f"No, {count(found.too_short, 'gap')} too short", "bad"
            worst = [host for host in found.asked if host.too_short]
            more.append(_items(map(_too_short, worst[:_MOST]), len(worst), "host"))
        elif all(run.sent_is_known for run in report.runs):
            answer, kind = "Yes", "good"
        else:
            answer, kind = "Not known", "warn"
    if found.unasked:
        fastest = found.unasked[0]
        more.append(
            h(
                "p",
                "Fastest without a delay: ",
                seconds(fastest.gaps.smallest or 0),
                " to ",
                code(fastest.host, 100),
                ".",
            )
        )
    return _card(question, answer, kind, *more)


def _asked_pace(found: Pace) -> list[Child]:
    lines: list[Child] = [
        h(
            "p",
            f"{count(len(found.asked), 'host')} had a delay, with "
            f"{count(found.gaps, 'gap')} between requests.",
        )
    ]
    if found.fastest is not None and found.slowest is not None:
        lines.append(_host_pace("Fastest", found.fastest, found.fastest.paced_gaps.smallest))
        lines.append(_host_pace("Slowest", found.slowest, median(found.slowest.paced_gaps)))
    return lines


def _host_pace(title: str, host: HostPace, gap: float | None) -> Html:
    asked = seconds(host.shortest_delay or 0)
    if host.longest_delay and host.longest_delay != host.shortest_delay:
        asked += f" to {seconds(host.longest_delay)}"
    return h("p", f"{title}: {seconds(gap or 0)} to ", code(host.host, 100), f", asked {asked}.")


def _too_short(host: HostPace) -> Child:
    return (
        code(host.host, 100),
        f": {host.too_short:,} of {host.paced_gaps.count:,}, "
        f"smallest {seconds(host.paced_gaps.smallest or 0)}, "
        f"asked {seconds(host.shortest_delay or 0)}",
    )


def _unreachable(report: Report) -> Html:
    found = unreachable(report)
    dropped = report.totals.dropped_for.get("unreachable", 0)
    return _card(
        "Which sites were unreachable?",
        f"{len(found):,}" if found else "None",
        "warn" if found else "good",
        h(
            "p",
            f"{count(dropped, 'request was', 'requests were')} not sent because a robots.txt "
            "was unreachable.",
        )
        if found or dropped
        else None,
        _items(map(_unreachable_origin, found[:_MOST]), len(found), "site") if found else None,
    )


def _unreachable_origin(origin: OriginReport) -> Child:
    version = origin.versions[-1]
    why = version.failure or (f"status {version.status}" if version.status is not None else "")
    return (code(origin.origin, 100), f": {shown(why, 100)}" if why else None)


def _items(lines: Iterable[Child], number: int, noun: str) -> Html:
    items = [h("li", line) for line in lines]
    more = number - len(items)
    return h("ul", items, h("li", f"and {count(more, f'other {noun}')}") if more > 0 else None)
