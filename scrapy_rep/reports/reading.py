"""Reads event logs and JSON reports."""

from __future__ import annotations

import gzip
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .events import Event, RunEvent
from .queries import Database
from .records import VERSION, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAX_LINE = 1 << 20
"""Octets of one line of an event log. A crawl writes shorter ones."""

MAX_DAMAGED = 1_000
"""Lines that cannot be read, after which a log is not read any further."""

_GZIP = b"\x1f\x8b"

_UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)

_decode = msgspec.json.Decoder(Event).decode


class ReportError(ValueError):
    """A file cannot be used for a report. The message names the file."""


def read_reports(
    paths: Sequence[str | Path],
    note: Callable[[str], object] = lambda _: None,
    *,
    skip: bool = False,
) -> Report:
    """Return the report of one or more event logs, or of one JSON report.

    ``note`` gets a sentence for each file that is damaged, and for each that is not used because
    another file has the same run. With ``skip``, it gets the files that are no event log, too.
    Raises :class:`ReportError`.
    """
    if not paths:
        raise ReportError("there is no file to read")
    if len(paths) == 1 and not _is_log(paths[0]):
        return _read_json(paths[0])
    try:
        with closing(Database()) as database:
            known: set[str] = set()
            for path in paths:
                try:
                    _add(database, path, known, note)
                except ReportError as error:
                    if not skip:
                        raise
                    note(str(error))
            return database.report()
    except (sqlite3.Error, msgspec.MsgspecError) as error:
        raise ReportError(f"the events make no report: {error}") from None


def _add(
    database: Database, path: str | Path, known: set[str], note: Callable[[str], object]
) -> None:
    if not _is_log(path):
        raise ReportError(
            f"{path} is not an event log: one report of several crawls is made of their event "
            "logs, which are beside their reports (.events.gz)"
        )
    log = _Log(path)
    events = iter(log)
    first = next(events, None)
    if not isinstance(first, RunEvent):
        raise ReportError(f"{path} is no report of a crawl: it is not an event log")
    if first.run.id in known:
        note(f"{path} is not used: another file has the same run")
        return
    known.add(first.run.id)
    run = database.add(first.run, events)
    if log.damage is not None:
        run.damage = log.damage
    if run.damage is not None:
        note(f"{path} is damaged: {run.damage}. The rest of it is used")


class _Log:
    """The events of a file. Iterating over it raises ReportError for a file that cannot be read."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self.damage: str | None = None
        """What cannot be read, when all events are read."""

    def __iter__(self) -> Iterator[Event]:
        damaged: list[int] = []
        number = 0
        try:
            with gzip.open(self._path) as file:
                for line in iter(lambda: file.readline(MAX_LINE), b""):
                    number += 1
                    try:
                        event = _decode(line)
                    except _UNREADABLE:
                        damaged.append(number)
                        if len(damaged) > MAX_DAMAGED:
                            raise zlib.error("too many lines cannot be read") from None
                    else:
                        yield event
        except (OSError, EOFError, zlib.error) as error:
            if number == 0 and isinstance(error, OSError):
                raise ReportError(f"cannot read {self._path}: {_problem(error)}") from None
            self.damage = f"the end after line {number:,} cannot be read"
        else:
            if damaged:
                more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
                self.damage = f"line {damaged[0]:,}{more} cannot be read"


def _is_log(path: str | Path) -> bool:
    """Whether a file begins as an event log. Raises ReportError."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(_GZIP)) == _GZIP
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ReportError(f"cannot read {path}: {_problem(error)}") from None


def _read_json(path: str | Path) -> Report:
    octets = Path(path).read_bytes()
    try:
        return msgspec.json.decode(octets, type=Report)
    except _UNREADABLE as error:
        raise ReportError(f"{path} is no report of a crawl in version {VERSION}: {error}") from None


def _problem(error: Exception) -> str:
    problem = error.strerror if isinstance(error, OSError) else None
    return problem or str(error)
