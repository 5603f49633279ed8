"""A robots.txt that inflates to hundreds of megabytes."""

from __future__ import annotations

import resource

from testing.faults import GZIP, PATHS, gzip_bomb, length, raw
from testing.web import Web

from .crawling import Check
from .standard import Standard

SIZE = 500
"""MiB that it inflates to."""
LIMIT = 100
"""MiB that the process may grow by."""


def gzip_bomb_stays_small(standard: Standard) -> Check:
    """The check, under the settings of a case."""

    async def gzip_bomb_stays_small(web: Web) -> None:
        bomb = gzip_bomb(SIZE)
        site = web.site(raw(GZIP + length(bomb) + bomb))
        await standard.crawl(web, web.site().urls("/"))  # everything is imported by now
        before = _peak()
        await standard.crawl(web, site.urls(*PATHS))
        grown = _peak() - before
        assert standard.page_paths(site) == ["/public"], f"received: {site.paths}"
        assert grown < LIMIT, f"the process grew by {grown} MiB"

    return gzip_bomb_stays_small


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
