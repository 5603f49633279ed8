"""`scrapy crawl` with exit status 1 if the spider found an error."""

import argparse
from pathlib import Path

from scrapy.commands import crawl
from scrapy.exceptions import UsageError


class Command(crawl.Command):
    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("name one spider: demo or site")
        assert self.crawler_process is not None
        crawler = self.crawler_process.create_crawler(args[0])
        report = Path(f"reports/{args[0]}.html")
        report.unlink(missing_ok=True)  # of an earlier crawl
        self.crawler_process.crawl(crawler, **opts.spargs)
        self.crawler_process.start()
        if report.exists():
            print(f"The report of this crawl, for your browser:\n{report.resolve()}")
        if self.crawler_process.bootstrap_failed or getattr(crawler.spider, "failed", False):
            self.exitcode = 1
