"""Entries in a SQLite file: for one crawl after another, and for several on one machine.

One thread holds the one connection. Each change is one transaction in the write-ahead log, so that
a process that is killed leaves what it had changed, and no half of anything; readers and the one
writer do not wait for each other, and writers wait for each other for the time of one change.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from .entry import VERSION, Entry, decode, encode
from .store import StoreError
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID = 0x5245_5053
"""Tells a store from any other database. It is in the header of the file."""

BUSY_TIMEOUT = 5.0
"""Seconds that a change waits for those of other processes."""

LONGEST_WAIT = 86_400.0
"""Seconds: a turn that is further off was given before the clock was set back."""

_SCHEMA = """
CREATE TABLE entries (origin TEXT PRIMARY KEY, kept_at REAL NOT NULL, entry BLOB NOT NULL);
CREATE INDEX entries_kept_at ON entries (kept_at);
CREATE TABLE claims (origin TEXT PRIMARY KEY, token TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE turns (host TEXT PRIMARY KEY, next_at REAL NOT NULL)
"""

_PUT = """
INSERT INTO entries VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET kept_at = excluded.kept_at, entry = excluded.entry
"""

# No more than a few with each change: no transaction is ever long.
_FORGET = """
DELETE FROM entries WHERE origin IN (SELECT origin FROM entries WHERE kept_at < ? LIMIT 3)
"""

_CLAIM = """
INSERT INTO claims VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET token = excluded.token, until = excluded.until
WHERE until <= ? OR token = excluded.token
"""

_TURN = """
INSERT INTO turns VALUES (?, ?)
ON CONFLICT (host) DO UPDATE SET next_at = excluded.next_at WHERE next_at NOT BETWEEN ? AND ?
"""


class _UnusableError(Exception):
    """The file is a store, but not one that can be used."""


class SQLiteStore:
    """The store in the file ``path``.

    ``keep``: seconds after which an entry is forgotten. ``ours``: nobody else's file can be there,
    so that whatever cannot be read there was a store. ``now``: seconds since 1970.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        keep: float,
        shared: bool = True,
        ours: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.shared = shared
        self._path = Path(path).absolute()  # wherever the process goes
        self._keep = keep
        self._ours = ours
        self._now = now
        self._token = uuid4().hex
        self._threads = Threads(1)
        self._connection: sqlite3.Connection | None = None
        self._read_only = False

    def open(self) -> None:
        with self._errors():
            self._connected()

    async def close(self) -> None:
        await self._threads.close(self._disconnect)

    async def get(self, origin: str) -> Entry | None:
        return await self._run(self._get, origin)

    async def put(self, origin: str, entry: Entry) -> None:
        await self._run(self._put, origin, entry)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        return await self._run(self._claim, origin, seconds)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin)

    async def turn(self, host: str, seconds: float) -> float:
        return await self._run(self._turn, host, seconds)

    # In the thread.

    def _get(self, db: sqlite3.Connection, origin: str) -> Entry | None:
        row = db.execute("SELECT entry FROM entries WHERE origin = ?", (origin,)).fetchone()
        if row is None:
            return None
        try:
            return decode(row[0])
        except ValueError:  # damaged: as if it were not there
            return None

    def _put(self, db: sqlite3.Connection, origin: str, entry: Entry) -> None:
        if self._read_only:
            return
        now = self._now()
        octets = encode(entry)
        with _change(db):
            db.execute(_PUT, (origin, now, octets))
            db.execute(_FORGET, (now - self._keep,))

    def _claim(
        self, db: sqlite3.Connection, origin: str, seconds: float
    ) -> tuple[bool, Entry | None]:
        if self._read_only:
            return True, self._get(db, origin)
        now = self._now()
        with _change(db):
            claim = db.execute(_CLAIM, (origin, self._token, now + seconds, now))
            return claim.rowcount > 0, self._get(db, origin)

    def _release(self, db: sqlite3.Connection, origin: str) -> None:
        if not self._read_only:
            db.execute("DELETE FROM claims WHERE origin = ? AND token = ?", (origin, self._token))

    def _turn(self, db: sqlite3.Connection, host: str, seconds: float) -> float:
        if self._read_only:
            return 0
        now = self._now()
        with _change(db):
            turn = db.execute(_TURN, (host, now + seconds, now, now + LONGEST_WAIT))
            if turn.rowcount > 0:
                return 0
            (next_at,) = db.execute("SELECT next_at FROM turns WHERE host = ?", (host,)).fetchone()
        return max(float(next_at) - now, 0.001)

    async def _run(self, act: Callable[..., T], *arguments: object) -> T:
        return await self._threads.run(self._act, act, *arguments)

    def _act(self, act: Callable[..., T], *arguments: object) -> T:
        with self._errors():
            return act(self._connected(), *arguments)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self._disconnect()
            # Not one of its subclasses: SQLITE_CORRUPT and SQLITE_NOTADB.
            broken = type(error) is sqlite3.DatabaseError
            if broken and (self._ours or _is_ours(self._path)):
                with suppress(OSError):
                    self._set_aside(str(error))
            raise StoreError(f"{self._path}: {error}") from error

    # The connection.

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except _UnusableError as why:
                self._set_aside(str(why))
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._read_only = self._path.exists() and not os.access(self._path, os.W_OK)
        how = ""
        if self._read_only:
            # Who reads the log writes to the files beside it; where there are none, nobody writes.
            in_use = self._path.with_name(f"{self._path.name}-wal").exists()
            how = "?mode=ro" if in_use else "?mode=ro&immutable=1"
        connection = sqlite3.connect(
            self._path.as_uri() + how,
            uri=True,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, db: sqlite3.Connection) -> None:
        wanted = int.from_bytes(VERSION, "big")
        application, version = _header(db)
        if application not in (0, APPLICATION_ID):
            raise sqlite3.OperationalError("this is the database of another application")
        if application == APPLICATION_ID and version != wanted:
            db.execute("PRAGMA journal_mode = DELETE")  # fails while another version uses it
            raise _UnusableError(f"it is of version {version}, not {wanted}")
        if self._read_only:
            logger.warning(
                "The store %(path)s cannot be written: what it holds is used, nothing is added.",
                {"path": self._path},
            )
            return
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        if application == 0:
            with _change(db):
                self._create(db, wanted)
        with _change(db):
            now = self._now()
            db.execute("DELETE FROM claims WHERE until <= ?", (now,))
            db.execute("DELETE FROM turns WHERE next_at <= ?", (now,))

    def _create(self, db: sqlite3.Connection, version: int) -> None:
        if _header(db)[0] == APPLICATION_ID:  # by another process, just now
            return
        if db.execute("SELECT 1 FROM sqlite_master").fetchone():
            raise sqlite3.OperationalError("this is the database of another application")
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _set_aside(self, why: str) -> None:
        aside = self._path.with_name(f"{self._path.name}.aside-{time.time_ns()}")
        for suffix in ("", "-wal", "-shm"):
            file = self._path.with_name(self._path.name + suffix)
            if file.exists():
                file.replace(aside.with_name(aside.name + suffix))
        logger.warning(
            "The store %(path)s cannot be used (%(why)s): it is now %(aside)s, and a new one is "
            "begun.",
            {"path": self._path, "why": why, "aside": aside},
        )


@contextmanager
def _change(db: sqlite3.Connection) -> Iterator[None]:
    """One transaction, the writer's from its start."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _header(db: sqlite3.Connection) -> tuple[int, int]:
    """The application and the version of a database."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(application), int(version)


def _is_ours(path: Path) -> bool:
    # https://www.sqlite.org/fileformat2.html#the_database_header: the application at offset 68.
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    return header[:16] == b"SQLite format 3\0" and header[68:72] == APPLICATION_ID.to_bytes(
        4, "big"
    )
