"""The results of checks, and the table that shows them."""

from __future__ import annotations

import re
from typing import NamedTuple

OK = "ok"
FAILED = "failed"
NOT_RUN = "not run"
KNOWN = "known fault"


class Row(NamedTuple):
    """One line of the table."""

    case: str
    versions: str
    check: str
    status: str
    message: str = ""


def distribution_of(requirement: str) -> str:
    """The name of the package in a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    if found is None:
        raise ValueError(f"no requirement: {requirement!r}")
    return found[0]


def rendered(rows: list[Row]) -> str:
    """The table as text. A message is cut to one line."""
    cells = [
        (row.case, row.versions, row.check, _outcome(row))
        for row in (Row("case", "versions", "check", "outcome"), *rows)
    ]
    widths = [max(len(each[column]) for each in cells) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(w) for cell, w in zip(line, widths, strict=False)), line[3]])
        for line in cells
    )


def _outcome(row: Row) -> str:
    message = " ".join(row.message.split())
    return f"{row.status}: {message[:500]}" if message else row.status
