"""``export``: the policies of a store as JSON Lines or WARC."""

from __future__ import annotations

import gzip
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..stores.entry_lines import to_line
from .archived import with_warcio
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .stored import open_source, using

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from ..stores.entry import Entry
    from .context import Context

DESCRIPTION = (
    "Write the policies of a store as JSON Lines or as a WARC file: each robots.txt with its "
    "times, status and validators. 'import' puts them into another store."
)
EXAMPLES = (
    ("export sqlite:///store.sqlite policies.jsonl", "a SQLite store to a file"),
    ("export redis://localhost/0 policies.jsonl.gz", "a Redis store to a compressed file"),
    ("export sqlite:///store.sqlite policies.warc.gz", "to a WARC file, for any WARC tool"),
    ("export sqlite:///a.sqlite | scrapy-rep import redis://b/0", "from a store to another"),
)


FORMATS = ("jsonl", "warc")
WARC_SUFFIX = ".warc.gz"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("store", metavar="STORE", help="the URL of a store, as for REP_STORE")
    parser.add_argument(
        "file",
        nargs="?",
        default=STANDARD_INPUT,
        metavar="FILE",
        help="the file to write, gzipped if its name ends in .gz; default: standard output",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="default: warc if the name of FILE ends in .warc.gz, else jsonl",
    )


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    name: str = arguments.file
    is_warc = (arguments.format or _format_of(name)) == "warc"
    if is_warc and name != STANDARD_INPUT and not name.endswith(WARC_SUFFIX):
        raise CommandError(f"the name of a WARC file must end in {WARC_SUFFIX}: {name}")
    start, encode = _warc(name) if is_warc else (b"", _line)
    written = unreadable = 0
    with (
        using(open_source(arguments.store, context), arguments.store) as store,
        context.output.progress("policies") as done,
    ):
        try:
            with _opened(name, is_warc=is_warc) as file:
                file.write(start)
                for key, entry in store.entries():
                    octets = None if entry is None else _encoded(encode, key, entry)
                    if octets is None:
                        unreadable += 1
                        context.output.repeated_warning(
                            "unreadable entries", f"the entry of {key} cannot be read"
                        )
                        continue
                    file.write(octets)
                    written += 1
                    done(written)
                file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"cannot write {name}: {error.strerror or error}") from None
    if name != STANDARD_INPUT:
        context.output.note(f"{written:,} policies are written to {name}")
    return ExitCode.UNKNOWN if unreadable else ExitCode.OK


def _format_of(name: str) -> str:
    return "warc" if name.endswith(WARC_SUFFIX) else "jsonl"


def _line(key: str, entry: Entry) -> bytes:
    return to_line(key, entry).encode()


def _warc(name: str) -> tuple[bytes, Callable[[str, Entry], bytes]]:
    """Return the start of a WARC file, and the function that returns the records of a policy."""
    module = with_warcio("policy_records")
    filename = "" if name == STANDARD_INPUT else Path(name).name
    return module.file_record(filename, time.time()), module.policy_records


def _encoded(encode: Callable[[str, Entry], bytes], key: str, entry: Entry) -> bytes | None:
    """Return the octets of a policy; None for a key that no file can have."""
    try:
        return encode(key, entry)
    except ValueError:
        return None


def _opened(name: str, *, is_warc: bool) -> AbstractContextManager[Any]:
    if name == STANDARD_INPUT:
        return nullcontext(sys.stdout.buffer)
    if name.endswith(".gz") and not is_warc:  # each record of a WARC file is compressed
        return gzip.open(name, "wb")
    return Path(name).open("wb")
