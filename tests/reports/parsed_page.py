"""The elements, attributes and texts of a page, for tests."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from parsel import Selector


class Parsed(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_pi = unknown_decl = handle_comment


def tree_of(text: str) -> Any:
    """Return the root element of a page, as lxml reads it."""
    return Selector(text=text, type="html", huge_tree=True).root
