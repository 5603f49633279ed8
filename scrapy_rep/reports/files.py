"""Writes the part file of a report while a crawl runs.

Writing blocks, so a crawl calls it in a thread.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..atomic_write import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MIN_REWRITE = 1_000_000
"""Octets that are appended to a part file before it is written again without outdated lines."""

CHARACTERS_PER_TURN = 100_000
"""Characters of records that are made at once, in two or three ms. One record may have more."""


def turns(records: Iterable[str]) -> Iterator[list[str]]:
    """Yield records in lists. The event loop can run after each of them.

    The length counts, not the number: a record may be a robots.txt file or a hundred rules.
    """
    turn, size = [], 0
    for record in records:
        turn.append(record)
        size += len(record)
        if size >= CHARACTERS_PER_TURN:
            yield turn
            turn, size = [], 0
    yield turn


class PartFile:
    """The part file of one run.

    New lines are appended. When the file has doubled, it is replaced by one without the lines that
    later ones replace, so that writing costs as much as what changes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._appended = 0
        self._next_rewrite = MIN_REWRITE
        self.needs_all = True
        """Whether the next write has to have all records: the file is new, is to be rewritten, or
        the last write failed."""

    def write(self, head: str, records: Iterable[str]) -> None:
        """Write records: all of them if :attr:`needs_all` is true, else those that have changed.

        Raises OSError. The file then has whole lines, of an earlier time, unless the disk fails.
        """
        octets = "".join(records).encode()
        if self.needs_all:
            self._replace(head.encode() + octets)
        else:
            self._append(octets)

    def _replace(self, octets: bytes) -> None:
        write_atomically(self.path, octets)
        self.needs_all = False
        self._appended, self._next_rewrite = 0, max(MIN_REWRITE, len(octets))

    def _append(self, octets: bytes) -> None:
        self.needs_all = True  # if this fails
        with self.path.open("r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            try:
                if file.write(octets) != len(octets):
                    raise OSError("the end of the file could not be written")
            except OSError:
                with suppress(OSError):
                    file.truncate(end)
                raise
        self._appended += len(octets)
        self.needs_all = self._appended > self._next_rewrite
