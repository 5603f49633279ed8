"""The texts that several tools share: answers, names and values, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rich import box
from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


WORDS = {True: "allowed", False: "disallowed", None: "unknown"}
STYLES = {True: "green", False: "red", None: "yellow"}
"""The word for each answer, and its color."""

MAX_CELL = 400
"""Characters of a URL in a table."""

Renderables: TypeAlias = "Iterator[RenderableType]"
"""What a listing yields."""

Row = tuple[str, "Text | str"]
"""A name and a value."""


def word(allowed: bool | None) -> Text:
    """Return the word for an answer, in its color."""
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
    """Return rows for values, of which ``most`` are shown. Only the first one has the name.

    ``left_out`` values are missing already.
    """
    rows = shown(values, most, left_out)
    return [("" if number else name, row) for number, row in enumerate(rows)]


def shown(values: Sequence[str], most: int, left_out: int = 0) -> list[str]:
    """Return the first values, and how many more there are."""
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
    """Return a text whose lines are indented."""
    return Padding(text, (0, 0, 0, 8), expand=False)


def laid_out(text: str, styles: Mapping[str, str]) -> Renderables:
    """Yield the tables of a text in the form that ``reports/templates/summary.html`` describes.

    ``styles`` are those of values, by their names. The title of a table is its first head if that
    is empty.
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
        yield Fitting(names, [line.split(SEPARATOR) for line in lines], caption)


class Fitting:
    """A table that fits into a terminal. A narrow one gets its first columns, and the names of the
    others. Columns wrap between words. The names of columns of numbers end in ``>``.
    """

    def __init__(self, names: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> None:
        self._names, self._rows, self._caption = names, rows, caption

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Called by rich."""
        made, spare = table(), options.max_width
        wished: list[int] = []
        for number, name in enumerate(self._names):
            head, is_number = name.removesuffix(">"), name.endswith(">")
            cells = [head, *(row[number] for row in self._rows)]
            words = cells if is_number else [word for cell in cells for word in cell.split()]
            least = min(max(map(cell_len, words), default=1), 30)  # longer words continue below
            if number and spare < least:
                break
            spare -= least + len("   ")
            wished.append(max(map(cell_len, cells)) - least)
            made.add_column(head, overflow="fold", width=least)
            made.columns[-1].justify = "right" if is_number else "left"
        spare += len("   ")
        for column, more in zip(made.columns, wished, strict=True):
            assert column.width is not None
            added = max(min(more, spare), 0)
            column.width, spare = column.width + added, spare - added
        for row in self._rows:
            made.add_row(*row[: len(wished)])
        yield made
        if self._caption:
            yield Text(self._caption)
        if rest := [name.removesuffix(">") for name in self._names[len(wished) :]]:
            yield Text(f"left out, because the terminal is narrow: {', '.join(rest)}")
