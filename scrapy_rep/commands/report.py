"""``report``: shows the report of a crawl, or one report of several event logs (REP_REPORT)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..reports.answers import Obedience, obedience
from ..reports.reading import ReportError, read_reports
from ..reports.records import Report
from .context import CommandError, Context, ExitCode, needing, tool, writing
from .texts import laid_out

_CODES = {Obedience.DISALLOWED: ExitCode.FOUND, Obedience.NOT_KNOWN: ExitCode.UNKNOWN}
"""``NOT_KNOWN``: the report cannot tell whether a disallowed page was requested."""
_STYLES = {ExitCode.OK: "green", ExitCode.FOUND: "red", ExitCode.UNKNOWN: "yellow"}


@tool(
    "Show what a crawl has recorded for REP_REPORT: requests that were sent and that were not, "
    "the rules that decided, the pace, and whether any disallowed page was requested. Several "
    "event logs, of several spiders, processes or starts of a job, become one report.",
    ("report crawl.json", "the report that a crawl has written"),
    ("report reports/*.events.gz", "one report of several crawls, also of those that still run"),
    ("report reports/*.events.gz --json", "the same as JSON"),
    ("report reports/*.events.gz --html report.html", "the same as a page"),
    found="a disallowed page was requested",
    unknown="the report cannot tell",
    records=(Report,),
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--html", metavar="FILE", help="Also write the report as an HTML page.")
def report_tool(context: Context, files: Sequence[str], html: str | None) -> int:
    try:
        report = read_reports(files, context.warn)
    except ReportError as error:
        raise CommandError(str(error)) from None
    if html is not None or not context.as_json:
        with needing("report needs"):
            from ..reports import pages
    if html is not None:
        with writing(html):
            Path(html).write_text(pages.report_page(report), "utf-8")
    code = _CODES.get(obedience(report), ExitCode.OK)
    styles = {"Disallowed": _STYLES[code]}
    context.show(report, lambda each: laid_out(pages.report_summary(each), styles))
    return code
