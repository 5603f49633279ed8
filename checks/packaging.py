"""The archives of a release, installed as users install them.

Builds the source distribution and the wheel. The source distribution must pass its own tests. The
wheel must pass the tests of crawls in an environment that has nothing else, from a folder without
this checkout. Each extra is installed alone: its feature must work, and those of the others must
say which package is missing. The extras for development are installed alone, too, and their tools
must start; ``docs`` builds the documentation of the source distribution. With ``--quick``, the
tests of the two archives are only collected.

The check needs a package index, and the packages of the extra ``release``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(900, 180)
PARAMETERS = {"workers": Parameter(6, 6, "processes that run tests side by side")}

ROOT = Path(__file__).parents[1]
TIMEOUT = 3600
"""Seconds for one command."""

DEMO = ("scrapy", "crawl", "demo", "-s", "REP_REPORT=")
REPORT = ("scrapy", "crawl", "demo", "-s", "REP_REPORT=demo.html")
ARCHIVE = (*DEMO, "-s", "REP_ARCHIVE=exchanges.warc.gz")
REDIS = (*DEMO, "-s", "REP_STORE=redis://127.0.0.1:1/0")


class Feature(NamedTuple):
    """What an extra is for."""

    command: Sequence[str]
    works: str
    """A part of the output if the extra is installed."""
    missing: str
    """A part of the output if it is not."""


FEATURES = {
    "archive": Feature(ARCHIVE, "0 disallowed pages", "pip install warcio"),
    "cli": Feature(("scrapy-rep", "lint", "robots.txt"), "misspelled-field", "scrapy-rep[cli]"),
    # No server has this address: the store says so.
    "redis": Feature(REDIS, "refused", "pip install redis"),
    "report": Feature(REPORT, "0 disallowed pages", "scrapy-rep[report]"),
    "survey": Feature(("scrapy-rep", "survey", ".", "--json"), '"files"', "scrapy-rep[cli]"),
}

TOOLS = {
    "docs": ("sphinx-build", "-W", "--keep-going", "--quiet", "docs", "build/docs"),
    "fuzz": ("python", "-c", "import atheris"),
    "matrix": ("nox", "--list"),
    "release": ("python", "-m", "build", "--version"),
    "test": ("pytest", "--version"),
}
"""What the extras for development are for: a command that must succeed."""


def run(options: Options) -> Result:
    """Return the number of steps that failed. Each of them is a detail."""
    with TemporaryDirectory() as folder:
        steps = list(_steps(Path(folder), options))
    failed = [(name, error) for name, error in steps if error]
    rows = [
        Row("steps", len(steps), "steps"),
        Row("steps that failed", len(failed), "steps", 0),
    ]
    return Result(rows, [line for name, error in failed for line in (f"{name}:", *error)])


def _steps(folder: Path, options: Options) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each step, and the end of its output if it failed."""
    here = [sys.executable, "-m"]
    dist = folder / "dist"
    yield "build", _failure([*here, "build", "--outdir", str(dist)], ROOT)
    archives = sorted(map(str, dist.glob("*")))
    yield "twine check", _failure([*here, "twine", "check", "--strict", *archives], ROOT)
    source, wheel = (next(dist.glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / source.name.removesuffix(".tar.gz")

    installed = folder / "test"
    yield "install the wheel with the extra test", _installed(installed, f"{wheel}[test]")
    pytest = [str(installed / "bin/python"), "-m", "pytest", "--reactor=asyncio", "-q"]
    pytest += ["--collect-only"] if options.quick else ["-n", str(options.number("workers"))]
    crawls = folder / "crawls"
    for name in ("tests", "testing", "pyproject.toml"):
        copy = shutil.copytree if (unpacked / name).is_dir() else shutil.copy
        crawls.mkdir(exist_ok=True)
        copy(unpacked / name, crawls / name)
    yield "tests of crawls with the wheel", _failure([*pytest, "tests/crawl"], crawls)
    yield "tests of the source distribution", _failure(pytest, unpacked)

    yield from _extras(folder, wheel, unpacked / "example_project")
    for extra, command in TOOLS.items():
        environment = folder / f"{extra} alone"
        yield f"extra {extra}: install", _installed(environment, f"{wheel}[{extra}]")
        yield f"extra {extra}: {' '.join(command)}", _failure(command, unpacked, environment)
        shutil.rmtree(environment)


def _extras(folder: Path, wheel: Path, project: Path) -> Iterator[tuple[str, list[str]]]:
    (project / "robots.txt").write_text("User-agent: *\nDisalow: /private\n")
    for extra in ("", *FEATURES):
        environment = folder / (extra or "none")
        name = f"extra {extra}" if extra else "no extra"
        yield (
            f"{name}: install",
            _installed(environment, f"{wheel}[{extra}]" if extra else str(wheel)),
        )
        yield f"{name}: crawl", _failure(DEMO, project, environment)
        for other, (command, works, missing) in FEATURES.items():
            expected = works if other == extra else missing
            yield f"{name}: {' '.join(command)}", _without(expected, command, project, environment)
        shutil.rmtree(environment)


def _installed(environment: Path, requirement: str) -> list[str]:
    venv.create(environment, with_pip=True)
    pip = [str(environment / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    return _failure([*pip, "install", requirement], environment) or _failure(
        [*pip, "check"], environment
    )


def _failure(command: Sequence[str], folder: Path, environment: Path | None = None) -> list[str]:
    """Run a command, and return the end of its output if it failed."""
    status, output = _run(command, folder, environment)
    return [f"exit status {status}", *output.splitlines()[-8:]] if status else []


def _without(text: str, command: Sequence[str], folder: Path, environment: Path) -> list[str]:
    """Run a command, and return the end of its output if it does not contain a text."""
    _, output = _run(command, folder, environment)
    return [] if text in output else [f"no {text!r} in:", *output.splitlines()[-8:]]


def _run(command: Sequence[str], folder: Path, environment: Path | None) -> tuple[int, str]:
    """Run a command, of an environment if there is one. Returns its exit status and its output."""
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if environment is not None:
        variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{variables['PATH']}"
    try:
        done = subprocess.run(
            [*command],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError as error:
        return 127, str(error)
    return done.returncode, done.stdout
