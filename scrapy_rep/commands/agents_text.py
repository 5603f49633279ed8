"""The text of ``agents``: a table of crawlers, and all that is known about one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from .crawler_list import crawler_rows
from .crawlers import Compliance, SourceKind
from .values_text import named_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .crawlers import Crawler

_STYLES = {Compliance.IGNORES: "red", Compliance.MAY_IGNORE: "yellow"}

_COLUMNS = {"Crawler": 25, "Operator": 11, "Purposes": 12, "Falls back to": 13, "robots.txt": 10}
"""The columns of the table, with their widths. Together with the gaps they have 79 characters."""


def table(crawlers: Sequence[Crawler]) -> Table:
    """Return a table of crawlers. It is readable at 80 columns."""
    made = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="dim",
    )
    for heading, width in _COLUMNS.items():
        made.add_column(heading, overflow="fold", width=width)
    for crawler, row in zip(crawlers, crawler_rows(crawlers), strict=True):
        made.add_row(
            Text(row.name),
            Text(row.operator),
            Text(row.purposes),
            Text(row.groups.partition(", ")[2] or "no other"),
            Text(row.robots_txt, style=_STYLES.get(crawler.compliance, "")),
        )
    return made


def details(crawler: Crawler) -> Table:
    """Return all that is known about one crawler."""
    return named_values((name, Text(value)) for name, value in _details(crawler))


def _details(crawler: Crawler) -> Iterator[tuple[str, str]]:
    row = crawler_rows([crawler])[0]
    yield "Name", row.name
    yield "Operator", row.operator
    yield "Purposes", row.purposes
    yield "Groups", f"{row.groups}{_wildcard(crawler)}"
    yield "Follows robots.txt", row.robots_txt
    if crawler.user_triggered:
        yield "Requests", "each is the direct result of what a person does"
    yield "Source", crawler.source.url
    kind = "the operator" if crawler.source.kind is SourceKind.OPERATOR else "a list of others"
    yield "", f"of {kind}, seen {row.seen}"
    if crawler.note:
        yield "Note", crawler.note


def _wildcard(crawler: Crawler) -> str:
    if crawler.compliance is Compliance.IGNORES:
        return ": it ignores every robots.txt"
    if crawler.ignores_wildcard:
        return ": it ignores the group for *"
    return ": the first that a robots.txt has" if len(crawler.tokens) > 1 else ""
