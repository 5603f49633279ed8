"""Names and values in two columns, as several subcommands show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text


def named_values(rows: Iterable[tuple[str, Text]]) -> Table:
    """Return a table of names and values. Long values continue in the next lines."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table
