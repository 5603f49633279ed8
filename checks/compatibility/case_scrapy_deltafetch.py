"""scrapy-deltafetch, which leaves out pages that gave items in an earlier crawl.

Scrapy 2.16 refuses its spider middleware.
"""

from __future__ import annotations

from tempfile import mkdtemp
from typing import Any

from testing.web import Page, Web

from .follower import follow, links
from .standard import RULES, Standard

REQUIREMENTS = ("scrapy-deltafetch", "scrapy<2.16")


def prepare(_: Web) -> dict[str, Any]:
    """The settings of its documentation."""
    return {
        "DELTAFETCH_ENABLED": True,
        "DELTAFETCH_DIR": mkdtemp(),
        "SPIDER_MIDDLEWARES": {"scrapy_deltafetch.DeltaFetch": 100},
    }


async def a_second_crawl_leaves_out_what_gave_items(web: Web) -> None:
    settings = prepare(web)
    site = web.site(RULES, {"/": Page(links("/1", "/2", "/private/1"))})
    await follow([site.url()], settings)
    assert site.page_paths == ["/", "/1", "/2"], f"received: {site.paths}"
    site.received.clear()
    site.pages["/"] = Page(links("/1", "/2", "/3", "/private/1"))
    site.pages["/robots.txt"] = Page("User-agent: *\nDisallow: /3\n")
    outcome = await follow([site.url()], settings)
    assert site.page_paths == ["/", "/private/1"], f"received: {site.paths}"
    assert outcome["failed"] == site.urls("/3"), f"failed: {outcome['failed']}"


CHECKS = (*Standard(prepare=prepare).checks, a_second_crawl_leaves_out_what_gave_items)
