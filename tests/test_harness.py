"""The entry point of benchmarks and checks: its parameters, its table and its exit status."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING

import pytest

from testing import harness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

MODULES = {
    "fast": """\
'''How fast it is.'''
from testing.harness import Duration, Parameter, Result, Row
DURATION = Duration(100, 1)
PARAMETERS = {"rounds": Parameter(7, 3, "how often")}
def run(options):
    print("a word on the way")
    return Result([Row("rounds", options.number("rounds"), "rounds", 50)], ["detail"] * 20)
""",
    "broken": """\
'''Raises.'''
from testing.harness import Duration
DURATION = Duration(1, 1)
def run(options):
    raise ValueError("no such thing")
""",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with a module that works, and one that raises an error."""
    folder = tmp_path / "measurements"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield importlib.import_module("measurements")
    for name in [name for name in sys.modules if name.startswith("measurements")]:
        del sys.modules[name]


def test_parameters_and_json(package: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, rounds in (([], 7), (["--quick"], 3), (["--quick", "--set", "rounds=50"], 50)):
        assert harness.main(package, ["fast", "--json", *arguments]) == 0
        (report,) = json.loads(capsys.readouterr().out)
        assert len(report["details"]) == 20
        assert report["rows"] == [
            {"name": "rounds", "figure": rounds, "unit": "rounds", "limit": 50, "ok": True}
        ]


def test_a_failure_gives_exit_status_1_and_the_other_modules_run(
    package: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harness.main(package, ["--set", "rounds=51"]) == 1
    output = capsys.readouterr().out
    assert "ValueError: no such thing" in output
    assert "50 BROKEN" in output
    assert output.endswith("\n2 broken:\n  broken: error\n  fast: rounds\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["slow"], "no slow; there are broken, fast"),
        (["--folder", "nowhere"], "nowhere is no folder"),
        (["--set", "turns=1"], "no parameter turns"),
        (["--set", "rounds"], "rounds is not NAME=VALUE"),
    ],
)
def test_wrong_arguments_are_reported(
    package: ModuleType, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        harness.main(package, arguments)
    assert problem in capsys.readouterr().err
