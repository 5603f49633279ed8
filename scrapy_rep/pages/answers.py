"""The downloader middleware that sees each response before all others.

It is near the downloader, so RetryMiddleware has not yet replaced the response, which a download
handler or another middleware has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response

from ..crawl.middleware import AnswerObserver, RobotsTxtMiddleware
from ..settings import DONT_RETRY, IS_ROBOTSTXT_REQUEST
from .directives import terms_of

if TYPE_CHECKING:
    from typing_extensions import Self

NOT_RETRIED = "access terms"
"""The value of ``dont_retry`` that the middleware sets. It differs from the value of a user."""


class AnswerMiddleware(AnswerObserver):
    """Holds the host of a response that asks for fewer requests, whoever made the response.

    It also excludes a page that requires a payment or a license from retries.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._robots: RobotsTxtMiddleware | None = None
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def _on_spider_opened(self) -> None:
        self._robots = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response as it is."""
        # Scrapy's RetryMiddleware and others do not retry a request with ``dont_retry``.
        kept = DONT_RETRY, IS_ROBOTSTXT_REQUEST
        if terms_of(response) is not None and not any(map(request.meta.get, kept)):
            request.meta[DONT_RETRY] = NOT_RETRIED
        if self._robots is not None:
            self._robots.note_answer(request, response)
        return response
