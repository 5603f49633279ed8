"""Calls of functions in processes of their own: none disturbs the figures of another.

python -m testing.processes MODULE FUNCTION calls the function with the JSON list that it reads, and
writes its result as JSON.
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
    """Call a function of a module, with arguments and a result that JSON can hold.

    ``timeout`` is in seconds. RuntimeError with what the process wrote if it fails.
    """
    # Scrapy is installed with its bytecode, and so would the package be.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(
        [sys.executable, "-m", __name__, function.__module__, function.__name__],
        input=json.dumps(arguments),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
        timeout=timeout,
    )
    if done.returncode:
        raise RuntimeError(f"{function.__module__}.{function.__name__} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def main(module: str, function: str) -> None:
    """The other side."""
    arguments = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), function)(*arguments)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
