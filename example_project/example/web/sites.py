"""What a site of the example web answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROBOTS_TXT = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response. `delay` is in seconds; None is never."""

    body: bytes = b""
    status: int = 200
    location: str | None = None
    content_type: str = "text/plain; charset=utf-8"
    delay: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """One origin: its answers by path, and the pages of it that a crawl asks for.

    A path without an answer of its own is a small page. `allowed` and `disallowed` are what
    robots.txt means for these paths, written by hand; to those of `redirected_to` only a redirect
    leads, and they are disallowed too.
    """

    name: str
    address: str
    port: int
    answers: Mapping[str, Answer] = field(default_factory=dict)
    default: Answer | None = None
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    redirected_to: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return f"http://{self.address}:{self.port}"

    def answer(self, path: str) -> Answer:
        """What a request for `path` (with its query) gets."""
        return self.answers.get(path) or self.default or self._page(path)

    def _page(self, path: str) -> Answer:
        links = (*self.allowed, *self.disallowed) if path == "/" else ()
        return Answer(page(f"{self.name}: {path}", links), content_type="text/html; charset=utf-8")


def page(title: str, links: Iterable[str]) -> bytes:
    """A small HTML page."""
    items = "".join(f'<li><a href="{escape(link)}">{escape(link)}</a>' for link in links)
    return f"<!doctype html><title>{escape(title)}</title><ul>{items}</ul>".encode()
