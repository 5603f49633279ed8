"""Entries in a SQLite file: for one crawl after another, and for several on one machine.

The file is its owner's alone, and no symbolic link. One thread holds the one connection. Each
change is one transaction in the write-ahead log, so that a process that is killed leaves what it
had changed, and no half of anything; readers and the one writer do not wait for each other, and
writers wait for each other for the time of one change.

The processes have a clock in common, the machine's, which may be set. So a claim and a reservation
hold from when they were made, not before, and for :data:`~.store.MAX_LEASE` at most.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from .base import MAX_LEASE, MAX_RETRY, StoreError
from .entry import OCTETS_LIMIT, VERSION, Entry, decode, encode
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID = 0x5245_5053
"""Tells a store from any other database. It is in the header of the file."""

BUSY_TIMEOUT = 5.0
"""Seconds that a change waits for those of other processes."""

CLOCK_STEP = 5.0
"""Seconds by which the clock may be corrected without anything being lost. What was begun later
than that was begun before the clock was set back, and is over."""

_SCHEMA = """
CREATE TABLE entries (origin TEXT PRIMARY KEY, kept_at REAL NOT NULL, entry BLOB NOT NULL);
CREATE INDEX entries_kept_at ON entries (kept_at);
CREATE TABLE claims (
    origin TEXT PRIMARY KEY, token TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL
);
CREATE TABLE hosts (
    host TEXT PRIMARY KEY, token TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL
)
"""

_GET = """
SELECT entry FROM entries WHERE origin = ? AND typeof(entry) = 'blob' AND length(entry) <= ?
"""

_PUT = """
INSERT INTO entries VALUES (?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET kept_at = excluded.kept_at, entry = excluded.entry
"""

# No more than a few with each change: no transaction is ever long.
_FORGET = """
DELETE FROM entries WHERE origin IN (SELECT origin FROM entries WHERE kept_at < ? LIMIT 3)
"""

# Whether a claim or a reservation holds. It is false, too, for what is no number.
_HOLDS = f"""
until > :now AND since <= :now + {CLOCK_STEP} AND until <= :now + {MAX_LEASE + CLOCK_STEP}
"""

_CLAIM = f"""
INSERT INTO claims VALUES (:origin, :token, :now, :until)
ON CONFLICT (origin) DO UPDATE SET token = :token, since = :now, until = :until
WHERE token = :token OR NOT ({_HOLDS})
"""

_RESERVED = f"SELECT until, token = :token AND {_HOLDS} FROM hosts WHERE host = :host"

_RESERVE = f"""
INSERT INTO hosts VALUES (:host, :token, :now, :until)
ON CONFLICT (host) DO UPDATE SET token = :token, since = :now, until = :until
WHERE token = :token OR NOT ({_HOLDS})
"""

_RELEASE_HOST = f"""
UPDATE hosts SET token = '', since = :now, until = :until
WHERE host = :host AND token = :token AND {_HOLDS}
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
        ttl: float,
        shared: bool = True,
        ours: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.shared = shared
        self._path = Path(path).absolute()  # wherever the process goes
        self._ttl = ttl
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
        await self._run(self._put, origin, entry, always=True)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        def undo(made: tuple[bool, Entry | None]) -> None:
            if made[0]:
                self._act(self._release, origin)

        return await self._run(self._claim, origin, seconds, undo=undo)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin, always=True)

    async def reserve_host(self, host: str, lease: float) -> float:
        def undo(made: tuple[float, bool]) -> None:
            if made[1]:
                self._act(self._release_host, host, 0)

        return (await self._run(self._reserve_host, host, lease, undo=undo))[0]

    async def release_host(self, host: str, delay: float) -> None:
        await self._run(self._release_host, host, delay, always=True)

    # In the thread.

    def _get(self, db: sqlite3.Connection, origin: str) -> Entry | None:
        row = db.execute(_GET, (origin, OCTETS_LIMIT)).fetchone()
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
            db.execute(_FORGET, (now - self._ttl,))

    def _claim(
        self, db: sqlite3.Connection, origin: str, seconds: float
    ) -> tuple[bool, Entry | None]:
        if self._read_only:
            return True, self._get(db, origin)
        _, values = self._from_now(seconds)
        with _change(db):
            claim = db.execute(_CLAIM, {**values, "origin": origin})
            return claim.rowcount > 0, self._get(db, origin)

    def _release(self, db: sqlite3.Connection, origin: str) -> None:
        if not self._read_only:
            db.execute("DELETE FROM claims WHERE origin = ? AND token = ?", (origin, self._token))

    def _reserve_host(self, db: sqlite3.Connection, host: str, lease: float) -> tuple[float, bool]:
        """The seconds to wait, and whether a reservation was made: none was renewed."""
        if self._read_only:
            return 0, False
        now, values = self._from_now(lease)
        values["host"] = host
        with _change(db):
            found = db.execute(_RESERVED, values).fetchone()
            if db.execute(_RESERVE, values).rowcount > 0:
                return 0, found is None or not found[1]
        return min(max(float(found[0]) - now, 0.001), MAX_RETRY), False

    def _release_host(self, db: sqlite3.Connection, host: str, delay: float) -> None:
        if not self._read_only:
            _, values = self._from_now(delay)
            db.execute(_RELEASE_HOST, {**values, "host": host})

    def _from_now(self, seconds: float) -> tuple[float, dict[str, object]]:
        """The time, and the values that say whose something is and how long it holds."""
        now = self._now()
        until = now + min(seconds, MAX_LEASE)
        return now, {"token": self._token, "now": now, "until": until}

    async def _run(
        self,
        act: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], object] | None = None,
        always: bool = False,
    ) -> T:
        return await self._threads.run(self._act, act, *arguments, undo=undo, always=always)

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
                    self._quarantine(str(error))
            raise StoreError(f"{self._path}: {error}") from error

    # The connection.

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except _UnusableError as why:
                self._quarantine(str(why))
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._begin_file()
        self._read_only = not os.access(self._path, os.W_OK)
        how = ""
        if self._read_only:
            # Who reads the log writes to the files beside it; where there are none, nobody writes.
            in_use = self._beside("-wal").exists()
            how = "?mode=ro" if in_use else "?mode=ro&immutable=1"
        connection = sqlite3.connect(
            self._path.as_uri() + how,
            uri=True,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            self._check_file(connection)
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_file(self) -> None:
        """Have a file that is its owner's alone, before SQLite makes one that is everybody's.

        It gives those beside it the same mode. A file that is there keeps its own. Where others
        may write to the folder, a symbolic link would have us write to any file of ours.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with suppress(FileExistsError):
            os.close(os.open(self._path, flags, 0o600))
        for suffix in ("", "-wal", "-shm", "-journal"):
            path = self._beside(suffix)
            with suppress(FileNotFoundError):
                mode = path.lstat().st_mode
                if stat.S_ISLNK(mode):
                    raise StoreError(f"{path} is a symbolic link, which a store may not be")
                if not stat.S_ISREG(mode):
                    raise StoreError(f"{path} is not a regular file")

    def _check_file(self, db: sqlite3.Connection) -> None:
        """That no link has come in its place meanwhile: SQLite says what it has opened."""
        opened = Path(db.execute("PRAGMA database_list").fetchone()[2])
        same_folder = opened.parent.samefile(self._path.parent)
        if opened.name != self._path.name or not same_folder:
            raise StoreError(f"{self._path} is a symbolic link, which a store may not be")

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
            for table in ("claims", "hosts"):
                db.execute(f"DELETE FROM {table} WHERE NOT ({_HOLDS})", {"now": now})

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

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)

    def _quarantine(self, why: str) -> None:
        aside = self._path.with_name(f"{self._path.name}.aside-{time.time_ns()}")
        for suffix in ("", "-wal", "-shm"):
            file = self._beside(suffix)
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
