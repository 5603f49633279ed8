"""One worker. ``python -m checks._worker NAME OPTIONS`` crawls; the options are JSON.

At the end it prints as JSON its finish reason and the CPU seconds that it has used.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy_redis.spiders import RedisSpider  # type: ignore[import-untyped]

from checks._worker_site import NAMED

NAME = "shared"
"""The name of the spiders, which is in the names of the keys."""

_LINK = re.compile(rb'href="([^"]*)"')
_SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
}
_ADDON = {"ADDONS": {"scrapy_rep.Addon": 500}}
VARIANTS: dict[str, dict[str, Any]] = {
    "ours": {**_ADDON, "SCHEDULER": "scrapy_rep.frontier.redis.Scheduler"},
    "today": {
        **_ADDON,
        **_SCRAPY_REDIS,
        "SCHEDULER_QUEUE_CLASS": "scrapy_rep.frontier.redis_queue.RedisQueue",
    },
    "scrapy-redis": {**_SCRAPY_REDIS, "ROBOTSTXT_OBEY": False},
}
"""Settings of a crawl, by the name of the variant."""

CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 8
SETTINGS = {
    "CONCURRENT_ITEMS": 10,  # as docs/usage/scaling.md recommends
    "CONCURRENT_REQUESTS": CONCURRENT_REQUESTS,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT_REQUESTS_PER_DOMAIN,
    "COOKIES_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    "MAX_IDLE_TIME_BEFORE_CLOSE": 8,
    "RETRY_TIMES": 5,
    "SCHEDULER_PERSIST": True,
    "TELNETCONSOLE_ENABLED": False,
}


class Follows(Spider):
    """Follows each link."""

    name = NAME

    def parse(self, response: Response) -> Iterator[Request]:
        links = _LINK.findall(response.body)
        yield from (response.follow(link.decode()) for link in links)


class Shared(Follows, RedisSpider):  # type: ignore[misc]
    """Reads its start URLs from Redis."""

    redis_batch_size = 1000


class Started(Follows):
    """Has its start URLs. Every worker has the same ones."""

    urls: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)


class Pushes(Spider):
    """Pushes requests, and crawls nothing."""

    name = NAME
    hosts = 0
    each = 0

    async def start(self) -> AsyncIterator[Any]:
        assert self.crawler.engine is not None
        self.crawler.engine.pause()
        meta = {"depth": 2, "link_text": "a title"}
        for page in range(self.each):
            for host in range(self.hosts):
                url = f"http://www.host{host}.example/some/section/page-{page}.html?id={host}"
                yield Request(url, meta=meta, callback=self.parse)

    def parse(self, response: Response) -> None:
        """Nothing is crawled."""


SPIDERS: dict[str, type[Spider]] = {"shared": Shared, "started": Started, "pushes": Pushes}


def main(name: str, options: dict[str, Any]) -> int:
    """Crawl, and return the exit status."""
    variant = VARIANTS[options["variant"]]
    process = AsyncCrawlerProcess(
        {**SETTINGS, "USER_AGENT": NAMED % name, **variant, **options["settings"]}
    )
    crawler = process.create_crawler(SPIDERS[options["spider"]])
    process.crawl(crawler, **options["arguments"])
    process.start()
    assert crawler.stats is not None
    reason = crawler.stats.get_value("finish_reason")
    found = {"reason": reason, "cpu": time.process_time()}
    os.write(sys.stdout.fileno(), json.dumps(found).encode())
    return int(process.bootstrap_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], json.loads(sys.argv[2])))
