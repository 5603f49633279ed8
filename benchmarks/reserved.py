"""Compare verdicts on URLs with reserved characters in their query with a slow matcher's.

    python -m benchmarks.reserved FOLDER

FOLDER is what corpus.py describes. The patterns of each file, made into paths, stand in the
queries of URLs, as they are and encoded, and their own queries are encoded and decoded. The
other matcher is the one that the tests compare with, which looks at every rule.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from benchmarks.corpus import read_files
from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing import reference

if TYPE_CHECKING:
    from collections.abc import Iterator


def urls(pattern: str) -> Iterator[str]:
    """URLs that look like a pattern, in which reserved characters stand in the query."""
    path = pattern.replace("*", "a/b").rstrip("$")
    for reserved in (path, quote(path, safe="")):
        yield f"/x?u={reserved}"
        yield f"/x?a=b:c@d&path={reserved}"
        yield f"{path}?u=https:{reserved}"
    before, mark, query = path.partition("?")
    if mark:
        yield before + mark + quote(query, safe="=&")
        yield before + mark + quote(query, safe="=&/%")
        yield before + mark + unquote(query)


def main() -> int:
    """Print how many verdicts differ, and which; 1 if any does."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--patterns", type=int, default=6, help="how many of each file")
    options = arguments.parse_args()
    count = 0
    differing = []
    for name, body in sorted(read_files(options.folder).items()):
        robots = RobotsTxt.parse(body)
        rules = reference.read_groups(body, strict=False).get("*", [])
        chosen = sorted({rule.value.decode("utf-8", "replace") for rule in rules})
        queries = [pattern for pattern in chosen if "?" in pattern]
        source = random.Random(name)
        for pattern in {
            *source.sample(chosen, min(len(chosen), options.patterns)),
            *source.sample(queries, min(len(queries), options.patterns)),
        }:
            for url in urls(pattern):
                count += 1
                expected = reference.decide(rules, reference.url_form(url), strict=False)
                verdict = robots.verdict(url, ())
                line = verdict.rule.line if verdict.rule else None
                if (expected.line if expected else None) != line:
                    differing.append((name, url, expected, verdict))
    print(f"{len(differing)} of {count} verdicts differ")
    for row in differing:
        print("  ", *row)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
