"""Scrapy's HTTP cache, with both of its policies."""

from __future__ import annotations

from tempfile import mkdtemp
from typing import Any

from testing.web import Page, Web, text

from .crawling import Outcome, crawl
from .standard import RULES, Standard

REQUIREMENTS = ()

POLICIES = ("DummyPolicy", "RFC2616Policy")
FRESH = {"Cache-Control": "max-age=3600"}


def cache(policy: str) -> dict[str, Any]:
    """The settings for a cache of its own."""
    return {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": mkdtemp(),
        "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{policy}",
    }


async def a_second_crawl_is_answered_though_the_site_is_gone(_: Web) -> None:
    for policy in POLICIES:
        settings = cache(policy)
        web = Web()
        try:
            site = web.site(text(RULES, Cache_Control="max-age=3600"), {"*": Page(headers=FRESH)})
            urls = site.urls("/1", "/2", "/3", "/private/1")
            first = await crawl(urls, settings)
        finally:
            web.close()
        second = await crawl(urls, settings)
        for outcome in (first, second):
            assert _kinds(outcome) == (sorted(urls[:3]), urls[3:]), f"{policy}: {_kinds(outcome)}"


def _kinds(outcome: Outcome) -> tuple[list[str], list[str]]:
    return sorted(outcome.responses), sorted(outcome.failures)


CHECKS = (
    *Standard(prepare=lambda _: cache("RFC2616Policy")).checks,
    a_second_crawl_is_answered_though_the_site_is_gone,
)
