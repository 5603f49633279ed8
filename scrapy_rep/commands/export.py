"""``export``: the policies of a store as JSON Lines."""

from __future__ import annotations

import gzip
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ..stores.entry_lines import to_line
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .stored import open_source, using

if TYPE_CHECKING:
    import argparse
    from contextlib import AbstractContextManager
    from typing import Any

    from .context import Context

DESCRIPTION = (
    "Write the policies of a store as JSON Lines: each robots.txt with its times, status and "
    "validators. 'import' puts them into another store."
)
EXAMPLES = (
    ("export sqlite:///store.sqlite policies.jsonl", "a SQLite store to a file"),
    ("export redis://localhost/0 policies.jsonl.gz", "a Redis store to a compressed file"),
    ("export sqlite:///a.sqlite | scrapy-rep import redis://b/0", "from a store to another"),
)


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


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    name: str = arguments.file
    written = unreadable = 0
    with (
        using(open_source(arguments.store, context), arguments.store) as store,
        context.output.progress("policies") as done,
    ):
        try:
            with _opened(name) as file:
                for key, entry in store.entries():
                    if entry is None:
                        unreadable += 1
                        context.output.repeated_warning(
                            "unreadable entries", f"the entry of {key} cannot be read"
                        )
                        continue
                    file.write(to_line(key, entry).encode())
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


def _opened(name: str) -> AbstractContextManager[Any]:
    if name == STANDARD_INPUT:
        return nullcontext(sys.stdout.buffer)
    return gzip.open(name, "wb") if name.endswith(".gz") else Path(name).open("wb")
