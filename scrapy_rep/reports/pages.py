"""The HTML pages of the package: what their templates share.

A page is one file that loads nothing. Jinja2 escapes each value, and :func:`shown` cuts it and
makes its invisible characters visible, whatever the template says. A template of a page extends
``base.html``, and quotes all attributes. ``charts.html`` has the charts.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from math import log10
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..protocol.printable import printable
from . import answers, quantities

LINKS = frozenset({"https://datatracker.ietf.org/doc/html/draft-illyes-webbotauth-cbcp-01"})
"""The links to other pages. Nothing loads them until the reader follows them."""

STATES = {
    "rules": "Has rules",
    "unavailable": "No robots.txt",
    "disallowed": "All disallowed",
    "unreachable": "Unreachable",
    "unknown": "Not fetched",
}
"""What each state of an origin is called."""

MAX_TEXT = 2_000
"""Characters of one value that are shown."""


def render(template: str, **values: Any) -> str:
    """Return a page from a template of the package. The values are of any origin."""
    return environment().get_template(template).render(values)


SEPARATOR = "\x1f"
"""Between two cells of a text. A text of a site has an escape in its place."""


def render_text(template: str, **values: Any) -> str:
    """Return a text for a terminal, whose form ``summary.html`` describes."""
    return Markup(render(template, sep=Markup(SEPARATOR), **values)).unescape()


@cache
def environment() -> Environment:
    """Return the environment of the templates. Their filters are the functions below."""
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    made.filters |= {
        "asset": asset,
        "count": quantities.count,
        "deciding_text": answers.deciding_text,
        "link": link,
        "log10": log10,
        "moment": quantities.moment,
        "number": "{:,}".format,
        "octets": quantities.octets,
        "percent": quantities.percent,
        "reason_text": answers.reason_text,
        "seconds": quantities.seconds,
        "shown": shown,
        "source": source,
        "state_text": lambda state: STATES.get(state, state),  # a later version has others
    }
    return made


def shown(text: object, length: int = MAX_TEXT) -> str:
    """Return a text of a site as a page shows it: cut, and with escapes for invisible characters.

    Tabs remain.
    """
    text = str(text)
    return "\t".join(printable(part, length) for part in text[: length + 1].split("\t"))


def link(target: str) -> str:
    """Return the target of a link. Raises ValueError unless it is in the page, or in `LINKS`."""
    if not target.startswith("#") and target not in LINKS:
        raise ValueError(f"not a link of a page: {target!r}")
    return target


@cache
def asset(name: str) -> Markup:
    """Return a style or a script of the package, for an element of its own."""
    text = files(__package__).joinpath(name).read_text("utf-8").replace("\r\n", "\n")
    if "</" in text:
        raise ValueError(f"{name} has an end tag")
    return Markup(text)


def source(text: str) -> Markup:
    """Return the source expression of a style or script, for a Content-Security-Policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(f"'sha256-{digest}'")


def _visible(value: Any) -> Any:
    return value if isinstance(value, Markup) else shown(value)
