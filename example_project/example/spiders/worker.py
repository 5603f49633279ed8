"""One of the crawls that `scrapy workers` starts. Each asks for its share of the same sites."""

from collections.abc import AsyncIterator
from typing import Any

from scrapy import Request
from scrapy.http import Response

from example.report import ReportingSpider
from example.sites import NEVER, sites_at


class WorkerSpider(ReportingSpider):
    name = "worker"
    custom_settings: dict[str, Any] = {"REP_RETRY_TIMES": 0}  # the 503 is asked for once, too

    def __init__(self, port: str, number: str, workers: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # A worker waits as long for another one's fetch as for its own. A site that never answers
        # would be asked by both.
        sites = [site for site in sites_at(int(port)) if site.robots.delay < NEVER]
        urls = [url for site in sites for url in site.start_urls]
        self.number, self.urls = number, urls[int(number) - 1 :: int(workers)]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self.not_crawled)

    def parse(self, response: Response, **_: Any) -> None:
        """Leave the page as it is."""

    def closed(self, reason: str) -> None:
        assert self.crawler.stats is not None
        fetched = self.crawler.stats.get_value("robotstxt/response_count", 0)
        shared = self.crawler.stats.get_value("robotstxt/store/hit_count", 0)
        files = f"robots.txt: {fetched} fetched, {shared} shared"
        print(f"worker {self.number}: {self.count()}; {files}")
