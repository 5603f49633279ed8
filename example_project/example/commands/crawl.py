"""`scrapy crawl` with exit status 1 if the spider found an error."""

import argparse

from scrapy.commands import crawl
from scrapy.exceptions import UsageError


class Command(crawl.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("name one spider: demo or site")
        assert self.crawler_process is not None
        crawler = self.crawler_process.create_crawler(args[0])
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        if self.crawler_process.bootstrap_failed or getattr(crawler.spider, "failed", False):
            self.exitcode = 1
