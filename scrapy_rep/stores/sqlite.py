"""Entries in a SQLite file, for crawls on one machine, or in the memory of a process.

A file that is damaged, of another version or of another application stays as it is. One thread uses
the one connection. Each change is one transaction in the write-ahead log: a killed process leaves
complete changes only, and readers do not wait for the one writer.

The processes use the machine's clock, which a user may set. So a lease (claim or reservation) is
valid only from the time when it was made, and for at most :data:`~.base.MAX_LEASE` seconds.
"""

from __future__ import annotations

import math
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import ClassVar, TypeAlias, TypeVar
from uuid import uuid4

from .base import MAX_LEASE, MAX_RETRY, MIN_RETRY, Claim, StoreError
from .entry import ENTRY_LIMIT, VERSION, Entry, encode
from .threaded import ThreadedStore, decoded

T = TypeVar("T")
Now: TypeAlias = Callable[[], float]

APPLICATION_ID = 0x5245_5053  # "REPS" in ASCII, in the header of the file
_VERSION = int.from_bytes(VERSION, "big")

BUSY_TIMEOUT = 5.0
"""Seconds that a change waits for the changes of other processes: the default of Python."""

CLOCK_TOLERANCE = 5.0
"""Seconds by which the clock may be set back without an effect on leases. One that starts later in
the future was made before the clock was set back, and has expired."""

MAX_MEMORY = 64 * 2**20  # bytes of a store in memory: some 40,000 files of average size

_TABLES = (
    "CREATE TABLE entries (origin TEXT PRIMARY KEY, kept_at REAL NOT NULL, entry BLOB NOT NULL, "
    "fence INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX entries_kept_at ON entries (kept_at)",
    # Claims by origin, and reservations by host. SQLite never uses a number a second time.
    "CREATE TABLE leases (fence INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, "
    "token TEXT NOT NULL, since REAL NOT NULL, until REAL NOT NULL)",
    # The fences are greater than those of a file that this one replaces, which a crawler may have.
    "INSERT INTO sqlite_sequence VALUES ('leases', CAST(:now * 1000 AS INTEGER))",
    f"PRAGMA user_version = {_VERSION}",
    f"PRAGMA application_id = {APPLICATION_ID}",
)

_GET = """
SELECT entry FROM entries WHERE origin = ? AND typeof(entry) = 'blob' AND length(entry) <= ?
"""

_ALL = """
SELECT CAST(origin AS BLOB), CASE WHEN typeof(entry) = 'blob' AND length(entry) <= ? THEN entry END
FROM entries WHERE typeof(origin) = 'text'
"""

# A fence of another type than an integer is that of another program, and is ignored.
_PUT = """
INSERT INTO entries VALUES (:origin, :now, :entry, coalesce(:fence, 0))
ON CONFLICT (origin) DO UPDATE
SET kept_at = :now, entry = excluded.entry, fence = coalesce(:fence, fence)
WHERE :fence IS NULL OR typeof(fence) <> 'integer' OR fence <= :fence
"""

# At most 3 with each put, so that each transaction is short.
_DELETE_EXPIRED = """
DELETE FROM entries WHERE origin IN (SELECT origin FROM entries WHERE kept_at < ? LIMIT 3)
"""

# Whether a lease is valid. False also for values that are not numbers.
_IS_VALID = f"""
until > :now AND since <= :now + {CLOCK_TOLERANCE} AND until <= :now + {MAX_LEASE + CLOCK_TOLERANCE}
"""
_DELETE_INVALID = f"DELETE FROM leases WHERE NOT ({_IS_VALID})"
_DELETE_OWN = f"DELETE FROM leases WHERE name = :name AND (token = :token OR NOT ({_IS_VALID}))"
_LEASE = "INSERT OR IGNORE INTO leases VALUES (NULL, :name, :token, :now, :until)"
_RELEASE = "DELETE FROM leases WHERE name = ? AND token = ?"
_RELEASE_HOST = f"""
UPDATE leases SET token = '', since = :now, until = :until
WHERE name = :name AND token = :token AND {_IS_VALID}
"""

_EVICT = (
    _DELETE_INVALID,
    "DELETE FROM entries WHERE origin IN (SELECT origin FROM entries ORDER BY kept_at "
    "LIMIT (SELECT count(*) / 20 + 1 FROM entries))",
)


class SQLiteStore(ThreadedStore):
    """The store in the file ``path``.

    ``ttl``: seconds after which an entry expires. Without ``shared``, only one crawler uses the
    file. ``now`` returns seconds since 1970.
    """

    def __init__(
        self, path: Path | str, *, ttl: float, shared: bool = True, now: Now = time.time
    ) -> None:
        super().__init__(threads=1)
        self.shared = shared
        self._path = Path(path).absolute()  # the process may change its directory
        self._ttl = ttl
        self._now = now
        self._token = uuid4().hex
        self._connection: sqlite3.Connection | None = None

    def open(self) -> None:
        try:
            self._call(self._connect)
        except StoreError as error:
            # The other process will release it. The next call tries again.
            if str(error.__cause__) != "database is locked":
                raise

    # Blocking methods

    def _get(self, origin: str) -> Entry | None:
        row = self._connect().execute(_GET, (origin, ENTRY_LIMIT)).fetchone()
        return None if row is None else decoded(row[0])

    def _put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        db, now = self._connect(), self._now()
        values = {"origin": origin, "now": now, "entry": encode(entry), "fence": fence}
        with _transaction(db):
            is_stored = db.execute(_PUT, values).rowcount > 0
            db.execute(_DELETE_EXPIRED, (now - self._ttl,))
        return is_stored

    def _claim(self, origin: str, seconds: float) -> Claim:
        with _transaction(self._connect()) as db:
            seconds_left, fence = self._lease(db, origin, seconds)
            return Claim(not seconds_left, self._get(origin), fence)

    def _release(self, origin: str) -> None:
        self._connect().execute(_RELEASE, (origin, self._token))

    def _reserve_host(self, host: str, lease: float) -> float:
        with _transaction(self._connect()) as db:
            return self._lease(db, host, lease)[0]

    def _release_host(self, host: str, delay: float) -> None:
        self._connect().execute(_RELEASE_HOST, self._parameters(host, delay))

    def _lease(self, db: sqlite3.Connection, name: str, seconds: float) -> tuple[float, int]:
        """Make or renew a lease. Returns the seconds to wait, 0 if it is made, and its fence."""
        values = self._parameters(name, seconds)
        db.execute(_DELETE_OWN, values)
        is_granted = db.execute(_LEASE, values).rowcount > 0
        query = "SELECT until - :now, fence FROM leases WHERE name = :name"
        left, fence = db.execute(query, values).fetchone()
        return 0 if is_granted else min(max(left, MIN_RETRY), MAX_RETRY), fence

    def _parameters(self, name: str, seconds: float) -> dict[str, str | float]:
        """Return the parameters of a statement that makes or ends a lease."""
        now, duration = self._now(), min(seconds, MAX_LEASE)
        return {"name": name, "token": self._token, "now": now, "until": now + duration}

    def _entries(self) -> Iterator[tuple[str, bytes | None]]:
        for origin, data in self._connect().execute(_ALL, (ENTRY_LIMIT,)):
            yield origin.decode("utf-8", "replace"), data

    def count(self) -> int:
        query = "SELECT count(*) FROM entries WHERE typeof(origin) = 'text'"
        with self._errors():
            return int(self._connect().execute(query).fetchone()[0])

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self.disconnect()
            raise StoreError(f"{self._path}: {error}") from error

    def disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _connect(self) -> sqlite3.Connection:
        """Return the connection. Open it first, if there is none."""
        if self._connection is None:
            self._create_file()
            db = self._connection = sqlite3.connect(
                self._path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            if _is_new(db):
                _turn_on_write_ahead_log(db)
            db.execute("PRAGMA synchronous = NORMAL")
            now = self._now()
            with _transaction(db):
                if _is_new(db):  # another process may have made the tables meanwhile
                    _create_tables(db, now)
                db.execute(_DELETE_INVALID, {"now": now})
        return self._connection

    def _create_file(self) -> None:
        """Create the file with mode 0600, unless it exists. SQLite gives those beside it the same.

        SQLite would create it readable for all users, and through a symbolic link: in a folder that
        others can write to, a link of theirs would make the crawl write to any file of its user.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with suppress(FileExistsError):
            os.close(os.open(self._path, flags, 0o600))
        if not stat.S_ISREG(self._path.lstat().st_mode):
            raise StoreError(f"{self._path} is not a regular file, such as a symbolic link")


class MemoryStore(SQLiteStore):
    """One crawler's view of the store ``name`` in the memory of this process, or of a new one.

    The data stays until the process ends. If it exceeds :data:`MAX_MEMORY`, the entries that were
    put first are evicted. A call uses no thread. ``now`` returns seconds and never goes backward.
    """

    databases: ClassVar[dict[str, sqlite3.Connection]] = {}
    """The data by name. The crawlers of a process may run in several threads: hold ``_lock``."""
    _lock = RLock()

    def __init__(
        self, name: str | None = None, *, ttl: float = math.inf, now: Now = time.monotonic
    ) -> None:
        self._name = name or uuid4().hex
        super().__init__(self._name, ttl=ttl, now=now)

    async def close(self) -> None:
        """Do nothing: other stores may use the data."""

    async def _run(self, method: Callable[..., T], *arguments: object) -> T:
        return self._call(method, *arguments)

    def _call(self, method: Callable[..., T], *arguments: object) -> T:
        with self._lock:
            return super()._call(method, *arguments)

    def _put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        is_stored = super()._put(origin, entry, fence)
        db, now = self._connect(), {"now": self._now()}
        while _size(db) > MAX_MEMORY and any(db.execute(each, now).rowcount for each in _EVICT):
            pass
        return is_stored

    def _connect(self) -> sqlite3.Connection:
        if self._name not in self.databases:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            _create_tables(db, self._now())
            self.databases[self._name] = db
        return self.databases[self._name]


def _turn_on_write_ahead_log(db: sqlite3.Connection) -> None:
    """Turn it on. SQLite does not wait if another process does so at the same time."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _transaction(db: sqlite3.Connection) -> sqlite3.Connection:
    """Lock the database for other writers. A ``with`` of the result commits or rolls back."""
    db.execute("BEGIN IMMEDIATE")
    return db


def _size(db: sqlite3.Connection) -> int:
    """Return the bytes that the data of a database takes."""
    names = ("page_size", "page_count", "freelist_count")
    size, count, free = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int(size * (count - free))


def _is_new(db: sqlite3.Connection) -> bool:
    """Return whether a database is empty. Raises an error if it is not a store of this version."""
    query = (
        "SELECT application_id, user_version, EXISTS (SELECT 1 FROM sqlite_master) "
        "FROM pragma_application_id, pragma_user_version"
    )
    application, version, has_tables = db.execute(query).fetchone()
    is_store = (application, version) == (APPLICATION_ID, _VERSION)
    if not is_store and (application or version or has_tables):
        raise sqlite3.OperationalError(
            "it is another database, or a store of another version: choose another path"
        )
    return not is_store


def _create_tables(db: sqlite3.Connection, now: float) -> None:
    for statement in _TABLES:
        db.execute(statement, {"now": now})
