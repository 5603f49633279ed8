"""Crawls a site of the real web: `scrapy crawl site -a url=https://example.com`."""

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor

from example.report import ReportingSpider, print_table


class SiteSpider(ReportingSpider):
    name = "site"
    custom_settings: dict[str, Any] = {
        "CLOSESPIDER_PAGECOUNT": 50,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0.5,  # or longer, if the site asks for it
    }
    url = ""

    async def start(self) -> AsyncIterator[Request]:
        if self.url.startswith(("http://", "https://")):
            yield Request(self.url, errback=self.not_crawled)
        else:
            self.fault(f"url has to be an http or https URL, not {self.url!r}")

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, str] | Request]:
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "title": response.css("title::text").get("").strip()}
            links = LinkExtractor(allow_domains=urlsplit(response.url).netloc)
            for link in links.extract_links(response):
                yield response.follow(link, errback=self.not_crawled)

    def closed(self, reason: str) -> None:
        origin = "/".join(self.url.split("/")[:3])
        rows = [(url.removeprefix(origin), *outcome) for url, outcome in self.outcomes.items()]
        print_table(f"What the crawl asked for at {origin}", ("path", "outcome", "why"), rows)
        print(f"\n{self.count()}")
