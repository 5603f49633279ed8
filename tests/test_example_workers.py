"""`scrapy workers` of the example project, as its README says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .test_example_project import PROJECT, TIMEOUT, environment, table

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the example web needs all of 127.0.0.0/8"
)


def test_workers_share_everything() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "workers", "-n", "3"],
        cwd=PROJECT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    assert "ERROR" not in done.stderr
    assert done.stdout.rstrip().endswith(
        "123 requests: each robots.txt once, every allowed page once, no disallowed page, "
        "and the pace kept"
    )
    workers = table(done.stdout, "Workers")
    assert len(workers) == 3
    assert sum(int(row["pages"]) for row in workers) == 99
    assert sum(int(row["robots.txt fetched"]) for row in workers) == 24
