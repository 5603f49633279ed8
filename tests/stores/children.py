"""Processes for the tests of SQLite: ``python -m tests.stores.children FUNCTION PATH``.

They call the blocking methods of a store without its thread, and raise AssertionError if a check
fails.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
from pathlib import Path

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, StoreError
from scrapy_rep.stores.sqlite import SQLiteStore

KILLS = 25
MAX_LIFETIME = 0.04


def entry(number: int) -> Entry:
    return Entry(
        AccessResult.SUCCESSFUL, number, number, number, body=b"%d\n" % number * (number % 700)
    )


def store(path: Path) -> SQLiteStore:
    opened = SQLiteStore(path, ttl=1e9)
    opened.open()
    return opened


def put_until_killed(path: Path, first: int, done: int) -> None:
    """Write the number of each entry to ``done`` after it is put."""
    into = store(path)
    for number in range(first, first + 10**6):
        into._call(into._claim, f"http://{number}.example", 60)
        into._call(into._put, f"http://{number}.example", entry(number))
        os.write(done, b"%d\n" % number)
        into._call(into._release, f"http://{number}.example")


def killed(path: Path) -> None:
    chance = random.Random(1)
    first = 0
    for _ in range(KILLS):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            put_until_killed(path, first, writing)
            os._exit(0)
        os.close(writing)
        time.sleep(chance.uniform(0, MAX_LIFETIME))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reading) as output:
            acknowledged = [int(line) for line in output]
        found = everything(path)
        for number in acknowledged:
            assert found[f"http://{number}.example"] == entry(number), number
        numbers = [int(each.fetched_at) for each in found.values() if each is not None]
        assert list(found.values()) == list(map(entry, numbers))
        first = max(numbers, default=-1) + 1
    assert first > KILLS, "too few entries were put"
    sys.stdout.write(str(first))


def everything(path: Path) -> dict[str, Entry | None]:
    opened = store(path)  # SQLite rolls back incomplete changes
    assert opened._connect().execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = dict(opened.entries())
    opened.disconnect()
    return found


def full(path: Path) -> None:
    into = store(path)
    into._call(into._put, "http://0.example", entry(1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    failed = 0
    for number in range(1, 600):
        try:
            into._call(into._put, f"http://{number}.example", entry(number))
        except StoreError:
            failed += 1
    assert failed
    assert into._call(into._get, "http://0.example") == entry(1)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    into._call(into._put, "http://last.example", entry(5))
    into.disconnect()
    found = everything(path)
    assert len(found) == 600 - failed + 1
    assert found["http://last.example"] == entry(5)


def many(path: Path) -> None:
    """Claim and put, while other processes do the same in the same new file."""
    into = store(path)
    claimed = 0
    for number in range(200):
        claimed += into._call(into._claim, f"http://{number}.example", 60)[0]
        into._call(into._put, f"http://{number}.example", entry(number))
    into.disconnect()
    sys.stdout.write(str(claimed))


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
