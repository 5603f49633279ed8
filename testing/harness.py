"""Runs benchmarks and checks with the same arguments, tables and exit statuses.

``python -m benchmarks`` and ``python -m checks`` run the modules of their package. The first line
of the docstring of each module says what it measures. Each module has a DURATION, optional
PARAMETERS and a function ``run(options) -> Result``. It runs in a process of its own, so that it
does not change the figures of others: ``python -m testing.harness MODULE FUNCTION`` reads a JSON
list from stdin, calls the function with it, and writes the result as JSON to stdout.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
DETAILS = 100
"""The number of detail lines that the table shows."""


class Duration(NamedTuple):
    """The approximate seconds that a module takes on a machine with two cores."""

    full: float
    quick: float


class Parameter(NamedTuple):
    """A number or a text that the user can set with ``--set NAME=VALUE``."""

    default: int | str
    quick: int | str
    meaning: str


@dataclass(frozen=True)
class Options:
    """The arguments of the user."""

    folder: Path | None = None
    """Real files instead of generated ones."""
    quick: bool = False
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    """The PARAMETERS of the module with their values."""

    def number(self, name: str) -> int:
        """Return a parameter that is a number."""
        value = self.parameters[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        """Return a parameter that is a text."""
        return str(self.parameters[name])


class Row(NamedTuple):
    """One figure of a result."""

    name: str
    figure: float
    unit: str
    limit: float | None = None
    """The maximum of the figure."""

    @property
    def ok(self) -> bool:
        """Whether the figure is within its limit, or has none."""
        return self.limit is None or self.figure <= self.limit


class Result(NamedTuple):
    """The result of a benchmark or a check."""

    rows: Sequence[Row]
    details: Sequence[str] = ()
    """One line for each problem or note."""


def main(package: ModuleType, arguments: Sequence[str] | None = None) -> int:
    """Run the modules of a package that the arguments name, and return the exit status."""
    modules = modules_of(package)
    parser = parser_of(package, modules)
    options = parser.parse_args(arguments)
    chosen = {name: modules[name] for name in options.names or modules}
    if options.list:
        for name, module in chosen.items():
            print(f"{name:<17} {_title(module)}")
            for key, (default, quick, meaning) in _parameters(module).items():
                print(f"  --set {key}=…: {meaning} ({default!r}, {quick!r} with --quick)")
        return 0
    if options.folder is not None and not options.folder.is_dir():
        parser.error(f"{options.folder} is no folder")
    given = dict(options.set)
    if unknown := given.keys() - {key for each in chosen.values() for key in _parameters(each)}:
        parser.error(f"{', '.join(chosen)}: no parameter {', '.join(sorted(unknown))}")
    broken = []
    for name, module in chosen.items():
        duration: Duration = module.DURATION
        seconds = duration.quick if options.quick else duration.full
        print(f"{name} (about {seconds:.0f} s): {_title(module)}", file=sys.stderr, flush=True)
        values = {
            key: type(each.default)(given.get(key, each.quick if options.quick else each.default))
            for key, each in _parameters(module).items()
        }
        found = _run(name, module, Options(options.folder, options.quick, values))
        broken += [f"{name}: {each}" for each in found]
    print("\n  ".join([f"{len(broken)} broken:", *broken]) if broken else "All limits hold.")
    return 1 if broken else 0


def modules_of(package: ModuleType) -> dict[str, ModuleType]:
    """Return the modules of a package by name. A subpackage has an entry point of its own."""
    return {
        module.name: importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
        if not module.ispkg and not module.name.startswith("_")
    }


def parser_of(package: ModuleType, modules: Mapping[str, ModuleType]) -> argparse.ArgumentParser:
    """Return the parser of the arguments for the modules of a package."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.__name__}",
        description=package.__doc__,
        epilog="The exit status is 1 if a limit is broken.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=", ".join(modules), type=_one_of(modules)
    )
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument(
        "--folder",
        type=Path,
        help="real files instead of generated ones; testing/corpus.py says of which form",
    )
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        type=_pair,
        help="a parameter of the named ones; --list NAME shows what there is",
    )
    return parser


def _one_of(modules: Mapping[str, ModuleType]) -> Callable[[str], str]:
    def name(text: str) -> str:
        if text not in modules:
            raise argparse.ArgumentTypeError(f"no {text}; there are {', '.join(modules)}")
        return text

    return name


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return key, value


def call(function: Callable[..., Any], *arguments: Any, timeout: float = 120) -> Any:
    """Call a function of a module in a process, and return its result. Both must be valid in JSON.

    What the process writes to stderr appears at once. ``timeout`` is in seconds. Raises
    RuntimeError if the process fails.
    """
    done = subprocess.run(
        [sys.executable, "-m", "testing.harness", function.__module__, function.__name__],
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


def _parameters(module: ModuleType) -> dict[str, Parameter]:
    return getattr(module, "PARAMETERS", {})


def _title(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().partition("\n")[0]


def _run(name: str, module: ModuleType, options: Options) -> list[str]:
    """Run a module, and print its result. Returns what exceeds its limit."""
    folder = str(options.folder.resolve()) if options.folder else None
    began = time.monotonic()
    # This ends a module that hangs. No machine is so slow.
    timeout = 600 + 20 * module.DURATION.full
    values = [module.__name__, folder, options.quick, dict(options.parameters)]
    try:
        found, details = call(run_here, *values, timeout=timeout)
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        print(f"{name}: {problem}", flush=True)
        return ["error"]
    rows = [Row(*row) for row in found]
    print(f"{name} ({time.monotonic() - began:.0f} s)")
    for row in rows:
        line = f"  {row.name:<52} {_number(row.figure):>11} {row.unit:<10}"
        if row.limit is not None:
            line += f" limit {_number(row.limit):>7} {'ok' if row.ok else 'BROKEN'}"
        print(line.rstrip())
    for detail in details[:DETAILS]:
        print(f"    {detail[:200]}")
    if len(details) > DETAILS:
        print(f"    … and {len(details) - DETAILS} more")
    sys.stdout.flush()
    return [row.name for row in rows if not row.ok]


def run_here(
    module: str, folder: str | None, quick: bool, parameters: dict[str, int | str]
) -> tuple[Sequence[Row], Sequence[str]]:
    """Run one module in this process."""
    options = Options(Path(folder) if folder else None, quick, parameters)
    result: Result = importlib.import_module(module).run(options)
    return result.rows, result.details


def _number(value: float) -> str:
    """Format whole numbers in full, and others with three significant digits."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def _called(module: str, function: str) -> None:
    """Run in the process that :func:`call` starts."""
    arguments = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), function)(*arguments)
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    _called(*sys.argv[1:])
