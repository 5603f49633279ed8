"""A worker that shares its queue with others: ``python -m tests.queue_worker REDIS_URL URL …
NAME=VALUE …``.

The names are those of settings, LEASE and LONGEST_IDLE. The queue and the duplicate filter are
those of scrapy-redis. The worker follows links. At its end it prints how many pages it has fetched.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse, Response

from scrapy_rep.frontier import redis_queue
from tests.crawl.conftest import SETTINGS, Visitor

# Another worker may still find pages. Scrapy looks into the queue every five seconds when idle.
LONGEST_IDLE = 6.0


class QueueWorker(Visitor):
    """All workers yield the same URLs. The duplicate filter gives each URL to one of them."""

    pages = 0
    last_page = 0.0

    async def start(self) -> AsyncIterator[Request]:
        self.crawler.signals.connect(self.idle, signals.spider_idle)
        self.last_page = time.monotonic()
        async for request in super().start():
            yield request.replace(callback=self.parse, errback=None)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        self.pages += 1
        self.last_page = time.monotonic()
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a", callback=self.parse)

    def idle(self) -> None:
        if time.monotonic() - self.last_page < self.settings.getfloat("LONGEST_IDLE"):
            raise DontCloseSpider

    def closed(self, reason: str) -> None:
        sys.stdout.write(str(self.pages))


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
    urls = [each for each in arguments if "://" in each]
    process.crawl(QueueWorker, requests=[Request(url) for url in urls])
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
