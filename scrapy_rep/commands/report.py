"""``report``: shows the report of a crawl, or one report of several event logs (REP_REPORT)."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from pathlib import Path

import click

from ..reports.answers import Obedience, obedience
from ..reports.reading import read_reports
from ..reports.records import Report
from .context import Context, exit_code, need, refuse_if, tool, writing
from .texts import STYLES, laid_out

_ANSWERS = {Obedience.DISALLOWED: False, Obedience.NOT_KNOWN: None}
"""Whether each page that was requested was allowed. None: the report cannot tell."""


@tool(
    "Show what a crawl has recorded for REP_REPORT: requests that were sent and that were not, "
    "the rules that decided, the pace, and whether any disallowed page was requested. Several "
    "event logs, of several spiders, processes or starts of a job, become one report.",
    ("report reports/demo.events.gz", "the event log that a crawl has written beside its report"),
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
    for path in map(Path, files):
        logs = map(str, sorted(path.parent.glob(f"{escape(path.stem)}.*events.gz")))
        names = " ".join(logs) if path.suffix in (".json", ".html") else ""
        refuse_if(names, f"{path} is the report itself: write {names}")
    report = read_reports(files, context.warn)
    if html is not None or not context.as_json:
        need("report needs", "jinja2")
        from ..reports import pages
    if html is not None:
        with writing(html):
            Path(html).write_text(pages.report_page(report), "utf-8")
    answer = _ANSWERS.get(obedience(report), True)
    styles = {"Disallowed": STYLES[answer]}
    context.show(report, lambda each: laid_out(pages.report_summary(each), styles))
    return exit_code([answer])
