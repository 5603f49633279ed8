"""Compare every verdict with those of Google's own matcher over a folder of real files.

    python benchmarks/conformance.py FOLDER

FOLDER holds ``robots.tar.xz``, the files, and ``verdicts.tsv.xz``, a row for each expectation:
file, user agent, URL, ``allow`` or ``disallow``, and the line that decided (0 for none).
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from scrapy_rep.protocol.robotstxt import RobotsTxt


class Row(NamedTuple):
    """One expectation."""

    file: str
    agent: str
    url: str
    allowed: bool
    line: int


def read_files(folder: Path) -> dict[str, bytes]:
    """The robots.txt files by name."""
    files = {}
    with tarfile.open(folder / "robots.tar.xz") as archive:
        for member in archive:
            handle = archive.extractfile(member)
            if handle is not None:
                files[PurePosixPath(member.name).name] = handle.read()
    return files


def read_rows(folder: Path) -> Iterator[Row]:
    """The expectations in the order of the table."""
    with lzma.open(folder / "verdicts.tsv.xz", "rt", encoding="utf-8", newline="\n") as table:
        for text in table:
            file, agent, url, verdict, line = text.rstrip("\n").split("\t")
            yield Row(file, agent, url, verdict == "allow", int(line))


def main() -> int:
    """Print how many verdicts and deciding lines differ, and the rows; 1 if a verdict does."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    parsed = {name: RobotsTxt.parse(body) for name, body in read_files(folder).items()}
    rows = list(read_rows(folder))
    verdicts = [parsed[row.file].verdict(row.url, row.agent) for row in rows]
    differing = [
        (row, verdict) for row, verdict in zip(rows, verdicts) if verdict.allowed != row.allowed
    ]
    disallowed = [(row, verdict) for row, verdict in zip(rows, verdicts) if not row.allowed]
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
