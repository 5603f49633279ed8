"""``survey``: the state of robots.txt over many sites.

The inputs are read as streams, the files are counted in several processes, and the figures are
queries over one row for each site (:mod:`scrapy_rep.reports.survey`). No file of an input is
written, and names are only shown.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import multiprocessing
import os
import signal
import stat
import sys
import tarfile
import threading
import time
import zlib
from collections import deque
from concurrent import futures
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..protocol.access import AccessResult, StatusPolicy, access_result
from ..protocol.paths import origin_of
from ..reports.survey import ROW_FILES, RowFileError, Rows, Survey
from ..reports.survey_row import Sample, encode, row_of
from ..stores.registry import find_type, without_password
from .context import MAX_BODY, STANDARD_INPUT, Context, tool
from .crawlers import well_known_crawlers
from .output import CommandError, ExitCode, writing
from .texts import laid_out
from .transfer import using_store

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

MAX_HEADER = 1 << 20
"""Bytes of the name of a member of a tar file, and of its other headers. A longer one is not a
name."""

INFLATED_FREE = 1 << 30
MAX_RATIO = 250
"""A compressed tar file is read up to so many bytes, and as many for each byte of the file. Files
that are all the same are compressed to a 75th. A bomb is compressed to a 1,000th or less."""

BATCH_FILES, BATCH_BYTES = 100, 1 << 20
"""Samples, and bytes of their files, that a process gets at once."""

END_TIMEOUT = 1.0
"""Seconds that a process has for the file that it counts when the command ends."""

_CODINGS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""What a compressed file starts with."""

_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError, ValueError)


@tool(
    "Count what the robots.txt files of many sites have: statuses, sizes, rules, agents, delays, "
    "sitemaps, findings of lint, AI agents and usage preferences.",
    ("survey robots/", "all files below a folder; its subfolders are also counted apart"),
    ("survey robots.tar.xz --rows 2026.parquet", "a tar file; also writes a row for each site"),
    ("survey a.jsonl b.jsonl", "the rows that other machines have written"),
    ("survey sqlite:///store.sqlite --json", "the store of a crawl, as JSON"),
    ("survey robots.tar.xz --compare 2025.parquet", "what has changed since another survey"),
    ("survey robots.tar.xz --html survey.html", "also as a page with charts"),
    records=[Survey],
)
@click.argument("names", nargs=-1, required=True, metavar="DIR|TAR|STORE|ARCHIVE|ROWS...")
@click.option(
    "--depth",
    type=click.IntRange(0, 1000),
    default=1,
    help="Folder names that make a stratum; 0: none. Default: 1.",
)
@click.option(
    "--rows", metavar="FILE", help=f"Also write a row for each site: {', '.join(ROW_FILES)}."
)
@click.option("--compare", metavar="FILE", help="Rows of another survey.")
@click.option("--html", metavar="FILE", help="Also write a page with charts.")
@click.option(
    "--processes",
    type=click.IntRange(1, 1000),
    help="Processes that count. Default: one for each core.",
)
def survey_tool(
    context: Context,
    names: Sequence[str],
    depth: int,
    rows: str | None,
    compare: str | None,
    html: str | None,
    processes: int | None,
) -> int:
    """Make a survey."""
    for name in (rows, compare):
        if name is not None and not name.endswith(ROW_FILES):
            raise CommandError(f"{name} must end in {', '.join(ROW_FILES)}")
    for name in (rows, html):
        if name is not None:
            with writing(name), open(name, "ab"):  # before the work begins
                pass
    inputs = Inputs(names, depth, context)
    with (
        TemporaryDirectory(prefix="scrapy-rep-", ignore_cleanup_errors=True) as folder,
        closing(_opened(Path(folder))) as database,
    ):
        try:
            if compare is not None:
                database.read(Path(compare), "before")
            path = Path(folder, "rows.jsonl")
            is_complete = _count(inputs, path, processes, context)
            for each in (*inputs.rows, path):
                database.read(each)
            if rows is not None:
                database.write(Path(rows))
            found = database.survey(
                made_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                complete=is_complete and not inputs.problems,
                problems=inputs.problems,
                compared=compare is not None,
            )
        except RowFileError as error:
            raise CommandError(str(error)) from None
    from ..reports import pages

    context.output.show(found, lambda each: laid_out(pages.survey_summary(each), {}))
    if html is not None:
        with writing(html):
            Path(html).write_bytes(pages.survey_page(found).encode())
        context.output.note(f"the page is {html}")
    if not is_complete:
        context.output.note("interrupted: this is what was counted until then")
        return ExitCode.INTERRUPTED
    return ExitCode.UNKNOWN if inputs.problems else ExitCode.OK


def _opened(folder: Path) -> Rows:
    """Open the database. Raises CommandError if a package is missing, before the work begins."""
    try:
        import jinja2  # noqa: F401

        purposes = {each.tokens[0].lower(): each.purposes for each in well_known_crawlers()}
        return Rows(folder, purposes)
    except ImportError as error:
        text = f"survey needs the package {error.name}: pip install {error.name}"
        raise CommandError(text) from None


def _count(inputs: Inputs, path: Path, processes: int | None, context: Context) -> bool:
    """Write the rows of the inputs. Returns whether they are complete: not after Ctrl-C."""
    number = 0
    with (
        context.output.progress("files") as done,
        path.open("wb") as file,
        closing(rows_of(inputs.samples(), processes)) as found,
    ):
        try:
            for lines in found:
                with writing(str(path)):
                    file.writelines(line + b"\n" for line in lines)
                number += len(lines)
                done(number)
        except KeyboardInterrupt:
            return False
    return True


# Inputs


class Inputs:
    """The inputs of a survey, and what could not be read of them."""

    def __init__(self, names: Iterable[str], depth: int, context: Context) -> None:
        self._depth = depth
        self._context = context
        self.problems = 0
        """Files and parts of inputs that cannot be read."""
        self.rows: list[Path] = []
        """Files with rows of other surveys, which the database reads."""
        self._readers = [reader for name in names if (reader := self._reader(name)) is not None]

    def samples(self) -> Iterator[Sample]:
        """Yield what is known of each site. A problem is a warning, and the rest is read."""
        return chain.from_iterable(read() for read in self._readers)

    def _reader(self, name: str) -> Callable[[], Iterator[Sample]] | None:
        """Return a function that reads an input, or None for rows. Raises CommandError."""
        path = Path(name)
        if "://" in name:
            if find_type(name) is None:
                raise CommandError(f"{without_password(name)} is not the URL of a store")
            return lambda: self._of_store(name)
        if path.is_dir():
            return lambda: self._of_folder(name)
        if name == STANDARD_INPUT or path.is_fifo():  # which can be opened once
            return lambda: self._of_tar(name)
        try:
            path.open("rb").close()
        except OSError as error:
            raise CommandError(f"cannot read {name}: {error.strerror or error}") from None
        if name.endswith(ROW_FILES):
            self.rows.append(path)
            return None
        if name.lower().endswith((".warc", ".warc.gz")):
            from .archived import archive_reader  # only here, because it loads much

            reader = archive_reader()
            return lambda: self._of_archive(path, reader)
        return lambda: self._of_tar(name)

    def _problem(self, message: object) -> None:
        self.problems += 1
        self._context.output.warn(str(message), "files that cannot be read")

    def _unreadable(self, error: OSError, name: object) -> None:
        self._problem(f"cannot read {name}: {error.strerror or error}")

    def _stratum(self, folders: tuple[str, ...]) -> str | None:
        return "/".join(folders[: self._depth]) or None

    def _of_folder(self, root: str) -> Iterator[Sample]:
        """Read the regular files below a folder. Symbolic links are not followed."""
        number = 0
        walk = os.walk(root, onerror=lambda error: self._unreadable(error, error.filename))
        for folder, _, names in walk:
            for name in names:
                path = Path(folder, name)
                try:
                    if not stat.S_ISREG(path.lstat().st_mode):
                        continue
                    number += 1
                    with path.open("rb") as file:
                        body = file.read(MAX_BODY)
                except OSError as error:
                    self._unreadable(error, path)
                    continue
                parts = path.relative_to(root).parts
                yield Sample("/".join(parts), body, stratum=self._stratum(parts[:-1]))
        if not number and not self.problems:
            raise CommandError(
                f"there is no file in {root}: name a folder of robots.txt files, a tar file, the "
                "URL of a store, a WARC file, or rows of other surveys"
            )

    def _of_tar(self, name: str) -> Iterator[Sample]:
        number = inflated = 0
        try:
            with ExitStack() as stack:
                stream: Any = sys.stdin.buffer
                room = float("inf")
                if name != STANDARD_INPUT:
                    stream = stack.enter_context(open(name, "rb"))
                    status = os.fstat(stream.fileno())
                    if stat.S_ISREG(status.st_mode):
                        room = INFLATED_FREE + MAX_RATIO * status.st_size
                # tarfile itself would inflate a bomb of bzip2 at once.
                start = stream.peek(6)
                for magic, coding in _CODINGS.items():
                    stream = coding(stream) if start.startswith(magic) else stream
                tar = stack.enter_context(tarfile.open(None, "r|", stream, tarinfo=_Member))
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined] # else it keeps all of them
                    inflated += member.size
                    if inflated > room:
                        text = f"it has more than {MAX_RATIO} times the bytes of the file"
                        raise tarfile.ReadError(text)
                    handle = tar.extractfile(member) if member.isreg() else None
                    if handle is not None:
                        stratum = self._stratum(PurePosixPath(member.name).parts[:-1])
                        yield Sample(member.name, handle.read(MAX_BODY), stratum=stratum)
                        number += 1
        except _DAMAGED as error:
            if not number:
                raise CommandError(f"cannot read {name} as a tar file: {error}") from None
            self._problem(f"{name} is damaged after {number:,} files: {error}")

    def _of_store(self, url: str) -> Iterator[Sample]:
        with using_store(url, must_exist=True) as store:
            for key, entry in store.entries():
                if entry is None:
                    self._problem(f"the entry of {key} cannot be read")
                elif origin_of(key) == key:  # the key of another file is its URL
                    body = entry.body if entry.result is AccessResult.RULES else None
                    yield Sample(key, body, entry.status, entry.result.value)

    def _of_archive(self, path: Path, reader: Any) -> Iterator[Sample]:
        try:
            for found in reader.read(path, self._problem):
                result = AccessResult.RULES  # a file that came over FTP
                if found.status is not None:
                    result = access_result(found.status, StatusPolicy(), conditional=True)
                body = found.body if result is AccessResult.RULES else None
                yield Sample(found.origin, body, found.status, result.value)
        except OSError as error:
            self._unreadable(error, path)


class _Member(tarfile.TarInfo):
    """A member of a tar file, whose headers are limited in size."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> Any:
        member = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        is_header = member.type in (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if is_header and member.type != tarfile.GNUTYPE_SPARSE and member.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header has {member.size:,} bytes")
        return member


# Processes


def rows_of(samples: Iterable[Sample], processes: int | None) -> Generator[list[bytes]]:
    """Yield the rows of samples as lines of JSON, in their order. None: a process for each core.

    Not more samples are in memory than the processes need. After Ctrl-C, yields what has been
    counted, and raises KeyboardInterrupt. Raises CommandError if a process ends.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    processes = processes or cores
    batches = _batches(samples)
    first = list(islice(batches, 2))
    if processes == 1 or len(first) < 2:  # the start of processes would take longer
        for sample in chain.from_iterable(chain(first, batches)):
            yield [encode(row_of(sample))]
        return
    try:
        yield from results_of(_rows, chain(first, batches), processes)
    except BrokenExecutor:
        text = "a process that counts has ended, perhaps for lack of memory"
        raise CommandError(text, ExitCode.UNKNOWN) from None


def results_of(function: Callable[[T], R], items: Iterable[T], processes: int) -> Iterator[R]:
    """Call a function in processes, and yield its results in the order of the items.

    At most two calls for each process have no result, or one that is not taken. After Ctrl-C,
    yields the results of the calls that have begun and end within `END_TIMEOUT`, and raises
    KeyboardInterrupt. Raises BrokenExecutor if a process ends, and OSError if none can be started.
    """
    # A fork is not safe, because a progress bar has a thread.
    context = multiprocessing.get_context("spawn")
    calls: deque[Future[R]] = deque()
    with ProcessPoolExecutor(processes, context, _end_with_parent) as executor:
        try:
            for item in items:
                # Ctrl-C goes to all processes of a terminal. Those that start here never get it.
                before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    calls.append(executor.submit(function, item))
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
                if len(calls) >= 2 * processes:
                    yield calls[0].result()
                    calls.popleft()
            while calls:
                yield calls[0].result()
                calls.popleft()
        except KeyboardInterrupt:
            end = time.monotonic() + END_TIMEOUT
            for call in calls:
                if not call.cancel():
                    with suppress(BrokenExecutor, futures.TimeoutError):
                        yield call.result(max(end - time.monotonic(), 0))
            raise
        finally:  # also if the caller takes no more results
            for process in multiprocessing.active_children():
                process.kill()


def _end_with_parent() -> None:
    """End this process as soon as the one that has started it has ended, however it ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _rows(batch: list[Sample]) -> list[bytes]:
    return [encode(row_of(sample)) for sample in batch]


def _batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    batch: list[Sample] = []
    size = 0
    for sample in samples:
        batch.append(sample)
        size += len(sample.body or b"")
        if len(batch) >= BATCH_FILES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
