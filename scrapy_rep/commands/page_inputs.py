"""Pages and their robots directives, from CSV or JSON Lines: for ``lint --pages``.

The columns are those of our own files (``url``, ``robots``), or those of the exports of crawlers
for search engine optimization (``Address``, ``Meta Robots 1``, ``X-Robots-Tag 1``).
"""

from __future__ import annotations

import csv
from itertools import chain
from typing import TYPE_CHECKING, Any

from .exits import CommandError
from .inputs import as_text, lines_of, opened, parse_json
from .targets import target_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .output import Output

_URL_NAMES = ("url", "address", "loc")
_DIRECTIVE_NAMES = ("robots", "meta robots", "x-robots-tag", "x_robots_tag")
"""The beginnings of the names of columns and fields with directives."""


def pages_from(name: str, output: Output) -> Iterator[tuple[str, str]]:
    """Yield URL and directives of each page of a file; ``-`` is standard input.

    A URL that is none is skipped with a note. Raises :class:`CommandError` for a file that cannot
    be read.
    """
    try:
        with opened(name) as raw, as_text(raw) as text:
            for row in _rows(lines_of(text)):
                fields = {str(key).strip().lower(): value for key, value in row.items()}
                url = next((fields[key] for key in _URL_NAMES if fields.get(key)), None)
                if not isinstance(url, str):
                    raise ValueError(f"a row has none of the fields {', '.join(_URL_NAMES)}")
                target = target_of(url.strip(), in_file=True)
                if not target.is_valid:
                    output.repeated_note("URLs of pages that are none", f"{url} is no URL")
                    continue
                directives = [
                    value
                    for key, value in fields.items()
                    if key.startswith(_DIRECTIVE_NAMES) and isinstance(value, str)
                ]
                yield target.url, ", ".join(directives)
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror or error}") from None
    except (csv.Error, ValueError) as error:
        raise CommandError(f"cannot read {name} as CSV or JSON Lines: {error}") from None


def _rows(iterator: Iterator[str]) -> Iterator[dict[Any, Any]]:
    first = next(iterator, "")
    if first.lstrip().startswith("{"):
        yield from (_record(line) for line in chain([first], iterator) if line.strip())
        return
    delimiter = max(",;\t", key=first.count)
    header = next(csv.reader([first], delimiter=delimiter), [])
    yield from csv.DictReader(iterator, header, delimiter=delimiter)


def _record(line: str) -> dict[str, Any]:
    record = parse_json(line)
    if not isinstance(record, dict):
        raise ValueError("a line is no JSON object")
    return record
