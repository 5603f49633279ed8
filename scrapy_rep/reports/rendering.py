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
    """Return the JSON form of a report. It ends in a newline."""
    return json.dumps(document(report), indent=1) + "\n"


RENDERERS: dict[str, Callable[[Report], str]] = {".json": json_text}
"""The form that each suffix of a file name selects."""


def renderer_for(path: str) -> Callable[[Report], str]:
    """Return the function that makes the text of a file. Raises ValueError for other suffixes."""
    try:
        return RENDERERS[Path(path).suffix.lower()]
    except KeyError:
        raise ValueError(f"a path that ends in {' or '.join(RENDERERS)}") from None
