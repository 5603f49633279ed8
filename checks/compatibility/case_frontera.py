"""Frontera's own scheduler for Scrapy.

Scrapy 2.16 refuses its spider middleware; Frontera 0.8 cannot be imported with today's w3lib.
Requests that still wait when a crawl stops are lost: see docs/usage/other-plugins.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy import Request
from scrapy.http import Response
from twisted.python.failure import Failure

from testing.web import Web

from .crawling import Outcome, Visitor, crawl
from .follower import check_links
from .standard import Standard

REQUIREMENTS = ("frontera<0.8", "scrapy<2.16")

_FRONTERA = "frontera.contrib.scrapy"

SETTINGS = {
    "SCHEDULER": f"{_FRONTERA}.schedulers.frontier.FronteraScheduler",
    "BACKEND": "frontera.contrib.backends.memory.FIFO",
    "DOWNLOADER_MIDDLEWARES": {
        f"{_FRONTERA}.middlewares.schedulers.SchedulerDownloaderMiddleware": 999
    },
    "SPIDER_MIDDLEWARES": {f"{_FRONTERA}.middlewares.schedulers.SchedulerSpiderMiddleware": 999},
}


class WithoutArguments(Visitor):
    """Reads the requested URL from the response, since Frontera does not keep ``cb_kwargs``."""

    def parse(self, response: Response, asked_url: str = "") -> Any:  # noqa: ARG002
        super().parse(response, response.url)

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        assert failure.value is not None
        self.outcome.failures[request.url] = failure.value


class WithFrontier(Standard):
    """The checks with that spider."""

    async def crawl(
        self, web: Web, urls: list[str], settings: Mapping[str, Any] | None = None
    ) -> Outcome:
        merged = {**self.settings, **self.prepare(web), **(settings or {})}
        return await crawl(urls, merged, spider=WithoutArguments)


async def links_pass_through_the_frontier(web: Web) -> None:
    await check_links(web, SETTINGS)


CHECKS = (*WithFrontier(SETTINGS).checks, links_pass_through_the_frontier)
