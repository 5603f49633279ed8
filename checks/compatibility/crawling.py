"""A crawl with the add-on on, against the loopback web of the tests."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.http import Response
from scrapy.settings import Settings
from twisted.python.failure import Failure

from testing.web import Web

Check = Callable[[Web], Awaitable[None]]

SETTINGS: dict[str, Any] = {
    "ADDONS": {"scrapy_rep.Addon": 500},
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 20,
    "REP_RETRY_TIMES": 0,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "USER_AGENT": "testbot/1.0 (+https://example.com/testbot)",
}


class CannotRunError(Exception):
    """The machine lacks something that a check needs."""


@dataclass
class Outcome:
    """The responses and failures of a crawl, by the requested URL."""

    responses: dict[str, list[Response]] = field(default_factory=dict)
    failures: dict[str, BaseException] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """The log messages at WARNING or above."""


class Visitor(Spider):
    """Sends all of its requests at once."""

    name = "visitor"

    def __init__(self, asked: Sequence[Request], outcome: Outcome, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asked = asked
        self.outcome = outcome

    async def start(self) -> AsyncIterator[Any]:
        for request in self.asked:
            asked_url = {"asked_url": request.url}
            yield request.replace(
                callback=self.parse, errback=self.failed, dont_filter=True, cb_kwargs=asked_url
            )

    def parse(self, response: Response, asked_url: str = "") -> Any:
        self.outcome.responses.setdefault(asked_url, []).append(response)

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        assert failure.value is not None
        self.outcome.failures[request.cb_kwargs["asked_url"]] = failure.value


class _Warnings(logging.Handler):
    def __init__(self, outcome: Outcome) -> None:
        super().__init__(logging.WARNING)
        self.outcome = outcome

    def emit(self, record: logging.LogRecord) -> None:
        self.outcome.warnings.append(f"{record.name}: {record.getMessage()}")


async def crawl(
    asked: Sequence[str | Request],
    settings: Mapping[str, Any] | None = None,
    *,
    meta: Mapping[str, Any] | None = None,
    spider: type[Visitor] = Visitor,
    started: Callable[[Crawler], None] = lambda _: None,
) -> Outcome:
    """Crawl URLs or requests. ``meta`` is that of the requests for URLs."""
    merged = Settings()
    merged.setdict({**SETTINGS, **(settings or {})}, priority="project")
    outcome = Outcome()
    crawler = AsyncCrawlerRunner(merged).create_crawler(spider)
    started(crawler)
    requests = [
        each if isinstance(each, Request) else Request(each, meta=dict(meta or {}))
        for each in asked
    ]
    warnings = _Warnings(outcome)
    logging.getLogger().addHandler(warnings)
    try:
        await crawler.crawl_async(asked=requests, outcome=outcome)
    finally:
        logging.getLogger().removeHandler(warnings)
    assert crawler.stats is not None
    outcome.stats = crawler.stats.get_stats()
    return outcome
