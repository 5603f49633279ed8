"""Crawl thousands of origins that misbehave at random, and see whether anything goes wrong.

    python -m benchmarks.soak [VARIANT ...] [--origins 500] [--seed 1] [--loop asyncio]

One crawl for each variant in :data:`testing.soak.VARIANTS`, or for those that are named, each
in a process of its own. All of it on loopback, an address for each origin. Every request is to end
in exactly one of a response, RobotsTxtDisallowed or its own download error, no server is to receive
a page that its robots.txt disallows, and all counters are to end where they began.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from testing.measure import process_on
from testing.soak import VARIANTS, Soak, SoakSpider, circumstances, logged
from testing.web import Web


def main() -> int:
    """Print what the requests ended in, and what was wrong; 1 if anything was."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="*", metavar="VARIANT", help=", ".join(VARIANTS))
    parser.add_argument("--origins", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loop", choices=("asyncio", "default", "none"), default="asyncio")
    options = parser.parse_args()
    unknown = set(options.variants) - set(VARIANTS)
    if unknown:
        parser.error(f"no such variant: {', '.join(unknown)}")
    if len(options.variants) == 1:
        return _crawl(options.variants[0], options.origins, options.seed, options.loop)
    failed = 0
    for name in options.variants or VARIANTS:
        values = [
            f"--origins={options.origins}",
            f"--seed={options.seed}",
            f"--loop={options.loop}",
        ]
        command = [sys.executable, "-m", "benchmarks.soak", name, *values]
        failed += subprocess.run(command, check=False).returncode != 0
    return 1 if failed else 0


def _crawl(name: str, origins: int, seed: int, loop: str) -> int:
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
    print(f"{name}: {len(soak.urls)} requests to {origins} origins in {took:.0f} s")
    for end, count in soak.summary(crawler).most_common():
        print(f"{count:8} {end}")
    print(f"{len(soak.late(log)):8} origins answered later than REP_TIMEOUT, and were unreachable")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{peak:8} MiB: peak of the process, the servers included")
    problems = soak.problems(crawler, log)
    print(f"{len(problems):8} problems")
    for problem in problems:
        print("  ", problem)
    web.close()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
