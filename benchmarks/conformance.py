"""Compare every verdict with those of Google's own matcher over a folder of real files.

    python -m benchmarks.conformance FOLDER

FOLDER is what corpus.py describes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.corpus import read_files, read_rows
from scrapy_rep.protocol.robotstxt import RobotsTxt


def main() -> int:
    """Print how many verdicts and deciding lines differ, and the rows; 1 if a verdict does."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    parsed = {name: RobotsTxt.parse(body) for name, body in read_files(folder).items()}
    rows = read_rows(folder)
    answered = [(row, parsed[row.file].verdict(row.url, row.agent)) for row in rows]
    differing = [(row, verdict) for row, verdict in answered if verdict.allowed != row.allowed]
    disallowed = [(row, verdict) for row, verdict in answered if not row.allowed]
    elsewhere = [
        (row, verdict)
        for row, verdict in disallowed
        if verdict.rule is None or verdict.rule.line != row.line
    ]
    print(f"{len(differing)} of {len(rows)} verdicts differ")
    for row, verdict in differing:
        print("  ", *row, "->", verdict)
    same = len(disallowed) - len(elsewhere)
    print(f"{same} of {len(disallowed)} disallowed rows name the same line")
    for row, verdict in elsewhere:
        print("  ", *row, "->", verdict)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
