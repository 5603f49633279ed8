"""Crawls any site: `scrapy crawl site -a url=https://example.com -a limit=50`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from w3lib.url import canonicalize_url

from example.report import origins_table, urls_table
from example.reporting import ReportingSpider
from scrapy_rep import RobotsTxtDisallowed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

USAGE = "scrapy crawl site -a url=https://example.com -a limit=50"


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    status: int
    title: str


class SiteSpider(ReportingSpider):
    """Follows the links of one host until `limit` pages were asked for.

    What robots.txt disallows does not count.
    """

    name = "site"
    custom_settings = {  # noqa: RUF012 (as Scrapy declares it)
        "DOWNLOAD_DELAY": 0.5,  # somebody else's server
        "HTTPERROR_ALLOW_ALL": True,  # a page that is missing is an item too
    }

    def __init__(self, url: str = "", limit: str = "50", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url
        self.limit = limit
        self.left = 0
        self.host: str | None = None
        self.links = LinkExtractor()
        self.found: deque[str] = deque()
        self.known: set[str] = set()

    async def start(self) -> AsyncIterator[Request]:
        if not _is_web_url(self.url):
            self.fault(f"url has to be an http or https URL, not {self.url!r}: {USAGE}")
        elif not (self.limit.isascii() and self.limit.isdigit() and int(self.limit) > 0):
            self.fault(f"limit has to be a number of pages above 0, not {self.limit!r}: {USAGE}")
        else:
            self.left = int(self.limit)
            self._find(self.url)
            for request in self._next_requests():
                yield request

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Page | Request]:  # noqa: ARG002
        page = response if isinstance(response, HtmlResponse) else None
        title = page.css("title::text").get("") if page else ""
        yield Page(response.url, response.status, " ".join(title.split()))
        host = urlsplit(response.url).hostname
        if self.host is None:
            self.host = host  # where the first page is found, after redirects
        if page and host == self.host:
            for link in self.links.extract_links(page):
                if urlsplit(link.url).hostname == self.host:
                    self._find(link.url)
        yield from self._next_requests()

    def dropped(self, failure: Failure) -> Iterator[Request]:
        super().dropped(failure)
        if isinstance(failure.value, RobotsTxtDisallowed):
            self.left += 1
        yield from self._next_requests()

    def _find(self, url: str) -> None:
        same = canonicalize_url(url)  # the form in which Scrapy recognises duplicates
        if same not in self.known:
            self.known.add(same)
            self.found.append(url)

    def _next_requests(self) -> Iterator[Request]:
        while self.left > 0 and self.found:
            self.left -= 1
            yield Request(self.found.popleft(), callback=self.parse, errback=self.dropped)

    def closed(self, reason: str) -> None:  # noqa: ARG002
        if self.faults:
            return
        asked = self.asked.values()
        print(origins_table(self.origins(), asked))
        print(urls_table(asked))
        self.print_sum(asked)


def _is_web_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False
