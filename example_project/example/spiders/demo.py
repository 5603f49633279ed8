"""Crawls the small web, and shows what was crawled, what was dropped, and why."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from scrapy import Request, signals
from scrapy.http import HtmlResponse, Response

from example.pipelines import PageItem, TrainingDataPipeline
from example.report import ReportingSpider, print_table
from example.sites import ROBOTS_TXT
from example.web import Web
from scrapy_rep import RobotsTxtMiddleware


class DemoSpider(ReportingSpider):
    name = "demo"
    custom_settings: dict[str, Any] = {
        # Obey page directives. Without these settings, they are only in response.meta.
        "REP_NOINDEX": "drop",
        "REP_NOFOLLOW": "drop",
        "REP_REL_NOFOLLOW": "drop",
        "ITEM_PIPELINES": {TrainingDataPipeline: 300},
        "DEFAULT_DROPITEM_LOG_LEVEL": "INFO",
        # Write what the crawl did, and why, to a page that a browser shows.
        "REP_REPORT": "reports/demo.html",
        # Only for this demo: stop waiting for the site that does not answer after two seconds.
        "REP_TIMEOUT": 2,
        "REP_RETRY_TIMES": 0,
        "DOWNLOAD_TIMEOUT": 5,
        "RETRY_ENABLED": False,
    }

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.web = Web()

    async def start(self) -> AsyncIterator[Request]:
        print("The crawl of 13 small sites takes about 4 seconds.")
        print("Two of them have an unreachable robots.txt: a warning says so for each.")
        print("example_project/README.md explains the table.", flush=True)
        self.crawler.signals.connect(self.item_dropped, signals.item_dropped)
        for site in self.web.sites:
            for url in site.start_urls:
                yield Request(url, errback=self.on_error)

    def parse(self, response: Response, **_: Any) -> Iterator[PageItem | Request]:
        """Yield an item and follow the links. No code here checks what is allowed."""
        assert isinstance(response, HtmlResponse)
        title = response.css("title::text").get("")
        yield PageItem(response.url, title, response.meta.get("robotstxt_usage", {}))
        yield from response.follow_all(css="a", errback=self.on_error)

    def item_dropped(self, item: PageItem, exception: Exception) -> None:
        self.outcomes[item.url] = ("item dropped", str(exception).removeprefix(f"{item.url} "))

    def closed(self, reason: str) -> None:
        """Print the outcome of each URL, and how many requests for it the server received."""
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        origins = middleware.origins if middleware else {}
        hits, received = self.web.hits(), 0
        fetched = [hits[site.origin + ROBOTS_TXT] for site in self.web.sites]
        rows: list[Sequence[object]] = []
        for site in self.web.sites:
            meaning = origins[site.origin].result if site.origin in origins else ""
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
        print_table(
            "URLs of the crawl (hits: requests that the server received)",
            ("path", "outcome", "why", "hits"),
            rows,
        )
        print(f"\n{self.summary()}; the server received {received} disallowed pages")
        again = sum(count > 1 for count in fetched)
        print(f"{len(fetched)} robots.txt files, {again} of them fetched more than once")
        for error in self.web.errors():
            self.fail(error)
