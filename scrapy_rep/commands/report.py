"""``report``: merges the reports of crawls (REP_REPORT), and shows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..reports.reading import ReportError, document, read_reports
from ..reports.rendering import html_text
from .exits import CommandError, ExitCode

if TYPE_CHECKING:
    import argparse

    from ..reports.model import Report
    from .context import Context

DESCRIPTION = (
    "Show what a crawl has recorded for REP_REPORT: requests that were sent and that were not,\n"
    "the rules that decided, the pace, and whether any disallowed page was requested.\n"
    "Several files, of several spiders, processes or starts of a job, become one report."
)
EXAMPLES = (
    ("report reports/*.json", "one report of several crawls"),
    ("report reports/*.part", "what crawls have recorded that still run or were killed"),
    ("report crawl.json --json", "the merged report as JSON"),
    ("report reports/*.json --html report.html", "the merged report as a page"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        help="a JSON report, or a part file (.part) that a crawl keeps while it runs",
    )
    parser.add_argument("--html", metavar="FILE", help="also write the report as an HTML page")


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    try:
        report = read_reports(arguments.files, context.output.warn)
    except ReportError as error:
        raise CommandError(str(error)) from None
    if arguments.html is not None:
        _write(arguments.html, html_text(report))
    if context.output.as_json:
        context.output.record(document(report))
    else:
        from .report_text import summary

        context.output.print(*summary(report))
    return exit_code_of(report)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, "utf-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"cannot write {path}: {problem or error}") from None


def exit_code_of(report: Report) -> ExitCode:
    """Return FOUND if a disallowed page was requested, UNKNOWN if the report cannot tell."""
    totals = report.totals
    if totals.sent_disallowed or totals.final_url_disallowed:
        return ExitCode.FOUND
    is_known = all(run.sent_is_known and run.damage is None for run in report.runs)
    return ExitCode.UNKNOWN if totals.sent_unchecked or not is_known else ExitCode.OK
