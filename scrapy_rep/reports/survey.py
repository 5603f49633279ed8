"""The figures of a survey: SQL queries over its rows, with DuckDB.

``survey.sql`` has the queries. The rows may be those of many machines. They are in a file, so that
they need not fit into memory.
"""

from __future__ import annotations

from importlib.resources import files
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from msgspec import Struct, structs

from .survey_row import Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

VERSION = 2
"""The version of the JSON form. A field may be added without a new one."""

MAX_LISTED = 100
"""Entries of a list. The record says how many others there are."""

ROW_FILES = (".jsonl", ".jsonl.gz", ".parquet")
"""How the name of a file with rows ends."""


class Count(Struct, frozen=True):
    """The sites or files that have something. A share is at most 1."""

    name: str
    number: int
    share: float


class Extents(Struct, frozen=True):
    """The files that name an agent, or one with a purpose, by what they disallow for it."""

    name: str
    files: int
    share: float
    everything: int
    something: int
    nothing: int


class Quantiles(Struct, frozen=True):
    """A number of each file: octets, or seconds for ``crawl_delay``. All are those of a file."""

    name: str
    p10: float
    p25: float
    median: float
    p75: float
    p90: float
    p99: float
    largest: float


class Stratum(Struct, frozen=True):
    """A part of the survey, such as a folder: its median size, and shares of its files.

    ``blocked``: everything is disallowed for all crawlers; ``training``: for one that collects data
    to train a model.
    """

    name: str
    files: int
    size: float | None
    sitemap: float | None
    delay: float | None
    blocked: float | None
    training: float | None
    findings: float | None


class Difference(Struct, frozen=True):
    """A share that differs from that of another survey."""

    name: str
    before: float
    now: float
    change: float


class Survey(Struct, kw_only=True):
    """The record of ``survey --json``. The lists are in the order of their numbers."""

    type: Literal["survey"] = "survey"
    version: int = VERSION
    made_at: str
    complete: bool
    """Whether all of the input is counted."""
    problems: int
    """Files and parts of the input that cannot be read."""
    sites: int
    files: int
    results: list[Count]
    statuses: list[Count]
    numbers: list[Quantiles]
    features: list[Count]
    agents: list[Extents]
    blocked_agents: list[Count]
    ai_agents: list[Extents]
    purposes: list[Extents]
    preferences: list[Count]
    findings: list[Count]
    unknown_fields: list[Count]
    strata: list[Stratum]
    differences: list[Difference] | None = None
    """The differences to another survey, if there is one."""
    left_out: dict[str, int]
    """For each list that is cut, the number of its other entries."""


_TYPES = {str: "VARCHAR", int: "BIGINT", list[str]: "VARCHAR[]", list[float]: "DOUBLE[]"}
_COLUMNS = {
    each.name: _TYPES[get_args(each.type)[0] if isinstance(each.type, UnionType) else each.type]
    for each in structs.fields(Row)
}
"""The columns of the rows, with their types in SQL."""


_LISTS: dict[str, type[Struct]] = {
    each.name: get_args(each.type)[0]
    for each in structs.fields(Survey)
    if get_origin(each.type) is list
}
_LISTS["differences"] = Difference
"""The lists of a survey with their records. Each is a view of `survey.sql`."""

_ORDERS: dict[type[Struct], str] = {Quantiles: "#1", Difference: "abs(#4) DESC, #1"}


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

    def write(self, path: Path) -> None:
        """Write all rows to a file. Raises RowFileError."""
        kind = "parquet" if path.suffix == ".parquet" else "json"
        name = str(path).replace("'", "''")
        rows = "SELECT * EXCLUDE survey FROM rows WHERE survey = 'now'"
        try:
            self._database.execute(f"COPY ({rows}) TO '{name}' (FORMAT {kind})")
        except self._error as error:
            raise RowFileError(f"cannot write {path}: {error}") from None

    def survey(self, *, made_at: str, complete: bool, problems: int, compared: bool) -> Survey:
        """Return the figures. ``compared``: with the differences to the survey before."""
        lists: dict[str, Any] = {}
        left_out = {}
        for name, kind in _LISTS.items():
            if name != "differences" or compared:
                order = _ORDERS.get(kind, "#2 DESC, #1")
                found = self._database.execute(
                    f"SELECT *, count(*) OVER () FROM {name} ORDER BY {order} LIMIT {MAX_LISTED}"
                ).fetchall()
                lists[name] = [kind(*row[:-1]) for row in found]
                if found and found[0][-1] > len(found):
                    left_out[name] = found[0][-1] - len(found)
        [counts] = self._database.execute(
            "SELECT count(*), count(size) FROM rows WHERE survey = 'now'"
        ).fetchall()
        sites, read = counts
        return Survey(
            made_at=made_at, complete=complete, problems=problems, sites=sites, files=read,
            left_out=left_out, **lists,
        )  # fmt: skip
