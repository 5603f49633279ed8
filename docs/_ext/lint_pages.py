"""Makes a page for each code of lint, from ``scrapy_rep/commands/lint_codes.md``.

The pages have the ending ``.myst``, and are no part of the repository. ``reference/lint.md`` lists
them below the headings of that file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODES = Path(__file__).parents[2] / "scrapy_rep" / "commands" / "lint_codes.md"
LIST = "reference/lint"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the events of Sphinx."""
    app.add_source_suffix(".myst", "markdown")
    app.connect("builder-inited", _write)
    app.connect("source-read", _append)
    return {"parallel_read_safe": True}


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir, LIST)
    folder.mkdir(exist_ok=True)
    texts = {f"{code}.myst": text for *_, codes in _sections() for code, text in codes.items()}
    for page in folder.iterdir():
        if page.name not in texts:  # of a code that no longer exists
            page.unlink()
    for name, text in texts.items():
        page = folder / name
        if not page.is_file() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def _append(_app: Sphinx, name: str, source: list[str]) -> None:
    """Append the list of the pages to the page about lint."""
    if name == LIST:
        for title, introduction, codes in _sections():
            names = "\n".join(f"lint/{code}" for code in codes)
            source[0] += f"\n## {title}\n\n{introduction}\n```{{toctree}}\n{names}\n```\n"


def _sections() -> list[tuple[str, str, dict[str, str]]]:
    """Return for each heading its introduction, and the pages of its codes."""
    sections = []
    for section in re.split(r"^## ", CODES.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        start, *codes = re.split(r"^### ", section, flags=re.MULTILINE)
        title, _, introduction = start.partition("\n")
        pages = {code[:4]: f"# {code}".replace("](", "](../") for code in codes}
        sections.append((title, introduction, pages))
    return sections
