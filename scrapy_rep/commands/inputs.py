"""URLs from files, one at a time: plain lines, CSV, JSON Lines, sitemaps; compressed or not.

Nothing here holds a whole file in memory.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .context import STANDARD_INPUT, standard_input
from .output import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS = ("lines", "csv", "jsonl", "sitemap")
"""The formats of a file with URLs."""

MAX_LINE = 1 << 20
"""Characters of a line, or of a URL in a sitemap. A longer one is cut."""

GZIP = b"\x1f\x8b"
_START = 1 << 12
_URL_NAMES = ("url", "loc", "address", "link", "href")
"""Names of a CSV column or JSON field that holds URLs, if the user names none."""


def input_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say how a file with URLs is read."""
    form = click.option(
        "--from-format",
        type=click.Choice(FORMATS),
        help="The format of that file. Default: its name and its first bytes tell.",
    )
    field = click.option(
        "--field", metavar="NAME", help="The CSV column (name or number) or the JSON field."
    )
    return form(field(function))


def urls_from(name: str, *, form: str | None = None, field: str | None = None) -> Iterator[str]:
    """Yield the URLs of a file; ``-`` is standard input.

    ``form`` is one of :data:`FORMATS`; without it the name and the start of the file tell.
    ``field`` is the CSV column (a name, or a number from 1) or the JSON field. Raises
    :class:`CommandError` for a file that cannot be read.
    """
    wrong = (csv.Error, ValueError, zlib.error)
    with reading(name, form or "URLs", *wrong), opened(name) as raw:
        stream = decompressed(raw)
        form = form or _form_of(name, stream, has_field=field is not None)
        if form == "sitemap":
            yield from _of_sitemap(stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            if form == "csv":
                yield from _of_csv(text, field)
            elif form == "jsonl":
                yield from _of_json_lines(text, field)
            else:
                urls = (line.strip() for line in _lines_of(text))
                yield from (url for url in urls if url and not url.startswith("#"))
        finally:
            text.detach()


def opened(name: str) -> AbstractContextManager[Any]:
    """Return a file to read bytes from; ``-`` is standard input."""
    return nullcontext(standard_input()) if name == STANDARD_INPUT else Path(name).open("rb")


def decompressed(stream: Any) -> Any:
    """Return a stream of the bytes before gzip."""
    if stream.peek(2)[:2] == GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return stream


def _form_of(name: str, stream: Any, *, has_field: bool) -> str:
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


def _lines_of(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text. A line of more than `MAX_LINE` characters is cut into pieces."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and "\0" in line:
            raise ValueError("it is a binary file")
        yield line


def _of_csv(text: io.TextIOWrapper, field: str | None) -> Iterator[str]:
    first = next(_lines_of(text), "")
    if not first:  # an empty file
        return
    delimiter = max(",;\t", key=first.count) if first.strip() else ","
    header = next(csv.reader([first], delimiter=delimiter), [])
    number = _column(header, field)
    first_url = header[number].strip()
    if field is not None and field.isdecimal() and ("/" in first_url or "." in first_url):
        yield first_url  # there is no header
    for row in csv.reader(_lines_of(text), delimiter=delimiter):
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


def _of_json_lines(text: io.TextIOWrapper, field: str | None) -> Iterator[str]:
    names = _URL_NAMES if field is None else (field,)
    for number, line in enumerate(_lines_of(text), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except RecursionError:
            raise ValueError(f"line {number}: the JSON is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if isinstance(value, dict):
            value = next((value[name] for name in names if name in value), None)
        if not isinstance(value, str):
            raise ValueError(f"line {number} has no text in the field {field or 'url'}")
        yield value.strip()


def _of_sitemap(stream: Any) -> Iterator[str]:
    """Yield the URLs in ``<loc>`` elements (sitemaps.org). An index yields its sitemaps.

    Entities of the file are refused, because a few of them can expand to gigabytes.
    """
    from lxml import etree  # type: ignore[import-untyped]

    try:
        document = None
        for _, element in etree.iterparse(
            stream, resolve_entities=False, remove_comments=True, remove_pis=True
        ):
            if document is None:
                document = element.getroottree().docinfo
                if document.internalDTD is not None and document.internalDTD.entities():
                    raise ValueError("it declares entities")
            parent = element.getparent()
            # An image also has a <loc>.
            if element.tag.endswith("loc") and parent is not None:
                names = [name.rpartition("}")[2] for name in (element.tag, parent.tag)]
                if names in (["loc", "url"], ["loc", "sitemap"]):
                    yield (element.text or "")[:MAX_LINE].strip()
            element.clear()
            while element.getprevious() is not None:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
