"""Findings in hostile files and their corrections, beside Protego.

Measures for each hostile file the CPU time of `lint` and `fix`. The unit is the CPU time in which
Protego parses an ordinary file of 500 KB. Protego runs before and after each file, so that a busy
machine slows both. The details have all files, the slowest first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from protego import Protego

from scrapy_rep import lint
from scrapy_rep.protocol.lint import fix
from testing import harness
from testing.harness import Duration, Options, Parameter, Result
from testing.hostile import ALL, ATTACKS, HOSTILE, LIMIT, RECORDS

from .hostile import ordinary

DURATION = Duration(90, 15)
PARAMETERS = {"every": Parameter(1, 8, "measure every n-th file only")}
MOST = 40.0
"""The limit in parts of Protego's time."""

MISTAKES = {
    "typos": ALL + b"Dissallow x1\n" * (LIMIT // 13 - 2),
    "fields that resemble others": ALL + b"".join(b"dsallow%d: /\n" % n for n in range(30_000)),
    "NUL octets": b"\0\n" * (LIMIT // 2),
    "one line that is not UTF-8": (ALL + b"Disallow ").ljust(LIMIT, b"\xff"),
    **{
        f"one line: {piece.decode()!r}": (ALL + b"Disallow: /").ljust(LIMIT // 2, piece[:1])
        + piece * (LIMIT // 2 // len(piece) - 20)
        for piece in (b"(|", b"[a-z", b" ", b"allow ", b".*/api/css", b"/.sql", b"\\d", b",;|")
    },
    "written ends of lines": ALL + (b"Disallow: " + b"\\n" * 8_000 + b"\n") * 30,
    "literals beside Allows": ALL
    + b"".join(b"Disallow: /a%d b\nAllow: /a%d b/c\n" % (n, n) for n in range(9_000)),
    "tokens that resemble others": b"".join(b"User-agent: Googl%dbot\n" % n for n in range(22_000)),
    "headers": b"User-agent: Mozilla/5.0 (compatible; a b; +c)\n" * 11_000,
    "sitemaps that are disallowed": ALL
    + b"".join(b"Disallow: /*sitemap%d*\n" % n for n in range(9_000))
    + b"Sitemap: http://h/sitemap1\n" * 9_000,
    "crawl-delays of many agents": b"".join(b"User-agent: a%d\n" % n for n in range(10_000))
    + b"".join(b"Crawl-delay: %d\n" % n for n in range(15_000)),
}


class Row(NamedTuple):
    """Parts of Protego's time."""

    name: str
    lint: float
    fix: float


def seconds(run: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def files() -> dict[str, bytes]:
    """Return the hostile files by name."""
    return {
        **{name: body for name, (body, _) in HOSTILE.items()},
        **{name: attack.body for name, attack in ATTACKS.items()},
        **RECORDS,
        **MISTAKES,
    }


def run(options: Options) -> Result:
    """Return the slowest file for each function, with its limit. Each file is a detail."""
    protego = partial(Protego.parse, ordinary())
    unit = seconds(protego)
    rows = []
    for name, body in list(files().items())[:: options.number("every")]:
        before = seconds(protego)
        found_in, fixed_in = seconds(partial(lint, body)), seconds(partial(fix, body))
        beside = min(before, seconds(protego))
        rows.append(Row(name, found_in / beside, fixed_in / beside))
    by_lint, by_fix = (max(rows, key=key) for key in (lambda row: row.lint, lambda row: row.fix))
    found = [
        harness.Row("Protego parses an ordinary file of 500 KB: the unit", unit, "s"),
        harness.Row("hostile files", len(rows), "files"),
        harness.Row(f"lint, slowest: {by_lint.name}", by_lint.lint, "ratio", MOST),
        harness.Row(f"fix, slowest: {by_fix.name}", by_fix.fix, "ratio", MOST),
    ]
    rows.sort(key=lambda row: -row.lint)
    details = [f"{row.lint:6.2f}{row.fix:8.2f}  {row.name}" for row in rows]
    return Result(found, ["  lint     fix", *details])
