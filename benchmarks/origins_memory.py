"""Memory of 100,000 origins, each with a file and one verdict.

The files are repeated until there are enough origins. Each of them is parsed again, so that no
origin shares memory with another.
"""

from __future__ import annotations

import gc
import time
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.protocol.access import CopyInfo, Rules
from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing.corpus import load
from testing.harness import Duration, Parameter, Result, Row

if TYPE_CHECKING:
    from testing.harness import Options

DURATION = Duration(150, 10)
PARAMETERS = {
    "files": Parameter(2000, 500, "generated files"),
    "origins": Parameter(100_000, 5000, "origins"),
}

AGENTS = ("examplebot",)


def resident() -> int:
    """Return the memory of this process in octets."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def origin_with(number: int, body: bytes) -> Origin:
    """Return an origin in the state after its first request."""
    origin = Origin(f"https://host{number}.example")
    url = f"https://host{number}.example/robots.txt"
    origin.start_fetch(0.0)
    copy = CopyInfo(url, etag=f'"{number:x}"', sha256=f"{number:064x}")
    origin.apply(Rules(RobotsTxt.parse(body, url=url), 200, copy, 86_400.0), 0.0)
    origin.verdict(f"https://host{number}.example/some/page.html", AGENTS, 0.0, UnreachablePolicy())
    return origin


def run(options: Options) -> Result:
    """Return the memory of all origins and of one, and the time."""
    corpus = load(options.folder, files=options.number("files"))
    bodies = corpus.bodies
    gc.collect()
    before = resident()
    began = time.process_time()
    origins = {
        origin.key: origin
        for origin in (
            origin_with(number, body)
            for number, body in enumerate(islice(cycle(bodies), options.number("origins")))
        )
    }
    took = time.process_time() - began
    gc.collect()
    grown = resident() - before
    return Result(
        [
            Row(f"{corpus.source}, on average", sum(map(len, bodies)) / len(bodies), "octets"),
            Row("origins", len(origins), "origins"),
            Row("CPU of all", took, "s"),
            Row("memory of all", grown / 2**20, "MiB"),
            Row("memory of an origin", grown / len(origins), "octets"),
        ]
    )
