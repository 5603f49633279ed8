"""``import``: policies from JSON Lines into a store."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..stores.entry_lines import LINE_LIMIT, from_line
from ..stores.threaded import Addition, ThreadedStore
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .stored import is_key, open_target, using

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from .context import Context

DESCRIPTION = (
    "Put policies that 'export' has written into a store. A newer policy in the store stays, "
    "unless there is --replace. Unreadable lines are skipped, and their numbers reported."
)
EXAMPLES = (
    ("import sqlite:///store.sqlite policies.jsonl", "a file into a SQLite store"),
    ("import redis://localhost/0 - < policies.jsonl", "standard input into a Redis store"),
    ("import sqlite:///store.sqlite old.jsonl --replace", "also where the store has newer ones"),
)

VERSION = 1
"""The version of the record. A field may be added without a new one."""

_GZIP = b"\x1f\x8b"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("store", metavar="STORE", help="the URL of a store, as for REP_STORE")
    parser.add_argument(
        "file",
        nargs="?",
        default=STANDARD_INPUT,
        metavar="FILE",
        help="JSON Lines, also gzipped; default: standard input",
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace newer policies in the store, too"
    )


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    name: str = arguments.file
    counts: Counter[str] = Counter()
    is_interrupted = False
    try:
        with (
            _opened(name) as lines,
            using(open_target(arguments.store, context), arguments.store) as store,
            context.output.progress("lines") as done,
        ):
            for number, line in _lines(lines):
                counts[_import(number, line, store, context, replace=arguments.replace)] += 1
                done(number)
    except KeyboardInterrupt:
        is_interrupted = True
    _write(counts, context, is_interrupted=is_interrupted)
    if is_interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.UNKNOWN if counts[_UNREADABLE] else ExitCode.OK


_UNREADABLE = "unreadable"


def _import(
    number: int, line: bytes | None, store: ThreadedStore, context: Context, *, replace: bool
) -> str:
    """Put the policy of a line into the store, and return what happened."""
    try:
        if line is None:
            raise ValueError("it is too long")
        key, entry = from_line(line)
        if not is_key(key):
            raise ValueError("its origin is not valid")
    except ValueError as error:
        context.output.repeated_warning("unreadable lines", f"line {number}: {error}")
        return _UNREADABLE
    return store.add(key, entry, replace=replace).value


def _write(counts: Counter[str], context: Context, *, is_interrupted: bool) -> None:
    if context.output.as_json:
        numbers = {each.value.replace("-", "_"): counts[each.value] for each in Addition}
        context.output.record(
            {
                "type": "import",
                "version": VERSION,
                "complete": not is_interrupted,
                **numbers,
                _UNREADABLE: counts[_UNREADABLE],
            }
        )
        return
    words = {
        "added": "added",
        "replaced": "replaced",
        "older": "not newer than those in the store, and left out",
        "in-progress": "left out, because a crawler is fetching them",
        _UNREADABLE: "unreadable",
    }
    lines = [f"{counts[key]:,} {text}" for key, text in words.items() if counts[key]]
    context.output.write("".join(f"{line}\n" for line in lines) or "no policies\n")


@contextmanager
def _opened(name: str) -> Iterator[io.BufferedReader]:
    try:
        if name == STANDARD_INPUT:
            yield _decompressed(sys.stdin.buffer)
            return
        with Path(name).open("rb") as file:
            yield _decompressed(file)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, BrokenPipeError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {name}: {reason}") from None


def _decompressed(stream: Any) -> Any:
    if stream.peek(2)[:2] == _GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return stream


def _lines(stream: io.BufferedReader) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and the lines that are not blank; None for a line that is too long."""
    number = 0
    while line := stream.readline(LINE_LIMIT + 1):
        number += 1
        if len(line) <= LINE_LIMIT:
            if line.strip():
                yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LINE_LIMIT + 1)
        yield number, None
