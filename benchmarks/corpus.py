"""A folder of real robots.txt files with the verdicts expected of them.

It holds ``robots.tar.xz``, the files, and ``verdicts.tsv.xz``, a row for each expectation: file,
user agent, URL, ``allow`` or ``disallow``, and the line that decided (0 for none).
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple


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


def read_rows(folder: Path) -> list[Row]:
    """The expectations in the order of the table."""
    rows = []
    with lzma.open(folder / "verdicts.tsv.xz", "rt", encoding="utf-8", newline="\n") as table:
        for text in table:
            file, agent, url, verdict, line = text.rstrip("\n").split("\t")
            rows.append(Row(file, agent, url, verdict == "allow", int(line)))
    return rows
