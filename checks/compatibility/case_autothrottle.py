"""Scrapy's AutoThrottle, which sets the delays of download slots."""

from __future__ import annotations

from itertools import pairwise

from testing.web import Web

from .crawling import crawl
from .standard import PUBLIC, Standard

REQUIREMENTS = ()

SETTINGS = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1}


async def a_longer_delay_of_autothrottle_holds(web: Web) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.1\n")
    longer = {"DOWNLOAD_DELAY": 0.6, "RANDOMIZE_DOWNLOAD_DELAY": False}
    await crawl(site.urls(*PUBLIC[:4]), {**SETTINGS, **longer})
    gaps = [later.at - sooner.at for sooner, later in pairwise(site.received)]
    assert site.page_paths == PUBLIC[:4], f"received: {site.paths}"
    assert min(gaps[1:]) > 0.55, f"seconds between requests: {gaps}"


CHECKS = (*Standard(SETTINGS).checks, a_longer_delay_of_autothrottle_holds)
