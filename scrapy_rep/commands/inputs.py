"""URLs from files, one at a time: plain lines, JSON Lines, sitemaps; compressed or not.

Nothing here holds a whole file in memory.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import zlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .context import STANDARD_INPUT
from .output import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMATS = ("lines", "jsonl", "sitemap")
"""The formats of a file with URLs."""

MAX_LINE = 1 << 20
"""Characters of a line, or of a URL in a sitemap. A longer one is cut."""

GZIP = b"\x1f\x8b"
_START = 1 << 12


def input_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add the options that say how a file with URLs is read."""
    form = click.option(
        "--from-format",
        type=click.Choice(FORMATS),
        help="The format of that file. Default: its name and its first bytes tell.",
    )
    field = click.option(
        "--url-field", metavar="NAME", help="The field with the URL, in JSON Lines. Default: url."
    )
    return form(field(function))


def urls_from(name: str, *, form: str | None = None, field: str | None = None) -> Iterator[str]:
    """Yield the URLs of a file; ``-`` is standard input.

    ``form`` is one of :data:`FORMATS`; without it the name and the start of the file tell.
    ``field`` is the JSON field. Raises :class:`CommandError` for a file that cannot be read.
    """
    with reading(name, form or "URLs", ValueError, zlib.error), opened(name) as raw:
        stream = decompressed(raw)
        form = form or ("jsonl" if field else _form_of(name, stream))
        if form == "sitemap":
            yield from _of_sitemap(stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            if form == "jsonl":
                yield from _of_json_lines(text, field or "url")
            else:
                urls = (line.strip() for line in _lines_of(text))
                yield from (url for url in urls if url and not url.startswith("#"))
        finally:
            text.detach()


def opened(name: str) -> AbstractContextManager[Any]:
    """Return a file to read bytes from; ``-`` is standard input."""
    return nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb")


def decompressed(stream: Any) -> Any:
    """Return a stream of the bytes before gzip."""
    if stream.peek(2)[:2] == GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return stream


def _form_of(name: str, stream: Any) -> str:
    """Guess the format of a file. Raises ValueError for a binary file."""
    start = stream.peek(_START)[:_START].removeprefix(b"\xef\xbb\xbf").lstrip()
    if b"\0" in start:
        raise ValueError("it is a binary file")
    if start.startswith(b"<"):
        return "sitemap"
    is_json = name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson", ".jl"))
    return "jsonl" if is_json or start.startswith(b"{") else "lines"


def _lines_of(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text. A line of more than `MAX_LINE` characters is cut into pieces."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and "\0" in line:
            raise ValueError("it is a binary file")
        yield line


def _of_json_lines(text: io.TextIOWrapper, field: str) -> Iterator[str]:
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
            value = value.get(field)
        if not isinstance(value, str):
            raise ValueError(f"line {number} has no text in the field {field}")
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
