"""The well-known crawlers by name, from the table in ``crawlers.toml``.

``-a`` of the command-line tools finds them here. A crawl imports none of this.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ..protocol.agents import product_tokens

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

TABLE = "crawlers.toml"
"""The file with the table, in this package."""

_SIMILAR = 0.8
"""How similar a name must be to that of a crawler to be called a misspelling of it, from 0 to 1."""


class Purpose(str, Enum):
    """What a crawler fetches pages for."""

    SEARCH = "search"
    """The index of a search engine."""
    ADS = "ads"
    """The choice of ads for a page, or checks of the pages that ads link to."""
    AI_TRAINING = "ai-training"
    """Data to train a model with."""
    AI_USE = "ai-use"
    """Input for the answers of a model."""
    ARCHIVE = "archive"
    """An archive of the web."""
    SEO = "seo"
    """Data about sites and links, for search engine optimization."""
    PREVIEW = "preview"
    """The preview of a link that was shared."""
    OTHER = "other"
    """Anything else, such as feeds and tests."""

    def __str__(self) -> str:
        return self.value


class Compliance(str, Enum):
    """Whether a crawler follows robots.txt, in the words of its source."""

    FOLLOWS = "follows"
    """It does."""
    MAY_IGNORE = "may-ignore"
    """It may ignore the file, such as for a page that a person asked for."""
    IGNORES = "ignores"
    """It does not read the file, or ignores it always."""
    UNKNOWN = "unknown"
    """The source does not say."""

    def __str__(self) -> str:
        return self.value


class SourceKind(str, Enum):
    """The author of a source."""

    OPERATOR = "operator"
    """The operator of the crawlers that it describes."""
    LIST = "list"
    """Others, who collect crawlers of many operators."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Source:
    """A page that describes crawlers."""

    url: str
    seen: date
    """The date of the copy or quotation that was read."""
    kind: SourceKind


@dataclass(frozen=True, slots=True)
class Crawler:
    """A well-known crawler."""

    name: str
    """As its operator writes it."""
    operator: str
    tokens: tuple[str, ...]
    """Its product tokens in order of preference. The first that a file names selects the group, as
    for the `user_agent` of the methods of `RobotsTxt`."""
    purposes: tuple[Purpose, ...]
    source: Source
    compliance: Compliance = Compliance.FOLLOWS
    ignores_wildcard: bool = False
    """Whether the group for ``*`` never applies, only one that names a token."""
    user_triggered: bool = False
    """Whether each request is the direct result of what a person does."""
    note: str | None = None
    """What else to know, in a few sentences."""


@lru_cache(maxsize=1)
def well_known_crawlers() -> tuple[Crawler, ...]:
    """Return the crawlers of the table, in its order: those of an operator follow each other."""
    document = read_table()
    sources = {
        key: Source(row["url"], row["seen"], SourceKind(row["kind"]))
        for key, row in document["source"].items()
    }
    return tuple(_crawler(row, sources) for row in document["crawler"])


def read_table() -> dict[str, Any]:
    """Return the content of the file, as it is written. Its first lines explain the keys."""
    return tomllib.loads(files(__package__).joinpath(TABLE).read_text("utf-8"))


def crawler_named(name: str) -> Crawler | None:
    """Return the crawler with a name, or None.

    The case does not matter. A User-Agent header names the crawler whose token it holds.

    >>> crawler_named("googlebot-image").tokens
    ('Googlebot-Image', 'Googlebot')
    >>> crawler_named("Mozilla/5.0 (compatible; AdsBot-Google; +http://x)").ignores_wildcard
    True
    >>> crawler_named("mybot") is None
    True
    """
    by_name = _by_name()
    crawler = by_name.get(name.strip().lower())
    if crawler is None:
        # A header has one token. Text without a token is a browser's, or no name at all.
        crawler = next((by_name[token] for token in product_tokens(name) if token in by_name), None)
    return crawler


def crawlers_for(purpose: Purpose) -> tuple[Crawler, ...]:
    """Return the crawlers with a purpose, in the order of the table."""
    return tuple(crawler for crawler in well_known_crawlers() if purpose in crawler.purposes)


def crawlers_of(value: str) -> tuple[Crawler, ...]:
    """Return the crawlers that a value of ``-a`` stands for. Empty: it is a token like any other.

    It is the name of a crawler, a header of it, or a purpose, which stands for all crawlers with
    that purpose. The case does not matter.

    >>> [crawler.name for crawler in crawlers_of("GPTBOT")]
    ['GPTBot']
    >>> "CCBot" in [crawler.name for crawler in crawlers_of("archive")]
    True
    >>> crawlers_of("mybot")
    ()
    """
    purposes = {purpose.value: purpose for purpose in Purpose}
    purpose = purposes.get(value.strip().lower())
    if purpose is not None:
        return crawlers_for(purpose)
    crawler = crawler_named(value)
    return () if crawler is None else (crawler,)


def similar_name(value: str) -> str | None:
    """Return the name or purpose that a value of ``-a`` is probably a misspelling of, or None.

    >>> similar_name("Gogglebot")
    'Googlebot'
    >>> similar_name("ai-trainning")
    'ai-training'
    >>> similar_name("Googlebot") is None, similar_name("mybot") is None
    (True, True)
    """
    if crawlers_of(value):
        return None
    names = {crawler.name.lower(): crawler.name for crawler in well_known_crawlers()}
    names.update((purpose.value, purpose.value) for purpose in Purpose)
    near = get_close_matches(value.strip().lower(), names, 1, _SIMILAR)
    return names[near[0]] if near else None


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Crawler]:
    """Return the crawlers by name, and by their own token, in lower case."""
    crawlers = well_known_crawlers()
    by_name = {crawler.tokens[0].lower(): crawler for crawler in crawlers}
    by_name.update((crawler.name.lower(), crawler) for crawler in crawlers)
    return by_name


def _crawler(row: Mapping[str, Any], sources: Mapping[str, Source]) -> Crawler:
    return Crawler(
        name=row["name"],
        operator=row["operator"],
        tokens=tuple(row.get("tokens", [row["name"]])),
        purposes=tuple(map(Purpose, row["purposes"])),
        source=sources[row["source"]],
        compliance=Compliance(row.get("robots_txt", Compliance.FOLLOWS)),
        ignores_wildcard=row.get("ignores_wildcard", False),
        user_triggered=row.get("user_triggered", False),
        note=row.get("note"),
    )
