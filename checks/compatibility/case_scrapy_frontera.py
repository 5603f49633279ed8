"""scrapy-frontera: Frontera's frontier in the place of the queues of the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testing.web import Page

from .follower import follow, links
from .standard import RULES, Standard

if TYPE_CHECKING:
    from testing.web import Web

REQUIREMENTS = ("scrapy-frontera",)

SETTINGS = {
    "SCHEDULER": "scrapy_frontera.scheduler.FronteraScheduler",
    "BACKEND": "frontera.contrib.backends.memory.FIFO",
    "FRONTERA_SCHEDULER_REQUEST_CALLBACKS_TO_FRONTIER": ["parse"],
    "DOWNLOADER_MIDDLEWARES": {"scrapy_frontera.middlewares.SchedulerDownloaderMiddleware": 0},
    "SPIDER_MIDDLEWARES": {"scrapy_frontera.middlewares.SchedulerSpiderMiddleware": 0},
}


async def links_pass_through_the_frontier(web: Web) -> None:
    public, private = ["/1", "/2", "/3"], ["/private/1", "/private/2"]
    site = web.site(f"{RULES}Crawl-delay: 0.1\n", {"/": Page(links(*public, *private))})
    outcome = await follow([site.url()], SETTINGS)
    assert site.page_paths == ["/", *public], f"received: {site.paths}"
    assert sorted(outcome["failed"]) == site.urls(*private), f"failed: {outcome['failed']}"
    returned = outcome["stats"].get("scrapyfrontera/returned_requests_count")
    assert returned == 5, f"requests from the frontier: {returned}"


CHECKS = (*Standard(SETTINGS).checks, links_pass_through_the_frontier)
