"""Runs the console script in forks of a process that has already imported Scrapy.

The import takes most of the time of a command.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from scrapy_rep.commands.main import console

_IMPORTED = ["scrapy_rep.commands.session", "scrapy_rep.commands.crawlers"]
"""Modules that import Scrapy and rich."""

OUT, ERRORS = "out", "errors"


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    out: bytes
    errors: bytes


def run(
    arguments: Sequence[str],
    folder: Path | str,
    environment: Mapping[str, str],
    *,
    stdin: bytes = b"",
    timeout: float = 120,
    errors: str = ERRORS,
) -> Ended:
    """Run ``scrapy-rep`` with these arguments. Errors can be written to ``OUT``, too.

    Raises TimeoutError if it takes longer than ``timeout``, in seconds.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *_IMPORTED])
    with tempfile.TemporaryDirectory() as name:
        streams = {each: Path(name) / each for each in ("in", OUT, ERRORS)}
        for path in streams.values():
            path.write_bytes(b"")
        streams["in"].write_bytes(stdin)
        paths = [str(streams[each]) for each in ("in", OUT, errors)]
        values = (list(arguments), str(folder), dict(environment), paths)
        process = context.Process(target=_run, args=values)
        process.start()
        process.join(timeout)
        code = process.exitcode
        process.kill()
        process.join()
        process.close()
        if code is None:
            raise TimeoutError(f"scrapy-rep {' '.join(arguments)} takes longer than {timeout} s")
        return Ended(code, streams[OUT].read_bytes(), streams[ERRORS].read_bytes())


def _run(
    arguments: list[str], folder: str, environment: dict[str, str], streams: list[str]
) -> NoReturn:
    for number, path in enumerate(streams):
        # Two streams may have one file.
        file = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering=buffering, encoding="utf-8", closefd=False)
        for number, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["scrapy-rep", *arguments]
    console()
