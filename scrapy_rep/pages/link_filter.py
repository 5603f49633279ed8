"""Drops disallowed requests of a spider before they reach the scheduler (REP_FILTER_LINKS).

A request that is dropped later costs Scrapy much more: it passes the duplicate filter, the
scheduler, the engine and the code that calls errbacks. Only requests whose verdict is known are
dropped here. All others pass, and the downloader middleware checks them when they are due.

A request with an errback passes, too. Its errback gets the exception from the downloader
middleware, so this setting never hides a drop from a spider that handles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware
from scrapy.spiders import CrawlSpider

from ..crawl.middleware import RobotsTxtMiddleware
from ..logs import get_logger
from ..settings import read_settings
from ..startup import abort_on_setting_error

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

logger = get_logger(__name__)


class LinkFilterMiddleware(BaseSpiderMiddleware):
    """Drops the requests of a spider that a robots.txt in memory disallows.

    The requests are those of callbacks and the start requests. The stats, the log and the report
    have them, as they have other disallowed requests.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not read_settings(crawler).filter_links:
            raise NotConfigured
        super().__init__(crawler)
        self._robots: RobotsTxtMiddleware | None = None
        crawler.signals.connect(self._on_spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.

        Raises NotConfigured if REP_FILTER_LINKS is off, and
        :class:`~scrapy_rep.exceptions.SettingError` for an unusable setting.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    def get_processed_request(
        self,
        request: Request,
        response: Response | None,  # noqa: ARG002
    ) -> Request | None:
        """Return a request that may be allowed; None for one that is dropped."""
        if self._robots is None or _has_errback(request, self.crawler.spider):
            return request
        return None if self._robots.filter_link(request) else request

    def _on_spider_opened(self) -> None:
        self._robots = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if self._robots is None:
            logger.warning(
                "REP_FILTER_LINKS has no effect, because scrapy_rep.RobotsTxtMiddleware is not "
                "enabled: ROBOTSTXT_OBEY is off, or DOWNLOADER_MIDDLEWARES does not have it.",
                extra={"spider": self.crawler.spider},
            )


def _has_errback(request: Request, spider: Spider | None) -> bool:
    """Whether code of the spider runs if a request is dropped."""
    errback = request.errback
    if errback is None:
        return False
    if not isinstance(spider, CrawlSpider) or errback.__module__ != CrawlSpider.__module__:
        return True
    # Scrapy's CrawlSpider sets an errback of its own, which calls that of the rule.
    try:
        return spider.rules[request.meta["rule"]].errback is not None
    except (LookupError, TypeError):  # the spider has changed its meta, or has other rules
        return True
