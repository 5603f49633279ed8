"""A worker that shares its queue with others: ``python -m tests.queue_worker REDIS_URL URL …
NAME=VALUE …``.

The names are those of settings, LEASE and LONGEST_IDLE. The queue and the duplicate filter are
those of scrapy-redis. The worker follows links. At its end it prints as JSON how many pages and
robots.txt files it has fetched.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse, Response

from scrapy_rep.frontier import redis_queue
from tests.crawl.conftest import SETTINGS

if TYPE_CHECKING:
    from typing_extensions import Self

# Another worker may still find pages. Scrapy looks into the queue every five seconds when idle.
LONGEST_IDLE = 6.0


class QueueWorker(Spider):
    name = "queue_worker"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.idle, signals.spider_idle)
        return spider

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls
        self.pages = 0
        self.last_page = time.monotonic()

    async def start(self) -> AsyncIterator[Request]:
        # All workers yield the same URLs. The duplicate filter gives each URL to one of them.
        for url in self.urls:
            yield Request(url, callback=self.parse)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        self.pages += 1
        self.last_page = time.monotonic()
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a", callback=self.parse)

    def idle(self) -> None:
        if time.monotonic() - self.last_page < self.settings.getfloat("LONGEST_IDLE"):
            raise DontCloseSpider

    def closed(self, reason: str) -> None:
        assert self.crawler.stats is not None
        fetched = self.crawler.stats.get_value("robotstxt/response_count", 0)
        known = self.crawler.stats.get_value("robotstxt/store/hit_count", 0)
        sys.stdout.write(json.dumps({"pages": self.pages, "fetched": fetched, "known": known}))


def main(redis_url: str, *arguments: str) -> None:
    # scrapy-redis passes arguments that are deprecated in Scrapy.
    warnings.filterwarnings("ignore", module="scrapy_redis")
    settings = {
        **SETTINGS,
        "REDIS_URL": redis_url,
        "REP_STORE": redis_url,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,  # the first worker that ends does not clear the queue
        "CONCURRENT_REQUESTS": 4,  # few, so that each worker gets a part of the queue
        "LOG_LEVEL": "WARNING",
        "LONGEST_IDLE": LONGEST_IDLE,
        **dict(each.split("=") for each in arguments if "://" not in each),
    }
    if "LEASE" in settings:
        vars(redis_queue)["LEASE"] = float(settings.pop("LEASE"))
    process = CrawlerProcess(settings)
    process.crawl(QueueWorker, urls=[each for each in arguments if "://" in each])
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
