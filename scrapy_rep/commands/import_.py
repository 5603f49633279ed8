"""``import``: policies from JSON Lines or WARC into a store."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import zlib
from collections import Counter
from contextlib import contextmanager, nullcontext
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, NamedTuple

from ..stores.entry_lines import LINE_LIMIT, from_line
from ..stores.threaded import Addition, ThreadedStore
from .archived import with_warcio
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .stored import is_key, open_target, using

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from ..stores.entry import Entry
    from .context import Context

DESCRIPTION = (
    "Put policies that 'export' has written into a store. A newer policy in the store stays, "
    "unless there is --replace. Unreadable lines and records are skipped, and their places "
    "reported."
)
EXAMPLES = (
    ("import sqlite:///store.sqlite policies.jsonl", "a file into a SQLite store"),
    ("import sqlite:///store.sqlite policies.warc.gz", "a WARC file that 'export' has written"),
    ("import redis://localhost/0 - < policies.jsonl", "standard input into a Redis store"),
    ("import sqlite:///store.sqlite old.jsonl --replace", "also where the store has newer ones"),
)

VERSION = 1
"""The version of the record. A field may be added without a new one."""

_GZIP = b"\x1f\x8b"
_WARC = b"WARC/"
_START = 512
"""The octets that show the format of a file."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("store", metavar="STORE", help="the URL of a store, as for REP_STORE")
    parser.add_argument(
        "file",
        nargs="?",
        default=STANDARD_INPUT,
        metavar="FILE",
        help="JSON Lines, also gzipped, or WARC; default: standard input",
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
            _opened(name) as policies,
            using(open_target(arguments.store, context), arguments.store) as store,
            context.output.progress("policies") as done,
        ):
            for number, policy in enumerate(policies, 1):
                counts[_import(policy, store, context, replace=arguments.replace)] += 1
                done(number)
    except KeyboardInterrupt:
        is_interrupted = True
    _write(counts, context, is_interrupted=is_interrupted)
    if is_interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.UNKNOWN if counts[_UNREADABLE] else ExitCode.OK


_UNREADABLE = "unreadable"


class _Policy(NamedTuple):
    """A policy of a file, or a part of the file that is none."""

    place: str
    """Where it is in the file."""
    key: str
    entry: Entry | None
    """None if it cannot be read."""
    reason: str = ""
    """Why it cannot be read."""


def _import(policy: _Policy, store: ThreadedStore, context: Context, *, replace: bool) -> str:
    """Put a policy into the store, and return what happened."""
    reason = policy.reason
    if policy.entry is not None:
        if is_key(policy.key):
            return store.add(policy.key, policy.entry, replace=replace).value
        reason = "its origin is not valid"
    context.output.repeated_warning("unreadable policies", f"{policy.place}: {reason}")
    return _UNREADABLE


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
def _opened(name: str) -> Iterator[Iterator[_Policy]]:
    """Yield the policies of a file."""
    try:
        with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else open(name, "rb") as file:
            if _is_warc(file):
                with _seekable(file) as seekable:
                    yield _from_warc(seekable)
            else:
                yield _from_lines(_decompressed(file))
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, BrokenPipeError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {name}: {reason}") from None


def _is_warc(stream: Any) -> bool:
    start = stream.peek(_START)[:_START]
    if start.startswith(_GZIP):
        try:
            start = zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(start, len(_WARC))
        except zlib.error:  # read as JSON Lines, where it is an error, too
            return False
    return bool(start.startswith(_WARC))


@contextmanager
def _seekable(stream: Any) -> Iterator[Any]:
    """Yield a stream with the same octets that can be read from any place."""
    if stream.seekable():
        yield stream
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield copy


def _from_warc(stream: Any) -> Iterator[_Policy]:
    for found in with_warcio("policy_records").read_policies(stream):
        yield _Policy(f"the record at offset {found.offset}", *found[1:])


def _from_lines(stream: io.BufferedReader) -> Iterator[_Policy]:
    for number, line in _lines(stream):
        place = f"line {number}"
        try:
            if line is None:
                raise ValueError("it is too long")
            yield _Policy(place, *from_line(line))
        except ValueError as error:
            yield _Policy(place, "", None, str(error))


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
