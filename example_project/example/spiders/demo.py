"""Crawls the demo sites on this machine and shows what was decided, and that it was obeyed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scrapy import Request, signals
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from example.pipelines import Text, TrainingData
from example.report import origins_table, pages_table, urls_table
from example.reporting import ReportingSpider
from example.web.demo import demo_sites
from example.web.process import WebProcess
from example.web.sites import ROBOTS_TXT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

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
        # What pages say is obeyed. Without these lines it is only noted.
        "REP_NOINDEX": "drop",
        "REP_NOFOLLOW": "drop",
        "REP_REL_NOFOLLOW": "drop",
        "ITEM_PIPELINES": {TrainingData: 300},
        "DEFAULT_DROPITEM_LOG_LEVEL": "INFO",
    }

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.kept, signals.item_scraped)
        crawler.signals.connect(spider.left_out, signals.item_dropped)
        return spider

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.items: dict[str, str] = {}
        self.links: dict[str, list[str]] = {}
        self.web: WebProcess | None = None
        self.sites: tuple[Site, ...] = ()

    async def start(self) -> AsyncIterator[Request]:
        try:
            self.web = WebProcess("demo")
        except RuntimeError as error:
            self.fault(str(error))
            return
        self.sites = demo_sites(self.web.port)
        for site in self.sites:
            for path in (*site.allowed, *site.disallowed):
                callback = self.parse_text if path in site.says else self.parse
                yield Request(site.origin + path, callback=callback, errback=self.dropped)

    def parse(self, response: Response, **kwargs: Any) -> None:
        """Most pages hold nothing of interest."""

    def parse_text(self, response: Response, **_: Any) -> Iterator[Text | Request]:
        """The pages that say something. Nothing here has to know what."""
        assert isinstance(response, HtmlResponse)
        said = response.meta.get("page_directives")  # there is none without the add-on
        title = response.css("title::text").get("")
        usage = response.meta.get("usage", {})
        yield Text(response.url, title, usage, noai=said is not None and said.noai)
        links = LinkExtractor().extract_links(response)
        self.links[response.url] = [link.url for link in links]
        yield from response.follow_all(links, callback=self.parse, errback=self.dropped)

    def kept(self, item: Text) -> None:
        self.items[item.url] = "kept"

    def left_out(self, item: Text, exception: Exception) -> None:
        self.items[item.url] = str(exception)

    def closed(self, reason: str) -> None:
        if self.web is None:
            return
        received = Counter(self.web.stop())
        forbidden: set[str] = set()
        urls: list[str] = []
        for site in self.sites:
            disallowed = [site.origin + path for path in (*site.disallowed, *site.redirected_to)]
            allowed = [site.origin + path for path in (*site.allowed, *site.followed)]
            urls += [*allowed, *disallowed]
            forbidden.update(disallowed)
        asked = [self.asked[url] for url in urls if url in self.asked]

        names = {site.origin: site.name for site in self.sites}
        fetches = {origin: received[origin + ROBOTS_TXT] for origin in names}
        print(origins_table(self.origins(), asked, names, fetches))
        print(urls_table(asked, received))
        print(self.pages(received))
        broken = forbidden & received.keys()
        self.print_sum(asked, broken)

        not_followed = {site.origin + path for site in self.sites for path in site.not_followed}
        self.fault_if(not_followed & received.keys(), "links were followed that must not be")
        wrong = {entry.url for entry in asked if entry.allowed is (entry.url in forbidden)}
        self.fault_if(broken, "the server received disallowed pages")
        self.fault_if(wrong, "decided otherwise than robots.txt says")
        self.fault_if(set(urls) - self.asked.keys(), f"undecided when the crawl ended ({reason})")

    def pages(self, received: Collection[str]) -> str:
        """The table of the pages that say something."""
        rows = []
        for site in self.sites:
            for path, says in site.says.items():
                url = site.origin + path
                links = self.links.get(url, [])
                followed = sum(link in received for link in links)
                rows.append((url, says, self.items.get(url, ""), followed, len(links)))
        return pages_table(rows)
