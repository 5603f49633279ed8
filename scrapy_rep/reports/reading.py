"""Makes the report of event logs, with SQL: ``report.sql`` has the queries.

The events are rows of a temporary database, which SQLite keeps on the disk if there are many. The
memory that this uses depends on the limits of a report, not on the number of events.
"""

from __future__ import annotations

import gzip
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import MsgspecError, Struct, structs

from ..protocol.paths import host_of
from ..protocol.robotstxt import RobotsTxt
from . import records
from .files import sha256_of
from .records import Deciding, Event, FileError, OriginReport, Report, Run, RunEvent, Statement, utc

MAX_LINE = 1 << 20  # bytes of one line of an event log: a crawl writes shorter ones

# The gap in the middle, which an index has. A query alone would number all gaps.
MEDIAN = "SELECT gap FROM gap WHERE host = ? AND counts ORDER BY gap LIMIT 1 OFFSET ?"

_decode = msgspec.json.Decoder(Event).decode

_TABLES: dict[type[Struct], Any] = {
    kind: kind.__struct_config__.tag for kind in get_args(Event) if kind is not RunEvent
}
_ADDING = {
    kind: f"INSERT OR IGNORE INTO {name} VALUES (?, ?, ?{', ?' * len(structs.fields(kind))})"
    for kind, name in _TABLES.items()
}
_SCHEMA = "".join(
    f"CREATE TABLE {name}(place INTEGER PRIMARY KEY, run, host, "
    f"{', '.join(each.name for each in structs.fields(kind))});"
    for kind, name in _TABLES.items()
)
_SCHEMA += (
    "CREATE UNIQUE INDEX file_of ON file(sha256); PRAGMA journal_mode = OFF; "
    "PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;"  # in KiB
)

convert = partial(msgspec.convert, strict=False)
"""Makes a record of a row: times of seconds, and truth values of 0 and 1."""

sqlite3.register_converter("msgspec", msgspec.json.decode)


def read_reports(
    paths: Sequence[str | Path], note: Callable[[str], object] = lambda _: None
) -> Report:
    """Return the report of one or more event logs.

    ``note`` gets a sentence for each file that is damaged, and for each that is not used because
    another file has the same run. Raises :class:`FileError`.
    """
    try:
        with closing(Database()) as database:
            for path in paths:
                damage: list[str] = []
                run = database.add(_events(path, damage))
                if run is None:
                    note(f"{path} is not used: another file has the same run")
                    continue
                run.log = records.kept_text(str(path))
                run.log_sha256 = sha256_of(path) if Path(path).is_file() else None
                run.damage = next(iter(damage), run.damage)
                if run.damage is not None:
                    note(f"{path} is damaged: {run.damage}. The rest of it is used")
            return database.report()
    # A line may have any number in place of a time, or any text in place of an origin.
    except (sqlite3.Error, MsgspecError, ValueError, OverflowError, OSError) as error:
        raise FileError(f"the events make no report: {error}") from None


def _events(path: str | Path, damage: list[str]) -> Iterator[Event]:
    """Yield the events of a file up to the first that cannot be read. ``damage`` then says so.

    Raises FileError for a file that cannot be read at all, or does not begin with a run.
    """
    number = 0
    try:
        with gzip.open(path) as file:
            for line in iter(lambda: file.readline(MAX_LINE), b""):
                event = _decode(line)
                if number == 0 and not isinstance(event, RunEvent):
                    break
                number += 1
                yield event
        problem = None
    # MsgspecError, which is no ValueError in msgspec 0.20: a line that is not JSON
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, MsgspecError) as error:
        problem = getattr(error, "strerror", None)
        damage.append(f"the end after line {number:,} cannot be read")
    if number == 0:
        problem = problem or "it is not an event log of a crawl (.events.gz)"
        raise FileError(f"cannot read {path}: {problem}")


LIMITS = {
    "origins": 10_000,  # and hosts
    "deciding": 50,  # rules and reasons of one origin
    "versions": 10,  # states of the robots.txt of one origin
    "files_text": 10_000_000,  # characters of all robots.txt files together
    "names": records.MAX_NAMES,  # directives of one origin, and uses
}


class Database:
    """The events of several logs. Raises sqlite3.Error, for example if the disk is full."""

    def __init__(self) -> None:
        self._sql = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False, detect_types=sqlite3.PARSE_COLNAMES
        )
        self._sql.row_factory = sqlite3.Row
        self.close = self._sql.close
        self._sql.create_function("site_verdict", 3, self._site_verdict)
        self._sql.create_aggregate("first_five", 1, _FirstFive)  # type: ignore[arg-type]
        self._sql.executescript(_SCHEMA)
        self._runs: list[Run] = []
        self._places = 0

    def add(self, events: Iterator[Event]) -> Run | None:
        """Add the events of a run. Returns it as it was at its last event; None if it is known."""
        first, last = next(events), 0.0
        assert isinstance(first, RunEvent)
        run = first.run
        if any(run.id == each.id for each in self._runs):
            return None
        number = len(self._runs)
        self._sql.execute("BEGIN")
        for event in events:
            self._places += 1
            if isinstance(event, RunEvent):
                if event.run.id == run.id:
                    run = event.run
            else:
                host = None
                if not isinstance(event, records.FileEvent):
                    last = max(last, event.at)
                    host = None if event.origin is None else host_of(event.origin)
                if isinstance(event, records.FetchEvent):
                    event.redirects = msgspec.json.encode(event.redirects).decode()  # type: ignore
                row = (self._places, number, host, *structs.astuple(event))
                self._sql.execute(_ADDING[type(event)], row)
        self._sql.execute("COMMIT")
        run.written_at = max(run.written_at, utc(last), run.ended_at or run.written_at)
        self._runs.append(run)
        return run

    def report(self, **limits: int) -> Report:
        """Return the report of all runs, once. ``limits`` replace some of `LIMITS`."""
        most = (LIMITS | limits).items()
        columns = ", ".join(f"{number} AS max_{name}" for name, number in most)
        self._sql.execute(f"CREATE TABLE limits AS SELECT {columns}")
        self._sql.executescript(files(__package__).joinpath("report.sql").read_text("utf-8"))
        origins = {row["origin"]: convert(row, OriginReport) for row in self._rows("origins")}
        lists = {"versions": records.Version, "deciding": Deciding, "statements": Statement}
        for view, kind in lists.items():
            for row in self._rows(view):
                getattr(origins[row["origin"]], view).append(convert(row, kind))
        hosts = convert(list(self._rows("hosts")), list[records.HostPace])
        for host in hosts:
            for (gap,) in self._sql.execute(MEDIAN, (host.host, host.gaps // 2)):
                host.median_gap = gap
        counts = {row["origin"]: convert(row, records.Counts) for row in self._rows("each_counts")}
        totals = counts.pop("", records.Counts())
        for name, of_origin in counts.items():
            origins[name].counts = of_origin
        (sites,), (left_out,), (timeline,) = map(self._rows, ("sites", "left_out", "timeline"))
        return Report(
            utc(time.time()),
            sorted(self._runs, key=lambda run: run.started_at),
            left_out=convert(left_out, records.LeftOut),
            totals=totals,
            sites=convert(sites, records.Sites),
            timeline=convert(timeline, records.Timeline) if timeline["started_at"] else None,
            origins=list(origins.values()),
            hosts=hosts,
            files={row["sha256"]: convert(row, records.RobotsFile) for row in self._rows("texts")},
        )

    def _site_verdict(self, run: int, text: str | None, url: str) -> str | None:
        """Return what a robots.txt says about an exempt request: the fields from ``agent`` on."""
        if text is None:
            return None
        verdict = _parsed(text).verdict(url, tuple(self._runs[run].tokens))
        return msgspec.json.encode(records.decided(records.EXEMPT, verdict)[2:]).decode()

    def _rows(self, view: str) -> Iterator[dict[str, Any]]:
        return map(dict, self._sql.execute(f"SELECT * FROM {view}"))


@lru_cache(maxsize=100)
def _parsed(text: str) -> RobotsTxt:
    return RobotsTxt.parse(text.encode())


class _FirstFive:
    """An aggregate of SQLite, which calls it: up to five different texts, as a JSON array."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def step(self, text: str | None) -> None:
        if text is not None and len(self._texts) < 5 and text not in self._texts:
            self._texts.append(text)

    def finalize(self) -> str:
        return msgspec.json.encode(self._texts).decode()
