"""Crawls that a signal stops at a random moment, and that go on until they have finished.

A crawl with JOBDIR gets SIGINT once or twice, SIGTERM or SIGKILL. It is started again until it
finishes. The server counts the pages that were never requested, and those requested twice. After
SIGKILL, and after a second SIGINT, which ends it at once, a crawl may lose the pages that it
yielded in its last second.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from testing.harness import ROOT, Duration, Options, Parameter, Result, Row
from testing.web import Page, Web

KINDS = "SIGINT SIGINT2 SIGTERM SIGKILL"
ORDERLY = "SIGINT", "SIGTERM"
"""After these, the spider closes."""

DURATION = Duration(6000, 150)
PARAMETERS = {
    "signals": Parameter(1000, 20, "signals"),
    "pages": Parameter(200, 200, "pages of each crawl"),
    "seed": Parameter(1, 1, "chooses the moments"),
    "kinds": Parameter(KINDS, KINDS, "which signals"),
    "scrapy": Parameter(0, 0, "1: without scrapy-rep"),
}
SITES = 5
MOST_RUNS = 5
"""After so many runs, a crawl that has not finished has lost its pages."""


class Stopped:
    """One crawl, which is stopped by a signal and then finished."""

    def __init__(self, web: Web, pages: int, addon: str) -> None:
        robots = Page("User-agent: *\nDisallow: /private\n", headers={"Content-Type": "text/plain"})
        self.pages = pages
        numbers = {f"/{number}": Page(delay=0.02) for number in range(1, pages + 1)}
        self.sites = [
            web.site(robots, numbers, host=f"127.0.2.{number + 1}") for number in range(SITES)
        ]
        self._addon = addon

    def run(self, kind: str, fraction: float, seconds: float) -> bool:
        """Stop the crawl after a part of so many seconds, and run it until it has finished."""
        with TemporaryDirectory() as folder:
            job = Path(folder, "job")
            process = self._start(job)
            time.sleep(fraction * seconds)
            for _ in range(2 if kind == "SIGINT2" else 1 if kind else 0):
                process.send_signal(signal.Signals[kind.rstrip("2")])
                time.sleep(0.05)
            self.output = self._end(process)
            for _ in range(MOST_RUNS):
                before = self.requested.total()
                self.output += self._end(self._start(job))
                if self.requested.total() == before:
                    return True
        return False

    def _start(self, job: Path) -> subprocess.Popen[str]:
        arguments = [str(job), self._addon, str(self.pages), *(site.root for site in self.sites)]
        process = subprocess.Popen(
            [sys.executable, "-m", "checks._stopped", *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        process.stdout.readline()
        return process

    def _end(self, process: subprocess.Popen[str]) -> str:
        output, _ = process.communicate(timeout=120)
        return output

    @property
    def requested(self) -> Counter[int]:
        """How often each page was requested."""
        paths = (path for site in self.sites for path in site.page_paths)
        return Counter(int(path[1:]) for path in paths)


def run(options: Options) -> Result:
    """Stop the crawls, and count what is lost or requested twice."""
    chance, web = random.Random(options.number("seed")), Web()
    addon = "" if options.number("scrapy") else "scrapy_rep.Addon"
    pages, kinds = options.number("pages"), options.text("kinds").split()
    lost, twice, most_lost = Counter[str](), Counter[str](), 0
    details = []
    began = time.monotonic()
    Stopped(web, pages, addon).run("", 0, 0)
    seconds = (time.monotonic() - began) / 2  # the second run finds nothing to do
    for number in range(options.number("signals")):
        kind, fraction = kinds[number % len(kinds)], chance.random()
        crawl = Stopped(web, pages, addon)
        crawl.run(kind, fraction, seconds)
        missing = [page for page in range(1, pages + 1) if not crawl.requested[page]]
        again = [page for page, times in crawl.requested.items() if times > 1]
        lost[kind] += len(missing)
        twice[kind] += len(again)
        if kind not in ORDERLY:
            most_lost = max(most_lost, len(missing))
        elif missing or again:
            details.append(f"{kind} after {fraction * seconds:.3f} s: {missing=} {again=}")
            details += crawl.output.splitlines()
    no_loss = {kind: 0 if kind in ORDERLY else None for kind in kinds}
    rows = [Row(f"pages lost after {kind}", lost[kind], "pages", no_loss[kind]) for kind in kinds]
    # The last second of the queue may be lost.
    rows.append(Row("most pages lost after an end at once", most_lost, "pages", pages / seconds))
    rows += [
        Row(f"pages again after {each}", twice[each], "pages", no_loss[each]) for each in kinds
    ]
    return Result(rows, details)
