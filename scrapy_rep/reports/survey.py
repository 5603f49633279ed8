"""A survey: one row for each site, and the figures, which are SQL queries with DuckDB.

``survey.sql`` has the queries: a view for each figure. The rows may be those of many machines. They
are in a file, so that they need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from glob import escape
from importlib.resources import files
from itertools import islice
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args

from msgspec import Struct, json, structs

from ..protocol.access import AccessResult, recognize
from ..protocol.lines import file_of, read
from ..protocol.lint import lint
from ..protocol.parser import list_groups, records
from ..protocol.printable import printable
from ..protocol.records import KNOWN_FIELDS, parse_delay
from ..protocol.usage import POLICY_PREFIX, POLICY_TOKENS, parse_signal_rule, parse_usage_rule
from ..protocol.verdict import Rule
from .records import EMPTY, REDIRECT_LOOP, FileError, utc

MAX_LISTED = 100  # rows of a figure: the record says how many others there are
MAX_NAMES = 5_000
"""Agents of one file that count, and delays and preferences. Real files have up to 1,100 agents."""
MAX_TEXT = 100  # characters of a name of a file
MAX_DELAY = 1_000_000  # seconds: a longer Crawl-delay is taken for one of this length

ROW_FILES = (".jsonl", ".jsonl.gz", ".parquet")  # how the name of a file with rows ends


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a survey has of one site. Without a file, the numbers are None and the lists empty."""

    site: str
    result: str
    """The state of the robots.txt, such as ``rules``, ``empty`` and ``unavailable``."""
    status: int | None = None
    date: str | None = None
    """The day on which the file was requested, or has changed: ``2026-11-22``."""
    size: int | None = None
    """Bytes."""
    groups: int | None = None
    rules: int | None = None
    sitemaps: int | None = None
    crawl_delays: list[float] = []
    """Seconds."""
    features: list[str] = []
    """The fields that the file has, such as ``sitemap``, and what its patterns have."""
    everything: list[str] = []
    """The agents, in lower case, for which the file disallows every path and allows none."""
    something: list[str] = []
    """Those for which rules disallow some paths, or all but some."""
    nothing: list[str] = []
    """Those for which no rule disallows a path."""
    findings: list[str] = []
    """What lint finds, such as ``R404 never-decides``."""
    preferences: list[str] = []
    """Usage preferences, such as ``Content-Signal: ai-train=no``."""


class Survey(Struct, kw_only=True):
    """The record of ``survey --json``."""

    type: Literal["survey"] = "survey"
    version: int = 3
    """Of the JSON form. A field or a figure may be added without a new version."""
    made_at: datetime
    sources: list[str]
    """The inputs, as they were named."""
    first_date: str | None
    last_date: str | None
    """The days of the first and the last file: when they were requested, or have changed."""
    complete: bool
    """Whether all of the input could be read."""
    sites: int
    files: int
    figures: dict[str, list[dict[str, str | int | float | None]]]
    """The rows of each query of ``survey.sql``, by its name. Each has a ``name``."""
    left_out: dict[str, int]
    """For each figure that is cut, the number of its other rows."""


encode = json.Encoder().encode  # returns the JSON of a row


def row_of(
    site: str,
    body: bytes | None,
    status: int | None = None,
    result: str = AccessResult.SUCCESSFUL,
    at: float | None = None,
) -> Row:
    """Return the row of a site, whose content never raises an error.

    ``site`` is the origin, or the name of the file. ``body`` is None if there is no file. It is
    read if ``result``, a value of `AccessResult`, says that it has the rules. ``at`` is the time of
    the file in seconds since 1970.
    """
    if result != AccessResult.SUCCESSFUL:
        body = None
    elif body is not None and (page := recognize(body).result) is not None:
        body, result = None, page.value
    state, facts = str(result), {} if body is None else _facts(file_of(body))
    if body is not None and not body.strip(b"\xef\xbb\xbf \t\r\n"):
        state = EMPTY
    elif body is None and result == AccessResult.UNAVAILABLE and status is None:
        state = REDIRECT_LOOP
    date = None
    # A tar file may have any time, and 0 for none.
    with suppress(ValueError, OverflowError, OSError):
        date = None if not at else f"{utc(at):%Y-%m-%d}"
    return Row(site=printable(site), result=state, status=status, date=date, **facts)


def _facts(body: bytes) -> dict[str, Any]:
    """Return the columns of a file."""
    text = read(body)
    groups = list_groups(text, strict=False)
    patterns = [rule.pattern for group in groups for rule in group.rules]
    found: dict[str, _Summary] = {}
    for group in groups:
        summary = _summary(group.rules)
        for agent in group.agents:
            if agent in found or len(found) < MAX_NAMES:
                found[agent] = tuple(map(max, found.get(agent, summary), summary))
    extents: dict[str, list[str]] = {"everything": [], "something": [], "nothing": []}
    for agent, summary in found.items():
        if not agent.startswith(POLICY_PREFIX):  # else it is a use, and not a crawler
            extents[_extent(*summary)].append(printable(agent, MAX_TEXT))
    fields = [
        (name.decode(), value)
        for _, name, value in records(text, strict=False)
        if name in KNOWN_FIELDS and value
    ]
    features = {
        **{name: name != "user-agent" for name, _ in fields},
        "pattern with *": any("*" in pattern for pattern in patterns),
        "pattern that ends in $": any(pattern.endswith("$") for pattern in patterns),
    }
    delays = (parse_delay(value) for name, value in fields if name == "crawl-delay")
    tokens = [token for token in POLICY_TOKENS if any(found.get(token, ()))]
    of_policies = [f"{token}: {_extent(*found[token])} disallowed" for token in tokens]
    return {
        "size": len(body),
        "groups": len(groups),
        "rules": len(patterns),
        "sitemaps": sum(name == "sitemap" for name, _ in fields),
        "crawl_delays": [
            min(delay, MAX_DELAY) for delay in islice(delays, MAX_NAMES) if delay is not None
        ],
        "features": sorted(name for name, holds in features.items() if holds),
        **extents,
        "findings": sorted({f"{each.code} {each.code.short_name}" for each in lint(body)}),
        "preferences": sorted({*islice(_preferences(fields), MAX_NAMES)}) + of_policies,
    }


def _preferences(fields: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    for name, value in fields:
        stated: Iterable[tuple[str, bool | str]] = ()
        words = ("no", "yes")
        if name == "content-signal" and (rule := parse_signal_rule(value)) is not None:
            stated = rule[1].items()
        elif name == "content-usage":
            stated, words = parse_usage_rule(value)[1].items(), ("n", "y")
        for label, meaning in stated:
            text = meaning if isinstance(meaning, str) else words[meaning]
            yield printable(f"{name.title()}: {label}={text}", MAX_TEXT)


_Summary = tuple[int, ...]
"""The lengths of the longest patterns that disallow and that allow every path, and some paths."""


def _summary(rules: Sequence[Rule]) -> _Summary:
    lengths = [0, 0, 0, 0]
    for rule in rules:
        is_for_some = rule.pattern.rstrip("*") not in ("", "/")
        kind = 2 * is_for_some + rule.allow
        lengths[kind] = max(lengths[kind], len(rule.pattern))
    return tuple(lengths)


def _extent(disallow_all: int, allow_all: int, disallow_some: int, allow_some: int) -> str:
    """Return how much some rules disallow: the name of a column."""
    # RFC 9309 §2.2.2: the longer pattern wins, and allow if both have the same length.
    if disallow_all > allow_all:
        return "something" if allow_all or allow_some else "everything"
    return "something" if disallow_some else "nothing"


_TYPES = {str: "VARCHAR", int: "BIGINT", list[str]: "VARCHAR[]", list[float]: "DOUBLE[]"}
_COLUMNS = {
    each.name: _TYPES[get_args(each.type)[0] if isinstance(each.type, UnionType) else each.type]
    for each in structs.fields(Row)
}
"""The columns of the rows, with their types in SQL."""

# DuckDB reads names as patterns, `~` as a home, and `site=a/` in a path as the value of a column.
_ONE_FILE = "hive_partitioning = false"

_FIGURES = (
    *("results", "statuses", "numbers", "features", "agents", "ai_agents", "purposes"),
    *("preferences", "findings", "differences"),
)
_ORDERS = {"numbers": "#1", "differences": "abs(#4) DESC, #1"}
"""How the rows of some figures are sorted. The largest numbers of the others come first."""


class Rows:
    """The rows of a survey, in a database of ``folder``. ``crawlers``: purposes, by their token."""

    def __init__(self, folder: Path, crawlers: Mapping[str, Iterable[str]]) -> None:
        import duckdb  # not for the schema of the record

        self._error = duckdb.Error
        self._database = duckdb.connect(
            folder / "survey.duckdb",
            config={"autoinstall_known_extensions": False, "autoload_known_extensions": False},
        )
        self.close = self._database.close
        pairs = [(agent, purpose) for agent, purposes in crawlers.items() for purpose in purposes]
        self._database.execute(
            "CREATE TABLE crawlers AS SELECT unnest(?) AS agent, unnest(?) AS purpose",
            [list(column) for column in zip(*pairs, strict=True)],
        )
        columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
        self._database.execute(
            f"CREATE TABLE rows (survey VARCHAR, {columns}, "
            "CHECK (site IS NOT NULL AND result IS NOT NULL))"
        )
        self._database.execute(files(__package__).joinpath("survey.sql").read_text("utf-8"))

    @contextmanager
    def _saying(self, problem: str) -> Iterator[None]:
        """Raise FileError for an error of the database, whose words are about SQL."""
        try:
            yield
        except self._error:
            raise FileError(problem) from None

    def _fetch(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a query. Returns the names of its columns, and its rows. Raises FileError."""
        problem = "there is not enough memory, or not enough space for temporary files (TMPDIR)"
        with self._saying(problem):
            cursor = self._database.execute(query)
            return [each[0] for each in cursor.description], cursor.fetchall()

    def read(self, path: Path, survey: Literal["now", "before"] = "now") -> None:
        """Add the rows of a file to this survey, or to the one before. Raises FileError."""
        source = f"read_json(?, format = 'newline_delimited', columns = {_COLUMNS}, {_ONE_FILE})"
        if path.suffix == ".parquet":
            source = f"read_parquet(?, {_ONE_FILE})"
        values = ", ".join(
            f"coalesce({name}, [])" if kind.endswith("[]") else name
            for name, kind in _COLUMNS.items()
        )
        query = f"INSERT INTO rows SELECT '{survey}', {values} FROM {source}"
        problem = f"cannot read {path} as rows of a survey: only 'survey --rows' writes them"
        with self._saying(problem):
            self._database.execute(query, [escape(str(path.absolute()))])

    def merge(self) -> None:
        """Keep one row for each site: the last one with an answer, if there is one.

        Only origins are sites. The same name of a file may stand for several.
        """
        results = AccessResult.REDIRECT, AccessResult.NOT_MODIFIED, AccessResult.UNREACHABLE
        no_answer = tuple(map(str, results))
        self._fetch(
            "DELETE FROM rows WHERE contains(site, '://') AND rowid NOT IN (SELECT rowid FROM rows "
            "QUALIFY 1 = row_number() OVER (PARTITION BY survey, site "
            f"ORDER BY result IN {no_answer}, rowid DESC))"
        )

    def write(self, path: Path) -> None:
        """Write all rows to a file. Raises FileError."""
        kind = "parquet" if path.suffix == ".parquet" else "json"
        name = str(path.absolute()).replace("'", "''")
        rows = "SELECT * EXCLUDE survey FROM rows WHERE survey = 'now'"
        with self._saying(f"cannot write {path}: is the disk full?"):
            self._database.execute(f"COPY ({rows}) TO '{name}' (FORMAT {kind})")

    def survey(self, sources: Sequence[str], *, complete: bool, compared: bool) -> Survey:
        """Return the figures. ``compared``: with the differences to the survey before."""
        figures, left_out = {}, {}
        for name in _FIGURES if compared else _FIGURES[:-1]:
            order = _ORDERS.get(name, "#2 DESC, #1")
            columns, found = self._fetch(
                f"SELECT *, count(*) OVER () FROM {name} ORDER BY {order} LIMIT {MAX_LISTED}"
            )
            figures[name] = [dict(zip(columns[:-1], row[:-1], strict=True)) for row in found]
            if found and found[0][-1] > len(found):
                left_out[name] = found[0][-1] - len(found)
        _, [(sites, read, first, last)] = self._fetch(
            "SELECT count(*), count(size), min(date), max(date) FROM rows WHERE survey = 'now'"
        )
        return Survey(
            made_at=datetime.now(timezone.utc), sources=[printable(each) for each in sources],
            first_date=first, last_date=last, complete=complete, sites=sites, files=read,
            figures=figures, left_out=left_out,
        )  # fmt: skip
