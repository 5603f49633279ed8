"""Crawls one site of the web: `scrapy crawl site -a url=https://example.com`."""

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
        "DOWNLOAD_DELAY": 0.5,  # longer, if the robots.txt says so
    }
    url = ""

    async def start(self) -> AsyncIterator[Request]:
        if self.url.startswith(("http://", "https://")):
            yield Request(self.url, errback=self.on_error)
        else:
            self.fail(f"url must be an http or https URL, not {self.url!r}")

    def parse(self, response: Response, **_: Any) -> Iterator[dict[str, str] | Request]:
        if isinstance(response, HtmlResponse):
            yield {"url": response.url, "title": response.css("title::text").get("").strip()}
            links = LinkExtractor(allow_domains=urlsplit(response.url).netloc)
            for link in links.extract_links(response):
                yield response.follow(link, errback=self.on_error)

    def closed(self, reason: str) -> None:
        origin = "/".join(self.url.split("/")[:3])
        rows = [(url.removeprefix(origin) or "/", *why) for url, why in self.outcomes.items()]
        print_table(f"URLs of the crawl of {origin}", ("path", "outcome", "why"), rows)
        print(f"\n{self.summary()}")
