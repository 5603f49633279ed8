"""The memory of many origins, each with a real robots.txt and one verdict asked of it.

    python -m benchmarks.origins_memory FOLDER [--origins 100000]

FOLDER holds ``robots.tar.xz`` or the files themselves, which are used again and again until there
are enough origins; each is parsed for itself, so that nothing is shared.
"""

from __future__ import annotations

import argparse
import gc
import time
from itertools import cycle, islice
from pathlib import Path

from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.protocol.access import CopyInfo, Rules
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .corpus import read_files

AGENTS = ("examplebot",)


def read_folder(folder: Path) -> list[bytes]:
    """The files, packed or not."""
    if (folder / "robots.tar.xz").exists():
        return list(read_files(folder).values())
    return [path.read_bytes() for path in sorted(folder.rglob("*.txt"))]


def resident() -> int:
    """Octets of memory that this process has now."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def origin_with(number: int, body: bytes) -> Origin:
    """An origin as a crawl would leave it after its first request."""
    origin = Origin(f"https://host{number}.example")
    url = f"https://host{number}.example/robots.txt"
    origin.start_fetch(0.0)
    copy = CopyInfo(url, etag=f'"{number:x}"')
    origin.apply(Rules(RobotsTxt.parse(body, url=url), 200, copy, 86_400.0), 0.0)
    origin.verdict(f"https://host{number}.example/some/page.html", AGENTS, 0.0, UnreachablePolicy())
    return origin


def main() -> None:
    """Print the memory of all of them and of one, and how long they took."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--origins", type=int, default=100_000)
    options = arguments.parse_args()
    bodies = read_folder(options.folder)
    size = sum(map(len, bodies)) / len(bodies)
    print(f"{len(bodies)} files of {size:,.0f} octets on average")
    gc.collect()
    before = resident()
    began = time.process_time()
    origins = {
        origin.key: origin
        for origin in (
            origin_with(number, body)
            for number, body in enumerate(islice(cycle(bodies), options.origins))
        )
    }
    took = time.process_time() - began
    gc.collect()
    grown = resident() - before
    print(f"{len(origins):,} origins in {took:.0f} s of the processor: {grown / 2**20:,.0f} MiB")
    print(f"{grown / len(origins):,.0f} octets an origin")


if __name__ == "__main__":
    main()
