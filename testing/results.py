"""Adds up the results of several runs of pytest: ``python -m testing.results FOLDER``.

The folder holds a JUnit XML file of each run. The attribute ``name`` of its test suite says in
which configuration it ran.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

if sys.version_info < (3, 11):
    from typing_extensions import Self
else:
    from typing import Self


class Run(NamedTuple):
    """The numbers of one run."""

    name: str
    passed: int
    failed: int
    skipped: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read a JUnit XML file."""
        suite = ElementTree.parse(path).getroot().find("testsuite")
        assert suite is not None, f"{path} is not a file of pytest"
        tests, failures, errors, skipped = (
            int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped")
        )
        failed = failures + errors
        return cls(suite.attrib["name"], tests - failed - skipped, failed, skipped)


def summary(runs: list[Run]) -> str:
    """Return a line for each run, and the sum as the last line."""
    lines = [f"  {run.name}: {_numbers(run.passed, run.failed, run.skipped)}" for run in runs]
    total = _numbers(*(sum(column) for column in zip(*(run[1:] for run in runs), strict=True)))
    return "\n".join([*lines, f"{total} in {len(runs)} configurations."])


def _numbers(passed: int, failed: int, skipped: int) -> str:
    others = ((failed, "failed"), (skipped, "skipped"))
    return ", ".join(
        [f"{passed:,} tests passed", *(f"{number:,} {what}" for number, what in others if number)]
    )


if __name__ == "__main__":
    print(summary([Run.of(path) for path in sorted(Path(sys.argv[1]).glob("*.xml"))]))
