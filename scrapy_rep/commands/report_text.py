"""The text of ``report``."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable
from ..reports.model import EXEMPT, UNCHECKED
from .values_text import named_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from ..reports.model import Counts, Deciding, HostPace, OriginReport, Report, Run

MAX_ROWS = 10
"""Rows of a table, and lines of a list. JSON has all of them."""

MAX_NAME = 60
"""Characters of an origin, a host or a name."""


def summary(report: Report) -> Iterator[RenderableType]:
    """Yield the summary of a report."""
    yield named_values(_answers(report))
    unreachable = [origin for origin in report.origins if origin.state == "unreachable"]
    if unreachable:
        yield from _titled("Unreachable", _list(_failure(origin) for origin in unreachable))
    ruled = [(origin, row) for origin in report.origins for row in origin.deciding if row.dropped]
    if ruled:
        yield from _titled("Why requests were not sent", _dropped(ruled))
    paced = [host for host in report.hosts if host.longest_delay is not None]
    if paced:
        yield from _titled("Seconds between two requests", _paces(paced))
    if report.origins:
        yield from _titled("Origins", _origins(report.origins))


def _answers(report: Report) -> Iterator[tuple[str, Text]]:
    totals = report.totals
    yield "Runs", Text(_runs(report.runs))
    for problem in _problems(report):
        yield "", Text(problem, style="yellow")
    yield "Sent", Text(_sent(totals))
    yield "Not sent", Text(_not_sent(totals))
    yield "Disallowed", _disallowed(report)
    if totals.sent_exempt:
        yield "Exempt", Text(_examples(report, EXEMPT, totals.sent_exempt))
    if totals.delayed or totals.waited:
        yield (
            "Waited",
            Text(
                f"{totals.delayed:,} for the pace of their site ({totals.delay_seconds:,.1f} s in "
                f"total), {totals.waited:,} for a robots.txt ({totals.wait_seconds:,.1f} s)"
            ),
        )
    yield "robots.txt", Text(f"{_number(totals.robots_txt, 'request')}, {_states(report)}")
    yield from _pages(report)
    left_out = _left_out(report)
    if left_out:
        yield "Left out", Text(f"{left_out} (the counts above are complete)")


def _runs(runs: list[Run]) -> str:
    names = ", ".join(sorted({printable(run.spider, MAX_NAME) for run in runs})[:MAX_ROWS])
    start, end = min(run.started_at for run in runs), max(run.written_at for run in runs)
    return f"{len(runs)} of {names or 'a spider'}, {_time(start)} to {_time(end)} UTC"


def _problems(report: Report) -> Iterator[str]:
    unfinished = sum(run.ended_at is None for run in report.runs)
    if unfinished:
        yield f"{_number(unfinished, 'run')} did not end: killed, or still running"
    damaged = sum(run.damage is not None for run in report.runs)
    if damaged:
        yield f"the file of {_number(damaged, 'run')} is damaged: the counts are incomplete"
    if not all(run.sent_is_known for run in report.runs):
        yield "the downloader does not show what it sends: these counts are incomplete"


def _sent(counts: Counts) -> str:
    parts = [f"{counts.sent_allowed:,} allowed"]
    if counts.sent_exempt:
        parts.append(f"{counts.sent_exempt:,} exempt")
    if counts.sent_disallowed:
        parts.append(f"{counts.sent_disallowed:,} disallowed")
    if counts.sent_unchecked:
        parts.append(f"{counts.sent_unchecked:,} not checked")
    return f"{_number(counts.sent, 'request')} for pages: {', '.join(parts)}"


def _not_sent(counts: Counts) -> str:
    reasons = sorted(counts.dropped_for.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{number:,} {printable(name, MAX_NAME)}" for name, number in reasons)
    return f"{_number(counts.dropped, 'request')}{': ' if named else ''}{named}"


def _disallowed(report: Report) -> Text:
    totals = report.totals
    if totals.sent_disallowed:
        return Text(f"{_number(totals.sent_disallowed, 'disallowed page')} requested", style="red")
    if totals.final_url_disallowed:
        return Text(
            f"{_number(totals.final_url_disallowed, 'response')} came from a disallowed URL, after "
            f"a redirect that Scrapy did not follow itself; {totals.final_url_dropped:,} dropped",
            style="red",
        )
    if totals.sent_unchecked:
        return Text(_examples(report, UNCHECKED, totals.sent_unchecked), style="yellow")
    return Text("no disallowed page was requested", style="green")


def _examples(report: Report, reason: str, number: int) -> str:
    urls = [
        url
        for origin in report.origins
        for row in origin.deciding
        if row.reason == reason
        for url in row.examples
    ]
    why = "with dont_obey_robotstxt" if reason == EXEMPT else "without a check of robots.txt"
    shown = f", such as {printable(urls[0])}" if urls else ""
    return f"{_number(number, 'request')} {why}{shown}"


def _states(report: Report) -> str:
    states = Counter(origin.state for origin in report.origins)
    named = ", ".join(f"{number:,} {printable(name, 20)}" for name, number in states.most_common())
    return f"{_number(len(report.origins), 'origin')}{': ' if named else ''}{named}"


def _pages(report: Report) -> Iterator[tuple[str, Text]]:
    directives: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    terms: Counter[str] = Counter()
    for origin in report.origins:
        directives.update({name: seen.responses for name, seen in origin.directives.items()})
        refused.update({name: use.refused for name, use in origin.usage.items()})
        terms.update({name: seen.responses for name, seen in origin.terms.items()})
    for title, counter in (("Pages", directives), ("Refused use", refused), ("Required", terms)):
        found = [(name, number) for name, number in counter.most_common(MAX_ROWS) if number]
        if found:
            yield (
                title,
                Text(
                    ", ".join(f"{number:,} {printable(name, MAX_NAME)}" for name, number in found)
                ),
            )


def _left_out(report: Report) -> str:
    limits = report.limits
    parts = (
        (limits.origins_left_out, "request to further origins", "requests to further origins"),
        (limits.hosts_left_out, "request to further hosts", "requests to further hosts"),
        (limits.deciding_left_out, "request under further rules", "requests under further rules"),
        (limits.versions_left_out, "state of a robots.txt", "states of robots.txt files"),
        (limits.examples_left_out, "example", "examples"),
    )
    return ", ".join(
        f"{number:,} {one if number == 1 else many}" for number, one, many in parts if number
    )


def _failure(origin: OriginReport) -> str:
    failure = origin.versions[-1].failure or ""
    return f"{printable(origin.origin, MAX_NAME)}  {printable(failure, 100)}"


def _dropped(found: list[tuple[OriginReport, Deciding]]) -> Table:
    table = _table("Requests", "Origin", "Reason")
    table.columns[0].justify = "right"
    found.sort(key=lambda item: -item[1].dropped)
    for origin, row in found[:MAX_ROWS]:
        cells = Text(f"{row.dropped:,}"), Text(printable(origin.origin, MAX_NAME)), Text(_why(row))
        table.add_row(*cells)
    _add_more(table, len(found))
    return table


def _why(row: Deciding) -> str:
    if row.rule is not None:
        name = "Allow" if row.rule.allow else "Disallow"
        rule = f"line {row.rule.line}, {name}: {printable(row.rule.pattern, 100)}"
        return rule if row.reason == "rules" else f"{printable(row.reason, MAX_NAME)}: {rule}"
    detail = f": {printable(row.detail, 100)}" if row.detail else ""
    return f"{printable(row.reason, MAX_NAME)}{detail}"


def _paces(hosts: list[HostPace]) -> Table:
    table = _table("Host", "Asked", "Smallest", "Median", "Too short")
    for column in table.columns[1:]:
        column.justify = "right"
    hosts.sort(key=lambda host: (-host.too_short, -host.requests))
    for host in hosts[:MAX_ROWS]:
        asked = {f"{host.shortest_delay or 0:g}", f"{host.longest_delay or 0:g}"}
        style = "red" if host.too_short else ""
        table.add_row(
            Text(printable(host.host, MAX_NAME)),
            " to ".join(sorted(asked, key=float)),
            _seconds(host.paced_gaps.smallest),
            _seconds(host.paced_gaps.median),
            Text(f"{host.too_short:,}", style=style),
        )
    _add_more(table, len(hosts))
    return table


def _origins(origins: list[OriginReport]) -> Table:
    table = _table("Origin", "robots.txt", "Sent", "Not sent", "Delayed")
    for column in table.columns[2:]:
        column.justify = "right"
    ordered = sorted(origins, key=lambda each: -(each.counts.sent + each.counts.dropped))
    for origin in ordered[:MAX_ROWS]:
        counts = origin.counts
        table.add_row(
            Text(printable(origin.origin, MAX_NAME)),
            Text(printable(origin.state, 20)),
            f"{counts.sent:,}",
            f"{counts.dropped:,}",
            f"{counts.delayed:,}",
        )
    _add_more(table, len(ordered))
    return table


def _table(*names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _add_more(table: Table, number: int) -> None:
    if number > MAX_ROWS:
        table.caption = f"and {number - MAX_ROWS:,} more; --json has all of them"
        table.caption_justify = "left"


def _list(lines: Iterator[str]) -> Text:
    shown = list(lines)
    more = [f"and {len(shown) - MAX_ROWS:,} more"] if len(shown) > MAX_ROWS else []
    return Text("\n".join(f"  {line}" for line in [*shown[:MAX_ROWS], *more]))


def _titled(title: str, body: RenderableType) -> Iterator[RenderableType]:
    yield Text()
    yield Text(title, style="bold")
    yield body


def _number(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:,.2f}"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}"
