"""Runs benchmarks and checks with the same arguments, tables and exit statuses.

``python -m benchmarks`` and ``python -m checks`` run the modules of their package. The first line
of the docstring of each module says what it measures. Each module has a DURATION, optional
PARAMETERS and a function ``run(options) -> Result``. It runs in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .processes import call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

WIDTH = 80
_NAME, _FIGURE, _UNIT, _LIMIT = 42, 11, 10, 7
_DETAILS = 10
"""The number of detail lines that the table shows. ``--json`` has all of them."""


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


class Report(NamedTuple):
    """The result of one module, or its error."""

    name: str
    seconds: float
    result: Result
    error: str = ""
    """The error that the module raised."""

    @property
    def broken(self) -> list[str]:
        """The names of the rows that exceed their limits."""
        return ["error"] * bool(self.error) + [row.name for row in self.result.rows if not row.ok]


def main(package: ModuleType, arguments: Sequence[str] | None = None) -> int:
    """Run the modules of a package that the arguments name, and return the exit status."""
    modules = _modules(package)
    options = _parser(package, modules).parse_args(arguments)
    unknown = [name for name in options.names if name not in modules]
    if unknown:
        return _usage(f"no such name: {', '.join(unknown)}; there are {', '.join(modules)}")
    chosen = {name: modules[name] for name in options.names or modules}
    if options.list:
        _list(chosen, parameters=bool(options.names))
        return 0
    try:
        values = _values(chosen, options.set, quick=options.quick)
    except ValueError as error:
        return _usage(str(error))
    if options.folder is not None and not options.folder.is_dir():
        return _usage(f"{options.folder} is no folder")
    reports = []
    for number, (name, module) in enumerate(chosen.items()):
        _progress(name, module, quick=options.quick)
        report = _report(module, Options(options.folder, options.quick, values[name]))
        reports.append(report)
        if not options.json:
            _show(report, header=not number)
    broken = [f"{report.name}: {name}" for report in reports for name in report.broken]
    if options.json:
        print(json.dumps([_as_json(report) for report in reports], indent=2))
    else:
        print(f"\n{len(broken)} broken:" if broken else "\nAll limits hold.")
        for line in broken:
            print(_cut(f"  {line}"))
    return 1 if broken else 0


def _modules(package: ModuleType) -> dict[str, ModuleType]:
    # A subpackage has an entry point of its own.
    names = [
        module.name
        for module in pkgutil.iter_modules(package.__path__)
        if not module.ispkg and not module.name.startswith("_")
    ]
    return {name: importlib.import_module(f"{package.__name__}.{name}") for name in names}


def _parser(package: ModuleType, modules: Mapping[str, ModuleType]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {package.__name__}",
        description=package.__doc__,
        epilog="The exit status is 1 if a limit is broken.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(modules))
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument(
        "--folder",
        type=Path,
        help="real files instead of generated ones; testing/corpus.py says of which form",
    )
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the named ones; --list NAME shows what there is",
    )
    return parser


def _usage(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2


def _parameters(module: ModuleType) -> dict[str, Parameter]:
    return getattr(module, "PARAMETERS", {})


def _values(
    modules: Mapping[str, ModuleType], given: Sequence[str], *, quick: bool
) -> dict[str, dict[str, int | str]]:
    """Return the parameters of each module. Raises ValueError for a wrong ``--set``."""
    values = {
        name: {
            key: parameter.quick if quick else parameter.default
            for key, parameter in _parameters(module).items()
        }
        for name, module in modules.items()
    }
    for each in given:
        key, equals, text = each.partition("=")
        having = [name for name in values if key in values[name]]
        if not having or not equals:
            raise ValueError(f"--set {each}: {', '.join(modules)} have no such parameter")
        for name in having:
            default = _parameters(modules[name])[key].default
            try:
                values[name][key] = int(text) if isinstance(default, int) else text
            except ValueError:
                raise ValueError(f"--set {each}: {key} is a whole number") from None
    return values


def _list(modules: Mapping[str, ModuleType], *, parameters: bool) -> None:
    for name, module in modules.items():
        print(_cut(f"{name:<15} {_title(module)}"))
        if parameters:
            _, _, rest = (module.__doc__ or "").strip().partition("\n")
            for paragraph in filter(None, textwrap.dedent(rest).strip().split("\n\n")):
                print(textwrap.fill(paragraph, WIDTH, initial_indent="  ", subsequent_indent="  "))
            for key, parameter in _parameters(module).items():
                default = f"{parameter.default!r}, {parameter.quick!r} with --quick"
                line = f"--set {key}=…: {parameter.meaning} ({default})"
                print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="    "))


def _title(module: ModuleType) -> str:
    return (module.__doc__ or "").strip().partition("\n")[0]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _progress(name: str, module: ModuleType, *, quick: bool) -> None:
    """Print the name of a module to stderr. Only the table or the JSON goes to stdout."""
    duration: Duration = module.DURATION
    seconds = duration.quick if quick else duration.full
    about = f"about {seconds:.0f} s" if seconds < 100 else f"about {seconds / 60:.0f} min"
    line = f"{name} ({about}): {_title(module)}"
    print(textwrap.fill(line, WIDTH, subsequent_indent="  "), file=sys.stderr, flush=True)


def _report(module: ModuleType, options: Options) -> Report:
    name = module.__name__.rpartition(".")[2]
    began = time.monotonic()
    folder = str(options.folder.resolve()) if options.folder else None
    # This ends a module that hangs. No machine is so slow.
    timeout = 600 + 20 * module.DURATION.full
    error = ""
    rows: list[Any] = []
    details: list[str] = []
    try:
        values = [folder, options.quick, dict(options.parameters)]
        rows, details = call(run_here, module.__name__, *values, timeout=timeout)
    except (RuntimeError, subprocess.TimeoutExpired) as problem:
        error = str(problem)
    result = Result([Row(*row) for row in rows], details)
    return Report(name, time.monotonic() - began, result, error)


def run_here(
    module: str, folder: str | None, quick: bool, parameters: dict[str, int | str]
) -> tuple[Sequence[Row], Sequence[str]]:
    """Run one module in this process."""
    options = Options(Path(folder) if folder else None, quick, parameters)
    result: Result = importlib.import_module(module).run(options)
    return result.rows, result.details


def _show(report: Report, *, header: bool) -> None:
    if header:
        print(f"{'':<{_NAME}} {'figure':>{_FIGURE}} {'unit':<{_UNIT}} {'limit':>{_LIMIT}}")
    print(_cut(f"{report.name} ({report.seconds:.0f} s)"))
    for row in report.result.rows:
        *firsts, last = textwrap.wrap(row.name, _NAME - 2) or [""]
        for first in firsts:
            print(f"  {first}")
        limit = "" if row.limit is None else f"{_number(row.limit):>{_LIMIT}}"
        ok = "" if row.limit is None else "ok" if row.ok else "BROKEN"
        figure = f"{_number(row.figure):>{_FIGURE}} {row.unit:<{_UNIT}}"
        print(f"  {last:<{_NAME - 2}} {figure} {limit} {ok}".rstrip())
    for line in report.result.details[:_DETAILS]:
        print(_cut(f"    {line}"))
    if len(report.result.details) > _DETAILS:
        print(f"    … and {len(report.result.details) - _DETAILS} more; --json shows all")
    if report.error:
        print(textwrap.indent(report.error, "    "))
    sys.stdout.flush()


def _number(value: float) -> str:
    """Format whole numbers in full, and others with three significant digits."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1
    return f"{value:.{digits}f}"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "name": report.name,
        "seconds": round(report.seconds, 1),
        "rows": [{**row._asdict(), "ok": row.ok} for row in report.result.rows],
        "details": list(report.result.details),
        "error": report.error,
    }
