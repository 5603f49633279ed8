"""The texts that several tools share: answers, names and values, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

WORDS = {True: "allowed", False: "disallowed", None: "unknown"}
STYLES = {True: "green", False: "red", None: "yellow"}
"""The word for each answer, and its color."""

MAX_CELL = 400
"""Characters of a URL in a table."""

Renderables: TypeAlias = "Iterator[RenderableType]"

Row = tuple[str, "Text | str"]


def word(allowed: bool | None) -> Text:
    return Text(WORDS[allowed], style=STYLES[allowed])


def named_values(rows: Iterable[Row]) -> Table:
    """Return a table of names and values. Long values continue in the next lines."""
    made = Table.grid(padding=(0, 2))
    made.add_column(no_wrap=True, style="bold")
    made.add_column(overflow="fold")
    for name, value in rows:
        made.add_row(name, value)
    return made


def listed(name: str, values: Sequence[str], most: int, left_out: int = 0) -> list[Row]:
    """Return rows for the texts of :func:`shown`. Only the first one has the name."""
    rows = shown(values, most, left_out)
    return [("" if number else name, row) for number, row in enumerate(rows)]


def shown(values: Sequence[str], most: int, left_out: int = 0) -> list[str]:
    """Return the first values, and how many more there are. ``left_out`` are missing already."""
    left = len(values[most:]) + left_out
    return [*map(printable, values[:most]), *([f"and {left:,} more"] if left else [])]


def table(*columns: str, right: Iterable[int] = (), **options: Any) -> Table:
    """Return an empty table. Cells continue in the next lines. ``right``: columns of numbers."""
    values = {"show_edge": False, "pad_edge": False, "header_style": "bold", **options}
    made = Table(box=box.SIMPLE_HEAD, **values)
    for column in columns:
        made.add_column(column, overflow="fold")
    for number in right:
        made.columns[number].justify = "right"
    return made


def indented(text: str | Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 8), expand=False)


def laid_out(text: str, styles: Mapping[str, str]) -> Renderables:
    """Yield the tables of a text in the form that ``reports/templates/summary.html`` describes.

    ``styles`` are those of values, by name. An empty first head is the title of its table.
    """
    from ..reports.pages import SEPARATOR

    values, *tables = text.strip().split("\n\n")
    styles = {"!": "yellow", **styles}
    rows = (line.split(SEPARATOR) for line in values.splitlines())
    yield named_values(
        (name.removeprefix("!"), Text(value, style=styles.get(name, ""))) for name, value in rows
    )
    for each in tables:
        title, heads, *lines = each.splitlines()
        names = (heads if heads[0] != SEPARATOR else title + heads).split(SEPARATOR)
        caption = lines.pop() if SEPARATOR not in lines[-1] else ""
        yield Text()
        if heads[0] != SEPARATOR:
            yield Text(title, style="bold")
        made = table(
            *(name.removesuffix(">") for name in names),
            right=[number for number, name in enumerate(names) if name.endswith(">")],
        )
        for line in lines:
            made.add_row(*line.split(SEPARATOR))
        yield made
        if caption:
            yield Text(caption)
