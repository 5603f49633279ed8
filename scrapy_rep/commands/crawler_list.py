"""The list of the well-known crawlers: rows for a table, and records for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .crawlers import Compliance, SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .crawlers import Crawler


class CrawlerRow(NamedTuple):
    """A row of the table of crawlers. The names of the fields are the headings of the columns."""

    name: str
    operator: str
    purposes: str
    groups: str
    """The groups that apply, the first that the file has: tokens in order of preference, ``*``."""
    robots_txt: str
    """Whether the crawler follows robots.txt."""
    seen: str
    """The date of the source."""


def crawler_rows(crawlers: Iterable[Crawler]) -> list[CrawlerRow]:
    """Return the rows of a table of crawlers, as plain text.

    >>> from .crawlers import crawler_named
    >>> crawler_rows([crawler_named("Applebot")])[0].groups
    'Applebot, Googlebot, *'
    """
    return [
        CrawlerRow(
            crawler.name,
            crawler.operator,
            ", ".join(map(str, crawler.purposes)),
            _groups(crawler),
            _compliance(crawler),
            crawler.source.seen.isoformat(),
        )
        for crawler in crawlers
    ]


def crawler_record(crawler: Crawler) -> dict[str, object]:
    """Return a crawler as JSON types."""
    return {
        "name": crawler.name,
        "operator": crawler.operator,
        "tokens": list(crawler.tokens),
        "purposes": [purpose.value for purpose in crawler.purposes],
        "robots_txt": crawler.compliance.value,
        "ignores_wildcard": crawler.ignores_wildcard,
        "user_triggered": crawler.user_triggered,
        "note": crawler.note,
        "source": {
            "url": crawler.source.url,
            "seen": crawler.source.seen.isoformat(),
            "kind": crawler.source.kind.value,
        },
    }


def _groups(crawler: Crawler) -> str:
    if crawler.compliance is Compliance.IGNORES:
        return "none"
    return ", ".join(crawler.tokens if crawler.ignores_wildcard else (*crawler.tokens, "*"))


def _compliance(crawler: Crawler) -> str:
    said_by_others = crawler.source.kind is SourceKind.LIST and (
        crawler.compliance is not Compliance.UNKNOWN
    )
    return f"{crawler.compliance}, says a list" if said_by_others else str(crawler.compliance)
