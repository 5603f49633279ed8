"""scrapy-frontera: Frontera's frontier in the place of the queues of the scheduler."""

from __future__ import annotations

from testing.web import Web

from .follower import check_links
from .standard import Standard

REQUIREMENTS = ("scrapy-frontera",)

SETTINGS = {
    "SCHEDULER": "scrapy_frontera.scheduler.FronteraScheduler",
    "BACKEND": "frontera.contrib.backends.memory.FIFO",
    "FRONTERA_SCHEDULER_REQUEST_CALLBACKS_TO_FRONTIER": ["parse"],
    "DOWNLOADER_MIDDLEWARES": {"scrapy_frontera.middlewares.SchedulerDownloaderMiddleware": 0},
    "SPIDER_MIDDLEWARES": {"scrapy_frontera.middlewares.SchedulerSpiderMiddleware": 0},
}


async def links_pass_through_the_frontier(web: Web) -> None:
    outcome = await check_links(web, SETTINGS)
    returned = outcome["stats"].get("scrapyfrontera/returned_requests_count")
    assert returned == 5, f"requests from the frontier: {returned}"


CHECKS = (*Standard(SETTINGS).checks, links_pass_through_the_frontier)
