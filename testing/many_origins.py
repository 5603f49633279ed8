"""Thousands of origins, the requests to them, and the process that serves them.

The origins are those of :mod:`testing.soak`. :mod:`testing.origin_server` serves them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

from testing.processes import ROOT
from testing.soak import Mix, Soak
from testing.web import Page, Site, text

if TYPE_CHECKING:
    from typing_extensions import Self

    from testing.web import Misbehaviour, Pages

SPAN = 0.05
"""The part of the crawl in which most requests to an origin come."""

RETURNING = 0.05
"""The part of the requests to an origin that come at any time after it."""

LIFETIME = 12.0
"""Seconds for which the robots.txt of some origins may be used."""

MIX = Mix(hostile=48, paced_hosts=40, lifetime=LIFETIME)
"""Few origins have hostile rules: each of their files takes up to a second to parse. A worker that
is killed keeps a paced host for 30 seconds, so there are many."""


class Origins:
    """Origins at one port. It has the method of :class:`testing.web.Web` that makes a site."""

    def __init__(self, port: int) -> None:
        self._port = port

    def site(
        self, robots: str | bytes | Page | Misbehaviour, pages: Pages | None = None, *, host: str
    ) -> Site:
        """Make a site at an address."""
        page = text(robots) if isinstance(robots, (str, bytes)) else robots
        return Site(host, self._port, {"/robots.txt": page, **(pages or {})}, tls=False)


def workload(
    origins: int, seed: int, port: int, requests: int, delay: float
) -> tuple[Soak, list[tuple[int, str]]]:
    """Return the origins, and so many requests: the number of the origin and the path of each.

    ``delay`` is the Crawl-delay of some origins. The result is the same for each call with the same
    arguments.
    """
    mix = MIX._replace(delay=delay)
    soak = Soak(Origins(port), origins, seed, mix)  # type: ignore[arg-type]
    made = [
        (number, path)
        for number, (_, _, kind) in enumerate(soak.sites)
        for path in ("/private", "/public", "/faulty", "/moved", *kind.paths)
    ][:requests]
    for number in range(requests - len(made)):
        page, origin = divmod(number, len(soak.sites))
        made.append((origin, f"/{'public' if page % 2 else 'private'}/{page}"))
    return soak, _ordered(made, len(soak.sites), Random(seed))


def _ordered(
    requests: list[tuple[int, str]], origins: int, chance: Random
) -> list[tuple[int, str]]:
    """Return the requests as a broad crawl finds them: those to an origin near to each other."""
    begins = [chance.uniform(0, 1 - SPAN) for _ in range(origins)]
    times = []
    for origin, _ in requests:
        returns = chance.random() < RETURNING
        times.append(chance.uniform(begins[origin], 1 if returns else begins[origin] + SPAN))
    order = sorted(range(len(requests)), key=times.__getitem__)
    return [requests[number] for number in order]


class ManyOrigins:
    """The process of the origins. It ends at the end of the block."""

    def __init__(self, origins: int, seed: int, delay: float) -> None:
        arguments = [str(origins), str(seed), str(delay)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "testing.origin_server", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> dict[str, Any]:
        """End the process, and return what it has received."""
        output, _ = self._process.communicate(timeout=60)
        found: dict[str, Any] = json.loads(output)
        return found
