"""Crawls the demo sites on this machine and shows what was decided, and that it was obeyed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy import Request

from example.report import origins_table, urls_table
from example.reporting import ReportingSpider
from example.web.demo import demo_sites
from example.web.process import WebProcess
from example.web.sites import ROBOTS_TXT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

    from example.web.sites import Site


class DemoSpider(ReportingSpider):
    name = "demo"
    custom_settings = {  # noqa: RUF012 (as Scrapy declares it)
        # The silent site is given up after two seconds. These settings are for the demo only: a
        # real crawl is more patient.
        "REP_TIMEOUT": 2,
        "REP_RETRY_TIMES": 0,
        "DOWNLOAD_TIMEOUT": 5,
        "RETRY_ENABLED": False,
    }

    web: WebProcess | None = None
    sites: tuple[Site, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        try:
            self.web = WebProcess("demo")
        except RuntimeError as error:
            self.fault(str(error))
            return
        self.sites = demo_sites(self.web.port)
        for site in self.sites:
            for path in (*site.allowed, *site.disallowed):
                yield Request(site.origin + path, callback=self.parse, errback=self.dropped)

    def parse(self, response: Response, **kwargs: Any) -> None:
        """The pages hold nothing of interest."""

    def closed(self, reason: str) -> None:
        if self.web is None:
            return
        received = Counter(self.web.stop())
        forbidden: set[str] = set()
        urls: list[str] = []
        for site in self.sites:
            disallowed = [site.origin + path for path in (*site.disallowed, *site.redirected_to)]
            urls += [*(site.origin + path for path in site.allowed), *disallowed]
            forbidden.update(disallowed)
        asked = [self.asked[url] for url in urls if url in self.asked]

        names = {site.origin: site.name for site in self.sites}
        fetches = {origin: received[origin + ROBOTS_TXT] for origin in names}
        print(origins_table(self.origins(), asked, names, fetches))
        print(urls_table(asked, received))
        broken = forbidden & received.keys()
        self.print_sum(asked, broken)

        wrong = {entry.url for entry in asked if entry.allowed is (entry.url in forbidden)}
        self.fault_if(broken, "the server received disallowed pages")
        self.fault_if(wrong, "decided otherwise than robots.txt says")
        self.fault_if(set(urls) - self.asked.keys(), f"undecided when the crawl ended ({reason})")
