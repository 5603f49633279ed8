"""``survey``: the state of robots.txt over many sites.

The inputs are read as streams, the sites of a list are fetched by a session, and the figures are
queries over one row for each site (:mod:`scrapy_rep.reports.survey`).
"""

from __future__ import annotations

import lzma
import os
import re
import signal
import stat
import sys
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from ..protocol.access import AccessPolicy, AccessResult, access_result
from ..protocol.paths import origin_of
from ..reports.survey import ROW_FILES, Row, Rows, Survey, encode, row_of
from ..stores.urls import find_form, without_password
from .context import MAX_BODY, Context, ExitCode, need, reading, refuse_if, tool, writing
from .crawlers import well_known_crawlers
from .sources import archive_reader, lines_in, numbered_urls, start_session, target_of, using_store
from .texts import laid_out

MAX_HEADER = 1 << 20
"""Bytes of the name of a member of a tar file, and of its other headers."""

INFLATED_FREE = 1 << 30
MAX_RATIO = 250
"""A tar file is read up to so many bytes, and as many for each byte of the file. Files that are all
the same are compressed to a 75th. A bomb is compressed to a 1,000th or less."""

INPUTS = (
    "name a list of domains, a folder of robots.txt files, a tar file, the URL of a store, a WARC "
    "file, or rows of other surveys"
)

_TAR = re.compile(r"\.(tar(\.\w+)?|t[bgx]z2?)\Z", re.IGNORECASE)

_FETCHING = {
    "REP_TTL_RANGE": (86_400, 86_400),
    "REP_CACHE_SIZE": 10_000,
    "REP_LOCAL_RULES": None,
}
"""The settings of a survey that fetches. With a store, what it has fetched is fresh for a day, so
that a survey that was stopped goes on where it was."""

_RESULTS = {"disallowed-status": "disallowed", "stale-copy": "unreachable"}
"""The results that other tools show as other states."""

_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError, ValueError)


@tool(
    "Count what the robots.txt files of many sites have: statuses, sizes, rules, agents, delays, "
    "sitemaps, findings of lint, AI agents and usage preferences.",
    ("survey domains.txt", "fetch the robots.txt of each site in a list"),
    ("survey robots/", "all files below a folder"),
    ("survey robots.tar.xz --rows 2026.parquet", "a tar file; also writes a row for each site"),
    ("survey a.jsonl b.jsonl", "the rows that other processes or machines have written"),
    ("survey sqlite:///store.sqlite --json", "the store of a crawl, as JSON"),
    ("survey robots.tar.xz --compare 2025.parquet", "what has changed since another survey"),
    ("survey robots.tar.xz --html survey.html", "also as a page with charts"),
    unknown="a part of the input cannot be read",
    records=[Survey],
    reads_sites=True,
)
@click.argument("names", nargs=-1, required=True, metavar="LIST|DIR|TAR|STORE|ARCHIVE|ROWS...")
@click.option(
    "--rows", metavar="FILE", help=f"Also write a row for each site: {', '.join(ROW_FILES)}."
)
@click.option("--compare", metavar="FILE", help="Rows of another survey.")
@click.option("--html", metavar="FILE", help="Also write a page with charts.")
def survey_tool(
    context: Context, names: Sequence[str], rows: str | None, compare: str | None, html: str | None
) -> int:
    for name in (each for each in (rows, compare) if each is not None):
        refuse_if(not name.endswith(ROW_FILES), f"{name} must end in {', '.join(ROW_FILES)}")
    for name in (each for each in (rows, html) if each is not None):
        with writing(name), open(name, "ab"):  # before the work begins
            pass
    need("survey needs", "duckdb", "jinja2")
    from ..reports import pages

    inputs = Inputs(names, context)
    context.scrapy_settings.setdict(_FETCHING, priority="cmdline")
    purposes = {each.tokens[0].lower(): each.purposes for each in well_known_crawlers()}
    with suppress(ValueError):  # SIGTERM removes the folder; only the main thread has signals
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with writing("temporary files (set TMPDIR to a folder that can be written)"):
        temporary = TemporaryDirectory(prefix="scrapy-rep-", ignore_cleanup_errors=True)
    with temporary as folder, closing(Rows(Path(folder), purposes)) as database:
        if compare is not None:
            database.read(Path(compare), "before")
        path = Path(folder, "rows.jsonl")
        with writing(str(path)), path.open("wb") as file, context.interruptible():
            file.writelines(encode(row) + b"\n" for row in inputs.rows())
        for each in (*inputs.row_files, path):
            database.read(each)
        database.merge()
        if rows is not None:
            database.write(Path(rows))
        found = database.survey(
            [without_password(name) if "://" in name else name for name in names],
            complete=inputs.is_complete and not context.is_interrupted,
            compared=compare is not None,
        )
    context.show(found, lambda each: laid_out(pages.survey_summary(each), {}))
    if html is not None:
        with writing(html):
            Path(html).write_bytes(pages.survey_page(found).encode())
        context.note(f"the page is {html}")
    code = ExitCode.OK if inputs.is_complete else ExitCode.UNKNOWN
    return context.end_code(code, reads_sites=inputs.reads_sites)


class _Member(tarfile.TarInfo):
    """A member of a tar file, whose headers are limited in size."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> Any:
        member = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        is_header = member.type in (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if is_header and member.type != tarfile.GNUTYPE_SPARSE and member.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header has {member.size:,} bytes")
        return member


class Inputs:
    """The inputs of a survey, and what could not be read of them."""

    def __init__(self, names: Iterable[str], context: Context) -> None:
        self._context = context
        self.is_complete = True
        self.row_files: list[Path] = []
        self._lists: list[str] = []
        self._readers, self._totals = zip(*map(self._reader, names), strict=True)

    def rows(self) -> Iterator[Row]:
        """Yield the row of each site. A problem is a warning, and the rest is read."""
        readers = [*self._readers, *([self._of_lists()] if self._lists else [])]
        known = [total for total in self._totals if total is not None]
        total = sum(known) if len(known) == len(self._totals) else None
        yield from self._context.counted(chain.from_iterable(readers), "sites", total)

    @property
    def reads_sites(self) -> bool:
        return bool(self._lists)

    def _reader(self, name: str) -> tuple[Iterator[Row], int | None]:
        """Return the rows of an input, and about how many there are; None if that is not known."""
        path = Path(name)
        if "://" in name:
            is_store = find_form(name) is not None
            refuse_if(not is_store, f"{without_password(name)} is not the URL of a store")
            return self._of_store(name), None
        if path.is_dir():
            return self._of_folder(name), sum(len(each) for _, _, each in os.walk(name))
        with reading(name):
            path.stat()
        if name.endswith(ROW_FILES):
            self.row_files.append(path)
            return iter(()), 0
        if name.lower().endswith((".warc", ".warc.gz")):
            return self._of_archive(path, archive_reader()), None
        if _TAR.search(name):
            return self._of_tar(name), None
        self._lists.append(name)
        return iter(()), lines_in(name)

    def _problem(self, message: object) -> None:
        self.is_complete = False
        self._context.warn(str(message), "files that cannot be read")

    def _unreadable(self, error: OSError, name: object) -> None:
        self._problem(f"cannot read {name}: {error.strerror or error}")

    def _of_lists(self) -> Iterator[Row]:
        """Fetch the robots.txt of each site, as a crawl does, and nothing else."""
        with start_session(self._context) as session:
            for policy in session.policies(chain.from_iterable(map(self._origins, self._lists))):
                state = policy.access.state
                result = _RESULTS.get(state, state)
                if result == AccessResult.SUCCESSFUL and policy.body is None:
                    continue  # the lists have the site twice
                site, status = str(policy.origin), policy.access.status
                yield row_of(site, policy.body, status, result, time.time())

    def _origins(self, name: str) -> Iterator[str]:
        """Yield the origins of a list of domains or URLs, which may have a rank before each."""
        has_sites = False
        for number, given in numbered_urls(name):
            origin = target_of(given if "://" in given else given.rpartition(",")[2]).origin
            if origin is None:
                self._problem(f"{name}, line {number}: {given} is not a site")
            else:
                has_sites = True
                yield origin
        refuse_if(not has_sites, f"there is no site in {name}: {INPUTS}")

    def _of_folder(self, root: str) -> Iterator[Row]:
        """Read the regular files below a folder. Symbolic links are not followed."""
        number = 0
        walk = os.walk(root, onerror=lambda error: self._unreadable(error, error.filename))
        for folder, _, names in walk:
            for name in names:
                path = Path(folder, name)
                try:
                    found = path.lstat()
                    if not stat.S_ISREG(found.st_mode):
                        continue
                    number += 1
                    with path.open("rb") as file:
                        body = file.read(MAX_BODY)
                except OSError as error:
                    self._unreadable(error, path)
                    continue
                yield row_of(path.relative_to(root).as_posix(), body, at=found.st_mtime)
        is_empty = not number and self.is_complete
        refuse_if(is_empty, f"there is no file in {root}: {INPUTS}")

    def _of_tar(self, name: str) -> Iterator[Row]:
        number = inflated = 0
        try:
            size = Path(name).stat().st_size
            with tarfile.open(name, "r|*", tarinfo=_Member) as tar:
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined] # else it keeps all of them
                    inflated += member.size
                    if inflated > INFLATED_FREE + MAX_RATIO * size:
                        text = f"it has more than {MAX_RATIO} times the bytes of the file"
                        raise tarfile.ReadError(text)
                    handle = tar.extractfile(member) if member.isreg() else None
                    if handle is not None:
                        yield row_of(member.name, handle.read(MAX_BODY), at=member.mtime)
                        number += 1
        except _DAMAGED as error:
            refuse_if(not number, f"cannot read {name} as a tar file: {error}")
            self._problem(f"{name} is damaged after {number:,} files: {error}")

    def _of_store(self, url: str) -> Iterator[Row]:
        with using_store(url, must_exist=True) as store:
            for key, entry in store.entries():
                if entry is None:
                    self._problem(f"the entry of {key} cannot be read")
                elif origin_of(key) == key:  # the key of another file is its URL
                    yield row_of(key, entry.body, entry.status, entry.result, entry.fetched_at)

    def _of_archive(self, path: Path, reader: Any) -> Iterator[Row]:
        try:
            for found in reader.read(path, self._problem):
                result = access_result(found.status, AccessPolicy(), conditional=True)
                yield row_of(found.origin, found.body, found.status, result, found.time)
        except OSError as error:
            self._unreadable(error, path)
