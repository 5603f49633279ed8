"""robots.txt files and questions about them: real ones from a folder, or generated ones.

A folder of real files holds either

- ``robots.tar.xz``, the files, and ``verdicts.tsv.xz``, a row for each expectation: file, user
  agent, URL, ``allow`` or ``disallow``, and the line that decided (0 for none), or
- files ``*.txt``, for which questions are generated.
"""

from __future__ import annotations

import lzma
import tarfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from . import generated


class Expected(NamedTuple):
    """The expected answer to a question."""

    allowed: bool
    line: int
    """The line that decided; 0 for none."""


class Row(NamedTuple):
    """One question about a file, with its answer if it is known."""

    file: str
    agent: str
    url: str
    expected: Expected | None = None


class Corpus(NamedTuple):
    """The files by name, and questions about them."""

    files: dict[str, bytes]
    rows: list[Row]
    source: str
    """A description of the source, for tables."""

    @property
    def bodies(self) -> list[bytes]:
        """The files without their names."""
        return list(self.files.values())


def load(folder: Path | None, *, files: int, questions: int = 0) -> Corpus:
    """Return the corpus of a folder, or a generated corpus of ``files`` files.

    ``questions`` are generated for each file if the folder has none.
    """
    if folder is None:
        bodies = generated.files(files)
        source = f"{files:,} generated files"
    else:
        bodies = read_files(folder)
        source = f"{len(bodies):,} real files"
        if (folder / "verdicts.tsv.xz").exists():
            return Corpus(bodies, read_rows(folder), source)
    rows = [
        Row(name, agent, url)
        for name, body in bodies.items()
        for agent, url in generated.questions(name, body, questions)
    ]
    return Corpus(bodies, rows, source)


def read_files(folder: Path) -> dict[str, bytes]:
    """The robots.txt files of a folder by name; ValueError if there are none."""
    if not (folder / "robots.tar.xz").exists():
        files = {path.name: path.read_bytes() for path in sorted(folder.rglob("*.txt"))}
        if not files:
            raise ValueError(f"{folder} has neither robots.tar.xz nor files *.txt")
        return files
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
            rows.append(Row(file, agent, url, Expected(verdict == "allow", int(line))))
    return rows
