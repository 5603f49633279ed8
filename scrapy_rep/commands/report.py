"""``report``: shows the report of a crawl, or one report of several event logs (REP_REPORT)."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from os.path import isfile
from pathlib import Path

import click

from ..protocol.printable import printable
from ..reports.answers import Obedience, obedience
from ..reports.files import sha256_of
from ..reports.reading import read_reports
from ..reports.records import Report, csv_text
from .context import Context, NoAnswerError, exit_code, need, reading, refuse_if, tool, writing
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
    ("report reports/*.events.gz --csv report.csv", "its table of origins"),
    ("report --verify report.html", "compare the files of a page with the hashes on it"),
    found="a disallowed page was requested",
    unknown="the report cannot tell",
    records=(Report,),
)
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("--html", metavar="FILE", help="Also write the report as an HTML page.")
@click.option("--csv", metavar="FILE", help="Also write the table of origins as CSV.")
@click.option(
    "--verify",
    metavar="FILE",
    help="Compare the event logs and archives of a page with its hashes. They are beside the page, "
    "or where it says.",
)
def report_tool(
    context: Context, files: Sequence[str], html: str | None, csv: str | None, verify: str | None
) -> int:
    if verify is not None:
        refuse_if(
            files or html or csv or context.as_json, "--verify takes a page, and nothing else"
        )
        return _verify(context, Path(verify))
    refuse_if(not files, "report needs an event log (.events.gz)")
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
    if csv is not None:
        with writing(csv):
            Path(csv).write_text(csv_text(report), "utf-8", newline="")
    obeyed = obedience(report)
    answer = _ANSWERS.get(obeyed, True)
    styles = {"Disallowed": STYLES[None if obeyed is Obedience.EXCEPTED else answer]}
    context.show(report, lambda each: laid_out(pages.report_summary(each), styles))
    return exit_code([answer])


def _verify(context: Context, page: Path) -> int:
    """Compare the files of a page with its hashes. Return 3 if one is missing, and none differs."""
    from parsel import Selector

    with reading(str(page), "a page", ValueError):
        rows = Selector(page.read_text("utf-8"), type="html").css("table.files tbody tr")
    if not rows:
        raise NoAnswerError(f"{page} has no table of files: it is not the page of a report")
    cells = ([row.css(f"{cell} code::text").get("") for cell in ("th", "td + td")] for row in rows)
    shown = [(Path(name), digest) for name, digest in cells]
    names = [path.name for path, _ in shown]
    answers: list[bool | None] = []
    for path, digest in shown:
        # Of several files with one name, such as those of two machines, only one is beside it.
        beside = () if names.count(path.name) > 1 else (page.parent / path.name,)
        found = next(filter(isfile, (*beside, page.parent / path, path)), None)
        actual = None
        if found is not None:
            with reading(str(found)):
                actual = sha256_of(found)
        is_known = actual is not None and len(digest) == 64
        answers.append(actual == digest if is_known else None)
        text = {True: "is the same", False: "differs", None: "cannot be compared"}[answers[-1]]
        hashes = f"SHA-256 {actual or 'unknown'}, page {printable(digest)}"
        context.write(f"{printable(str(path))} {text}: {hashes}\n")
    return exit_code([False] if False in answers else answers)
