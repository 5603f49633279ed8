"""The robots.txt files of a survey: from a folder, a tar file, a store or an archive.

Everything is read as a stream. No file is written, and names are only compared.
"""

from __future__ import annotations

import lzma
import os
import sys
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..protocol.access import AccessResult, StatusPolicy, access_result
from ..reports.survey import Sample
from ..stores.registry import find_type
from ..stores.url import without_password
from .context import MAX_BODY, STANDARD_INPUT
from .exits import CommandError
from .stored import is_policy, open_source, using

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .context import Context

MAX_HEADER = 1 << 20
"""Octets of the name of a member of a tar file, and of its other headers. A longer one is no
name."""

_NO_HEADERS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError, ValueError)


class Inputs:
    """The inputs of a survey, and what could not be read of them."""

    def __init__(self, names: Iterable[str], depth: int, context: Context) -> None:
        self._depth = depth
        self._context = context
        self.problems = 0
        """Files and parts of inputs that cannot be read."""
        self._readers = [self._reader(name) for name in names]

    def samples(self) -> Iterator[Sample]:
        """Yield what is known of each site. A problem is a warning, and the rest is read."""
        for read in self._readers:
            yield from read()

    def _reader(self, name: str) -> Callable[[], Iterator[Sample]]:
        """Return a function that reads an input. Raises CommandError if there is no such input."""
        if "://" in name:
            if find_type(name) is None:
                raise CommandError(f"{without_password(name)} is not the URL of a store")
            return lambda: self._of_store(name)
        if name == STANDARD_INPUT:
            return lambda: self._of_tar(name)
        path = Path(name)
        if path.is_dir():
            return lambda: self._of_folder(path)
        if path.is_fifo():  # which can be opened once
            return lambda: self._of_tar(name)
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            raise CommandError(f"cannot read {name}: {error.strerror or error}") from None
        if path.name.lower().endswith((".warc", ".warc.gz")):
            reader = _archive_reader()
            return lambda: self._of_archive(path, reader)
        return lambda: self._of_tar(name)

    def _problem(self, message: str) -> None:
        self.problems += 1
        self._context.output.repeated_warning("files that cannot be read", message)

    def _stratum(self, folders: tuple[str, ...]) -> str | None:
        return "/".join(folders[: self._depth]) or None

    def _of_folder(self, root: Path) -> Iterator[Sample]:
        """Read the regular files below a folder. Symbolic links are not followed."""
        folders: list[tuple[Path, tuple[str, ...]]] = [(root, ())]
        while folders:
            folder, names = folders.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append((Path(entry.path), (*names, entry.name)))
                        elif entry.is_file(follow_symlinks=False):
                            yield from self._of_file(entry.path, self._stratum(names))
            except OSError as error:
                self._problem(f"cannot read {folder}: {error.strerror or error}")

    def _of_file(self, path: str, stratum: str | None) -> Iterator[Sample]:
        try:
            with open(path, "rb") as file:
                body = file.read(MAX_BODY)
        except OSError as error:
            self._problem(f"cannot read {path}: {error.strerror or error}")
        else:
            yield Sample(body, stratum=stratum)

    def _of_tar(self, name: str) -> Iterator[Sample]:
        source: dict[str, Any] = (
            {"fileobj": sys.stdin.buffer} if name == STANDARD_INPUT else {"name": name}
        )
        number = 0
        try:
            with tarfile.open(mode="r|*", tarinfo=_Member, **source) as tar:
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined] # else it keeps all of them
                    handle = tar.extractfile(member) if member.isreg() else None
                    if handle is not None:
                        folders = PurePosixPath(member.name).parts[:-1]
                        yield Sample(handle.read(MAX_BODY), stratum=self._stratum(folders))
                        number += 1
        except _DAMAGED as error:
            if not number:
                raise CommandError(f"cannot read {name} as a tar file: {error}") from None
            self._problem(f"{name} is damaged after {number:,} files: {error}")

    def _of_store(self, url: str) -> Iterator[Sample]:
        with using(open_source(url, self._context), url) as store:
            for key, entry in store.entries():
                if entry is None:
                    self._problem(f"the entry of {key} cannot be read")
                elif is_policy(key):
                    has_rules = entry.result is AccessResult.RULES
                    yield Sample(
                        entry.body if has_rules else None, entry.status, entry.result.value
                    )

    def _without_errors(self, path: Path, responses: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from responses
        except OSError as error:
            self._problem(f"cannot read {path}: {error.strerror or error}")

    def _of_archive(self, path: Path, reader: Any) -> Iterator[Sample]:
        policy = StatusPolicy()

        def on_problem(problem: object) -> None:
            self._problem(str(problem))

        for found in self._without_errors(path, reader.read(path, on_problem)):
            result = AccessResult.RULES
            if found.status == 304:
                result = AccessResult.NOT_MODIFIED
            elif found.status is not None:
                result = access_result(found.status, policy)
            has_rules = result is AccessResult.RULES
            yield Sample(found.body if has_rules else None, found.status, result.value)


class _Member(tarfile.TarInfo):
    """A member of a tar file, whose headers are limited in size."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> Any:
        member = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        is_header = member.type in (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if is_header and member.type != tarfile.GNUTYPE_SPARSE and member.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header has {member.size:,} octets")
        return member


def _archive_reader() -> Any:
    try:
        from ..reports import archive_reader  # warcio is an optional dependency
    except ImportError:
        raise CommandError(
            "archives need the package warcio: pip install 'scrapy-rep[archive]'"
        ) from None
    return archive_reader
