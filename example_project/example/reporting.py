"""What the spiders of this project have in common: they note every decision and report it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrapy import Spider, signals
from scrapy.exceptions import IgnoreRequest

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure
    from typing_extensions import Self

    from scrapy_rep import Verdict
    from scrapy_rep.origin import Origin

SHOWN = 3
"""URLs that a fault names."""


@dataclass(slots=True)
class Asked:
    """A URL, what was decided about it and why, and the answer: a status or a failure."""

    url: str
    allowed: bool
    verdict: Verdict | None
    answer: str = ""


class ReportingSpider(Spider):
    """Notes what became of each URL in `asked`. `dropped` has to be the errback of its requests.

    Each message in `faults` is an error in the log, and they make `scrapy crawl` exit with 1.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.passed, signals.request_reached_downloader)
        crawler.signals.connect(spider.answered, signals.response_downloaded)
        return spider

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self.asked: dict[str, Asked] = {}
        self.faults: list[str] = []

    def fault(self, message: str) -> None:
        """Something that must not be."""
        self.logger.error(message)
        self.faults.append(message)

    def fault_if(self, urls: Collection[str], message: str) -> None:
        """A fault that these URLs show, if there are any."""
        if urls:
            some = ", ".join(sorted(urls)[:SHOWN])
            more = f" and {len(urls) - SHOWN} more" if len(urls) > SHOWN else ""
            self.fault(f"{message}: {some}{more}")

    @staticmethod
    def print_sum(asked: Collection[Asked], broken: Collection[str] | None = None) -> None:
        """The last line of a report; `broken` are the disallowed URLs that a server received."""
        allowed = sum(entry.allowed for entry in asked)
        line = f"\n{len(asked)} URLs, {allowed} allowed, {len(asked) - allowed} disallowed"
        if broken is not None:
            line += f"; the server received {len(broken)} disallowed pages"
        print(line)

    def passed(self, request: Request) -> None:
        """A request is on its way: robots.txt allows it, or it is for a robots.txt."""
        if not request.meta.get("dont_obey_robotstxt"):
            verdict = request.meta.get("robotstxt")
            self.asked[request.url] = Asked(request.url, allowed=True, verdict=verdict)

    def answered(self, response: Response, request: Request) -> None:
        if request.url in self.asked:
            self.asked[request.url].answer = str(response.status)

    def dropped(self, failure: Failure) -> Iterable[Request] | None:
        """A request that robots.txt disallows, or that failed on its way."""
        match failure.value:
            case RobotsTxtDisallowed(url=url, verdict=verdict):
                self.asked[url] = Asked(url, allowed=False, verdict=verdict)
            case IgnoreRequest():  # of another middleware
                url = failure.request.url  # type: ignore[attr-defined]
                self.asked.setdefault(url, Asked(url, allowed=False, verdict=None))
            case error:
                url = failure.request.url  # type: ignore[attr-defined]
                if url in self.asked:
                    self.asked[url].answer = type(error).__name__
        return None

    def origins(self) -> Mapping[str, Origin]:
        """Every origin that the crawl met, with what its robots.txt meant."""
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        return middleware.origins if middleware else {}
