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

NAME = "shared"  # is in the names of the keys

_LINK = re.compile(rb'href="([^"]*)"')


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
    process = AsyncCrawlerProcess({"USER_AGENT": NAMED % name, **options["settings"]})
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
