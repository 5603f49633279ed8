"""One of the crawls that `scrapy workers` starts. Each crawls its share of the same URLs."""

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.report import ReportingSpider
from example.sites import NEVER, sites_at


class WorkerSpider(ReportingSpider):
    name = "worker"
    custom_settings: dict[str, Any] = {"REP_RETRY_TIMES": 0}  # fetch the 503 only once

    def __init__(self, port: str, number: str, workers: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Without the site that never answers, whose robots.txt each worker would request in turn.
        sites = [site for site in sites_at(int(port)) if site.robots.delay < NEVER]
        urls = [url for site in sites for url in site.start_urls]
        self.number, self.urls = number, urls[int(number) - 1 :: int(workers)]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self.on_error)

    def parse(self, response: Response, **_: Any) -> None:
        """Do nothing with the page."""

    def closed(self, reason: str) -> None:
        stats: Any = self.crawler.stats
        fetched = stats.get_value("robotstxt/response_count", 0)
        shared = stats.get_value("robotstxt/store/hit_count", 0)
        robots = f"robots.txt: {fetched} fetched, {shared} shared"
        # In one piece: other workers write to the same output.
        print(f"worker {self.number}: {self.summary()}; {robots}\n", end="")
