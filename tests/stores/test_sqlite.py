"""The SQLite file: damaged, full, of another program, of several processes; and the memory."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry, StoreError
from scrapy_rep.stores.base import MAX_RETRY
from scrapy_rep.stores.registry import open_store
from scrapy_rep.stores.sqlite import APPLICATION_ID, MemoryStore, SQLiteStore, _size

ENTRY = Entry(
    AccessResult.SUCCESSFUL, 1, 2, 3, b"User-agent: *\n", CopyInfo("https://a.example/robots.txt")
)
ORIGIN = "https://a.example"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.db"


# In processes of their own, which call the blocking methods of a store

KILLS, MAX_LIFETIME = 25, 0.04


def entry(number: int) -> Entry:
    body = b"%d\n" % number * (number % 700)
    return Entry(AccessResult.SUCCESSFUL, number, number, number, body)


def opened_store(path: Path) -> SQLiteStore:
    opened = SQLiteStore(path, ttl=1e9)
    opened.open()
    return opened


def put(into: SQLiteStore, numbers: Iterable[int]) -> Iterator[tuple[int, bool]]:
    """Put entries, and yield their numbers and whether they were claimed."""
    for number in numbers:
        claimed = into._call(into._claim, str(number), 60)[0]
        into._call(into._put, str(number), entry(number))
        yield number, claimed


def everything(path: Path) -> dict[str, Entry | None]:
    opened = opened_store(path)  # SQLite rolls back incomplete changes
    assert opened._connect().execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = dict(opened.entries())
    opened.disconnect()
    return found


def in_processes(function: Callable[[Path], int], path: Path, number: int = 1) -> list[int]:
    """Call a function in processes at the same time, and return their results."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(number, context) as pool:
        return list(pool.map(function, [path] * number))


def kill(path: Path) -> int:
    """Kill processes that put entries. Returns how many were put."""
    chance, first = random.Random(1), 0
    for _ in range(KILLS):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            into = opened_store(path)
            for number, _ in put(into, range(first, first + 10**6)):
                os.write(writing, b"%d\n" % number)
                into._call(into._release, str(number))
        os.close(writing)
        with os.fdopen(reading) as acknowledged:
            lines = [acknowledged.readline()]
            time.sleep(chance.uniform(0, MAX_LIFETIME))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines += acknowledged
        found = everything(path)
        assert all(found[line.strip()] == entry(int(line)) for line in lines)
        assert found == {number: entry(int(number)) for number in found}
        first = max(map(int, found), default=-1) + 1
    return first


def test_a_killed_process_leaves_complete_entries(path: Path) -> None:
    (number,) = in_processes(kill, path)
    assert number >= KILLS, "each process has put one at least"


def fill(path: Path) -> int:
    """Put entries on a disk that is full. Returns how many were not put."""
    into, failed = opened_store(path), 0
    list(put(into, [1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    for number in range(2, 600):
        try:
            list(put(into, [number]))
        except StoreError:
            failed += 1
    assert into._call(into._get, "1") == entry(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    list(put(into, [600]))
    into.disconnect()
    return failed


def test_a_full_disk_keeps_the_entries(path: Path) -> None:
    (failed,) = in_processes(fill, path)
    assert failed
    found = everything(path)
    assert len(found) == 600 - failed
    assert found["600"] == entry(600)


def claim(path: Path) -> int:
    """Return how many of 200 origins this process claims."""
    return sum(claimed for _, claimed in put(opened_store(path), range(200)))


def test_several_processes_create_one_file_together(path: Path) -> None:
    assert sum(in_processes(claim, path, 4)) == 200


# A file that cannot be used


async def test_a_file_that_is_locked_at_the_start_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.sqlite.BUSY_TIMEOUT", 0.1)
    opened = SQLiteStore(path, ttl=60)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        opened.open()
        with pytest.raises(StoreError, match="locked"):
            await opened.get(ORIGIN)
    assert await opened.put(ORIGIN, ENTRY)
    await opened.close()


def change(path: Path, *statements: str) -> None:
    """Change the database as another program would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


VERSION_7 = (f"PRAGMA application_id = {APPLICATION_ID}", "PRAGMA user_version = 7")
TABLE = "CREATE TABLE precious (something)"


@pytest.mark.parametrize(
    "made",
    [(*VERSION_7, TABLE), ("PRAGMA application_id = 1", TABLE), (TABLE,), None, "damaged"],
    ids=["another version", "another application", "one without a name", "no database", "damaged"],
)
async def test_a_file_that_is_no_usable_store_is_not_changed(
    tmp_path: Path, made: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "robotstxt.sqlite"
    if made is None:
        path.write_bytes(b"Precious words.\n" * 1000)
    elif made == "damaged":  # everything but the header
        opened_store(path).disconnect()
        damaged = path.read_bytes()
        path.write_bytes(damaged[:100] + random.Random(1).randbytes(len(damaged) - 100))
    else:
        change(path, *made)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=re.escape(str(path))):
        open_store(f"sqlite:///{path}", jobdir=str(tmp_path), ttl=60)
    fallback = open_store(None, jobdir=str(tmp_path), ttl=60)
    assert fallback is not None
    await fallback.put(ORIGIN, ENTRY)
    assert await fallback.get(ORIGIN) is None
    await fallback.close()
    (warning,) = caplog.records
    assert str(path) in warning.getMessage()
    assert path.read_bytes() == before


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
    opened = opened_store(path)
    lease = "INSERT INTO leases VALUES"
    change(
        path,
        f"{lease} (1, '{ORIGIN}', 'theirs', 0, {until})",
        f"{lease} (2, 'a.example', 'theirs', 0, {until})",
        f"{lease} (3, 'b.example', 'theirs', {until}, 1e9)",
    )
    assert (await opened.claim(ORIGIN, 90))[0]
    assert await opened.reserve_host("a.example", 90) == 0
    assert await opened.reserve_host("b.example", 90) == 0
    await opened.close()


@pytest.mark.parametrize("entry", ["'text'", "1", "zeroblob(2000000)", "zeroblob(5)", "x'0100'"])
async def test_an_invalid_entry_counts_as_missing(path: Path, entry: str) -> None:
    opened = opened_store(path)
    change(path, f"INSERT INTO entries VALUES ('{ORIGIN}', 0, {entry}, 'x')")
    assert await opened.get(ORIGIN) is None
    assert (await opened.claim(ORIGIN, 1))[:2] == (True, None)
    await opened.put(ORIGIN, ENTRY)
    assert await opened.get(ORIGIN) == ENTRY
    await opened.close()


async def test_an_origin_that_is_not_utf_8_does_not_end_the_entries(path: Path) -> None:
    opened = opened_store(path)
    await opened.put(ORIGIN, ENTRY)
    change(path, "INSERT INTO entries VALUES (CAST(x'ff61' AS TEXT), 0, x'00', 0)")
    assert dict(opened.entries()) == {ORIGIN: ENTRY, "\N{REPLACEMENT CHARACTER}a": None}
    await opened.close()


# The owner and the mode of the file


@pytest.mark.parametrize("existing", [None, 0o640])
async def test_only_the_owner_can_read_a_new_file(path: Path, existing: int | None) -> None:
    mask = os.umask(0)
    try:
        if existing is not None:
            os.close(os.open(path, os.O_CREAT, existing))
        opened = SQLiteStore(path, ttl=60)
        await opened.put(ORIGIN, ENTRY)
    finally:
        os.umask(mask)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    names = ("robots.db", "robots.db-wal", "robots.db-shm")
    assert modes == dict.fromkeys(names, existing or 0o600)
    await opened.close()


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_a_symbolic_link(
    path: Path, suffix: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.sqlite.BUSY_TIMEOUT", 0.1)
    target = path.with_name("precious")
    if there:
        target.write_bytes(b"Precious words.")
    path.with_name(path.name + suffix).symlink_to(target)
    with suppress(StoreError):
        opened_store(path)
    assert target.exists() is there
    if there:
        assert target.read_bytes() == b"Precious words."


def test_a_file_that_is_not_regular_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(StoreError, match="regular"):
        opened_store(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/robots.db", "no folder"),
        (".", "folder"),
        ("robotstxt.sqlite", "symbolic link"),
        ("x" * 300, "too long"),
    ],
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

    assert open_store(None, jobdir=None, ttl=60) is None


async def test_an_entry_expires(path: Path) -> None:
    now = 1e9
    opened = SQLiteStore(path, ttl=0.5, now=lambda: now)
    await opened.put(ORIGIN, ENTRY)
    now += 1
    await opened.put("https://b.example", ENTRY)
    assert await opened.get(ORIGIN) is None
    await opened.close()


# In memory


async def test_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries that were put first are evicted first."""
    monkeypatch.setattr("scrapy_rep.stores.sqlite.MAX_MEMORY", 200_000)
    numbers = range(100)
    opened = MemoryStore(now=iter(range(1_000)).__next__)
    for number in numbers:
        assert await opened.reserve_host(f"{number}.example", 1) == 0
        await opened.put(str(number), ENTRY._replace(body=random.Random(number).randbytes(10_000)))
        assert _size(opened._connect()) <= 200_000
    kept = [number for number in numbers if await opened.get(str(number)) is not None]
    assert kept == list(numbers)[-len(kept) :]
    assert 10 <= len(kept) <= 20


async def test_the_data_in_memory_has_a_name_and_stays(tmp_path: Path) -> None:
    one, other = MemoryStore(f"{tmp_path}/1"), MemoryStore(f"{tmp_path}/2")
    await one.put(ORIGIN, ENTRY)
    assert (await one.claim(ORIGIN, 10))[:2] == (True, ENTRY)
    assert (await other.claim(ORIGIN, 10))[:2] == (True, None)
    assert await one.reserve_host("a.example", 10) == 0
    assert await other.reserve_host("a.example", 10) == 0
    await one.close()
    assert await MemoryStore(f"{tmp_path}/1").get(ORIGIN) == ENTRY
