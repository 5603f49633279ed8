"""The sites of `scrapy workers`: many with the same rules, and one that asks for a slow pace."""

from __future__ import annotations

from example.web.sites import ROBOTS_TXT, Answer, Site

SITES = 24
RULES = b"User-agent: *\nDisallow: /private/\n"
SLOW_RULES = RULES + b"Crawl-delay: 1\n"
PACE = 1.0
"""Seconds between two requests that the slow site asks for."""


def worker_sites(port: int) -> tuple[Site, ...]:
    """All sites, on `port` of 127.0.0.31 and following; the last is the slow one."""
    sites = [
        Site(
            f"site {number}",
            f"127.0.0.{30 + number}",
            port,
            # A little late, so that all workers want to know before anybody does.
            {ROBOTS_TXT: Answer(RULES, delay=0.2)},
            allowed=("/", "/a", "/b", "/c"),
            disallowed=("/private/a", "/private/b"),
        )
        for number in range(1, SITES)
    ]
    slow = Site(
        "Crawl-delay: 1",
        f"127.0.0.{30 + SITES}",
        port,
        {ROBOTS_TXT: Answer(SLOW_RULES)},
        allowed=("/", *(f"/{number}" for number in range(1, 7))),
        disallowed=("/private/a",),
    )
    return (*sites, slow)
