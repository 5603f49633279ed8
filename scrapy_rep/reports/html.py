"""The page of a report: one HTML file, which loads nothing and needs no script.

``elements`` makes the markup and escapes each text. ``page.css`` and ``page.js`` are parts of the
page. The script adds sorting and filtering to the table of origins.
"""

from __future__ import annotations

import time
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from .answers import frequent, median, pace, states
from .charts import Bar, bars, legend, scatter, timeline
from .elements import code, h, page, shown
from .html_answers import answers
from .html_details import state_text
from .html_origins import COLUMNS, table_of
from .practices import DRAFT, DRAFT_URL, Judgment, points
from .quantities import count, moment, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .elements import Child, Html
    from .html_origins import Table
    from .model import HostPace, OriginReport, Report, Run

MAX_RUNS = 100
"""The runs that are listed."""

ROWS_TOGETHER = 200
"""The rows of one table of origins. A browser lays out a table when it becomes visible."""

MAX_HOSTS = 20
"""The hosts in the table below the chart of the pace."""

_SECTIONS = {
    "answers": "Answers",
    "charts": "Charts",
    "origins": "Origins",
    "practice": "Best practice",
    "runs": "Runs",
    "limits": "What is left out",
}

_STATE_KINDS = {
    "rules": "sent",
    "unavailable": "robots",
    "disallowed": "dropped",
    "unreachable": "broken",
    "unknown": "other",
}

_LIMITS = {
    "origins_left_out": "requests to origins that are not listed",
    "hosts_left_out": "requests to hosts without a record of the pace",
    "deciding_left_out": "requests whose rule or reason is not listed",
    "versions_left_out": "states of robots.txt files",
    "examples_left_out": "example URLs",
    "files_left_out": "texts of robots.txt files",
}


def render(report: Report, now: float | None = None) -> str:
    """Return the page of a report. ``now`` is the time at which the page is made."""
    spiders = ", ".join(dict.fromkeys(shown(run.spider, 100) for run in report.runs[:MAX_RUNS]))
    title = f"Crawl report: {spiders}"
    table = table_of(report)
    body = h(
        "div",
        h("a", "Skip to the answers", href="#answers", class_="skip"),
        _header(report, title, time.time() if now is None else now),
        h(
            "main",
            _section("answers", answers(report), _problems(report)),
            _section("charts", _charts(report)),
            _section("origins", _origins(table)),
            _section("practice", _practice(report)),
            _section("runs", _runs(report.runs)),
            _section("limits", _limits(report, table)),
        ),
        h(
            "footer",
            h(
                "p",
                "This page is one file. It loads nothing, and it needs no script. All times are "
                "in UTC. The JSON form of the report has all numbers.",
            ),
        ),
        class_="page",
    )
    description = "What the robots.txt files of the sites said, and what the crawl did."
    return page(title, description, body, _asset("page.css"), _asset("page.js"))


@cache
def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def _section(name: str, *children: Child) -> Html:
    return h("section", h("h2", _SECTIONS[name]), children, id=name)


def _header(report: Report, title: str, now: float) -> Html:
    first = min((run.started_at for run in report.runs), default=0)
    last = max((run.ended_at or run.written_at for run in report.runs), default=0)
    agents = dict.fromkeys(run.user_agent for run in report.runs[:MAX_RUNS])
    return h(
        "header",
        h("h1", title),
        h(
            "p",
            f"{moment(first)} to {moment(last)} UTC ({seconds(max(last - first, 0))}), "
            f"{count(len(report.runs), 'run')}",
        ),
        h("p", "User agent: ", [(code(agent, 300), " ") for agent in list(agents)[:5]]),
        h("p", f"Made {moment(now)} UTC", class_="note"),
        h(
            "nav",
            h("ul", (h("li", h("a", text, href=f"#{name}")) for name, text in _SECTIONS.items())),
            aria_label="Sections",
        ),
    )


def _problems(report: Report) -> Html | None:
    """Return what makes the record incomplete."""
    lines: list[str] = []
    unfinished = [run for run in report.runs if run.ended_at is None]
    if unfinished:
        last = max(run.written_at for run in unfinished)
        lines.append(
            f"{count(len(unfinished), 'run')} did not end: the process was killed or still runs. "
            f"The last record is of {moment(last)} UTC."
        )
    lines += [
        f"The file of run {shown(run.id, 100)} is damaged: {shown(run.damage, 200)}."
        for run in report.runs[:MAX_RUNS]
        if run.damage is not None
    ]
    unknown = sum(not run.sent_is_known for run in report.runs)
    if unknown:
        lines.append(
            f"In {count(unknown, 'run')}, the downloader does not show what it sends. The numbers "
            "of requests and the pace are not complete."
        )
    if report.limits.origins_left_out:
        lines.append(
            f"{count(report.limits.origins_left_out, 'request')} went to origins that are not "
            "listed. The totals have them."
        )
    if not lines:
        return None
    return h(
        "div",
        h("h3", "The record is not complete"),
        h("ul", (h("li", each) for each in lines)),
        class_="problems",
    )


def _charts(report: Report) -> Iterator[Html]:
    yield _figure("Requests over time", timeline(report.timeline))
    yield h("div", _states_chart(report), _rules_chart(report), class_="pair")
    yield _pace_chart(report)


def _figure(title: str, *children: Child) -> Html:
    return h("figure", h("figcaption", h("h3", title)), children)


def _states_chart(report: Report) -> Html:
    found = states(report)
    total = sum(found.values())
    ordered = sorted(found, key=lambda state: -found[state])
    rows = [
        Bar(
            shown(state_text(state), 60),
            found[state],
            _STATE_KINDS.get(state, "other"),
            f"({percent(found[state], total)})",
        )
        for state in ordered[:10]
    ]
    if not rows:
        return _figure("Origins by state", h("p", "There are no origins.", class_="note"))
    caption = "The state of the robots.txt of each origin at the end"
    return _figure("Origins by state", bars(caption, ("State", "Origins"), rows))


def _rules_chart(report: Report) -> Html:
    title = "Most frequent deciding rules"
    rules, others = frequent(report)
    rows = [
        Bar(
            code(rule.text, 80) if rule.is_rule else shown(rule.text, 80),
            rule.requests,
            "dropped" if rule.allowed is False else "other" if rule.allowed is None else "sent",
            f"({count(rule.origins, 'origin')})",
        )
        for rule in rules
    ]
    if not rows:
        return _figure(title, h("p", "No rule decided.", class_="note"))
    series = (("sent", "Allowed"), ("dropped", "Disallowed"), ("other", "Not checked"))
    kinds = {row.kind for row in rows}
    more = h(
        "p", f"{count(others, 'other rule or reason', 'other rules and reasons')}.", class_="note"
    )
    return _figure(
        title,
        legend([each for each in series if each[0] in kinds]),
        bars("Requests that each rule or reason decided", ("Rule or reason", "Requests"), rows),
        more if others else None,
    )


def _pace_chart(report: Report) -> Html:
    title = "Pace asked for and pace kept"
    found = pace(report)
    if not found.asked:
        text = "No site asked for a delay, or none had two requests while it applied."
        return _figure(title, h("p", text, class_="note"))
    ordered = found.asked[:MAX_HOSTS]
    more = len(found.asked) - len(ordered)
    heads = ("Host", "Delay asked for", "Smallest gap", "Median gap", "Gaps", "Too short")
    table = h(
        "table",
        h("caption", "The hosts whose smallest gap is closest to the delay", class_="unseen"),
        h("thead", h("tr", (h("th", text, scope="col") for text in heads))),
        h("tbody", map(_host, ordered)),
        class_="numbers",
    )
    series = (("kept", "As long as asked"), ("short", "Too short"))
    note = (
        f"{count(more, 'other host')} with a delay kept it by a wider margin." if more > 0 else ""
    )
    return _figure(
        title,
        h(
            "div",
            h("div", legend(series), scatter(found.asked)),
            h("div", table, h("p", note, class_="note") if note else None, class_="wide"),
            class_="pair",
        ),
    )


def _host(host: HostPace) -> Html:
    asked = seconds(host.shortest_delay or 0)
    if host.longest_delay and host.longest_delay != host.shortest_delay:
        asked += f" to {seconds(host.longest_delay)}"
    gaps = host.paced_gaps
    return h(
        "tr",
        h("th", code(host.host, 100), scope="row"),
        h("td", asked),
        h("td", seconds(gaps.smallest or 0)),
        h("td", seconds(median(gaps))),
        h("td", gaps.count),
        h("td", host.too_short, class_="bad" if host.too_short else None),
    )


def _origins(table: Table) -> Iterator[Html]:
    shown_number = len(table.rows)
    yield h(
        "p",
        f"{count(shown_number, 'origin')}. Those with disallowed requests come first, then "
        "unreachable ones, then those with the most requests. Findings are those of ",
        h("code", "lint"),
        " about the last file.",
        class_="note",
    )
    if not shown_number:
        return
    for first in range(0, shown_number, ROWS_TOGETHER):
        rows = table.rows[first : first + ROWS_TOGETHER]
        yield h(
            "div",
            h(
                "table",
                h("caption", f"Origins {first + 1:,} to {first + len(rows):,}", class_="unseen"),
                h("thead", h("tr", (h("th", name, scope="col") for name in COLUMNS))),
                rows,
                class_="origins",
            ),
            class_="chunk" if shown_number > ROWS_TOGETHER else None,
        )
    if table.origins_left_out:
        yield h("p", _rest(table.origins_left_out), class_="note")


def _rest(origins: Sequence[OriginReport]) -> str:
    allowed = sum(origin.counts.sent_allowed for origin in origins)
    dropped = sum(origin.counts.dropped for origin in origins)
    delayed = sum(origin.counts.delayed for origin in origins)
    return (
        f"{count(len(origins), 'other origin')} not shown: {allowed:,} requests allowed, "
        f"{dropped:,} dropped, {delayed:,} delayed."
    )


def _practice(report: Report) -> Iterator[Html]:
    found = list(points(report))
    numbers = ", ".join(
        f"{sum(point.judgment is judgment for point in found)} {judgment}" for judgment in Judgment
    )
    yield h(
        "p",
        "The crawl, held against the Internet-Draft ",
        h("a", "Crawler best practices", href=DRAFT_URL),
        f" ({DRAFT}), by its record: {numbers}.",
    )
    heads = ("Section", "Practice", "Result", "Evidence")
    kinds = {Judgment.MET: "good", Judgment.NOT_MET: "bad", Judgment.NOT_TOLD: "plain"}
    yield h(
        "table",
        h("caption", "Crawler best practices", class_="unseen"),
        h("thead", h("tr", (h("th", text, scope="col") for text in heads))),
        h(
            "tbody",
            (
                h(
                    "tr",
                    h("td", point.section),
                    h("th", point.title, scope="row"),
                    h(
                        "td",
                        h(
                            "span",
                            point.judgment.value.capitalize(),
                            class_=f"state {kinds[point.judgment]}",
                        ),
                    ),
                    h("td", [h("p", shown(text, 600)) for text in point.evidence]),
                )
                for point in found
            ),
        ),
        class_="practice",
    )


def _runs(runs: Sequence[Run]) -> Iterator[Html]:
    heads = ("Spider", "Started", "Ended", "Software", "Settings", "Downloads")
    yield h(
        "table",
        h("caption", "Runs", class_="unseen"),
        h("thead", h("tr", (h("th", text, scope="col") for text in heads))),
        h("tbody", map(_run, runs[:MAX_RUNS])),
        class_="runs",
    )
    if len(runs) > MAX_RUNS:
        yield h("p", f"{count(len(runs) - MAX_RUNS, 'other run')} not shown.", class_="note")


def _run(run: Run) -> Html:
    if run.ended_at is not None:
        ended = f"{moment(run.ended_at)} ({shown(run.finish_reason or 'unknown', 100)})"
    else:
        ended = f"not ended; last record {moment(run.written_at)}"
    settings = {**run.settings, **run.scrapy_settings}
    return h(
        "tr",
        h("th", code(run.spider, 100), scope="row"),
        h("td", moment(run.started_at)),
        h("td", ended),
        h("td", shown(run.software, 200)),
        h(
            "td",
            [
                h("div", code(f"{name} = {value}", 300))
                for name, value in list(settings.items())[:60]
            ]
            or "all defaults",
        ),
        h(
            "td",
            [
                h("div", code(f"{name}: {number:,}", 100))
                for name, number in list(run.downloads.items())[:40]
            ]
            or "not known",
        ),
    )


def _limits(report: Report, table: Table) -> Iterator[Html]:
    limits = report.limits
    lines = [
        f"{getattr(limits, name):,} {text}: beyond the limits of the record."
        for name, text in _LIMITS.items()
        if getattr(limits, name)
    ]
    if table.origins_left_out:
        lines.append(f"{count(len(table.origins_left_out), 'origin')}: not on this page.")
    if table.details_left_out:
        lines.append(
            f"The details of {count(table.details_left_out, 'origin')}: not on this page, to keep "
            "it small."
        )
    yield h(
        "p",
        f"The record of a crawl has at most {count(limits.max_origins, 'origin')}, "
        f"{count(limits.max_hosts, 'host')} with the pace, {count(limits.max_deciding, 'rule')} "
        f"({limits.max_deciding_per_origin:,} of one origin) and "
        f"{count(limits.max_examples, 'example')} of each. The totals are complete.",
    )
    if lines:
        yield h("ul", (h("li", line) for line in lines))
    else:
        yield h("p", "Nothing is left out.")
