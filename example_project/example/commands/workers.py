"""`scrapy workers`: several crawls at the same time that share robots.txt files and delays."""

import argparse
import sys
import tempfile
from subprocess import Popen

from scrapy.commands import ScrapyCommand

from example.report import print_table
from example.sites import ROBOTS_TXT
from example.web import Web


class Command(ScrapyCommand):
    requires_project = True
    default_settings = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options]"

    def short_desc(self) -> str:
        return "Run several workers that share robots.txt files and delays"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-n", dest="workers", type=int, default=2, help="how many (default: 2)")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        web = Web()
        with tempfile.TemporaryDirectory() as folder:
            store = self.settings["REP_STORE"] or f"sqlite:///{folder}/robots.db"
            crawl = [sys.executable, "-m", "scrapy", "crawl", "worker", "-s", f"REP_STORE={store}"]
            crawl += ["-a", f"port={web.port}", "-a", f"workers={opts.workers}"]
            numbers = range(1, opts.workers + 1)
            workers = [Popen([*crawl, "-a", f"number={number}"]) for number in numbers]
            statuses = [worker.wait() for worker in workers]
        hits, rows = web.hits(), []
        for site in web.sites:
            pages = sum(hits[url] for url in site.urls(site.allowed))
            disallowed = sum(hits[url] for url in site.urls(site.disallowed))
            gap = f"{web.shortest_gap(site):.2f} s"
            rows.append((site.origin, hits[site.origin + ROBOTS_TXT], pages, disallowed, gap))
        head = ("site", "robots.txt", "pages", "disallowed", "shortest gap")
        print_table("Requests that the servers received", head, rows)
        errors = [*web.errors(), *("a worker failed" for status in statuses if status)]
        success = "No robots.txt fetched twice, no disallowed page received, every delay kept"
        print("", *(errors or [success]), sep="\n")
        self.exitcode = 1 if errors else 0
