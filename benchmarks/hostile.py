"""How long hostile input takes, beside what Protego takes to parse an ordinary file of 500 KB.

    python -m benchmarks.hostile

Prints for each file the time of what is done once (a parse, a first answer and an index), and that
of an answer for a URL of 2 KB and of 16 KB: a verdict, a verdict whose query is compared in a
second form, what content may be used for, and the pace. Ends with status 1 if an answer for 2 KB
takes more than a fifth of Protego's time, one for 16 KB more than that time, or what is done once
more than five times that time. Everything is the best of some rounds.
"""

from __future__ import annotations

import random
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from protego import Protego

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.agents import product_tokens
from scrapy_rep.protocol.pacing import Pacing
from tests.protocol.hostile import ATTACKS, HEADERS, HOSTILE, LIMIT, RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable

AGENT = "a-bad"
MOST = {2048: 0.2, 16_384: 1.0}
"""Of the time that Protego takes, by the length of the path."""
MOST_ONCE = 5.0


class Row(NamedTuple):
    """Seconds: of what is done once, and of the slowest answer for each length."""

    name: str
    once: float
    answers: dict[int, float]


def ordinary() -> str:
    """A file of 500 KB that a shop might have."""
    source = random.Random(9309)
    words = ["shop", "product", "category", "admin", "search", "user", "api", "img", "filter"]
    lines, size = ["User-agent: *"], 14
    while size < LIMIT:
        path = "/".join(source.choices(words, k=source.randint(1, 4)))
        end = source.choice(["", "/", "$", "*", "/*?sort="])
        lines.append(f"Disallow: /{path}/{len(lines)}{end}")
        size += len(lines[-1]) + 1
    return "\n".join(lines[:-1])


def best(run: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of the fastest round."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def seconds(robots: RobotsTxt, pacing: Pacing, url: str) -> float:
    """The time of the slowest answer about a URL."""
    return max(
        best(lambda: robots.verdict(url, AGENT)),
        best(lambda: robots.allowed(url + "?u=/:@", AGENT)),
        best(lambda: robots.content_usage(url, AGENT)),
        best(lambda: pacing.seconds_between(time.time())),
    )


def repeated(path: str, length: int) -> str:
    """A path of this length."""
    return "/" + (path * (length // len(path) + 1))[: length - 1]


def measure(name: str, body: bytes, url: Callable[[int], str]) -> Row:
    """The figures of one file."""

    def once() -> RobotsTxt:
        robots = RobotsTxt.parse(body, url="https://example.com/robots.txt")
        robots.verdict(url(2048), AGENT)
        robots.verdict(url(2048), AGENT)
        return robots

    robots = once()
    start = time.perf_counter()
    pacing = Pacing.of(robots, (AGENT,)) or Pacing()
    robots.content_usage(url(2048), AGENT)
    records = time.perf_counter() - start
    answers = {length: seconds(robots, pacing, url(length)) for length in MOST}
    return Row(name, max(best(once, 2), records), answers)


def main() -> int:
    """Print every figure; the exit status."""
    file = ordinary()
    protego = best(lambda: Protego.parse(file), 5)
    rows = []
    for name, (body, url) in HOSTILE.items():
        path = url.removeprefix("https://example.com/")
        rows.append(measure(name, body, partial(repeated, path)))
    for name, attack in ATTACKS.items():
        rows.append(measure(name, attack.body, attack.url))
        usage = attack.body.replace(b"Disallow:", b"Content-Usage:")
        usage = usage.replace(b"Allow:", b"Content-Usage:").replace(b"\nC", b" train-ai=n\nC")
        rows.append(measure(f"{name}, usage", usage, attack.url))
    for name, body in RECORDS.items():
        rows.append(measure(name, body, ATTACKS["permutations"].url))
    for header in HEADERS:
        once = best(partial(product_tokens, ["Mozilla/5.0 (" + header, header]), 1)
        rows.append(Row(f"header of {len(header)} {header[:2]!r}", once, dict.fromkeys(MOST, 0.0)))
    protego = min(protego, best(lambda: Protego.parse(file), 5))
    print(f"Protego parses an ordinary file of {len(file)} octets in {protego * 1000:.0f} ms = 1")
    print("   once" + "".join(f"{length:>8}" for length in MOST))
    slow = 0
    for name, once, answers in sorted(rows, key=lambda row: -row.answers[2048]):
        ratios = {length: seconds / protego for length, seconds in answers.items()}
        passed = all(ratios[length] <= MOST[length] for length in MOST)
        passed = passed and once / protego <= MOST_ONCE
        slow += not passed
        figures = "".join(f"{ratio:8.3f}" for ratio in ratios.values())
        print(f"{once / protego:7.2f}{figures}  {name}{'' if passed else '  TOO SLOW'}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
