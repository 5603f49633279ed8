"""A real crawler against the web of :mod:`testing.web`, judged by what that web received."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerRunner, Crawler, CrawlerRunner
from scrapy.settings import Settings
from scrapy.utils.asyncio import create_looping_call, is_asyncio_available
from scrapy.utils.defer import _schedule_coro
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import Addon, RobotsTxtMiddleware
from scrapy_rep.scheduling.clock import sleep
from testing.web import Web

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure


@dataclass
class Outcome:
    """What became of a crawl's requests, by URL, and what the crawl says of itself."""

    crawler: Crawler = field(repr=False)
    responses: dict[str, Response] = field(default_factory=dict)
    failures: dict[str, BaseException] = field(default_factory=dict)
    requests: dict[str, Request] = field(default_factory=dict)

    @property
    def stats(self) -> dict[str, Any]:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_stats()

    @property
    def middleware(self) -> RobotsTxtMiddleware:
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        assert middleware is not None
        return middleware


class Visitor(Spider):
    """Asks for each of its URLs, all at once, and keeps what became of them."""

    name = "visitor"
    custom_settings: dict[str, Any] = {"LOG_LEVEL": "DEBUG"}  # noqa: RUF012

    def __init__(self, requests: Sequence[str | Request], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asked = requests

    async def start(self) -> AsyncIterator[Any]:
        self.outcome = Outcome(self.crawler)
        for asked in self.asked:
            request = asked if isinstance(asked, Request) else Request(asked, dont_filter=True)
            self.outcome.requests[request.url] = request
            yield request.replace(callback=self.parse, errback=self.failed)

    def stop(self) -> None:
        """Have the engine close this spider."""
        engine = self.crawler.engine
        assert engine is not None
        _schedule_coro(engine.close_spider_async(reason="enough"))

    def parse(self, response: Response, **_: Any) -> Any:
        self.outcome.responses[response.url] = response

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        assert failure.value is not None
        self.outcome.requests[request.url] = request
        self.outcome.failures[request.url] = failure.value


class Closer(Visitor):
    """Closes itself a moment after it has asked for everything, while its requests wait."""

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        await sleep(0.3)
        self.stop()


class Watcher(Visitor):
    """Keeps the most downloads that were under way at any time."""

    most = 0

    async def start(self) -> AsyncIterator[Any]:
        self.look = create_looping_call(self._look)
        self.look.start(0.01)
        self.crawler.signals.connect(self._stop, signal=signals.spider_closed)
        async for request in super().start():
            yield request

    def _look(self) -> None:
        engine = self.crawler.engine
        assert engine is not None
        self.most = max(self.most, len(engine.downloader.active))

    def _stop(self) -> None:
        self.look.stop()


Crawl = Callable[..., Awaitable[Outcome]]

# Twisted does not promise a crawl that nothing of it is in the way; these make it quick.
SETTINGS: dict[str, Any] = {
    "ADDONS": {Addon: 500},
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 10,
    "REP_RETRY_TIMES": 0,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "USER_AGENT": "testbot/1.0 (+https://example.com/testbot)",
}


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


@pytest.fixture
def crawl(caplog: pytest.LogCaptureFixture) -> Crawl:
    """Crawl URLs or requests with the add-on on, under further settings."""
    caplog.set_level(logging.DEBUG)

    async def run(
        requests: Sequence[str | Request],
        settings: dict[str, Any] | None = None,
        *,
        spider: type[Visitor] = Visitor,
        **arguments: Any,
    ) -> Outcome:
        crawler = make_crawler(spider, settings)
        await run_crawler(crawler, requests=requests, **arguments)
        outcome: Outcome = crawler.spider.outcome  # type: ignore[union-attr]
        return outcome

    return run


def our_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the package itself has warned about."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("scrapy_rep") and record.levelno >= logging.WARNING
    ]


def make_crawler(spider: type[Spider], settings: dict[str, Any] | None = None) -> Crawler:
    """A crawler for the loop that the test runs on."""
    values = {**SETTINGS, **(settings or {})}
    runner: type[AsyncCrawlerRunner | CrawlerRunner] = AsyncCrawlerRunner
    if not is_reactor_installed():
        values["TWISTED_REACTOR_ENABLED"] = False
    elif not is_asyncio_available():
        values["TWISTED_REACTOR"] = None
        runner = CrawlerRunner
    merged = Settings()
    merged.setdict(values, priority="project")
    return runner(merged).create_crawler(spider)


async def run_crawler(crawler: Crawler, **arguments: Any) -> None:
    """Run it to its end."""
    if is_asyncio_available():
        await crawler.crawl_async(**arguments)
    else:
        await crawler.crawl(**arguments)
