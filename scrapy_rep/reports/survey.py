"""The figures of a survey: SQL queries over its rows, with DuckDB.

``survey.sql`` has the queries: a view for each figure. The rows may be those of many machines. They
are in a file, so that they need not fit into memory.
"""

from __future__ import annotations

from datetime import datetime, timezone
from importlib.resources import files
from types import UnionType
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct, structs

from ..protocol.access import AccessResult
from ..protocol.printable import printable
from .survey_row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

VERSION = 3
"""The version of the JSON form. A field or a figure may be added without a new one."""

MAX_LISTED = 100
"""Rows of a figure. The record says how many others there are."""

ROW_FILES = (".jsonl", ".jsonl.gz", ".parquet")
"""How the name of a file with rows ends."""


class Survey(Struct, kw_only=True):
    """The record of ``survey --json``."""

    type: Literal["survey"] = "survey"
    version: int = VERSION
    made_at: datetime
    sources: list[str]
    """The inputs, as they were named."""
    first_date: str | None
    last_date: str | None
    """The days of the first and the last file: when they were requested, or have changed."""
    complete: bool
    """Whether all of the input is counted."""
    problems: int
    """Files and parts of the input that cannot be read."""
    sites: int
    files: int
    figures: dict[str, list[dict[str, str | int | float | None]]]
    """The rows of each query of ``survey.sql``, by its name. Each row has a ``name``. A share is at
    most 1."""
    left_out: dict[str, int]
    """For each figure that is cut, the number of its other rows."""


_TYPES = {str: "VARCHAR", int: "BIGINT", list[str]: "VARCHAR[]", list[float]: "DOUBLE[]"}
_COLUMNS = {
    each.name: _TYPES[get_args(each.type)[0] if isinstance(each.type, UnionType) else each.type]
    for each in structs.fields(Row)
}
"""The columns of the rows, with their types in SQL."""

_MOST_FIRST = "#2 DESC, #1"
_FIGURES = {
    "results": _MOST_FIRST,
    "statuses": _MOST_FIRST,
    "numbers": "#1",
    "features": _MOST_FIRST,
    "agents": _MOST_FIRST,
    "blocked_agents": _MOST_FIRST,
    "ai_agents": _MOST_FIRST,
    "purposes": _MOST_FIRST,
    "preferences": _MOST_FIRST,
    "findings": _MOST_FIRST,
    "unknown_fields": _MOST_FIRST,
    "differences": "abs(#4) DESC, #1",
}
"""The figures, with the order of their rows."""


class RowFileError(Exception):
    """A file has no rows of a survey, or cannot be read or written. The message says why."""


class Rows:
    """The rows of a survey, in a database of ``folder``.

    ``crawlers`` has the purposes of the well-known crawlers, by their product token in lower case.
    """

    def __init__(self, folder: Path, crawlers: Mapping[str, Iterable[str]]) -> None:
        import duckdb  # not for the schema of the record

        self._error = duckdb.Error
        self._database = duckdb.connect(
            folder / "survey.duckdb",
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False},
        )
        pairs = [(agent, purpose) for agent, purposes in crawlers.items() for purpose in purposes]
        self._database.execute(
            "CREATE TABLE crawlers AS SELECT unnest(?) AS agent, unnest(?) AS purpose",
            [[agent for agent, _ in pairs], [purpose for _, purpose in pairs]],
        )
        columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        self._database.execute(
            f"CREATE TABLE rows (survey VARCHAR, {columns}, "
            "CHECK (site IS NOT NULL AND result IS NOT NULL))"
        )
        self._database.execute(files(__package__).joinpath("survey.sql").read_text("utf-8"))

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def read(self, path: Path, survey: Literal["now", "before"] = "now") -> None:
        """Add the rows of a file to this survey, or to the one before. Raises RowFileError."""
        source = f"read_json(?, format = 'newline_delimited', columns = {_COLUMNS})"
        if path.suffix == ".parquet":
            source = "read_parquet(?)"
        values = ", ".join(
            f"coalesce({name}, [])" if kind.endswith("[]") else name
            for name, kind in _COLUMNS.items()
        )
        query = f"INSERT INTO rows SELECT '{survey}', {values} FROM {source}"
        try:
            self._database.execute(query, [str(path)])
        except self._error as error:
            raise RowFileError(f"cannot read {path} as rows of a survey: {error}") from None

    def merge(self) -> None:
        """Keep one row for each site: the last one with an answer, if there is one.

        Only origins are sites. The same name of a file may stand for several.
        """
        no_answer = ", ".join(
            f"'{each}'"
            for each in (AccessResult.REDIRECT, AccessResult.NOT_MODIFIED, AccessResult.UNREACHABLE)
        )
        self._database.execute(
            "DELETE FROM rows WHERE contains(site, '://') AND rowid NOT IN (SELECT rowid FROM rows "
            "QUALIFY 1 = row_number() OVER (PARTITION BY survey, site "
            f"ORDER BY result IN ({no_answer}), rowid DESC))"
        )

    def write(self, path: Path) -> None:
        """Write all rows to a file. Raises RowFileError."""
        kind = "parquet" if path.suffix == ".parquet" else "json"
        name = str(path).replace("'", "''")
        rows = "SELECT * EXCLUDE survey FROM rows WHERE survey = 'now'"
        try:
            self._database.execute(f"COPY ({rows}) TO '{name}' (FORMAT {kind})")
        except self._error as error:
            raise RowFileError(f"cannot write {path}: {error}") from None

    def survey(
        self, sources: Sequence[str], *, complete: bool, problems: int, compared: bool
    ) -> Survey:
        """Return the figures. ``compared``: with the differences to the survey before."""
        figures = {}
        left_out = {}
        for name, order in _FIGURES.items():
            if name == "differences" and not compared:
                continue
            cursor = self._database.execute(
                f"SELECT *, count(*) OVER () FROM {name} ORDER BY {order} LIMIT {MAX_LISTED}"
            )
            columns = [each[0] for each in cursor.description[:-1]]
            found = cursor.fetchall()
            figures[name] = [dict(zip(columns, row[:-1], strict=True)) for row in found]
            if found and found[0][-1] > len(found):
                left_out[name] = found[0][-1] - len(found)
        [(sites, read, first, last)] = self._database.execute(
            "SELECT count(*), count(size), min(date), max(date) FROM rows WHERE survey = 'now'"
        ).fetchall()
        return Survey(
            made_at=datetime.now(timezone.utc), sources=[printable(each) for each in sources],
            first_date=first, last_date=last,
            complete=complete, problems=problems, sites=sites, files=read,
            figures=figures, left_out=left_out,
        )  # fmt: skip
