"""URLs from files, one at a time: plain lines, CSV, JSON Lines, sitemaps; compressed or not.

Nothing here holds a whole file in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import zlib
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError, XMLPullParser

from .context import STANDARD_INPUT
from .exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

FORMATS = ("lines", "csv", "jsonl", "sitemap")
"""The formats of a file with URLs."""

MAX_LINE = 1 << 20
"""Characters of a line. A longer one is no list of URLs."""

_CHUNK = 1 << 16
_START = 1 << 12
_URL_NAMES = ("url", "loc", "address", "link", "href")
"""Names of a CSV column or JSON field that holds URLs, if the user names none."""


def urls_from(name: str, *, form: str | None = None, field: str | None = None) -> Iterator[str]:
    """Yield the URLs of a file; ``-`` is standard input.

    ``form`` is one of :data:`FORMATS`; without it the name and the start of the file tell.
    ``field`` is the CSV column (a name, or a number from 1) or the JSON field. Raises
    :class:`CommandError` for a file that cannot be read.
    """
    try:
        with _opened(name) as raw:
            stream = _decompressed(raw)
            form = form or _form_of(name, stream, has_field=field is not None)
            match form:
                case "sitemap":
                    yield from _of_sitemap(stream)
                case "csv":
                    with _text(stream) as text:
                        yield from _of_csv(text, field)
                case "jsonl":
                    with _text(stream) as text:
                        yield from _of_json_lines(text, field)
                case _:
                    with _text(stream) as text:
                        yield from _of_lines(text)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot read {name}: {reason}") from None
    except (UnicodeDecodeError, ParseError, csv.Error, ValueError) as error:
        raise CommandError(f"cannot read {name} as {form or 'text'}: {error}") from None


def _opened(name: str) -> AbstractContextManager[io.BufferedReader]:
    if name == STANDARD_INPUT:
        stream: Any = sys.stdin.buffer
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
def _text(stream: io.BufferedReader) -> Iterator[io.TextIOWrapper]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        yield text
    finally:
        text.detach()  # the caller closes the stream


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and "\0" in line:
            raise ValueError("it is a binary file")
        yield line


def _of_lines(text: io.TextIOWrapper) -> Iterator[str]:
    for line in _lines(text):
        url = line.strip()
        if url and not url.startswith("#"):
            yield url


def _of_csv(text: io.TextIOWrapper, field: str | None) -> Iterator[str]:
    first = next(_lines(text), "")
    delimiter = max(",;\t", key=first.count) if first.strip() else ","
    header = next(csv.reader([first], delimiter=delimiter), [])
    number = _column(header, field)
    rows = csv.reader(_lines(text), delimiter=delimiter)
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
    for number, line in enumerate(_lines(text), 1):
        if not line.strip():
            continue
        try:
            value = _value_of(json.loads(line), field)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if not isinstance(value, str):
            wanted = field or "url"
            raise ValueError(f"line {number} has no text in the field {wanted}")
        yield value.strip()


def _value_of(record: Any, field: str | None) -> Any:
    if not isinstance(record, dict):
        return record
    names = _URL_NAMES if field is None else (field,)
    return next((record[name] for name in names if name in record), None)


def _of_sitemap(stream: io.BufferedReader) -> Iterator[str]:
    """Yield the URLs in ``<loc>`` elements (sitemaps.org). An index yields its sitemaps.

    The parser of Python expands no external entities. Elements are removed as soon as they end.
    """
    parser: Any = XMLPullParser(["start", "end"])
    path: list[Any] = []
    while chunk := stream.read(_CHUNK):
        if b"<!ENTITY" in chunk:
            raise ValueError("it declares entities")
        parser.feed(chunk)
        for event, element in parser.read_events():
            if event == "start":
                path.append(element)
                continue
            path.pop()
            parent = _tag(path[-1]) if path else ""
            # An image has a <loc>, too.
            if _tag(element) == "loc" and parent in ("url", "sitemap"):
                yield (element.text or "").strip()
            if parent not in ("url", "sitemap"):
                element.clear()
                if path:
                    path[-1].remove(element)
    parser.close()


def _tag(element: Any) -> str:
    tag: str = element.tag
    return tag.rpartition("}")[2]
