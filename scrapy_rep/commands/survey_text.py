"""The text of ``survey``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..protocol.lint_codes import Code
from ..protocol.printable import printable
from ..reports.quantities import percent
from ..reports.survey_names import FEATURES, NUMBERS, QUANTILES, quantile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

MAX_ROWS = 15
"""Rows of a list. JSON has more of them."""

_NAMES = {code.code: code.short_name for code in Code}


def survey_text(record: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of a survey."""
    total = record["total"]
    yield Text(f"{total['responses']:,} sites, {total['files']:,} robots.txt files", style="bold")
    if not record["complete"]:
        yield Text("This survey is not complete.", style="yellow")
    if total["statuses"] or len(total["results"]) > 1:
        yield from _statuses(total)
    if total["files"]:
        yield from _files(total)
    if len(record["strata"]) > 1:
        yield from _strata(record)
    if "differences" in record:
        yield from _differences(record["differences"])


def _statuses(total: Mapping[str, Any]) -> Iterator[RenderableType]:
    whole = total["responses"]
    for title, key in (("Result", "results"), ("Status", "statuses")):
        rows = sorted(total[key].items(), key=lambda item: -item[1])[:MAX_ROWS]
        if rows:
            yield Text()
            yield _table(
                (title, "Sites", "Share"), (_row(name, number, whole) for name, number in rows)
            )


def _files(total: Mapping[str, Any]) -> Iterator[RenderableType]:
    files = total["files"]
    yield Text()
    rows = [
        [NUMBERS[name], *(quantile(name, numbers[key]) for key in QUANTILES)]
        for name, numbers in total["numbers"].items()
        if numbers["count"]
    ]
    yield _table(("In a file", *QUANTILES.values()), rows)
    yield Text()
    features = [
        _row(text, total["features"][name], files)
        for name, text in FEATURES.items()
        if name in total["features"]
    ]
    yield _table(("Files with", "Files", "Share"), features)
    heads = ("Files", "Share", "all", "some", "nothing")
    if total["agents"]:
        yield Text()
        yield _table(("Agents named most", *heads), _agents(total["agents"], files))
        yield from _error(total["agents_error"])
    if total["blocked_agents"]:
        yield Text()
        rows_of_blocked = total["blocked_agents"][:MAX_ROWS]
        yield _table(
            ("Agents disallowed everything", "Files", "Share"),
            (_row(printable(row["agent"], 40), row["files"], files) for row in rows_of_blocked),
        )
    if total["ai_agents"]:
        yield Text()
        yield _table(("AI agents", *heads), _agents(total["ai_agents"], files))
    if total["purposes"]:
        yield Text()
        yield _table(("Crawlers for", *heads), _purposes(total["purposes"], files))
    if total["preferences"]:
        yield Text()
        preferences = total["preferences"][:MAX_ROWS]
        yield _table(
            ("Usage preferences", "Files", "Share"),
            (_row(printable(row["preference"], 40), row["files"], files) for row in preferences),
        )
    if total["findings"]:
        yield Text()
        findings = list(total["findings"].items())[:MAX_ROWS]
        yield _table(
            ("Findings of lint", "Files", "Share"),
            (_row(f"{code} {_NAMES.get(code, '')}", number, files) for code, number in findings),
        )


def _agents(agents: Sequence[Mapping[str, Any]], files: int) -> Iterator[list[str]]:
    for row in agents[:MAX_ROWS]:
        extents = (f"{row[key]:,}" for key in ("everything", "something", "nothing"))
        yield [*_row(printable(row["agent"], 30), row["files"], files), *extents]


def _purposes(purposes: Mapping[str, Mapping[str, int]], files: int) -> Iterator[list[str]]:
    for purpose, row in sorted(purposes.items(), key=lambda item: -item[1].get("named", 0)):
        extents = (f"{row.get(key, 0):,}" for key in ("everything", "something", "nothing"))
        yield [*_row(purpose, row.get("named", 0), files), *extents]


def _strata(record: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield Text()
    shown = ("sitemap", "crawl-delay", "disallows-everything-for-all", "findings")
    rows = []
    for name, tally in list(record["strata"].items())[:MAX_ROWS]:
        shares = (percent(tally["features"].get(key, 0), tally["files"]) for key in shown)
        rows.append([printable(name, 24), f"{tally['files']:,}", *shares])
    yield _table(("Stratum", "Files", "Sitemap", "Crawl-delay", "Disallowed", "Findings"), rows)
    others = len(record["strata"]) - MAX_ROWS
    if others > 0:
        yield Text(f"and {others:,} more strata, which --json has")
    if record["strata_left_out"]:
        yield Text(f"{record['strata_left_out']:,} sites are in other strata.")


def _differences(rows: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    yield Text()
    if not rows:
        yield Text("No share differs from the other survey.")
        return
    yield _table(
        ("Compared", "", "Before", "Now", "Change"),
        (
            [
                row["measure"],
                printable(_NAMES.get(row["name"], row["name"]), 32),
                f"{100 * row['before']:.1f} %",
                f"{100 * row['after']:.1f} %",
                f"{100 * row['change']:+.1f}",
            ]
            for row in rows[:MAX_ROWS]
        ),
    )
    if len(rows) > MAX_ROWS:
        yield Text(f"and {len(rows) - MAX_ROWS:,} more differences, which --json has")


def _error(error: int) -> Iterator[RenderableType]:
    if error:
        yield Text(f"Each number of an agent may be up to {error:,} too small.")


def _row(name: str, number: int, whole: int) -> list[str]:
    return [name, f"{number:,}", percent(number, whole)]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="bold", pad_edge=False)
    for number, head in enumerate(heads):
        text_column = number == 0 or not head
        made.add_column(
            head,
            justify="left" if text_column else "right",
            overflow="fold",
            no_wrap=not text_column,
        )
    for row in rows:
        made.add_row(*map(Text, row))
    return made
