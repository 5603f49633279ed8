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
    found = call(defects.problems)
    expected = {
        "nothing": "",
        "the pace": " s after ",
        "the rules": "was sent, against",
        "the order": " came after ",
        "nothing with calls": "",
        "the counters": "are left: requests beyond CONCURRENT_REQUESTS",
        "the alarms": "the crawl ",
        "nothing with a back-off": "",
        "the back-off": "to a host that is held",
        "nothing with an error": "",
        "the schedule": " times in a row",
    }
    assert found.keys() == expected.keys()
    for name in tuple(found):
        if name.startswith("nothing"):
            assert found.pop(name) == [], name
    for name, problems in found.items():
        known = (expected[name], "the crawl ")  # or it hangs, or does not end
        assert any(each in problem for each in known for problem in problems), (name, problems)
