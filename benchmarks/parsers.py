"""Parsing and matching, compared with Protego, Scrapy's parser.

Each figure is the best of several rounds. The two parsers take turns, so that a busy machine slows
both.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from importlib.metadata import version
from typing import Protocol

from protego import Protego

from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing import corpus as corpora
from testing.corpus import load
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(60, 15)
PARAMETERS = {
    "files": Parameter(2000, 300, "generated files"),
    "questions": Parameter(35, 35, "questions for each file"),
    "rounds": Parameter(7, 7, "rounds, of which the best counts"),
}

MOST_TIME, MOST_MEMORY = 1 / 2, 1 / 3
"""The largest ratios to Protego's. README.md has both."""

Ask = Callable[[str, str], bool]


class Parser(Protocol):
    """A parser with one interface for both."""

    def __call__(self, body: bytes, /) -> Ask:
        """Parse a body. Returns a function that says whether an agent may fetch a URL."""


def ours(body: bytes) -> Ask:
    """This package's parser."""
    return RobotsTxt.parse(body).allowed


def protego(body: bytes) -> Ask:
    """Protego, used as Scrapy uses it."""
    return Protego.parse(body.decode("utf-8", "ignore")).can_fetch


PARSERS: dict[str, Parser] = {"scrapy-rep": ours, "protego": protego}


def run(options: Options) -> Result:
    """Return time and memory of both parsers, and their ratio."""
    corpus = load(
        options.folder, files=options.number("files"), questions=options.number("questions")
    )
    files, rows, _ = corpus
    rounds = options.number("rounds")
    first: dict[str, corpora.Row] = {}
    for row in rows:
        first.setdefault(row.file, row)

    def parse_and_ask(parser: Parser) -> None:
        # A crawl keeps its parsed files.
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

    found = [
        Row(corpus.source, sum(len(files[name]) for name in first) / len(first), "octets each"),
        *times("parse and first answer", race(parse_and_ask, rounds), len(first), "us/file"),
    ]
    for name in PARSERS:
        query(PARSERS[name])
        query(PARSERS[name])
    found += times("warm query", race(query, rounds), len(rows), "us/query")
    queries.clear()
    asks.clear()
    held = {name: memory(parser, files, first) for name, parser in PARSERS.items()}
    found += [
        Row("memory after one answer", held["scrapy-rep"] / len(first) / 1024, "KiB/file"),
        Row("  Protego's", held["protego"] / len(first) / 1024, "KiB/file"),
        Row("  Protego's is 1", held["scrapy-rep"] / held["protego"], "ratio", MOST_MEMORY),
    ]
    return Result(found, [f"Protego {version('protego')}, {len(rows):,} queries"])


def race(run: Callable[[Parser], None], rounds: int) -> dict[str, float]:
    """Return the seconds of each parser in its best round."""
    best = dict.fromkeys(PARSERS, float("inf"))
    for _ in range(rounds):
        for name, parser in PARSERS.items():
            gc.collect()
            start = time.perf_counter()
            run(parser)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def times(what: str, seconds: dict[str, float], count: int, unit: str) -> list[Row]:
    """Return the rows of both parsers, and their ratio."""
    ours, theirs = seconds["scrapy-rep"], seconds["protego"]
    return [
        Row(what, ours / count * 1e6, unit),
        Row("  Protego's", theirs / count * 1e6, unit),
        Row("  Protego's is 1", ours / theirs, "ratio", MOST_TIME),
    ]


def memory(parser: Parser, files: dict[str, bytes], first: dict[str, corpora.Row]) -> int:
    """Return the octets in use after each file has answered one question."""
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
