"""`scrapy crawl`, which ends with exit status 1 when the spider found a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import crawl
from scrapy.exceptions import UsageError

from example.reporting import ReportingSpider

if TYPE_CHECKING:
    import argparse


class Command(crawl.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("name one spider: demo, site or census")
        assert self.crawler_process is not None
        crawler = self.crawler_process.create_crawler(args[0])
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        faults = crawler.spider.faults if isinstance(crawler.spider, ReportingSpider) else []
        if self.crawler_process.bootstrap_failed or faults:
            self.exitcode = 1
