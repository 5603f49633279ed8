"""Findings about pages: a disallow hides the noindex of a page from the crawlers that obey it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .agents import product_tokens
from .lint_codes import Code
from .lint_findings import Finding, Source
from .pages import PageDirectives, merge, statements
from .printable import printable
from .robotstxt import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .robotstxt import UserAgent


@dataclass(slots=True)
class _Hidden:
    """The pages whose noindex one line hides."""

    pattern: str
    url: str
    """The first of them."""
    count: int = 0


def hidden_noindex(
    body: bytes,
    pages: Iterable[tuple[str, PageDirectives | str]],
    *,
    user_agent: UserAgent = "*",
    strict: bool = False,
) -> list[Finding]:
    r"""Return a finding for each disallow that hides the noindex of a page.

    `pages` are pairs of a URL and what the page states: its `PageDirectives`, or the text of its
    robots meta element or X-Robots-Tag header. They are read one by one, so they may be many. Their
    host is ignored, as `RobotsTxt` does. `user_agent` is the crawler: a search engine. Raises
    ValueError for a URL that is neither absolute nor a path that starts with ``/``.

    >>> pages = [("https://example.com/old/a", "noindex"), ("https://example.com/b", "nofollow")]
    >>> for finding in hidden_noindex(b"User-agent: *\nDisallow: /old/", pages):
    ...     print(finding.message)
    disallow '/old/' hides the noindex of 'https://example.com/old/a'
    """
    robots = RobotsTxt(body, strict=strict)
    tokens = product_tokens(user_agent)
    hidden: dict[int, _Hidden] = {}
    for url, stated in pages:
        if isinstance(stated, str):
            stated = merge(statements([("x-robots-tag", stated)], b"", tokens))
        if not stated.noindex:
            continue
        verdict = robots.verdict(url, user_agent)
        if not verdict.allowed and verdict.rule is not None:
            rule = verdict.rule
            hidden.setdefault(rule.line, _Hidden(rule.pattern, url)).count += 1
    source = Source(body)
    return [
        source.finding(
            line,
            Code.HIDDEN_NOINDEX,
            f"disallow '{printable(found.pattern)}' hides the noindex of {_pages(found)}",
            "allow the page, so that crawlers see its noindex",
        )
        for line, found in sorted(hidden.items())
    ]


def _pages(found: _Hidden) -> str:
    url = f"'{printable(found.url)}'"
    return url if found.count == 1 else f"{found.count} pages, such as {url}"
