"""The product tokens of requests, which select the groups of robots.txt files."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from ..protocol.agents import parse_user_agent

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..settings import Settings

logger = logging.getLogger(__name__)

MAX_CACHED = 256
"""How many User-Agent headers are cached with their tokens. A crawl that rotates its headers uses
fewer."""

AMBIGUOUS_STAT = "robotstxt/ambiguous_user_agent_count"


class AgentTokens:
    """The product tokens of the requests of one crawl. Each User-Agent header is parsed once."""

    def __init__(self, crawler: Crawler, settings: Settings) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings
        self._cached = lru_cache(maxsize=MAX_CACHED)(self._parse)
        self._has_warned = False

    def of(self, request: Request) -> tuple[str, ...]:
        """Return the product tokens of a request, in order of preference."""
        headers = request.headers
        # Names have this form in `Headers`. Its own `in` brings a name to this form first, which
        # takes five times as long.
        is_set = b"User-Agent" in headers.keys()  # noqa: SIM118
        return self._cached(headers[b"User-Agent"] if is_set else None)

    def _parse(self, header: bytes | None) -> tuple[str, ...]:
        user_agent = self._settings.user_agent(header)
        tokens, warning = parse_user_agent(user_agent)
        if warning is not None:
            self._stats.inc_value(AMBIGUOUS_STAT)
            self._warn(user_agent, tokens, warning.value)
        return tokens

    def _warn(self, user_agent: object, tokens: tuple[str, ...], warning: str) -> None:
        """Warn, once in a crawl, about a user agent without a clear product token."""
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning(
            "The product tokens of the user agent %(agent)r for robots.txt are %(tokens)s: "
            "%(warning)s. Set ROBOTSTXT_USER_AGENT to the right product token. The stat %(stat)s "
            "counts other user agents like this one.",
            {
                "agent": user_agent,
                "tokens": list(tokens),
                "warning": warning,
                "stat": AMBIGUOUS_STAT,
            },
            extra={"spider": self._crawler.spider},
        )
