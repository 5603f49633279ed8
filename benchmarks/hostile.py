"""Hostile files, compared with an ordinary file and Protego.

Measures for each file the work that is done once (parsing, the first answer and an index), and an
answer for a URL of 2 KB and of 16 KB: the slowest of a verdict, a verdict whose query is compared
in a second form, the permitted uses of the content, and the delay. The unit is the time that
Protego takes to parse an ordinary file of 500 KB. An answer for 2 KB may take a fifth of it, an
answer for 16 KB as much, and the work that is done once five times that. Each figure is the best of
several rounds. Protego runs before and after each file, so that a busy machine slows both. The
details have all files, the slowest first.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from protego import Protego

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.agents import product_tokens
from scrapy_rep.protocol.pacing import Pacing
from testing import harness
from testing.harness import Duration, Options, Parameter, Result
from testing.hostile import ATTACKS, HEADERS, HOSTILE, LIMIT, RECORDS

DURATION = Duration(150, 20)
PARAMETERS = {"every": Parameter(1, 8, "measure every n-th file only")}
AGENT = "a-bad"
MOST = {2048: 0.2, 16_384: 1.0}
"""Limits in parts of Protego's time, by the length of the path."""
MOST_ONCE = 5.0


class Row(NamedTuple):
    """Parts of Protego's time: for the work done once, and for the slowest answer by length."""

    name: str
    once: float
    answers: dict[int, float]


def ordinary() -> str:
    """An ordinary file of 500 KB, like that of a shop."""
    source = random.Random(9309)
    words = ["shop", "product", "category", "admin", "search", "user", "api", "img", "filter"]
    lines, size = ["User-agent: *"], 14
    while size < LIMIT:
        path = "/".join(source.choices(words, k=source.randint(1, 4)))
        end = source.choice(["", "/", "$", "*", "/*?sort="])
        lines.append(f"Disallow: /{path}/{len(lines)}{end}")
        size += len(lines[-1]) + 1
    return "\n".join(lines[:-1])


def best(run: Callable[[], object], rounds: int = 5) -> float:
    """Return the seconds of the fastest round."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def seconds(robots: RobotsTxt, pacing: Pacing, url: str) -> float:
    """Return the seconds of the slowest answer about a URL."""
    return max(
        best(lambda: robots.verdict(url, AGENT)),
        best(lambda: robots.allowed(url + "?u=/:@", AGENT)),
        best(lambda: robots.content_usage(url, AGENT)),
        best(lambda: robots.content_signals(url, AGENT)),
        best(lambda: pacing.seconds_between(time.time())),
    )


def repeated(path: str, length: int) -> str:
    """Return a path of this length."""
    return "/" + (path * (length // len(path) + 1))[: length - 1]


def beside(protego: Callable[[], object], row: Callable[[], Row]) -> Row:
    """Convert a row of seconds into parts of Protego's time."""
    before = best(protego, 2)
    name, once, answers = row()
    unit = min(before, best(protego, 2))
    ratios = {length: seconds / unit for length, seconds in answers.items()}
    return Row(name, once / unit, ratios)


def measure(name: str, body: bytes, url: Callable[[int], str]) -> Row:
    """Return the seconds of one file."""

    def once() -> RobotsTxt:
        robots = RobotsTxt.parse(body, url="https://example.com/robots.txt")
        robots.verdict(url(2048), AGENT)
        robots.verdict(url(2048), AGENT)
        return robots

    robots = once()
    start = time.perf_counter()
    pacing = Pacing.of(robots, (AGENT,)) or Pacing()
    robots.content_usage(url(2048), AGENT), robots.content_signals(url(2048), AGENT)
    records = time.perf_counter() - start
    answers = {length: seconds(robots, pacing, url(length)) for length in MOST}
    return Row(name, max(best(once, 2), records), answers)


def measure_header(header: str) -> Row:
    """Return the seconds of one User-Agent header."""
    once = best(lambda: product_tokens(["Mozilla/5.0 (" + header, header]), 1)
    return Row(f"header of {len(header)} {header[:2]!r}", once, dict.fromkeys(MOST, 0.0))


def measures() -> Iterator[Callable[[], Row]]:
    """Yield the rows that are measured."""
    for name, (body, url) in HOSTILE.items():
        path = url.removeprefix("https://example.com/")
        yield partial(measure, name, body, partial(repeated, path))
    for name, attack in ATTACKS.items():
        yield partial(measure, name, attack.body, attack.url)
        usage = attack.body.replace(b"Disallow:", b"Content-Usage:")
        usage = usage.replace(b"Allow:", b"Content-Usage:").replace(b"\nC", b" train-ai=n\nC")
        yield partial(measure, f"{name}, usage", usage, attack.url)
    for name, body in RECORDS.items():
        yield partial(measure, name, body, ATTACKS["permutations"].url)
    for header in HEADERS:
        yield partial(measure_header, header)


def run(options: Options) -> Result:
    """Return the slowest figure of each column with its limit. Each file is a detail."""
    file = ordinary()
    protego = partial(Protego.parse, file)
    unit = best(protego)
    chosen = list(measures())[:: options.number("every")]
    rows = [beside(protego, row) for row in chosen]
    slowest = max(rows, key=lambda row: row.once)
    found = [
        harness.Row(f"Protego parses {len(file):,} octets: the unit", unit, "s"),
        harness.Row("hostile files and headers", len(rows), "files"),
        harness.Row(f"done once, slowest: {slowest.name}", slowest.once, "ratio", MOST_ONCE),
    ]
    for length, most in MOST.items():
        slowest = max(rows, key=lambda row: row.answers[length])
        name = f"answer for {length / 1024:.0f} KB, slowest: {slowest.name}"
        found.append(harness.Row(name, slowest.answers[length], "ratio", most))
    rows.sort(key=lambda row: -row.answers[2048])
    return Result(found, ["  once     2 KB    16 KB", *map(_line, rows)])


def _line(row: Row) -> str:
    passed = row.once <= MOST_ONCE and all(row.answers[length] <= MOST[length] for length in MOST)
    figures = "".join(f"{answer:9.3f}" for answer in row.answers.values())
    return f"{row.once:6.2f}{figures}  {'' if passed else 'TOO SLOW '}{row.name}"
