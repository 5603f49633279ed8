"""Reads the records of a robots.txt by the table in `records`.

Records are read apart from the rules, for they "MUST NOT interfere with the parsing of explicitly
defined records" (RFC 9309 §2.2.4). A file is read when the first record is needed. The values of a
record in a group are parsed when they are first needed. A file without any known record costs one
search.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from .agents import tokens_of_line
from .parser import records
from .paths import resolve
from .records import LICENSE, PACING, RECORD_TYPES, SITEMAP, USAGE, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import RecordType

T = TypeVar("T")

_Run: TypeAlias = list[tuple[bytes, bytes]]
"""Field and value of the records below one run of user-agent lines."""

_SCOPES = {row.field: row.scope for row in RECORD_TYPES}

# Every line that may be a known record begins so, in any spelling.
_ANY = re.compile(
    rb"\n(?i:%b)"
    % b"|".join(
        re.escape(name)
        for row in RECORD_TYPES
        for name in dict.fromkeys((*(row.prefixes or (row.field,)), *row.typos))
    )
).search


class RecordValues:
    """The values of the records of a file, or of all groups of one token."""

    __slots__ = ("_combined", "_written")

    def __init__(self, written: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._written: dict[bytes, list[bytes]] = {}
        for field, value in written:
            self._written.setdefault(field, []).append(value)
        self._combined: dict[bytes, Any] = {}

    def get(self, record_type: RecordType[Any, T]) -> T:
        """Return what all readable values of a record state together."""
        field = record_type.field
        if field not in self._combined:
            found = (record_type.parse(value) for value in self._written.get(field, ()))
            self._combined[field] = record_type.combine([one for one in found if one is not None])
        combined: T = self._combined[field]
        return combined


_NO_VALUES = RecordValues()


class Records:
    """All records of one file."""

    __slots__ = ("_groups", "_runs", "_sitemaps", "_url", "file", "has_pacing", "has_usage")

    def __init__(self, text: bytes, *, strict: bool, url: str | None = None) -> None:
        self._url = url
        self._sitemaps: tuple[str, ...] | None = None
        self.file = _NO_VALUES
        """The records for all crawlers."""
        self.has_pacing = False
        """Whether the file has a record of `PACING`, readable or not."""
        self.has_usage = False
        """Whether the file has a record of `USAGE`, readable or not."""
        self._runs: dict[bytes, list[_Run]] = {}
        self._groups: dict[bytes, RecordValues] = {}
        if _ANY(text):
            self._read(text, strict=strict)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The URLs of the sitemaps, each once, resolved if the URL of the robots.txt is known."""
        if self._sitemaps is None:
            self._sitemaps = self._resolved(self.file.get(SITEMAP))
        return self._sitemaps

    def licenses(self, token: bytes) -> tuple[str, ...]:
        """Return the URLs of the licenses of a token's groups, else those above all groups."""
        found = self._resolved(self.of(token).get(LICENSE))
        return found or self._resolved(self.file.get(LICENSE))

    def of(self, token: bytes) -> RecordValues:
        """Return the records of all groups of one token."""
        if token not in self._runs:
            return _NO_VALUES
        group = self._groups.get(token)
        if group is None:
            written = (record for run in self._runs[token] for record in run)
            group = self._groups[token] = RecordValues(written)
        return group

    def _read(self, text: bytes, *, strict: bool) -> None:
        file: _Run = []
        run: _Run = []
        fields: set[bytes] = set()
        naming = started = False
        for _, field, value in records(text, strict=strict):
            if field == b"user-agent":
                if not naming:
                    run = []
                naming = started = True
                for token in tokens_of_line(value):
                    runs = self._runs.setdefault(token, [])
                    if not runs or runs[-1] is not run:
                        runs.append(run)
            elif field in (b"allow", b"disallow"):
                naming = False
            elif (scope := _SCOPES.get(field)) is not None:
                fields.add(field)
                if scope is Scope.FILE or (scope is Scope.GROUP_OR_FILE and not started):
                    file.append((field, value))
                else:
                    # For records, these end a run of user-agent lines too: a Crawl-delay below
                    # each of two user-agent lines belongs to the one above it alone.
                    naming = False
                    run.append((field, value))
        self.file = RecordValues(file)
        self.has_pacing = any(row.field in fields for row in PACING)
        self.has_usage = any(row.field in fields for row in USAGE)
        found = {token: [run for run in runs if run] for token, runs in self._runs.items()}
        self._runs = {token: runs for token, runs in found.items() if runs}

    def _resolved(self, references: Iterable[str]) -> tuple[str, ...]:
        found = (resolve(reference, self._url) for reference in references)
        return tuple(dict.fromkeys(url for url in found if url is not None))
