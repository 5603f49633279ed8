"""The last lines of `make test`."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from testing.results import Run, summary

if TYPE_CHECKING:
    from pathlib import Path

TESTS = """
def test_passed(): pass
def test_failed(): assert False
def test_skipped():
    import pytest
    pytest.skip()
"""


def test_a_file_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_three.py").write_text(TESTS)
    results = ["--junit-xml=results.xml", "-o", "junit_suite_name=one reactor"]
    options = [*results, "-p", "no:cacheprovider", "--rootdir=."]
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=tmp_path, check=False)
    assert Run.of(tmp_path / "results.xml") == Run("one reactor", 1, 1, 1)


def test_the_sum_is_the_last_line() -> None:
    runs = [Run("asyncio", 1000, 0, 2), Run("no reactor", 234, 1, 0)]
    assert summary(runs).splitlines() == [
        "  asyncio: 1,000 tests passed, 2 skipped",
        "  no reactor: 234 tests passed, 1 failed",
        "1,234 tests passed, 1 failed, 2 skipped in 2 configurations.",
    ]
