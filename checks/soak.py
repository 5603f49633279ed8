"""Crawls of many origins with faults at random.

Runs one crawl for each of :data:`testing.soak.VARIANTS`, in a process of its own. Each origin has
an address on loopback. Every request must end once: in a response, in RobotsTxtDisallowed or in its
own download error. No server may receive a request for a page that its robots.txt disallows. All
counters must be zero at the end.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from testing.harness import Duration, Parameter, Result, Row
from testing.measure import process_on
from testing.processes import call
from testing.soak import VARIANTS, Soak, SoakSpider, circumstances, logged
from testing.web import Web

if TYPE_CHECKING:
    from testing.harness import Options

DURATION = Duration(420, 60)
PARAMETERS = {
    "variants": Parameter("", "by slot; everything", f"of {'; '.join(VARIANTS)}; all if empty"),
    "origins": Parameter(500, 50, "origins of each crawl"),
    "seed": Parameter(1, 1, "chooses the faults"),
    "loop": Parameter("asyncio", "asyncio", "asyncio, Twisted's default or none"),
}


def run(options: Options) -> Result:
    """Count the problems of each crawl."""
    names = [name.strip() for name in options.text("variants").split(";") if name.strip()]
    rows = []
    details = []
    for name in names or VARIANTS:
        values = [options.number("origins"), options.number("seed"), options.text("loop")]
        found = call(crawl, name, *values, timeout=60 + 2 * options.number("origins"))
        rows += [
            Row(f"{name}: requests", found["requests"], f"in {found['seconds']:.0f} s"),
            *(Row(f"  {end}", count, "requests") for end, count in found["ends"]),
            Row("  answered later than REP_TIMEOUT", found["late"], "origins"),
            Row("  peak, the servers included", found["peak"], "MiB"),
            Row(f"{name}: problems", len(found["problems"]), "problems", 0),
        ]
        details += [f"{name}: {problem}" for problem in found["problems"]]
    return Result(rows, details)


def crawl(name: str, origins: int, seed: int, loop: str) -> dict[str, Any]:
    """Crawl in this process, and return the outcome."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    web = Web()
    soak = Soak(web, origins, seed)
    with (
        TemporaryDirectory() as folder,
        circumstances(VARIANTS[name], soak, Path(folder, "robots.db")) as settings,
        logged() as log,
    ):
        process = process_on(loop, {**settings, "LOG_ENABLED": False})
        crawler = process.create_crawler(SoakSpider)
        began = time.monotonic()
        process.crawl(crawler, urls=soak.urls)
        process.start()
        took = time.monotonic() - began
    found = {
        "requests": len(soak.urls),
        "seconds": took,
        "ends": soak.summary(crawler).most_common(),
        # They answered too late because the machine was busy, and were unreachable.
        "late": len(soak.late(log)),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "problems": soak.problems(crawler, log),
    }
    web.close()
    return found
