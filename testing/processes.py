"""Calls functions in processes of their own, so that they do not change the figures of others.

``python -m testing.processes MODULE FUNCTION`` reads a JSON list from stdin, calls the function
with it, and writes the result as JSON to stdout.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]

_PROGRESS = "TESTING_PROGRESS"
"""The environment variable with the descriptor to which :func:`progress` writes."""


def call(function: Callable[..., Any], *arguments: Any, timeout: float = 120) -> Any:
    """Call a function of a module, and return its result. Both must be valid in JSON.

    ``timeout`` is in seconds. Raises RuntimeError with the output of a process that fails.
    """
    # An installed package has bytecode, as Scrapy has.
    with _progress_output() as descriptor:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", _PROGRESS: str(descriptor)}
        done = subprocess.run(
            [sys.executable, "-m", __name__, function.__module__, function.__name__],
            input=json.dumps(arguments),
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
            timeout=timeout,
            pass_fds=[descriptor],
        )
    if done.returncode:
        raise RuntimeError(f"{function.__module__}.{function.__name__} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def progress(line: str) -> None:
    """Print a line to the stderr of the process that made the :func:`call`."""
    descriptor = os.environ.get(_PROGRESS)
    if descriptor is not None:
        os.write(int(descriptor), f"{line}\n".encode())


@contextmanager
def _progress_output() -> Iterator[int]:
    """Yield a descriptor for :func:`progress`: that of the first call, if there are several."""
    given = os.environ.get(_PROGRESS)
    descriptor = os.dup(2) if given is None else int(given)
    try:
        yield descriptor
    finally:
        if given is None:
            os.close(descriptor)


def main(module: str, function: str) -> None:
    """Run in the process that :func:`call` starts."""
    arguments = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), function)(*arguments)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
