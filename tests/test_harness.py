"""The entry point of benchmarks and checks: its parameters, its table and its exit status."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from testing import harness
from testing.harness import Duration, Parameter, Result, Row


def fast(options: harness.Options) -> Result:
    return Result([Row("rounds", options.number("rounds"), "rounds", 50)], ["detail"] * 20)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package with a module that works, and one that fails in its process."""
    modules: dict[str, Any] = {"measurements.fast": fast, "measurements.broken": None}
    made = {}
    for name, function in modules.items():
        module: Any = ModuleType(name, "What it measures.")
        module.DURATION, module.run = Duration(100, 1), function
        module.PARAMETERS = {"rounds": Parameter(7, 3, "how often")}
        made[name.partition(".")[2]] = module

    def call(_: object, name: str, *values: Any, timeout: float) -> Result:
        if modules[name] is None:
            raise RuntimeError("no such thing")
        return fast(harness.Options(*values))

    monkeypatch.setattr(harness, "call", call)
    monkeypatch.setattr(harness, "modules_of", lambda _: made)
    return ModuleType("measurements")


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
    assert "no such thing" in output
    assert "51 rounds     limit      50 BROKEN" in output
    assert output.endswith("\n2 broken:\n  fast: rounds\n  broken: error\n")
