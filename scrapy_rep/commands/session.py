"""The network for a tool: policies and pages as a crawl gets them, by Scrapy's engine.

Scrapy runs in a thread of its own. So a tool reads its input and writes its output as any program
does, and Ctrl-C ends it wherever it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from scrapy.settings import SETTINGS_PRIORITIES, default_settings
from scrapy.settings import Settings as ScrapySettings
from scrapy.utils.misc import load_object

from ..addon import Addon
from ..middleware import RobotsTxtMiddleware
from ..protocol.paths import robots_txt_url
from .context import CommandError, NoAnswerError, naming_settings
from .policy import Policy, access_of

T = TypeVar("T")

END_TIMEOUT = 5.0
"""Seconds that Scrapy has to end. Then the program ends without it."""
INTERRUPTED_TIMEOUT = 0.2
"""As END_TIMEOUT, after Ctrl-C."""

ENDED_EARLY = "Scrapy ended before the tool did"

MAX_PENDING = 1000
"""Policies that are waited for at the same time."""

OVERRIDDEN: dict[str, Any] = {
    "CLOSESPIDER_ERRORCOUNT": 0,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "EXTENSIONS": {},
    "EXTENSIONS_BASE": {},
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "LOG_FILE": None,
    "LOG_STDOUT": False,
    "REP_ARCHIVE": None,
    "REP_REPORT": None,
    "ROBOTSTXT_OBEY": True,
    "SCHEDULER": "scrapy.core.scheduler.Scheduler",
    "SPIDER_LOADER_CLASS": "scrapy.spiderloader.SpiderLoader",
    "SPIDER_MIDDLEWARES": {},
    "SPIDER_MODULES": [],
    "TWISTED_REACTOR": default_settings.TWISTED_REACTOR,
    "TWISTED_REACTOR_ENABLED": True,
}
"""The settings of a project that are replaced. Only those of downloads stay: the others may write
files, open databases or use the queue of a crawl that is running."""


class Session(Spider):
    """The network, for one run of a tool: a spider that keeps Scrapy running, and requests nothing.

    Except for ``start``, its methods block, and run in the thread of the tool.
    """

    name = "scrapy-rep"
    fresh: bool
    made: Future[Session]
    ended: Future[None]
    is_interrupted = False

    async def start(self) -> AsyncIterator[Any]:
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if middleware is None:
            text = "scrapy_rep.RobotsTxtMiddleware is not enabled: check DOWNLOADER_MIDDLEWARES"
            self.made.set_exception(CommandError(text))
            return
        self.middleware = middleware
        self._bodies = middleware.crawl.fetches.keep_bodies()
        self._answers = middleware.crawl.fetches.fetcher.keep_answers()
        if self.fresh and middleware.crawl.store is not None:
            middleware.crawl.store.ask_sites()
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self.made.set_result(self)
        await self._end.wait()
        for request in tuple[Request, ...]():
            yield request

    def policies(self, origins: Iterable[str], page_url: str | None = None) -> Iterator[Policy]:
        """Yield the policies of origins, each as soon as it is known. ``page_url`` needs them."""
        return self.results(self._policy(origin, page_url) for origin in origins)

    def download(self, request: Request) -> Response:
        """Return the response to a request, which passes all downloader middlewares."""
        engine: Any = self.crawler.engine
        response: Response = next(self.results([engine.download_async(request)]))
        return response

    def results(self, works: Iterable[Coroutine[Any, Any, T]]) -> Iterator[T]:
        """Run coroutines in Scrapy's event loop, and yield each result as soon as it is known."""
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        self.ended.add_done_callback(done.put)
        left, pending = iter(works), 0
        while True:
            for work in islice(left, MAX_PENDING - pending):
                asyncio.run_coroutine_threadsafe(work, self._loop).add_done_callback(done.put)
                pending += 1
            if not pending:
                return
            try:
                future = done.get()
            except KeyboardInterrupt:
                self.is_interrupted = True
                raise
            if future is self.ended:
                raise NoAnswerError(ENDED_EARLY)  # by a component of the project
            pending -= 1
            yield future.result()

    def stop(self) -> None:
        """End the session. What is being downloaded is given up."""
        self._loop.call_soon_threadsafe(self._end.set)

    async def _policy(self, key: str, page_url: str | None) -> Policy:
        crawl = self.middleware.crawl
        origin = await crawl.fetches.wait_for(key, Request(page_url or robots_txt_url(key)))
        if origin is None:
            raise NoAnswerError(ENDED_EARLY)
        body = self._bodies.pop(origin.key, None)
        return Policy(
            origin.key,
            origin.content,
            partial(crawl.policies.verdict, origin),
            access_of(origin),
            body if origin.content else None,
            lambda tokens: crawl.policies.delay(origin, tokens) or 0,
            self._answers.pop(origin.file_url, None),
        )


@contextmanager
def open_session(settings: ScrapySettings, *, fresh: bool = False) -> Iterator[Session]:
    """Start Scrapy in a thread, yield its session, and end Scrapy.

    ``fresh``: each site is asked, whatever the store has of it.
    """
    made: Future[Session] = Future()
    ended: Future[None] = Future()

    def run() -> None:
        error: BaseException = RuntimeError("Scrapy ended at its start")
        try:
            run_crawl(session_settings(settings), fresh=fresh, made=made, ended=ended)
        except BaseException as raised:  # of what the settings name
            error = raised
        ended.set_result(None)
        if not made.done():  # later errors come from what a tool calls
            made.set_exception(error)

    thread = Thread(target=run, name="scrapy", daemon=True)
    thread.start()
    try:
        with naming_settings():
            session = made.result()
    except CommandError:
        raise
    except Exception as error:
        raise CommandError(
            f"Scrapy does not start with these settings: {type(error).__name__}: {error}"
        ) from error
    try:
        yield session
    finally:
        session.stop()
        thread.join(INTERRUPTED_TIMEOUT if session.is_interrupted else END_TIMEOUT)


def run_crawl(settings: ScrapySettings, **arguments: Any) -> None:
    process = AsyncCrawlerProcess(settings)
    crawl = process.crawl(Session, **arguments)
    process.start(install_signal_handlers=False)
    crawl.result()


def session_settings(settings: ScrapySettings) -> ScrapySettings:
    settings = settings.copy()
    settings.setdict(OVERRIDDEN, priority="cmdline")
    # Only a user who sets a level here wants to see the log.
    has_log = settings.getpriority("LOG_LEVEL") == SETTINGS_PRIORITIES["cmdline"]
    settings.set("LOG_ENABLED", has_log, priority="cmdline")
    addons = settings.getdict("ADDONS")
    if not any(load_object(each) is Addon for each in addons):
        settings.set("ADDONS", {**addons, Addon: 500}, priority="cmdline")
    return settings
