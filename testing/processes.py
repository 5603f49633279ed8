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
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]


def call(function: Callable[..., Any], *arguments: Any, timeout: float = 120) -> Any:
    """Call a function of a module, and return its result. Both must be valid in JSON.

    What the process writes to stderr appears at once. ``timeout`` is in seconds. Raises
    RuntimeError if the process fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__, function.__module__, function.__name__],
        input=json.dumps(arguments),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},  # as an installed package
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"{function.__module__}.{function.__name__} failed: see above")
    return json.loads(done.stdout)


def main(module: str, function: str) -> None:
    """Run in the process that :func:`call` starts."""
    arguments = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), function)(*arguments)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
