"""`scrapy workers`: a crawl of several workers on one queue, from its start to its report."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from example.report import table
from example.web.process import PROJECT, WebProcess
from example.web.sites import ROBOTS_TXT
from example.web.workers import PACE, worker_sites

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from example.web.sites import Site

TIMEOUT = 120.0
"""Seconds in which the workers have to be done."""

INACCURACY = 0.1
"""Seconds by which a request may come early: how long it takes to get here differs."""


class Command(ScrapyCommand):
    requires_project = True
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def short_desc(self) -> str:
        return "Run several workers that share a queue, robots.txt files and the pace of sites"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-n", dest="number", type=int, default=2, help="how many (2)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args or opts.number < 1:
            raise UsageError("scrapy workers [-n NUMBER]")
        try:
            # Only this command needs them.
            import scrapy_redis  # type: ignore[import-untyped]  # noqa: F401

            from example.redis_server import redis_server
        except ImportError:
            print("pip install 'scrapy-rep[redis]' scrapy-redis", file=sys.stderr)
            self.exitcode = 1
            return
        try:
            with redis_server() as url:
                web = WebProcess("workers")
                try:
                    done = run_workers(opts.number, web.port, url)
                finally:
                    received = web.stop_with_times()
        except RuntimeError as error:
            print(error, file=sys.stderr)
            self.exitcode = 1
            return
        rows = [[str(number), *map(str, each.values())] for number, each in enumerate(done, 1)]
        print(
            table("Workers", ("worker", "pages", "robots.txt fetched", "known from others"), rows)
        )
        if not report(worker_sites(web.port), received):
            self.exitcode = 1


def run_workers(number: int, port: int, redis_url: str) -> list[dict[str, Any]]:
    """What each of them says of itself in the end."""
    settings = {"REDIS_URL": redis_url, "REP_STORE": redis_url}
    arguments = [part for setting in settings.items() for part in ("-s", "=".join(setting))]
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "worker", "-a", f"port={port}", *arguments],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
        )
        for _ in range(number)
    ]
    try:
        said = [worker.communicate(timeout=TIMEOUT)[0] for worker in workers]
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"the workers are not done after {TIMEOUT:.0f} s") from None
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    if any(worker.returncode for worker in workers):
        raise RuntimeError("a worker has failed")
    return [json.loads(each) for each in said]


def report(sites: Sequence[Site], received: Sequence[tuple[str, float]]) -> bool:
    """Print what the servers received, by their own record; whether all is as it should be."""
    asked = Counter(url for url, _ in received)
    times = defaultdict(list)
    for url, at in received:
        times[url.split("/")[2]].append(at)
    rows, good = [], True
    for site in sites:
        pages = sum(asked[site.origin + path] for path in site.allowed)
        disallowed = sum(asked[site.origin + path] for path in site.disallowed)
        fetches = asked[site.origin + ROBOTS_TXT]
        least = min(_gaps(times[site.origin.split("/")[2]]), default=0.0)
        rows.append(
            (site.origin, site.name, str(fetches), str(pages), str(disallowed), f"{least:.2f} s")
        )
        slow = site is sites[-1]
        good &= fetches == 1 and pages == len(site.allowed) and not disallowed
        good &= not slow or least >= PACE - INACCURACY
    head = ("origin", "what it is", "robots.txt", "pages", "disallowed pages", "least pause")
    print(table("What the servers received", head, rows))
    print(
        f"\n{len(received)} requests: "
        + (
            "each robots.txt once, every allowed page once, no disallowed page, and the pace kept"
            if good
            else "this is not as it should be"
        )
    )
    return good


def _gaps(times: Sequence[float]) -> Iterator[float]:
    return (later - earlier for earlier, later in pairwise(sorted(times)))
