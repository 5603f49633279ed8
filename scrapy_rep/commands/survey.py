"""``survey``: the state of robots.txt over many sites."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from ..reports.survey import ROW_FILES, RowFileError, Rows, Survey
from .context import Context, tool
from .crawlers import well_known_crawlers
from .output import CommandError, ExitCode, writing
from .survey_inputs import Inputs
from .survey_workers import rows_of
from .texts import laid_out

if TYPE_CHECKING:
    from collections.abc import Sequence


@tool(
    "Count what the robots.txt files of many sites have: statuses, sizes, rules, agents, delays, "
    "sitemaps, findings of lint, AI agents and usage preferences.",
    ("survey robots/", "all files below a folder; its subfolders are counted apart, too"),
    ("survey robots.tar.xz --rows 2026.parquet", "a tar file; a row for each site is written, too"),
    ("survey a.jsonl b.jsonl", "the rows that other machines have written"),
    ("survey sqlite:///store.sqlite --json", "the store of a crawl, as JSON"),
    ("survey robots.tar.xz --compare 2025.parquet", "what has changed since another survey"),
    ("survey robots.tar.xz --html survey.html", "a page with charts, too"),
    records=[Survey],
)
@click.argument("names", nargs=-1, required=True, metavar="DIR|TAR|STORE|ARCHIVE|ROWS...")
@click.option(
    "--depth",
    type=click.IntRange(0, 1000),
    default=1,
    help="Folder names that make a stratum; 0: none. Default: 1.",
)
@click.option(
    "--rows", metavar="FILE", help=f"Write a row for each site, too: {', '.join(ROW_FILES)}."
)
@click.option("--compare", metavar="FILE", help="Rows of another survey.")
@click.option("--html", metavar="FILE", help="Write a page with charts, too.")
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    help="Processes that count. Default: one for each core.",
)
def survey_tool(
    context: Context,
    names: Sequence[str],
    depth: int,
    rows: str | None,
    compare: str | None,
    html: str | None,
    processes: int | None,
) -> int:
    """Make a survey."""
    for name in (rows, compare):
        if name is not None and not name.endswith(ROW_FILES):
            raise CommandError(f"{name} must end in {', '.join(ROW_FILES)}")
    for name in (rows, html):
        if name is not None:
            with writing(name), open(name, "ab"):  # before the work begins
                pass
    inputs = Inputs(names, depth, context)
    with (
        TemporaryDirectory(prefix="scrapy-rep-", ignore_cleanup_errors=True) as folder,
        closing(_opened(Path(folder))) as database,
    ):
        try:
            if compare is not None:
                database.read(Path(compare), "before")
            path = Path(folder, "rows.jsonl")
            is_complete = _count(inputs, path, processes, context)
            for each in (*inputs.rows, path):
                database.read(each)
            if rows is not None:
                database.write(Path(rows))
            found = database.survey(
                made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                complete=is_complete and not inputs.problems,
                problems=inputs.problems,
                compared=compare is not None,
            )
        except RowFileError as error:
            raise CommandError(str(error)) from None
    from ..reports import pages

    context.output.show(found, lambda each: laid_out(pages.survey_summary(each), {}))
    if html is not None:
        with writing(html):
            Path(html).write_bytes(pages.survey_page(found).encode())
        context.output.note(f"the page is {html}")
    if not is_complete:
        context.output.note("interrupted: this is what was counted until then")
        return ExitCode.INTERRUPTED
    return ExitCode.UNKNOWN if inputs.problems else ExitCode.OK


def _opened(folder: Path) -> Rows:
    """Open the database. Raises CommandError if a package is missing, before the work begins."""
    try:
        import jinja2  # noqa: F401

        purposes = {each.tokens[0].lower(): each.purposes for each in well_known_crawlers()}
        return Rows(folder, purposes)
    except ImportError as error:
        text = f"survey needs the package {error.name}: pip install {error.name}"
        raise CommandError(text) from None


def _count(inputs: Inputs, path: Path, processes: int | None, context: Context) -> bool:
    """Write the rows of the inputs. Returns whether they are complete: not after Ctrl-C."""
    number = 0
    with (
        context.output.progress("files") as done,
        path.open("wb") as file,
        closing(rows_of(inputs.samples(), processes)) as found,
    ):
        try:
            for lines in found:
                with writing(str(path)):
                    file.writelines(line + b"\n" for line in lines)
                number += len(lines)
                done(number)
        except KeyboardInterrupt:
            return False
    return True
