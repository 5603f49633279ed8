"""A download handler that follows redirects itself, as a browser does."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings.default_settings import DOWNLOAD_HANDLERS_BASE
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import is_reactor_installed


class FollowingHandler:
    """Downloads with Scrapy's own handler, and returns the page at the end of the redirects."""

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        handler = DOWNLOAD_HANDLERS_BASE["http"]
        if not is_reactor_installed():
            handler = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
        self._handler: Any = build_from_crawler(load_object(handler), crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FollowingHandler:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        while True:
            response: Response = await self._handler.download_request(request)
            location = response.headers.get("Location")
            if location is None or request.meta.get("is_robotstxt_request"):
                return response
            request = request.replace(url=response.urljoin(location.decode()))

    async def close(self) -> None:
        await self._handler.close()


FOLLOWING = {"DOWNLOAD_HANDLERS": {"http": FollowingHandler}}
