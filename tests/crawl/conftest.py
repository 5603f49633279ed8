"""A real crawler against the web of :mod:`testing.web`, judged by what that web received."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import AsyncCrawlerRunner, Crawler, CrawlerRunner
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import Settings
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import _schedule_coro, deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import DeferredList
from twisted.python.failure import Failure

from scrapy_rep import Addon, Reason, RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.clock import Clock
from testing.clock import FakeClock
from testing.faults import answer_when
from testing.web import Misbehaviour, Page, Site

if TYPE_CHECKING:
    from typing_extensions import Self

ALL = "User-agent: *\nDisallow:\n"
PRIVATE = "User-agent: *\nDisallow: /private\n"
EXEMPT = {"dont_obey_robotstxt": True}
FIFO = {
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}


def documented(page: str) -> re.Pattern[str]:
    """Return a pattern for the names or the messages in the tables of a reference page."""
    path = Path(__file__).parents[2] / "docs" / "reference" / page
    cells = "".join(re.findall(r"^\| .*? \|", path.read_text("utf-8"), re.MULTILINE))
    texts = map(re.escape, re.findall(r"`([^`]+)`", cells))
    return re.compile("|".join(re.sub(r"<\w+>|(\\ )?…", ".*", text) for text in texts))


STATS, MESSAGES = documented("stats.md"), documented("log-messages.md")


@pytest.fixture(autouse=True)
def its_log_is_documented(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test that logs what the reference page does not list."""
    yield
    records = [each for each in caplog.get_records("call") if each.name.startswith("scrapy_rep")]
    lines = [each.getMessage().split("\n")[0] for each in records]  # an item is on further lines
    assert [line for line in lines if not MESSAGES.fullmatch(line)] == []


def numbers(count: int) -> list[str]:
    """So many paths."""
    return [f"/{number}" for number in range(count)]


def delayed(seconds: float) -> str:
    """A robots.txt that allows everything with a Crawl-delay."""
    return f"{ALL}Crawl-delay: {seconds}\n"


def in_turn(
    *answers: Page | Misbehaviour,
    then: Page | Misbehaviour | None = None,
    once: Callable[[], object] = lambda: True,
) -> Misbehaviour:
    """Give these answers to the first requests once a condition holds, and ``then`` to all others.

    Without ``then`` it is a page.
    """
    left = list(answers)

    async def answer(*connection: Any) -> None:
        page = left.pop(0) if left else then or Page()
        await (answer_when(once, page) if isinstance(page, Page) else page)(*connection)

    return answer


@dataclass
class Outcome:
    """The responses and failures of a crawl by URL, with its stats, log and middleware."""

    crawler: Crawler = field(repr=False)
    log: pytest.LogCaptureFixture = field(init=False, repr=False)
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

    @property
    def warnings(self) -> list[str]:
        """The warnings of the package."""
        return our_warnings(self.log)

    @property
    def errors(self) -> list[logging.LogRecord]:
        """The errors in the log."""
        return [each for each in self.log.records if each.levelno >= logging.ERROR]

    @property
    def reasons(self) -> dict[str, Reason]:
        """Why requests were dropped, by URL. No request failed otherwise."""
        errors = self.failures.items()
        assert all(isinstance(error, RobotsTxtDisallowed) for _, error in errors), errors
        return {url: error.verdict.reason for url, error in errors}  # type: ignore[attr-defined]

    def failure_of(self, site: Site | str) -> str:
        """Why the robots.txt of a site, or of an origin, is unreachable."""
        return str(self.middleware.origins[site if isinstance(site, str) else site.root].failure)


class Visitor(Spider):
    """Requests all of its URLs at once, and records the response or the failure of each.

    It closes itself when ``most`` responses are there. ``on`` has functions by the signals that
    call them.
    """

    name = "visitor"
    most = 0
    on: Mapping[object, Callable[..., object]] = MappingProxyType({})
    custom_settings: dict[str, Any] = {"LOG_LEVEL": "DEBUG"}  # noqa: RUF012

    def __init__(self, requests: Sequence[str | Request], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asked = requests

    async def start(self) -> AsyncIterator[Any]:
        self.outcome = Outcome(self.crawler)
        for signal, call in self.on.items():
            self.crawler.signals.connect(call, signal)
        for asked in self.asked:
            request = asked if isinstance(asked, Request) else Request(asked, dont_filter=True)
            self.outcome.requests[request.url] = request
            yield request.replace(callback=self.parse, errback=self.failed)

    @property
    def engine(self) -> ExecutionEngine:
        assert self.crawler.engine is not None
        return self.crawler.engine

    def stop(self) -> None:
        """Have the engine close this spider."""
        _schedule_coro(self.engine.close_spider_async(reason="enough"))

    def parse(self, response: Response, **_: Any) -> Any:
        self.outcome.responses[response.url] = response
        if len(self.outcome.responses) == self.most:
            self.stop()

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        assert failure.value is not None
        self.outcome.requests[request.url] = request
        self.outcome.failures[request.url] = failure.value


class Closer(Visitor):
    """Closes itself while its requests wait: 0.3 seconds after each site of ``awaited`` has
    received a request.
    """

    awaited: Sequence[Site] = ()

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        await until(lambda: all(site.received for site in self.awaited))
        await Clock().sleep(0.3)
        self.stop()


class Caller(Visitor):
    """Passes its requests to ``engine.download_async``, not to the scheduler."""

    callback: Any = staticmethod(NO_CALLBACK)

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            _schedule_coro(self._call(request.replace(callback=self.callback, errback=None)))
        yield Request("data:,")

    async def _call(self, request: Request) -> None:
        try:
            self.outcome.responses[request.url] = await self.engine.download_async(request)
        except IgnoreRequest as error:
            self.outcome.failures[request.url] = error


class CallerAndCloser(Caller, Closer):
    """Closes itself while its calls wait."""


class Traveller(Visitor):
    """Requests what the test asks for, one page after another, until the test is over."""

    is_over = False

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        while not self.is_over:
            await Clock().sleep(0.02)

    async def fetches(self, url: str) -> bool:
        """Ask for a page; whether robots.txt lets it."""
        try:
            await self.engine.download_async(Request(url))
        except RobotsTxtDisallowed:
            return False
        return True


class InTurn(Visitor):
    """Requests further pages after some."""

    then: dict[str, list[Request]]

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        for request in self.then.get(response.url, []):
            yield request.replace(callback=self.parse)


class Disturber(Visitor):
    """After each page, calls the next function of ``then`` and requests the next URL."""

    then: list[Callable[[], None]]
    next_urls: list[str]

    async def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        if self.then:
            self.then.pop(0)()
        if self.next_urls:
            return Request(self.next_urls.pop(0), callback=self.parse)
        return None


class ScrapysHandler:
    """A download handler that does what Scrapy's own does, for subclasses."""

    lazy = False
    seen: list[Any]
    """What a subclass has seen in the latest crawl."""

    def __init__(self, crawler: Crawler) -> None:
        type(self).seen = []
        handler = load_object(crawler.settings["DOWNLOAD_HANDLERS_BASE"]["http"])
        self._handler: Any = build_from_crawler(handler, crawler)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def download_request(self, request: Request) -> Response:
        response: Response = await self._handler.download_request(request)
        return response

    async def close(self) -> None:
        await self._handler.close()


class FollowingHandler(ScrapysHandler):
    """Downloads with Scrapy's own handler, and returns the page at the end of the redirects."""

    async def download_request(self, request: Request) -> Response:
        while True:
            response = await super().download_request(request)
            location = response.headers.get("Location")
            if location is None or request.meta.get("is_robotstxt_request"):
                return response
            request = request.replace(url=response.urljoin(location.decode()))


FOLLOWING = {"DOWNLOAD_HANDLERS": {"http": FollowingHandler}}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The clock of the package during the test. It runs, but timers do not call it."""
    began = time.monotonic()
    clock = FakeClock(time.time(), runs=lambda: time.monotonic() - began)
    monkeypatch.setattr(Clock, "time", lambda _: clock.time())
    monkeypatch.setattr(Clock, "monotonic", lambda _: clock.monotonic())
    return clock


Crawl = Callable[..., Awaitable[Outcome]]

# Crawls without delays, retries and other waiting.
SETTINGS: dict[str, Any] = {
    "ADDONS": {Addon: 500},
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 60,  # more than a machine that stands still needs
    "MEMUSAGE_ENABLED": False,  # it fails at the end of a crawl that does not start
    "REP_RETRY_TIMES": 0,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "USER_AGENT": "testbot/1.0 (+https://example.com/testbot)",
}


@pytest.fixture
def crawl(caplog: pytest.LogCaptureFixture) -> Crawl:
    """Crawl URLs or requests with the add-on, under further settings."""
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
        outcome.log = caplog
        return outcome

    return run


async def until(condition: Callable[[], object]) -> None:
    """Wait for a condition, for as long as the slowest machine needs."""
    for _ in range(3000):
        if condition():
            return
        await Clock().sleep(0.01)
    raise AssertionError("it does not happen")


def our_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of the package."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("scrapy_rep") and record.levelno >= logging.WARNING
    ]


def scrapy(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``scrapy …`` in a folder."""
    paths = (str(Path(__file__).parents[2]), str(cwd))
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


HAS_VERBATIM_URL = "é" in Request("http://a.example/é", meta={"verbatim_url": True}).url
"""Whether this version of Scrapy leaves such a URL as it is (2.15)."""


def needs_connections() -> None:
    """Skip a test in which more sites are silent at once than a pool has connections.

    ``test_scheduler`` has what holds with a pool.
    """
    if not is_reactor_installed():
        pytest.skip("without a reactor, Scrapy's handlers have a pool of connections")


def make_crawler(spider: type[Spider], settings: dict[str, Any] | None = None) -> Crawler:
    """A crawler for the event loop that the test runs on."""
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


async def together(*crawlers: Crawler, requests: Sequence[Sequence[str | Request]]) -> None:
    """Run crawlers in this process at the same time, each with its own requests."""
    runs = [
        deferred_from_coro(run_crawler(crawler, requests=asked))
        for crawler, asked in zip(crawlers, requests, strict=True)
    ]
    await maybe_deferred_to_future(DeferredList(runs, fireOnOneErrback=True))


async def run_crawler(crawler: Crawler, **arguments: Any) -> None:
    """Run a crawler until its spider is closed. All its stats are on their reference page."""
    try:
        if is_asyncio_available():
            await crawler.crawl_async(**arguments)
        else:
            await crawler.crawl(**arguments)
    except Exception:
        # If a middleware raises, Scrapy leaves the session of its aiohttp handler open.
        await crawler.signals.send_catch_log_async(signals.engine_stopped)
        raise
    assert crawler.stats is not None
    ours = [name for name in crawler.stats.get_stats() if re.match("robotstxt/|.*/redis$", name)]
    unknown = [name for name in ours if not STATS.fullmatch(name)]
    assert [name for name in unknown if not STATS.fullmatch(name.replace("/tdmrep", ""))] == []


@asynccontextmanager
async def travel(
    settings: dict[str, Any] | None = None, **arguments: Any
) -> AsyncIterator[Traveller]:
    """A crawl with further settings, which ends with the context."""
    crawler = make_crawler(Traveller, settings)
    run = deferred_from_coro(run_crawler(crawler, requests=(), **arguments))
    await until(lambda: hasattr(crawler.spider, "outcome"))
    spider: Traveller = crawler.spider  # type: ignore[assignment]
    try:
        yield spider
    finally:
        spider.is_over = True
        await maybe_deferred_to_future(run)
