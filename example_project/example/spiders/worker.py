"""One of the workers that `scrapy workers` runs; they share a queue, and what is known of sites.

The queue is that of scrapy-redis: a scheduler and a filter of duplicates that lie in Redis. The
robots.txt files and the pace of each site lie there too: REP_STORE.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse

from example.reporting import ReportingSpider
from example.web.workers import worker_sites

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

# It passes arguments that Scrapy will not need any more.
warnings.filterwarnings("ignore", module="scrapy_redis")

# Another worker may still find pages. Scrapy looks into the queue every five seconds when idle.
LONGEST_IDLE = 6.0


class WorkerSpider(ReportingSpider):
    name = "worker"
    custom_settings = {  # noqa: RUF012 (as Scrapy declares it)
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,  # the first worker to end leaves the queue to the others
        "CONCURRENT_REQUESTS": 4,  # so that the queue is shared out
        "DOWNLOAD_DELAY": 0,
    }

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def __init__(self, port: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sites = worker_sites(int(port))
        self.pages = 0
        self.last = time.monotonic()

    async def start(self) -> AsyncIterator[Request]:
        # Every worker asks for them; the filter lets the first one have each.
        for site in self.sites:
            yield Request(site.origin + "/", callback=self.parse, errback=self.dropped)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:  # noqa: ARG002
        self.pages += 1
        self.last = time.monotonic()
        if isinstance(response, HtmlResponse):
            for link in response.css("a::attr(href)").getall():
                yield response.follow(link, callback=self.parse, errback=self.dropped)

    def idle(self) -> None:
        if time.monotonic() - self.last < LONGEST_IDLE:
            raise DontCloseSpider

    def closed(self, reason: str) -> None:  # noqa: ARG002
        stats = self.crawler.stats
        assert stats is not None
        fetched = stats.get_value("robotstxt/response_count", 0)
        known = stats.get_value("robotstxt/store/hit_count", 0)
        print(json.dumps({"pages": self.pages, "fetched": fetched, "known": known}))
