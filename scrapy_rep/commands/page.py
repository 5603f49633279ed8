"""What a crawler finds in a page: title, text, links, the canonical URL.

A page may be of any size and shape: the tree is walked once, and everything that is kept has a
limit.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from scrapy.http import HtmlResponse, TextResponse
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import safe_url_string

from ..pages.html import document, markup
from ..protocol.html_scanner import elements, has_elements
from ..protocol.pages import link_targets
from ..protocol.paths import origin_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

MAX_TEXT = 20_000
"""Characters of the text of a page that are kept."""

MAX_TITLE = 500
"""Characters of a title that are kept."""

MAX_LINKS = 2000
"""Links of a page that are kept, each URL once. Further ones are counted."""

MAX_URL = 8000
"""Characters of a URL. A link with a longer one is counted as unreadable."""

MAX_LINK_TEXT = 200
"""Characters of the text of a link that are kept."""

_MAX_PARTS = 50
"""Elements within a link that are read."""

_SKIPPED = frozenset(["script", "style", "template", "noscript", "head", "iframe", "svg"])
"""Elements whose content is no text of the page."""

_BLOCK_NAMES = """
address article aside blockquote br caption dd div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr li main nav ol p pre section table td th tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
"""Elements that begin a new line."""

_NOT_FOLLOWED = ("#", "javascript:", "mailto:", "tel:", "data:")


class PageLink(NamedTuple):
    """A link of a page."""

    url: str
    text: str
    rel: tuple[str, ...]
    """The values of ``rel``, in lower case, at most 10."""


class Content(NamedTuple):
    """What a page has."""

    title: str | None = None
    text: str = ""
    is_text_cut: bool = False
    links: tuple[PageLink, ...] = ()
    links_left_out: int = 0
    other_links: int = 0
    """Links that are no URL with a robots.txt, such as ``mailto:`` and ``#top``."""
    canonical: str | None = None
    refresh: str | None = None
    """The URL of ``<meta http-equiv="refresh">``, or its content if that is unreadable."""


def content_of(response: Response) -> Content:
    """Return what a response has. Never raises for what a site sends."""
    canonical = _canonical_of_header(response)
    if not isinstance(response, HtmlResponse):
        text = ""
        if isinstance(response, TextResponse):
            text = response.body[: 4 * MAX_TEXT].decode("utf-8", "replace")
        return Content(text=text[:MAX_TEXT], is_text_cut=len(text) > MAX_TEXT, canonical=canonical)
    selector, _, base = document(response)
    root = selector.root
    if not hasattr(root, "iter"):  # an empty page
        return Content(canonical=canonical)
    text, is_cut = _text(root)
    links, left, others = _links(root, base)
    return Content(
        _title(root),
        text,
        is_cut,
        tuple(links),
        left,
        others,
        canonical or _canonical(response, base),
        _refresh(root),
    )


def _text(root: Any) -> tuple[str, bool]:
    """Return the text of a page, a line for each block, and whether it is cut."""
    parts: list[str] = []
    size = 0
    for part in _parts(root):
        parts.append(part)
        size += len(part)
        if size > 4 * MAX_TEXT:
            break
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    text = "\n".join(line for line in lines if line)
    return text[:MAX_TEXT], len(text) > MAX_TEXT or size > 4 * MAX_TEXT


def _parts(root: Any) -> Iterator[str]:
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        element, is_end = stack.pop()
        name = element.tag if isinstance(element.tag, str) else None  # a comment has none
        if name in _BLOCKS:
            yield "\n"
        if not is_end:
            stack.append((element, True))
            if name is not None and name not in _SKIPPED:
                yield _flat(element.text or "")
                stack += ((child, False) for child in reversed(element))
        elif element is not root:
            yield _flat(element.tail or "")


def _flat(text: str) -> str:
    return text[: 4 * MAX_TEXT].replace("\n", " ").replace("\r", " ")


def _title(root: Any) -> str | None:
    element = next(root.iter("title"), None)
    if element is None or not element.text:
        return None
    return " ".join(element.text[: 4 * MAX_TITLE].split())[:MAX_TITLE] or None


def _links(root: Any, base: str) -> tuple[list[PageLink], int, int]:
    """Return the links, the number of further ones, and of those that lead nowhere."""
    found: dict[str, PageLink] = {}
    left = others = 0
    for element in root.iter("a", "area"):
        href = element.get("href")
        if href is None:
            continue
        if len(found) >= MAX_LINKS:
            left += 1
            continue
        url = _resolved(href, base)
        if url is None:
            others += 1
            continue
        rel = tuple((element.get("rel") or "")[:1000].lower().replace(",", " ").split()[:10])
        known = found.get(url)
        if known is not None:
            # A crawler follows the link that it may follow.
            rel = tuple(value for value in known.rel if value in rel)
            found[url] = known._replace(rel=rel)
        else:
            found[url] = PageLink(url, _link_text(element), rel)
    return list(found.values()), left, others


def _link_text(element: Any) -> str:
    parts: list[str] = []
    for inner in islice(element.iter(), _MAX_PARTS):
        if isinstance(inner.tag, str):
            parts.append((inner.text or "")[:MAX_LINK_TEXT])
            parts.append((inner.get("alt") or "")[:MAX_LINK_TEXT])
        if inner is not element:
            parts.append((inner.tail or "")[:MAX_LINK_TEXT])
    return " ".join(" ".join(parts).split())[:MAX_LINK_TEXT]


def _resolved(href: str, base: str) -> str | None:
    href = href.strip(HTML5_WHITESPACE)
    if len(href) > MAX_URL or href.lower().startswith(_NOT_FOLLOWED):
        return None
    try:
        url = safe_url_string(urljoin(base, href)).partition("#")[0]
    except ValueError:
        return None
    return url if origin_of(url) is not None else None


def _canonical(response: HtmlResponse, base: str) -> str | None:
    html = markup(response)
    if not has_elements(html):
        return None
    for tag, key, value in elements(html, [b"canonical"], b"canonical"):
        if tag == "link" and "canonical" in key.split() and value.strip():
            return _resolved(value, base)
    return None


def _canonical_of_header(response: Response) -> str | None:
    for line in response.headers.getlist("Link"):
        for target in link_targets(line.decode("latin-1"), "canonical"):
            return _resolved(target, response.url)
    return None


def _refresh(root: Any) -> str | None:
    for element in root.iter("meta"):
        if (element.get("http-equiv") or "").strip().lower() == "refresh":
            content = (element.get("content") or "")[:MAX_URL]
            _, _, url = content.partition("=")
            return url.strip(" '\"") or content
    return None
