"""Crawls two paced hosts of :mod:`testing.simulation`, on a virtual clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from testing import simulation
from testing.simulation import Answer, Ask, Network, Site
from tests.test_simulation import SCENARIO

DELAYS = (3.0, 20.0)
PATHS = [f"/{'private/' * (number % 3 == 0)}a" for number in range(40)]
"""Each host has these pages. The first is disallowed, as each third one is."""


def seconds() -> list[float]:
    """Return for each delay the seconds from the first page of its host to the last one."""
    networks = []

    def network(*arguments: Any) -> Network:
        networks.append(Network(*arguments))
        return networks[0]

    sites = tuple(
        Site(number, 8000, (Answer("private", delay=delay),), page_latency=0.1)
        for number, delay in enumerate(DELAYS)
    )
    asks = tuple(Ask(0, number, path) for path in PATHS for number in range(len(DELAYS)))
    with patch.object(simulation, "Network", network):
        problems = simulation.run(replace(SCENARIO, sites=sites, asks=asks))
    assert not problems, problems
    found = []
    for site in sites:
        times = [at for at, request in networks[0].pages if request.url.startswith(site.root)]
        found.append(times[-1] - times[0])
    return found
