"""HTML and SVG elements, for the pages of this package.

:func:`h` makes an element. Its children are texts, which are escaped, and other elements. No
function turns a text into markup, so a text of a site cannot become an element or an attribute. The
names of elements and attributes are keywords of the code. There is no attribute that runs a script
or that loads anything, and a link leads to the same page or to :data:`LINKS`.

This is in place of a template engine. Autoescape of an engine covers neither the names of
attributes nor the URLs of links, and its templates have no types. This module needs 100 lines.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ..protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

LINKS = frozenset({"https://datatracker.ietf.org/doc/html/draft-illyes-webbotauth-cbcp-01"})
"""The links to other pages. Nothing loads them until the reader follows them."""

MAX_TEXT = 2_000
"""Characters of one text of a site that are shown."""

_ELEMENTS = """
    a article body caption circle code dd details div dl dt figcaption figure footer g h1 h2 h3 head
    header html li line main mark meta nav ol p path rect section span strong summary svg table
    tbody td text th thead title tr ul
"""
_VOID = frozenset({"meta"})
_ATTRIBUTES = """
    aria_hidden aria_label charset class_ colspan content cx cy d data_state data_value dir
    focusable height href http_equiv id lang name preserveAspectRatio r role scope text_anchor
    transform value viewBox width x x1 x2 y y1 y2
"""
_KNOWN_ELEMENTS, _KNOWN_ATTRIBUTES = frozenset(_ELEMENTS.split()), frozenset(_ATTRIBUTES.split())
_UNQUOTED = re.compile(r"[A-Za-z0-9._-]+")


class Html:
    """Markup. Only this module makes it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __len__(self) -> int:
        """Return the octets of the markup in UTF-8."""
        return len(self.text) if self.text.isascii() else len(self.text.encode())


Child: TypeAlias = "str | int | Html | Iterable[Child] | None"


def h(_name: str, *children: Child, **attributes: str | float | bool | None) -> Html:
    """Return an element. An attribute that is None or False is left out.

    ``class_`` is the attribute ``class``, and ``aria_label`` the attribute ``aria-label``.
    """
    start = _start(_name, tuple(attributes.items()))
    if _name in _VOID:
        return Html(start)
    pieces = [start]
    _add(children, pieces)
    pieces.append(f"</{_name}>")
    return Html("".join(pieces))


def join(*children: Child) -> Html:
    """Return elements and texts in order, without an element around them."""
    pieces: list[str] = []
    _add(children, pieces)
    return Html("".join(pieces))


def shown(text: str, length: int = MAX_TEXT) -> str:
    """Return a text of a site as it is shown: cut, and with escapes for invisible characters.

    Tabs remain.
    """
    return "\t".join(printable(part, length) for part in text[: length + 1].split("\t"))


def code(text: str, length: int = MAX_TEXT) -> Html:
    """Return a text of a site in an element that its direction does not leave."""
    return h("code", shown(text, length) if text.strip() else "(empty)")


def page(title: str, description: str, body: Html, style: str, script: str) -> str:
    """Return an HTML document. The browser runs nothing but ``script``, and loads nothing.

    ``style`` and ``script`` are files of this package.
    """
    _check("</" not in style + script, "an end tag")
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("meta", name="referrer", content="no-referrer"),
        h("meta", name="robots", content="noindex"),
        h("meta", name="description", content=description),
        h("title", title),
        Html(f"<style>{style}</style>"),
    )
    document = h(
        "html", head, h("body", body, Html(f"<script>{script}</script>")), lang="en", dir="ltr"
    )
    return f"<!DOCTYPE html>\n{document}\n"


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@lru_cache(maxsize=2_000)
def _start(name: str, attributes: tuple[tuple[str, str | float | bool | None], ...]) -> str:
    _check(name in _KNOWN_ELEMENTS, name)
    pieces = ["<", name]
    for key, value in attributes:
        _check(key in _KNOWN_ATTRIBUTES, key)
        if value is None or value is False:
            continue
        if key == "href":
            _check(str(value).startswith("#") or value in LINKS, value)
        attribute = key.removesuffix("_").replace("_", "-")
        pieces.append(f" {attribute}" if value is True else f" {attribute}={_quoted(str(value))}")
    pieces.append(">")
    return "".join(pieces)


def _check(holds: bool, problem: object) -> None:
    """Raise ValueError for markup that no page may have. Nothing that a site sends causes it."""
    if not holds:
        raise ValueError(f"not in a page: {problem!r}")


def _quoted(value: str) -> str:
    if _UNQUOTED.fullmatch(value):
        return value
    return f'"{_escaped(value)}"'


def _escaped(text: str) -> str:
    # An unpaired surrogate has no UTF-8, and a NUL or CR does not survive an HTML parser.
    if not text.isprintable():
        text = "".join(
            character if character in "\n\t" else printable(character, 10) for character in text
        )
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def _add(children: Iterable[Child], pieces: list[str]) -> None:
    for child in children:
        if isinstance(child, Html):
            pieces.append(child.text)
        elif isinstance(child, str):
            pieces.append(_escaped(child))
        elif isinstance(child, int):
            pieces.append(f"{child:,}")
        elif child is not None:
            _add(child, pieces)
