"""URLs from files, one at a time: plain lines, CSV, JSON Lines, sitemaps; compressed or not.

Nothing here holds a whole file in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ExpatError, ParserCreate

from .context import STANDARD_INPUT, standard_input
from .exits import CommandError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

FORMATS = ("lines", "csv", "jsonl", "sitemap")
"""The formats of a file with URLs."""

MAX_LINE = 1 << 20
"""Characters of a line, or of a URL in a sitemap. A longer one is cut."""

MAX_DEPTH = 100
"""Elements of a sitemap within each other. A sitemap has three, and a few more with extensions."""

_CHUNK = 1 << 16
_START = 1 << 12
_URL_NAMES = ("url", "loc", "address", "link", "href")
"""Names of a CSV column or JSON field that holds URLs, if the user names none."""


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a file with URLs is read."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="the format of that file; default: its name and its first octets tell",
    )
    parser.add_argument(
        "--field", metavar="NAME", help="the CSV column (name or number) or the JSON field"
    )


def urls_from(name: str, *, form: str | None = None, field: str | None = None) -> Iterator[str]:
    """Yield the URLs of a file; ``-`` is standard input.

    ``form`` is one of :data:`FORMATS`; without it the name and the start of the file tell.
    ``field`` is the CSV column (a name, or a number from 1) or the JSON field. Raises
    :class:`CommandError` for a file that cannot be read.
    """
    try:
        with opened(name) as raw:
            stream = _decompressed(raw)
            form = form or _form_of(name, stream, has_field=field is not None)
            match form:
                case "sitemap":
                    yield from _of_sitemap(stream)
                case "csv":
                    with as_text(stream) as text:
                        yield from _of_csv(text, field)
                case "jsonl":
                    with as_text(stream) as text:
                        yield from _of_json_lines(text, field)
                case _:
                    with as_text(stream) as text:
                        yield from _of_lines(text)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {name}: {reason}") from None
    except (ExpatError, csv.Error, ValueError) as error:
        raise CommandError(f"cannot read {name} as {form or 'text'}: {error}") from None


def opened(name: str) -> AbstractContextManager[io.BufferedReader]:
    """Return a file to read octets from; ``-`` is standard input."""
    if name == STANDARD_INPUT:
        stream: Any = standard_input()
        return nullcontext(stream)
    return Path(name).open("rb")


def _decompressed(stream: io.BufferedReader) -> io.BufferedReader:
    if stream.peek(2)[:2] == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return stream


def _form_of(name: str, stream: io.BufferedReader, *, has_field: bool) -> str:
    """Guess the format of a file. Raises ValueError for a binary file."""
    start = stream.peek(_START)[:_START].removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in start:
        raise ValueError("it is a binary file")
    stem = name.lower().removesuffix(".gz")
    if start.startswith(b"<"):
        return "sitemap"
    if stem.endswith((".jsonl", ".ndjson", ".jl")) or start.startswith(b"{"):
        return "jsonl"
    return "csv" if has_field or stem.endswith((".csv", ".tsv")) else "lines"


@contextmanager
def as_text(stream: io.BufferedReader) -> Iterator[io.TextIOWrapper]:
    """Read a stream as UTF-8. Other octets stay as surrogates. The caller closes it."""
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()


def lines_of(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text. A line of more than `MAX_LINE` characters is cut into pieces."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and "\0" in line:
            raise ValueError("it is a binary file")
        yield line


def _of_lines(text: io.TextIOWrapper) -> Iterator[str]:
    for line in lines_of(text):
        url = line.strip()
        if url and not url.startswith("#"):
            yield url


def _of_csv(text: io.TextIOWrapper, field: str | None) -> Iterator[str]:
    first = next(lines_of(text), "")
    if not first:  # an empty file
        return
    delimiter = max(",;\t", key=first.count) if first.strip() else ","
    header = next(csv.reader([first], delimiter=delimiter), [])
    number = _column(header, field)
    rows = csv.reader(lines_of(text), delimiter=delimiter)
    if field is not None and field.isdecimal() and _looks_like_url(header[number]):
        yield header[number].strip()
    for row in rows:
        if len(row) > number and row[number].strip():
            yield row[number].strip()


def _column(header: list[str], field: str | None) -> int:
    if field is not None and field.isdecimal():
        number = int(field) - 1
        if not 0 <= number < len(header):
            raise ValueError(f"there is no column {field}: the first line has {len(header)}")
        return number
    names = [name.strip().lower() for name in header]
    for name in _URL_NAMES if field is None else (field.lower(),):
        if name in names:
            return names.index(name)
    wanted = "for URLs; name it with --field" if field is None else field
    raise ValueError(f"there is no column {wanted}: there are {', '.join(header)}")


def _looks_like_url(text: str) -> bool:
    return "/" in text or "." in text


def _of_json_lines(text: io.TextIOWrapper, field: str | None) -> Iterator[str]:
    for number, line in enumerate(lines_of(text), 1):
        if not line.strip():
            continue
        try:
            value = _value_of(parse_json(line), field)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not isinstance(value, str):
            wanted = field or "url"
            raise ValueError(f"line {number} has no text in the field {wanted}")
        yield value.strip()


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is none."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _value_of(record: Any, field: str | None) -> Any:
    if not isinstance(record, dict):
        return record
    names = _URL_NAMES if field is None else (field,)
    return next((record[name] for name in names if name in record), None)


def _of_sitemap(stream: io.BufferedReader) -> Iterator[str]:
    """Yield the URLs in ``<loc>`` elements (sitemaps.org). An index yields its sitemaps."""
    sitemap = _Sitemap()
    while chunk := stream.read(_CHUNK):
        yield from sitemap.read(chunk)
    sitemap.close()


class _Sitemap:
    """Reads a sitemap piece by piece. It keeps one URL, and the names of the open elements.

    Entities of the file are refused, because a few of them can expand to gigabytes.
    """

    def __init__(self) -> None:
        parser = self._parser = ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse
        self._path: list[str] = []
        self._pieces: list[str] | None = None
        """The pieces of the URL that is being read."""
        self._room = 0
        self._urls: list[str] = []

    def read(self, octets: bytes) -> list[str]:
        """Return the URLs that end in the next octets of the file."""
        self._parser.Parse(octets, False)
        urls, self._urls = self._urls, []
        return urls

    def close(self) -> None:
        """Raise ExpatError if the file is not complete."""
        self._parser.Parse(b"", True)

    def _start(self, name: str, _: object) -> None:
        self._path.append(name.rpartition(" ")[2])
        if len(self._path) > MAX_DEPTH:
            raise ValueError("its elements are nested too deeply")
        # An image has a <loc>, too.
        if self._path[-1] == "loc" and self._path[-2:-1] in (["url"], ["sitemap"]):
            self._pieces, self._room = [], MAX_LINE

    def _characters(self, text: str) -> None:
        if self._pieces is not None and self._room > 0:
            self._pieces.append(text[: self._room])
            self._room -= len(text)

    def _end(self, _: str) -> None:
        if self._path.pop() == "loc" and self._pieces is not None:
            self._urls.append("".join(self._pieces).strip())
            self._pieces = None

    def _refuse(self, *_: object) -> None:
        raise ValueError("it declares entities")
