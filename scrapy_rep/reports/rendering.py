"""The forms of a report, by the suffix of a file name.

To add a form, add its function to :data:`RENDERERS`. It gets a report and returns the text of the
file. It must escape what it shows: a site chose most texts of a report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from .reading import document

if TYPE_CHECKING:
    from collections.abc import Callable

    from .model import Report


def json_text(report: Report) -> str:
    """Return the JSON form of a report, with a line for each origin and for each host.

    With `indent`, Python's encoder would be several times slower.
    """
    fields = (f"{json.dumps(name)}: {_lines(value)}" for name, value in document(report).items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def html_text(report: Report) -> str:
    """Return the page of a report."""
    # A crawl needs it only when it ends.
    from .html import render

    return render(report)


RENDERERS: dict[str, Callable[[Report], str]] = {".json": json_text, ".html": html_text}
"""The form that each suffix of a file name selects."""


def renderer_for(path: str) -> Callable[[Report], str]:
    """Return the function that makes the text of a file. Raises ValueError for other suffixes."""
    try:
        return RENDERERS[Path(path).suffix.lower()]
    except KeyError:
        raise ValueError(f"a path that ends in {' or '.join(RENDERERS)}") from None
