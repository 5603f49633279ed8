"""Random crawls on a virtual clock obey the laws, and a crawl that breaks one is found."""

from __future__ import annotations

from typing import Any

import pytest
import scrapy

from testing import harness, simulation

from . import defects

EXAMPLES = 500
"""They take about 30 seconds of CPU time, in four processes."""

pytestmark = pytest.mark.skipif(
    scrapy.version_info < (2, 15),
    reason="the simulation runs without a reactor, which needs Scrapy 2.15 or later",
)


def call(function: Any, *arguments: Any) -> Any:
    """Call a function in a process without a reactor."""
    return harness.call(function, *arguments, timeout=600)


@pytest.mark.parametrize("seed", range(4))
def test_random_crawls_obey_the_laws(seed: int) -> None:
    call(simulation.check, EXAMPLES // 4, seed, False)


def test_crawls_with_an_error_in_one_function_obey_the_laws() -> None:
    call(simulation.check_errors)


def test_the_simulation_finds_defects() -> None:
    for name, found in call(defects.problems).items():
        expected = defects.DEFECTS[name].problem
        known = (expected, "the crawl ")  # or it hangs, or does not end
        if expected:
            assert any(each in problem for each in known for problem in found), (name, found)
        else:
            assert found == [], name
