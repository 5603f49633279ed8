"""The inputs of a survey: robots.txt files from a folder, a tar file, a store or an archive.

Everything is read as a stream. No file is written, and names are only shown. Rows of other surveys
are inputs, too, which the database reads.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import tarfile
import zlib
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..protocol.access import AccessResult, StatusPolicy, access_result
from ..protocol.paths import origin_of
from ..reports.survey import ROW_FILES
from ..reports.survey_row import Sample
from ..stores.registry import find_type, without_password
from .context import MAX_BODY, STANDARD_INPUT
from .output import CommandError
from .transfer import using_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from io import BufferedReader

    from .context import Context

MAX_HEADER = 1 << 20
"""Octets of the name of a member of a tar file, and of its other headers. A longer one is no
name."""

INFLATED_FREE = 1 << 30
MAX_RATIO = 250
"""A compressed tar file is read up to so many octets, and as many for each octet of the file.
Files that are all the same are compressed to a 75th. A bomb is compressed to a 1,000th or less."""

_CODINGS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""What a compressed file starts with."""

_DAMAGED = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError, ValueError)


class Inputs:
    """The inputs of a survey, and what could not be read of them."""

    def __init__(self, names: Iterable[str], depth: int, context: Context) -> None:
        self._depth = depth
        self._context = context
        self.problems = 0
        """Files and parts of inputs that cannot be read."""
        self.rows: list[Path] = []
        """Files with rows of other surveys."""
        self._readers = [reader for name in names if (reader := self._reader(name)) is not None]

    def samples(self) -> Iterator[Sample]:
        """Yield what is known of each site. A problem is a warning, and the rest is read."""
        for read in self._readers:
            yield from read()

    def _reader(self, name: str) -> Callable[[], Iterator[Sample]] | None:
        """Return a function that reads an input, or None for rows. Raises CommandError."""
        if "://" in name:
            if find_type(name) is None:
                raise CommandError(f"{without_password(name)} is not the URL of a store")
            return lambda: self._of_store(name)
        path = Path(name)
        if path.is_dir():
            return lambda: self._of_folder(path)
        if name == STANDARD_INPUT or path.is_fifo():  # which can be opened once
            return lambda: self._of_tar(name)
        try:
            with path.open("rb"):
                pass
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

    def _stratum(self, folders: tuple[str, ...]) -> str | None:
        return "/".join(folders[: self._depth]) or None

    def _of_folder(self, root: Path) -> Iterator[Sample]:
        """Read the regular files below a folder. Symbolic links are not followed."""
        number = 0
        folders: list[tuple[str, tuple[str, ...]]] = [(str(root), ())]
        while folders:
            path, names = folders.pop()
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        path = entry.path
                        if entry.is_dir(follow_symlinks=False):
                            folders.append((path, (*names, entry.name)))
                        elif entry.is_file(follow_symlinks=False):
                            number += 1
                            site = "/".join((*names, entry.name))
                            if (body := self._body(path)) is not None:
                                yield Sample(site, body, stratum=self._stratum(names))
            except OSError as error:
                number += 1
                self._problem(f"cannot read {path}: {error.strerror or error}")
        if not number:
            raise CommandError(
                f"there is no file in {root}: name a folder of robots.txt files, a tar file, the "
                "URL of a store, a WARC file, or rows of other surveys"
            )

    def _body(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read(MAX_BODY)
        except OSError as error:
            self._problem(f"cannot read {path}: {error.strerror or error}")
            return None

    def _of_tar(self, name: str) -> Iterator[Sample]:
        number = 0
        try:
            with ExitStack() as stack:
                stream: Any = sys.stdin.buffer
                if name != STANDARD_INPUT:
                    stream = stack.enter_context(open(name, "rb"))
                inflated: Any = _Inflated(stream)
                tar = stack.enter_context(tarfile.open(None, "r|", inflated, tarinfo=_Member))
                for member in tar:
                    tar.members = []  # type: ignore[attr-defined] # else it keeps all of them
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
        policy = StatusPolicy()
        try:
            for found in reader.read(path, self._problem):
                result = AccessResult.RULES
                if found.status == 304:
                    result = AccessResult.NOT_MODIFIED
                elif found.status is not None:
                    result = access_result(found.status, policy)
                body = found.body if result is AccessResult.RULES else None
                yield Sample(found.origin, body, found.status, result.value)
        except OSError as error:
            self._problem(f"cannot read {path}: {error.strerror or error}")


class _Counted:
    """A stream that counts the octets that are read of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.octets = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self.octets += len(data)
        return data


class _Inflated(_Counted):
    """The octets of a stream, inflated if it is compressed. Raises ReadError if it is a bomb."""

    def __init__(self, stream: BufferedReader) -> None:
        start = stream.peek(6)
        opened = [each for magic, each in _CODINGS.items() if start.startswith(magic)]
        self._source = _Counted(stream)
        super().__init__(opened[0](self._source) if opened else self._source)

    def read(self, size: int = -1) -> bytes:
        data = super().read(size)
        if self.octets > INFLATED_FREE + MAX_RATIO * self._source.octets:
            raise tarfile.ReadError(f"it has more than {MAX_RATIO} times the octets of the file")
        return data


class _Member(tarfile.TarInfo):
    """A member of a tar file, whose headers are limited in size."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str | None, errors: str) -> Any:
        member = super().frombuf(buf, encoding, errors)  # type: ignore[arg-type]
        is_header = member.type in (*tarfile.GNU_TYPES, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if is_header and member.type != tarfile.GNUTYPE_SPARSE and member.size > MAX_HEADER:
            raise tarfile.ReadError(f"a header has {member.size:,} octets")
        return member
