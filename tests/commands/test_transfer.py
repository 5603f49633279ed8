"""The subcommands ``export`` and ``import``: policies from a store to another."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_rep.commands import context, transfer
from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores.entry import BODY_LIMIT, LINE_LIMIT, Entry, from_line, to_line
from scrapy_rep.stores.redis import PREFIX, RedisStore
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.redis_server import RedisServer

from .conftest import Done, Run, content, fill, write

URL = "https://a.example/robots.txt"
COPY = CopyInfo(URL, '"x\xff"', "Mon, 01 Jan 2026 00:00:00 GMT", 3600.5)
ENTRIES = {
    "https://a.example": Entry(
        AccessResult.SUCCESSFUL, 1.125, 2.5, 86_400.001, b"User-agent: *\n", COPY, 200, URL
    ),
    "http://b.example:8080": Entry(AccessResult.UNAVAILABLE, 5.5, 6, 7, status=404, url=URL),
    "https://c.example": Entry(AccessResult.DISALLOWED, 5.5, 6, 7, status=403, url=URL),
    "https://d.example": Entry(
        AccessResult.UNREACHABLE, 10, 20, 30, b"\xff\0\r\n\x85", COPY, 503, URL, "é\x1b[31m", 9, 7
    ),
    "https://[::1]:81": Entry(AccessResult.SUCCESSFUL, 1, 2, 3, "ツ\u2028\0".encode(), COPY),
    "https://e.example/.well-known/tdmrep.json": Entry(AccessResult.SUCCESSFUL, 1, 2, 3, b"", COPY),
}


@pytest.fixture
def store(run: Run) -> None:
    fill("a.sqlite", ENTRIES)


@pytest.mark.usefixtures("store")
def test_a_round_trip_is_exact(run: Run) -> None:
    done = run("export", "sqlite:///a.sqlite", "x.jsonl.gz")
    assert done.code == 0
    assert done.err == "note: policies written to x.jsonl.gz: 6\n"
    text = gzip.decompress(Path("x.jsonl.gz").read_bytes())
    assert {json.loads(line)["type"] for line in text.splitlines()} == {"policy"}
    done = run("import", "sqlite:///b.sqlite", "x.jsonl.gz")
    assert (done.code, done.out) == (0, "6 added\n")
    assert content("b.sqlite") == ENTRIES
    # From a store to another through a pipe
    exported = run("export", "sqlite:///b.sqlite")
    assert (exported.code, exported.out.encode(), exported.err) == (0, text, "")
    assert run("import", "sqlite:///c.sqlite", stdin=exported.out).out == "6 added\n"
    assert content("c.sqlite") == ENTRIES


@pytest.mark.usefixtures("store")
def test_redis(run: Run, redis_server: RedisServer) -> None:
    run("export", "sqlite:///a.sqlite", "x.jsonl")
    assert run("import", redis_server.url, "x.jsonl").out == "6 added\n"
    other = RedisStore(redis_server.url, ttl=100)
    other._reserve_host("a.example", 60)
    other._claim("https://claimed.example", 60)
    assert run("export", redis_server.url, "y.jsonl").code == 0
    assert run("import", "sqlite:///b.sqlite", "y.jsonl").out == "6 added\n"
    assert content("b.sqlite") == ENTRIES
    with redis_server.client as client:
        client.set(f"{PREFIX}{{https://odd.example}}", b"no entry")
        client.lpush(f"{PREFIX}{{https://list.example}}", "x")
    done = run("export", redis_server.url, "y.jsonl")
    assert (done.code, done.err.count("cannot be read")) == (3, 2)
    other.disconnect()


@pytest.mark.usefixtures("store")
def test_a_newer_entry_stays(run: Run) -> None:
    run("export", "sqlite:///a.sqlite", "x.jsonl")
    key = "https://a.example"
    newer, older = (ENTRIES[key]._replace(fetched_at=at, body=b"") for at in (1.25, 1.0))
    for known, left, out in (
        (newer, newer, "6 not newer than those in the store, and left out\n"),
        (older, ENTRIES[key], "1 replaced\n5 not newer than those in the store, and left out\n"),
    ):
        fill("a.sqlite", {key: known})
        assert run("import", "sqlite:///a.sqlite", "x.jsonl").out == out
        assert content("a.sqlite")[key] == left
    fill("a.sqlite", {key: newer})
    done = run("import", "sqlite:///a.sqlite", "x.jsonl", "--replace")
    assert (done.code, done.out) == (0, "6 replaced\n")
    assert content("a.sqlite") == ENTRIES


LINE = json.loads(to_line("https://a.example", ENTRIES["https://a.example"]))


def changed(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in {**LINE, **fields}.items() if value is not ...}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"x", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is not a policy"),
        (changed(type="show"), "it is not a policy"),
        (changed(version=2), "it is of version '2', not 1"),
        (changed(version="\x1b[31m" * 100), "it is of version"),
        (changed(origin=...), "it has no origin"),
        (changed(origin="x" * 10_000), "it has no origin"),
        (changed(origin="https://a.example}:claim"), "its origin is not valid"),
        (changed(origin="file:///etc/passwd"), "its origin is not valid"),
        (changed(entry=...), "not an entry"),
        (changed(entry={**LINE["entry"], "fetched_at": "1"}), "not an entry: invalid fetched_at"),
        (changed(entry={**LINE["entry"], "fetched_at": float("nan")}), "invalid fetched_at"),
        (changed(entry={**LINE["entry"], "refresh_at": 1e9}), "its next fetch is too late"),
        (changed(entry={**LINE["entry"], "url": "http://a/\r\nb"}), "not an entry: invalid url"),
        (changed(body=...), "not an entry: rules without a body"),
        (changed(body="\ud800"), "its body is not valid"),
        (changed(body="x" * (BODY_LIMIT + 1)), "its body is too long"),
    ],
)
def test_broken_lines(run: Run, line: Any, reason: str) -> None:
    broken = line if isinstance(line, bytes) else json.dumps(line).encode()
    good = [to_line(key, entry).encode() for key, entry in ENTRIES.items()]
    write(x_jsonl=good[0] + b"\n" + broken + b"\n" + b"".join(good[1:]))
    done = run("import", "sqlite:///b.sqlite", "x.jsonl")
    assert (done.code, done.out) == (3, "6 added\n1 unreadable\n")
    assert done.err.startswith("warning: line 3: ")
    assert reason in done.err
    assert "\x1b" not in done.err
    assert done.err.count("\n") == 1
    assert content("b.sqlite") == ENTRIES


def test_a_line_of_any_length(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "LINE_LIMIT", 2000)
    good = to_line("https://a.example", ENTRIES["https://a.example"]).encode()
    write(x_jsonl=b"x" * 10_000 + b"\n" + good + b" " * 2001)
    done = run("import", "sqlite:///b.sqlite", "x.jsonl")
    assert done.out == "1 added\n2 unreadable\n"
    assert done.err == "warning: line 1: it is too long\nwarning: line 3: it is too long\n"


def test_the_longest_entry_fits_a_line() -> None:
    longest = ENTRIES["https://a.example"]._replace(
        body=b"\1" * BODY_LIMIT,
        url="https://a/" + "x" * 7990,
        failure="\U0010ffff" * 1000,
        copy=CopyInfo("https://a/" + "x" * 7990, "\xff" * 256, "\xff" * 256),
    )
    line = to_line("https://a/" + "x" * 7990, longest)
    assert len(line) <= LINE_LIMIT
    assert from_line(line.encode())[1] == longest


@pytest.mark.usefixtures("store")
def test_an_entry_that_cannot_be_read(run: Run) -> None:
    with closing(sqlite3.connect("a.sqlite")) as db, db:
        db.execute("UPDATE entries SET entry = x'00' WHERE origin = 'https://a.example'")
        db.execute("UPDATE entries SET entry = 'text' WHERE origin = 'https://c.example'")
    done = run("export", "sqlite:///a.sqlite", "x.jsonl")
    assert done.code == 3
    assert "the entry of https://a.example cannot be read" in done.err
    assert Path("x.jsonl").read_bytes().count(b"\n") == 4


@pytest.mark.usefixtures("store")
def test_a_store_that_fails_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    monkeypatch.setattr(SQLiteStore, "_entries", Mock(side_effect=error))
    done = run("export", "sqlite:///a.sqlite")
    assert done.code == 3
    assert "failed" in done.err
    assert "disk I/O error" in done.err


@pytest.mark.usefixtures("store")
def test_progress(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "INTERVAL", 0)
    done = run("export", "sqlite:///a.sqlite", "x.jsonl")
    lines = done.err.splitlines()
    assert len(lines) == 7
    assert all(
        re.fullmatch(r"note: \d of 6 policies, [\d,]+ a second", line) for line in lines[:-1]
    )
    last = run("import", "sqlite:///b.sqlite", "x.jsonl").err.splitlines()[-1]
    assert last.startswith("note: 6 of 6 lines, ")
    assert run("import", "sqlite:///b.sqlite", "x.jsonl", "-q").err == ""
    monkeypatch.setattr(context, "INTERVAL", 1e9)
    assert run("import", "sqlite:///b.sqlite", "x.jsonl").err == ""


@pytest.mark.usefixtures("store")
def test_ctrl_c(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    run("export", "sqlite:///a.sqlite", "x.jsonl")
    text = "warning: interrupted: this is what is known until now. To go on, run it again\n"
    for name, arguments, out in (
        ("from_line", ("import", "sqlite:///b.sqlite", "x.jsonl"), "no policies\n"),
        ("to_line", ("export", "sqlite:///a.sqlite"), ""),
    ):
        monkeypatch.setattr(transfer, name, interrupted)
        assert run(*arguments) == Done(130, out, text)
