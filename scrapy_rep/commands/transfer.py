"""``export`` and ``import``: the policies of a store as JSON Lines."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from ..protocol.paths import origin_of
from ..stores.entry import LINE_LIMIT, from_line, to_line
from .context import STANDARD_INPUT, Context, ExitCode, reading, tool, writing
from .sources import lines_in, opened, using_store

_TEXTS = {
    "added": "added",
    "replaced": "replaced",
    "older": "not newer than those in the store, and left out",
    "unreadable": "unreadable",
}


@tool(
    "Write the policies of a store as JSON Lines: each robots.txt with its times, status and "
    "validators. 'import' puts them into another store.",
    ("export sqlite:///store.sqlite policies.jsonl", "a SQLite store to a file"),
    ("export redis://localhost/0 policies.jsonl.gz", "a Redis store to a compressed file"),
    ("export sqlite:///a.sqlite | scrapy-rep import redis://b/0", "from a store to another"),
    unknown="an entry cannot be read, or the store fails",
)
@click.argument("store_url", metavar="STORE")
@click.argument("name", default=STANDARD_INPUT, metavar="[FILE]")
def export_tool(context: Context, store_url: str, name: str) -> int:
    written = unreadable = 0
    with (
        using_store(store_url, must_exist=True) as store,
        writing(name),
        _writable(name) as file,
        context.interruptible(),
    ):
        for key, entry in context.counted(store.entries(), "policies", store.count()):
            if entry is None:
                unreadable += 1
                context.warn(f"the entry of {key} cannot be read", "unreadable entries")
            else:
                file.write(to_line(key, entry).encode())
                written += 1
        file.flush()
    if name != STANDARD_INPUT:
        context.note(f"policies written to {name}: {written:,}")
    return context.end_code(ExitCode.UNKNOWN if unreadable else ExitCode.OK)


@tool(
    "Put policies that 'export' has written into a store. A newer policy in the store stays, "
    "unless there is --replace. Unreadable lines are skipped, and their numbers reported.",
    ("import sqlite:///store.sqlite policies.jsonl", "a file into a SQLite store"),
    ("import redis://localhost/0 - < policies.jsonl", "standard input into a Redis store"),
    ("import sqlite:///store.sqlite old.jsonl --replace", "also where the store has newer ones"),
    unknown="a line cannot be read, or the store fails",
)
@click.argument("store_url", metavar="STORE")
@click.argument("name", default=STANDARD_INPUT, metavar="[FILE]")
@click.option("--replace", is_flag=True, help="Also replace newer policies in the store.")
def import_tool(context: Context, store_url: str, name: str, replace: bool) -> int:
    counts: Counter[str] = Counter()
    with (
        reading(name, "JSON Lines", zlib.error),
        opened(name) as file,
        using_store(store_url, must_exist=False) as store,
        context.interruptible(),
    ):
        for number, line in context.counted(_lines(file), "lines", lines_in(name)):
            try:
                if line is None:
                    raise ValueError("it is too long")
                key, entry = from_line(line)
                origin = origin_of(key)
                if origin is None or not (key == origin or key.startswith(f"{origin}/")):
                    raise ValueError("its origin is not valid")
                counts[store.add(key, entry, replace=replace)] += 1
            except ValueError as error:
                counts["unreadable"] += 1
                context.warn(f"line {number}: {error}", "unreadable policies")
    lines = [f"{counts[key]:,} {text}\n" for key, text in _TEXTS.items() if counts[key]]
    context.write("".join(lines) or "no policies\n")
    return context.end_code(ExitCode.UNKNOWN if counts["unreadable"] else ExitCode.OK)


def _writable(name: str) -> Any:
    if name == STANDARD_INPUT:
        return nullcontext(sys.stdout.buffer)
    return gzip.open(name, "wb") if name.endswith(".gz") else Path(name).open("wb")


def _lines(stream: Any) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and the lines that are not blank; None for a line that is too long."""
    for number, line in enumerate(iter(lambda: stream.readline(LINE_LIMIT + 1), b""), 1):
        if len(line) > LINE_LIMIT:
            yield number, None
            while line and not line.endswith(b"\n"):
                line = stream.readline(LINE_LIMIT + 1)
        elif line.strip():
            yield number, line
