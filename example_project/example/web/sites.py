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
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """One origin: its answers by path, and the pages of it that a crawl asks for.

    A path without an answer of its own is a small page. `allowed` and `disallowed` are what
    robots.txt means for these paths, written by hand; to those of `redirected_to` only a redirect
    leads, and they are disallowed too. `says` is what a page says of itself, in words; to the
    paths of `followed` and `not_followed` only links of such pages lead.
    """

    name: str
    address: str
    port: int
    answers: Mapping[str, Answer] = field(default_factory=dict)
    default: Answer | None = None
    allowed: tuple[str, ...] = ()
    disallowed: tuple[str, ...] = ()
    redirected_to: tuple[str, ...] = ()
    says: Mapping[str, str] = field(default_factory=dict)
    followed: tuple[str, ...] = ()
    not_followed: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        return f"http://{self.address}:{self.port}"

    def answer(self, path: str) -> Answer:
        """What a request for `path` (with its query) gets."""
        return self.answers.get(path) or self.default or self._page(path)

    def _page(self, path: str) -> Answer:
        links = (*self.allowed, *self.disallowed) if path == "/" else ()
        return Answer(page(f"{self.name}: {path}", links), content_type="text/html; charset=utf-8")


def page(
    title: str,
    links: Iterable[str],
    *,
    nofollow: Iterable[str] = (),
    meta: Mapping[str, str] | None = None,
) -> bytes:
    """A small HTML page; the `nofollow` links have that for their `rel`."""
    head = "".join(
        f'<meta name="{escape(name)}" content="{escape(content)}">'
        for name, content in (meta or {}).items()
    )
    items = "".join(f'<li><a href="{escape(link)}">{escape(link)}</a>' for link in links)
    items += "".join(
        f'<li><a href="{escape(link)}" rel="nofollow">{escape(link)}</a>' for link in nofollow
    )
    return f"<!doctype html><title>{escape(title)}</title>{head}<ul>{items}</ul>".encode()
