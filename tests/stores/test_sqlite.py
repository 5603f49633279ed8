"""The SQLite file: damaged, full, read-only, of another program, of several processes."""

from __future__ import annotations

import fcntl
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry, StoreError
from scrapy_rep.stores.base import MAX_RETRY
from scrapy_rep.stores.registry import open_store
from scrapy_rep.stores.sqlite import APPLICATION_ID, SQLiteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
ENTRY = Entry(
    AccessResult.RULES, 1, 2, 3, b"User-agent: *\n", CopyInfo("https://a.example/robots.txt")
)
ORIGIN = "https://a.example"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.db"


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, octets: bytes) -> None:
    path.write_bytes(octets)


def child(function: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.children", function, str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out


def store(path: Path) -> SQLiteStore:
    return SQLiteStore(path, ttl=60)


def test_a_killed_process_leaves_complete_entries(path: Path) -> None:
    assert int(output(child("killed", path))) > 25


def test_a_full_disk_keeps_the_entries(path: Path) -> None:
    output(child("full", path))


def test_a_read_only_file_is_an_error() -> None:
    with tempfile.TemporaryDirectory() as folder:  # that other users can read
        Path(folder).chmod(0o755)
        output(child("read_only", Path(folder, "robots.db")))


def test_several_processes_create_one_file_together(path: Path) -> None:
    processes = [child("many", path) for _ in range(4)]
    assert sum(int(output(process)) for process in processes) == 200


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Lock a folder, as a process does that opens a store there. Yields what unlocks it."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        yield stack.close


def test_opening_waits_for_another_process_that_opens_a_store(path: Path) -> None:
    with locked(path.parent) as unlock:
        timer = threading.Timer(0.2, unlock)
        timer.start()
        opened = store(path)
        opened.open()
        timer.join()
    opened.disconnect()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_folder_that_stays_locked_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.sqlite.BUSY_TIMEOUT", 0.1)
    with locked(path.parent), pytest.raises(StoreError, match="keeps its folder locked"):
        store(path).open()
    assert not path.exists()


def test_a_file_that_stays_locked_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.stores.sqlite.BUSY_TIMEOUT", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            store(path).open()


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    write(path, b"")
    opened = store(path)
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) == ENTRY
    await opened.close()


def of_another_version(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("PRAGMA user_version = 7")
        db.execute("CREATE TABLE entries (something)")
    db.close()


def damaged(path: Path) -> None:
    """Damage everything but the header."""
    opened = store(path)
    opened.open()
    opened.disconnect()
    octets = path.read_bytes()
    path.write_bytes(octets[:100] + random.Random(1).randbytes(len(octets) - 100))


@pytest.mark.parametrize("make", [of_another_version, damaged])
async def test_an_unusable_store_is_renamed(
    path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    make(path)
    before = read(path)
    opened = store(path)
    try:
        opened.open()
    except StoreError:  # noticed after the file was opened: the next call creates a new one
        opened.open()
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) == ENTRY
    (aside,) = (file for file in path.parent.iterdir() if "aside" in file.name)
    assert aside.read_bytes()[100:] == before[100:]
    (warning,) = caplog.records
    assert str(path) in warning.getMessage()
    assert str(aside) in warning.getMessage()
    await opened.close()


async def test_a_store_that_two_processes_find_unusable_is_renamed_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other opens it just after this one has read its version."""
    of_another_version(path)
    one, other = store(path), store(path)
    late = threading.Thread(target=other.open)

    def overtaken(db: sqlite3.Connection) -> int:
        monkeypatch.undo()
        late.start()
        late.join(0.3)  # without the lock, the other has renamed the file by then
        return 7

    monkeypatch.setattr("scrapy_rep.stores.sqlite._version", overtaken)
    one.open()
    late.join()
    await one.put(ORIGIN, ENTRY)
    assert await other.get(ORIGIN) == ENTRY
    assert len([file for file in path.parent.iterdir() if "aside" in file.name]) == 1
    await one.close()
    await other.close()


async def test_a_damage_that_two_processes_find_renames_the_file_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, one, other = (store(path) for _ in range(3))
    await first.put(ORIGIN, ENTRY)
    await first.close()
    one.open()
    other.open()
    for opened in (one, other):
        with pytest.raises(StoreError, match="malformed"), opened._errors():
            raise sqlite3.DatabaseError("malformed")
        await opened.put(ORIGIN, ENTRY)
    assert await one.get(ORIGIN) == ENTRY
    assert ["is renamed" in record.getMessage() for record in caplog.records] == [True]
    await one.close()
    await other.close()


def test_a_store_of_another_version_that_is_in_use_is_not_renamed(path: Path) -> None:
    of_another_version(path)
    user = sqlite3.connect(path)
    user.execute("PRAGMA journal_mode = WAL")
    user.execute("INSERT INTO entries VALUES (1)")
    user.commit()
    user.execute("BEGIN IMMEDIATE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scrapy_rep.stores.sqlite.BUSY_TIMEOUT", 0.1)
        with pytest.raises(StoreError, match="locked"):
            store(path).open()
    user.execute("COMMIT")
    user.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def of_another_application(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA application_id = 1")
        db.execute("CREATE TABLE precious (something)")
    db.close()


def of_an_application_without_a_name(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE precious (something)")
    db.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"Precious words.\n" * 1000)


@pytest.mark.parametrize(
    "make", [of_another_application, of_an_application_without_a_name, no_database]
)
async def test_a_file_that_is_not_a_store_is_not_changed(
    path: Path, make: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    make(path)
    opened = open_store(f"sqlite:///{path}", jobdir=None, ttl=60)
    assert opened is not None
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) is None
    await opened.close()
    (warning,) = caplog.records
    assert str(path) in warning.getMessage()
    if make is no_database:
        assert read(path) == b"Precious words.\n" * 1000
    else:
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("precious",)]
        db.close()


async def test_any_unreadable_file_in_a_jobdir_is_a_damaged_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "robotstxt.sqlite"
    no_database(path)
    opened = open_store(None, jobdir=str(tmp_path), ttl=60)
    assert opened is not None
    await opened.close()
    assert "a new store is created" in caplog.records[0].getMessage()
    assert not path.exists()


@pytest.mark.parametrize("days", [30, 0.01], ids=["30 days", "a quarter of an hour"])
async def test_leases_expire_when_the_clock_is_set_back(path: Path, days: float) -> None:
    now = 1e9 + days * 86_400
    ahead, opened = (SQLiteStore(path, ttl=60, now=lambda: now) for _ in range(2))
    assert (await ahead.claim(ORIGIN, 90))[:2] == (True, None)
    assert await ahead.reserve_host("a.example", 90) == 0
    assert await ahead.reserve_host("b.example", 90) == 0
    await ahead.release_host("b.example", 90)
    now -= 1  # a small correction
    assert not (await opened.claim(ORIGIN, 90))[0]
    assert await opened.reserve_host("a.example", 90) == MAX_RETRY
    now = 1e9
    assert (await opened.claim(ORIGIN, 90))[:2] == (True, None)
    for host in ("a.example", "b.example"):
        assert await opened.reserve_host(host, 90) == 0
        await ahead.release_host(host, 90)
        assert await opened.reserve_host(host, 90) == 0
    await ahead.release(ORIGIN)
    assert not (await ahead.claim(ORIGIN, 90))[0]
    await ahead.close()
    await opened.close()


@pytest.mark.parametrize("until", ["'never'", "9e18", "x'ff'", "9e999"])
async def test_a_lease_with_an_invalid_end_is_ignored(path: Path, until: str) -> None:
    opened = store(path)
    opened.open()
    with sqlite3.connect(path) as db:
        db.execute(f"INSERT INTO claims VALUES ('{ORIGIN}', 'theirs', 0, {until}, 1)")
        db.execute(f"INSERT INTO hosts VALUES ('a.example', 'theirs', 0, {until})")
        db.execute(f"INSERT INTO hosts VALUES ('b.example', 'theirs', {until}, 1e9)")
    db.close()
    assert (await opened.claim(ORIGIN, 90))[0]
    assert await opened.reserve_host("a.example", 90) == 0
    assert await opened.reserve_host("b.example", 90) == 0
    await opened.close()


@pytest.mark.parametrize("entry", ["'text'", "1", "zeroblob(2000000)", "zeroblob(5)", "x'0100'"])
async def test_an_invalid_entry_counts_as_missing(path: Path, entry: str) -> None:
    opened = store(path)
    opened.open()
    with sqlite3.connect(path) as db:
        db.execute(f"INSERT INTO entries VALUES ('{ORIGIN}', 0, {entry}, 'x')")
    db.close()
    assert await opened.get(ORIGIN) is None
    assert (await opened.claim(ORIGIN, 1))[:2] == (True, None)
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) == ENTRY
    await opened.close()


@pytest.mark.parametrize("fence", ["'x'", "1.5", "x'ff'", "9e999"])
async def test_a_claim_with_an_invalid_fence_is_valid(path: Path, fence: str) -> None:
    opened = store(path)
    opened.open()
    values = f"'{ORIGIN}', 'theirs', {time.time()}, {time.time() + 60}, {fence}"
    with sqlite3.connect(path) as db:
        db.execute(f"INSERT INTO claims VALUES ({values})")
    db.close()
    assert await opened.claim(ORIGIN, 90) == (False, None, 0)
    await opened.close()


async def test_an_origin_that_is_not_utf_8_does_not_end_the_entries(path: Path) -> None:
    opened = store(path)
    await opened.put(ORIGIN, ENTRY)
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO entries VALUES (CAST(x'ff61' AS TEXT), 0, x'00', 0)")
    db.close()
    assert dict(opened.entries()) == {ORIGIN: ENTRY, "\N{REPLACEMENT CHARACTER}a": None}
    await opened.close()


# The owner and the mode of the file


@pytest.mark.parametrize("existing", [None, 0o640])
async def test_only_the_owner_can_read_a_new_file(path: Path, existing: int | None) -> None:
    mask = os.umask(0)
    try:
        if existing is not None:
            os.close(os.open(path, os.O_CREAT, existing))
        opened = store(path)
        await opened.put(ORIGIN, ENTRY)
    finally:
        os.umask(mask)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    names = ("robots.db", "robots.db-wal", "robots.db-shm")
    assert modes == dict.fromkeys(names, existing or 0o600)
    await opened.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_is_refused(path: Path, suffix: str, there: bool) -> None:
    target = path.with_name("precious")
    if there:
        write(target, b"Precious words.")
    path.with_name(path.name + suffix).symlink_to(target)
    with pytest.raises(StoreError, match="symbolic link"):
        store(path).open()
    assert target.exists() is there
    if there:
        assert read(target) == b"Precious words."


def test_a_link_that_replaces_the_file_during_opening_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = path.with_name("theirs")
    connect = sqlite3.connect

    def late(*arguments: Any, **options: Any) -> Any:
        path.unlink()
        path.symlink_to(target)
        connection = connect(*arguments, **options)
        path.unlink()
        return connection

    monkeypatch.setattr("scrapy_rep.stores.sqlite.sqlite3.connect", late)
    with pytest.raises(StoreError, match="symbolic link"):
        store(path).open()
    assert read(target) == b"", "nothing was written"


async def test_the_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    opened = store(tmp_path / "link" / "robots.db")
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) == ENTRY
    await opened.close()


def test_a_file_that_is_not_regular_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreError, match="regular"):
        store(path).open()


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing/robots.db", "no folder"), (".", "folder"), ("robotstxt.sqlite", "symbolic link")],
)
def test_open_store_refuses_a_path_that_cannot_be_a_file(
    tmp_path: Path, name: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "robotstxt.sqlite").symlink_to("elsewhere.db")
    with pytest.raises(StoreError, match=message):
        open_store(f"sqlite:///{tmp_path}/{name}", jobdir=None, ttl=60)
    assert open_store(None, jobdir=str(tmp_path), ttl=60) is not None
    assert "symbolic link" in caplog.records[0].getMessage()
    assert not (tmp_path / "elsewhere.db").exists()


def test_without_a_url_and_a_jobdir_there_is_no_store() -> None:
    assert open_store(None, jobdir=None, ttl=60) is None
