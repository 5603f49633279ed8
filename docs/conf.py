"""The configuration of Sphinx. ``make docs`` builds the documentation, without a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext")]

from offline_inventories import write_inventories  # noqa: E402

from scrapy_rep import __version__  # noqa: E402

project = "scrapy-rep"
author = "scrapy-rep developers"
release = version = __version__

extensions = ["sphinx_scrapy", "myst_parser", "lint_pages", "searches"]
nitpicky = True
nitpick_ignore = [
    # Types of attributes that are no public names.
    *(("py:class", name) for name in ("Correction", "Source")),
    *(("py:class", f"scrapy_rep.protocol.access.{name}") for name in ("AccessResult", "CopyInfo")),
    ("py:class", "scrapy_rep.origin.Origin"),
    ("py:class", "scrapy_rep.protocol.lint.Correction"),
]

# Markdown: headings are targets of links, as on code hosting sites.
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"

html_theme = "sphinx_rtd_theme"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_copy_source = False
html_show_copyright = False

# The address of the published pages, for canonical links and the sitemap. Only Read the Docs knows
# it. Without an address, there are no canonical links and no sitemap.
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
suppress_warnings = [] if html_baseurl else ["sitemap.configuration"]

# Read the Docs gets the inventories of other projects from their sites. Everywhere else, and if a
# site does not answer, the names in _ext/offline_inventories.py are used.
_LOCAL = write_inventories(ROOT / "build" / "docs" / "inventories")
_ON_READ_THE_DOCS = os.environ.get("READTHEDOCS") == "True"
intersphinx_mapping = {
    name: (url, (None, path) if _ON_READ_THE_DOCS else path) for name, (url, path) in _LOCAL.items()
}
scrapy_intersphinx_disable = list(intersphinx_mapping)

linkcheck_timeout = 20
linkcheck_retries = 2


def setup(app: Sphinx) -> None:
    """Keep the address as it is: sphinx-scrapy makes one from the name of the project."""
    app.connect("config-inited", _keep_address, priority=900)


def _keep_address(_app: Sphinx, config: Config) -> None:
    config.html_baseurl = html_baseurl
