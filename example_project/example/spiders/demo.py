"""Crawls the small web, and shows what was asked for, what was dropped, and why."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from scrapy import Request, signals
from scrapy.http import HtmlResponse, Response

from example.pipelines import Text, TrainingData
from example.report import ReportingSpider, print_table
from example.sites import ROBOTS_TXT
from example.web import Web
from scrapy_rep import RobotsTxtMiddleware


class DemoSpider(ReportingSpider):
    name = "demo"
    custom_settings: dict[str, Any] = {
        # Obey what pages say about themselves. Without these lines it is only noted.
        "REP_NOINDEX": "drop",
        "REP_NOFOLLOW": "drop",
        "REP_REL_NOFOLLOW": "drop",
        "ITEM_PIPELINES": {TrainingData: 300},
        "DEFAULT_DROPITEM_LOG_LEVEL": "INFO",
        # Only for this demo: give up the site that does not answer after two seconds.
        "REP_TIMEOUT": 2,
        "REP_RETRY_TIMES": 0,
        "DOWNLOAD_TIMEOUT": 5,
        "RETRY_ENABLED": False,
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.web = Web()

    async def start(self) -> AsyncIterator[Request]:
        self.crawler.signals.connect(self.item_dropped, signals.item_dropped)
        for site in self.web.sites:
            for url in site.start_urls:
                yield Request(url, errback=self.not_crawled)

    def parse(self, response: Response, **_: Any) -> Iterator[Text | Request]:
        """Make an item of the page and follow its links. Nothing here asks what is allowed."""
        assert isinstance(response, HtmlResponse)
        title = response.css("title::text").get("")
        yield Text(response.url, title, response.meta.get("usage", {}))
        yield from response.follow_all(css="a", errback=self.not_crawled)

    def item_dropped(self, item: Text, exception: Exception) -> None:
        self.outcomes[item.url] = ("item dropped", str(exception))

    def closed(self, reason: str) -> None:
        """Show what became of each URL, and how many requests for it the server received."""
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        origins = middleware.origins if middleware else {}
        hits, received = self.web.hits(), 0
        rows: list[Sequence[object]] = []
        for site in self.web.sites:
            meaning = origins[site.origin].summary() if site.origin in origins else ""
            rows.append((f"{site.origin}  {site.name}",))
            rows.append((ROBOTS_TXT, "", meaning, hits[site.origin + ROBOTS_TXT]))
            for url in site.urls(site.allowed, site.found, site.disallowed, site.redirected_to):
                outcome = self.outcomes.get(url, ("undecided", ""))
                rows.append((url.removeprefix(site.origin), *outcome, hits[url]))
            for url in site.urls(site.not_followed):
                outcome = self.outcomes.get(url, ("not followed", "only nofollow links lead there"))
                rows.append((url.removeprefix(site.origin), *outcome, hits[url]))
            if site.crawl_delay:
                rows.append(("", "", f"at least {self.web.shortest_gap(site):.2f} s apart", ""))
            received += sum(hits[url] for url in site.urls(site.disallowed, site.redirected_to))
        print_table("What the crawl asked for", ("path", "outcome", "why", "hits"), rows)
        print(f"\n{self.count()}; the server received {received} disallowed pages")
        for fault in self.web.faults():
            self.fault(fault)
