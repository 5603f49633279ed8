"""The entry point of benchmarks and checks: its arguments, its table and its exit status."""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING

import pytest

import benchmarks
import checks
from testing import harness
from testing.harness import WIDTH, Options, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

MODULES = {
    "fast": """
        '''How fast it is, with a title that is far too long for a single line of a table of eighty.

        More of it.
        '''
        from testing.harness import Duration, Parameter, Result, Row
        DURATION = Duration(100, 1)
        PARAMETERS = {"rounds": Parameter(7, 3, "how often"), "store": Parameter("", "", "a URL")}
        def run(options):
            print("a word on the way")
            rounds = Row("rounds", options.number("rounds"), "rounds", 50)
            folder = Row("a folder" + " with a long name" * 5, bool(options.folder), "folders")
            return Result([rounds, folder], ["detail " + "x" * 100] * 20)
    """,
    "broken": """
        '''Raises.'''
        from testing.harness import Duration
        DURATION = Duration(1, 1)
        def run(options):
            raise ValueError("no such thing")
    """,
    "_helper": "raise ValueError",
}  # fmt: skip


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with a module that works, one that raises an error and one without ``run``."""
    folder = tmp_path / "measurements"
    (folder / "within").mkdir(parents=True)
    (folder / "within" / "__init__.py").write_text("raise ValueError")
    (folder / "__init__.py").write_text("'''Some measurements.'''")
    for name, text in MODULES.items():
        lines = text.split("\n")
        (folder / f"{name}.py").write_text("\n".join(line.removeprefix(" " * 8) for line in lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    yield importlib.import_module("measurements")
    for name in [name for name in sys.modules if name.startswith("measurements")]:
        del sys.modules[name]


def test_the_table_has_eighty_columns(
    package: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harness.main(package, ["fast"]) == 0
    output, errors = capsys.readouterr()
    assert max(map(len, (output + errors).splitlines())) <= WIDTH
    assert errors.startswith("fast (about 2 min): How fast it is")
    assert "rounds" in output
    assert "50 ok" in output
    assert "… and 10 more; --json shows all" in output
    assert "All limits hold." in output


def test_parameters_and_json(package: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    def rounds(*arguments: str) -> float:
        harness.main(package, ["fast", "--json", *arguments])
        (report,) = json.loads(capsys.readouterr().out)
        assert len(report["details"]) == 20
        row = report["rows"][0]
        assert row == {
            "name": "rounds", "figure": row["figure"], "unit": "rounds", "limit": 50, "ok": True
        }  # fmt: skip
        return float(row["figure"])

    assert rounds() == 7
    assert rounds("--quick") == 3
    assert rounds("--quick", "--set", "rounds=50") == 50


def test_folder(package: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    harness.main(package, ["fast", "--json", "--folder", str(tmp_path)])
    (report,) = json.loads(capsys.readouterr().out)
    assert report["rows"][1]["figure"] == 1


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
        (["slow"], "no such name: slow; there are broken, fast"),
        (["--folder", "nowhere"], "nowhere is no folder"),
        (["--set", "turns=1"], "--set turns=1: broken, fast have no such parameter"),
        (["--set", "rounds"], "--set rounds: broken, fast have no such parameter"),
        (["--set", "rounds=x"], "--set rounds=x: rounds is a whole number"),
    ],
)
def test_wrong_arguments_are_reported(
    package: ModuleType,
    arguments: list[str],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert harness.main(package, arguments) == 2
    assert capsys.readouterr().err == f"{problem}\n"


def test_list(package: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness.main(package, ["--list"]) == 0
    broken, fast = capsys.readouterr().out.splitlines()
    assert broken.split() == ["broken", "Raises."]
    assert len(fast) == WIDTH
    assert harness.main(package, ["--list", "fast"]) == 0
    output = capsys.readouterr().out
    assert "More of it." in output
    assert "--set rounds=…: how often (7, 3 with --quick)" in output


@pytest.mark.parametrize("package", [benchmarks, checks])
def test_all_titles_fit_in_the_list(
    package: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert harness.main(package, ["--list"]) == 0
    assert "…" not in capsys.readouterr().out


def test_a_check_runs_in_a_process_of_its_own() -> None:
    assert harness.main(checks, ["spec_tests", "--quick", "--json"]) == 0


def test_a_row_without_a_limit_is_ok() -> None:
    assert Row("a", 1, "s").ok
    assert Row("a", 1, "s", 1).ok
    assert not Row("a", 1.01, "s", 1).ok
    assert Options().parameters == {}
