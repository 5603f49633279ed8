"""What people type into the search, and the page that it has to find. Else the build fails.

The search of Sphinx finds a number only as a title or as an index entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.errors import ExtensionError

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

SEARCHES = {
    "403": "usage/troubleshooting",
    "429": "usage/politeness",
    "503": "usage/politeness",
    "crawl-delay": "usage/politeness",
    "docker": "usage/production",
    "empty crawl": "usage/troubleshooting",
    "github": "usage/integrations",
    "jupyter": "usage/integrations",
    "kubernetes": "usage/production",
    "prometheus": "usage/production",
    "scrapyd": "usage/production",
    "slow crawl": "usage/troubleshooting",
    "upgrade": "usage/upgrade",
    "R203": "reference/lint/R203",
}


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the event of Sphinx."""
    app.connect("env-updated", _check)
    return {"parallel_read_safe": True}


def _check(_app: Sphinx, env: BuildEnvironment) -> None:
    for search, page in SEARCHES.items():
        if not any(_finds(search.lower(), name.lower()) for name in _names(env, page)):
            raise ExtensionError(f"a search for {search!r} does not find {page}")


def _finds(search: str, name: str) -> bool:
    """Return whether the search of Sphinx finds a page by a title or an index entry."""
    is_word = not search.isdigit() and search in name.split()
    return is_word or (search in name and len(search) >= len(name) / 2)


def _names(env: BuildEnvironment, page: str) -> list[str]:
    entries = env.get_domain("index").data["entries"].get(page, [])
    titles = [title.astext() for title in env.tocs[page].findall(nodes.reference)]
    return [*titles, *(entry[1] for entry in entries)]
