"""Speed and memory beside Protego, the parser that Scrapy uses by default.

    python -m benchmarks.parsers FOLDER

FOLDER is what corpus.py describes. Every figure is the best of some rounds in which the two
take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar

from protego import Protego

from benchmarks.corpus import Row, read_files, read_rows
from scrapy_rep.protocol.robotstxt import RobotsTxt

T = TypeVar("T")
Ask = Callable[[str, str], bool]


class Parser(Protocol):
    """Either of the two behind one face."""

    def __call__(self, body: bytes, /) -> Ask:
        """Parse a body; what is returned answers whether a URL may be fetched by an agent."""


def ours(body: bytes) -> Ask:
    """This package's parser."""
    return RobotsTxt.parse(body).allowed


def protego(body: bytes) -> Ask:
    """Protego, called as Scrapy calls it."""
    return Protego.parse(body.decode("utf-8", "ignore")).can_fetch


PARSERS: dict[str, Parser] = {"scrapy-rep": ours, "protego": protego}


def main() -> int:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    files = read_files(options.folder)
    rows = read_rows(options.folder)
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row.file, row)

    def parse_and_ask(parser: Parser) -> None:
        # A crawl keeps what it has parsed.
        kept = []
        for name, row in first.items():
            ask = parser(files[name])
            ask(row.url, row.agent)
            kept.append(ask)

    asks = {name: {file: parser(files[file]) for file in first} for name, parser in PARSERS.items()}
    queries = {
        name: [(asks[name][row.file], row.url, row.agent) for row in rows] for name in PARSERS
    }

    def query(parser: Parser) -> None:
        for ask, url, agent in queries["scrapy-rep" if parser is ours else "protego"]:
            ask(url, agent)

    print(f"{len(first)} files, {len(rows)} queries, Protego {version('protego')}")
    show("parse and first answer", race(parse_and_ask, options.rounds), len(first), "file")
    for name in PARSERS:
        query(PARSERS[name])
        query(PARSERS[name])
    show("warm query", race(query, options.rounds), len(rows), "query")
    queries.clear()
    asks.clear()
    held = {name: memory(parser, files, first) for name, parser in PARSERS.items()}
    ratio = held["scrapy-rep"] / held["protego"]
    print(f"{'memory after one answer':<24}", end="")
    for name, octets in held.items():
        print(f"{name} {octets / len(first) / 1024:7.2f} KiB/file   ", end="")
    print(f"{ratio:.2f} of it")
    return 0


def race(run: Callable[[Parser], None], rounds: int) -> dict[str, float]:
    """Seconds of each parser's best round."""
    best = dict.fromkeys(PARSERS, float("inf"))
    for _ in range(rounds):
        for name, parser in PARSERS.items():
            gc.collect()
            start = time.perf_counter()
            run(parser)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def show(what: str, seconds: dict[str, float], count: int, unit: str) -> None:
    """One line of the table."""
    print(f"{what:<24}", end="")
    for name, value in seconds.items():
        print(f"{name} {value / count * 1e6:7.2f} us/{unit}   ", end="")
    print(f"{seconds['protego'] / seconds['scrapy-rep']:.1f} times as fast")


def memory(parser: Parser, files: dict[str, bytes], first: dict[str, Row]) -> int:
    """Octets held after each file has answered one question."""
    gc.collect()
    tracemalloc.start()
    kept = []
    for name, row in first.items():
        ask = parser(bytes(bytearray(files[name])))
        ask(row.url, row.agent)
        kept.append(ask)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


if __name__ == "__main__":
    sys.exit(main())
