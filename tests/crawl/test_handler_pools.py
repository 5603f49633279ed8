"""Download handlers that have a pool of connections of their own."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings.default_settings import DOWNLOAD_HANDLERS_BASE
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import DeferredSemaphore

from testing.faults import answer_when
from testing.web import Page, Web

from .conftest import Crawl, our_warnings
from .test_waiting import NOTHING_PRIVATE

pytestmark = pytest.mark.each_loop


class PoolHandler:
    """Downloads as Scrapy's handler does, through no more than CONCURRENT_REQUESTS connections."""

    lazy = True
    most_robots = 0
    """The most robots.txt that have had a connection at once."""
    in_progress = 0
    """The requests that have one."""

    def __init__(self, crawler: Crawler) -> None:
        handler = DOWNLOAD_HANDLERS_BASE["http"]
        if not is_reactor_installed():
            handler = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
        self._handler: Any = build_from_crawler(load_object(handler), crawler)
        self._pool = DeferredSemaphore(crawler.settings.getint("CONCURRENT_REQUESTS"))
        self._robots = 0
        type(self).most_robots = type(self).in_progress = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> PoolHandler:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        is_robots = bool(request.meta.get("is_robotstxt_request"))
        await maybe_deferred_to_future(self._pool.acquire())
        self._robots += is_robots
        type(self).in_progress += 1
        type(self).most_robots = max(self.most_robots, self._robots)
        try:
            response: Response = await self._handler.download_request(request)
            return response
        finally:
            self._robots -= is_robots
            type(self).in_progress -= 1
            self._pool.release()

    async def close(self) -> None:
        await self._handler.close()


POOLED = {"DOWNLOAD_HANDLERS": {"http": PoolHandler}}


async def test_silent_sites_do_not_use_up_the_connections(web: Web, crawl: Crawl) -> None:
    live = web.site(NOTHING_PRIVATE, host="127.0.0.21")
    paths = [f"/{number}" for number in range(10)]
    late = answer_when(lambda: live.page_paths == paths, Page(NOTHING_PRIVATE))
    silent = [web.site(late, host=f"127.0.0.{number}") for number in range(11, 15)]
    urls = [live.url(paths[0]), *(site.url("/") for site in silent), *live.urls(*paths[1:])]
    await crawl(urls, {**POOLED, "CONCURRENT_REQUESTS": 4, "REP_TIMEOUT": 60})
    assert live.page_paths == paths
    assert [site.paths for site in silent] == [["/robots.txt", "/"]] * 4
    assert PoolHandler.most_robots == 2


async def test_a_robots_txt_is_fetched_while_requests_wait_for_the_pace(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.2\n")
    other = web.site(NOTHING_PRIVATE, host="127.0.0.2")
    settings = {
        **POOLED,
        "CONCURRENT_REQUESTS": 1,
        "REP_CACHE_MIN": 0.1,
        "REP_CACHE_MAX": 0.1,
        "CLOSESPIDER_TIMEOUT": 60,
    }
    outcome = await crawl([*site.urls("/1", "/2", "/3"), other.url("/")], settings)
    assert len(outcome.responses) == 4
    assert not our_warnings(caplog)
