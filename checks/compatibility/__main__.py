"""Installs and runs the cases, one after the other: see the docstring of this package."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from .table import FAILED, KNOWN, NOT_RUN, OK, Row, distribution_of, rendered

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".venv-compatibility"

TIME_LIMIT = 180
"""Seconds for one check."""
INSTALLATION_TIME_LIMIT = 900


class InstallationError(Exception):
    """The environment of a case could not be made."""


def main() -> int:
    """Run the cases that are named, or all. Returns 1 if a check failed."""
    names = sorted(path.stem.removeprefix("case_") for path in Path(__file__).parent.glob("case_*"))
    parser = argparse.ArgumentParser("checks.compatibility", description=__doc__)
    parser.add_argument("case", nargs="*", help=f"of {', '.join(names)}; all if none is named")
    parser.add_argument("--scrapy", metavar="VERSION", help="the version of Scrapy to install")
    arguments = parser.parse_args()
    unknown = set(arguments.case) - set(names)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    rows = []
    for name in arguments.case or names:
        for row in _run_case(name, arguments.scrapy):
            print(f"{row.case}: {row.check}: {row.status}", file=sys.stderr, flush=True)
            rows.append(row)
    print(rendered(rows))
    return int(any(row.status == FAILED for row in rows))


def _run_case(name: str, scrapy: str | None) -> Iterator[Row]:
    module = import_module(f"checks.compatibility.case_{name}")
    requirements: tuple[str, ...] = module.REQUIREMENTS
    if scrapy:
        requirements = (*requirements, f"scrapy=={scrapy}")
    environment = ENVIRONMENTS / (f"{name}-{scrapy}" if scrapy else name)
    try:
        python = _installed(environment, requirements)
    except InstallationError as error:
        yield Row(name, "", "installation", NOT_RUN, str(error))
        return
    known: dict[str, str] = getattr(module, "KNOWN_FAULTS", {})
    for check in module.CHECKS:
        row = _run_check(python, name, check.__name__, module.REQUIREMENTS)
        yield _with_known_fault(row, known.get(check.__name__))


def _with_known_fault(row: Row, fault: str | None) -> Row:
    """Return the result of a check that a fault of the plugin makes fail."""
    if fault is not None and row.status == FAILED:
        return row._replace(status=KNOWN, message=fault)
    if fault is not None and row.status == OK:
        return row._replace(status=FAILED, message=f"this works now: {fault}")
    return row


def _installed(environment: Path, requirements: tuple[str, ...]) -> Path:
    """The Python of an environment in which these requirements and this checkout are installed."""
    python = environment / "bin" / "python"
    note = environment / "installed.txt"
    wanted = "\n".join([*requirements, (ROOT / "pyproject.toml").read_text()])
    if note.exists() and note.read_text() == wanted:
        return python
    venv.create(environment, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*pip, "install", "-e", str(ROOT), *requirements],
            capture_output=True,
            text=True,
            timeout=INSTALLATION_TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallationError(f"pip took over {INSTALLATION_TIME_LIMIT} s") from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise InstallationError((errors or ["ERROR: pip failed"])[-1].removeprefix("ERROR: "))
    note.write_text(wanted)
    return python


def _run_check(python: Path, case: str, check: str, requirements: tuple[str, ...]) -> Row:
    title = check.replace("_", " ")
    log = ENVIRONMENTS / "logs" / f"{case}.{check}.log"
    log.parent.mkdir(exist_ok=True)
    try:
        with log.open("w") as stderr:
            done = subprocess.run(
                [python, "-m", "checks.compatibility.child", case, check],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                timeout=TIME_LIMIT,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return Row(case, "", title, FAILED, f"not over after {TIME_LIMIT} s")
    try:
        result = json.loads(done.stdout.splitlines()[-1])
        versions = f"Scrapy {result['scrapy']}"
        if result["plugin"]:
            versions = f"{distribution_of(requirements[0])} {result['plugin']}, {versions}"
        return Row(case, versions, title, result["status"], result["message"])
    except (IndexError, KeyError, ValueError):
        last = log.read_text().splitlines()[-1:]
        return Row(case, "", title, FAILED, f"exit status {done.returncode}: {last}")


if __name__ == "__main__":
    sys.exit(main())
