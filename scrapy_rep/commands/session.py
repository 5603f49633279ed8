"""The policies of sites, as a crawl gets them: by Scrapy's engine, the middleware and its store.

:func:`run` starts Scrapy with a spider that requests no pages. Its coroutine gets a
:class:`Session`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy import Request, Spider, signals
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from ..addon import Addon
from ..crawl.middleware import RobotsTxtMiddleware
from ..exceptions import SettingError
from ..protocol.paths import robots_txt_url
from ..scheduling.clock import fire, sleep
from ..scrapy_settings import uses_async_process
from ..setting_types import without_passwords
from ..settings import read_settings
from .exits import CommandError, ExitCode
from .interrupts import noted_interrupts, raised_interrupts, restored_handlers
from .policy import Policy, of_origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator

    from scrapy.http import Response
    from scrapy.settings import Settings as ScrapySettings
    from twisted.python.failure import Failure

    from ..crawl.policy_cache import PolicyCache
    from ..origin import Origin
    from ..protocol.tdmrep import TdmRule

T = TypeVar("T")

CLOSE_CHECK_INTERVAL = 0.2
"""Seconds between two checks whether Ctrl-C was pressed, while a page is downloaded."""

OVERRIDDEN: dict[str, Any] = {
    # Only what downloads count. The rest of a project may write files, open databases or use the
    # queue of a crawl that is running.
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
}
"""The settings of a project that do not count, and their values here."""


class Session:
    """The network, for one run of a subcommand."""

    def __init__(self, crawler: Any, *, keep_bodies: bool = False) -> None:
        middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if middleware is None:
            raise CommandError(
                "scrapy_rep.RobotsTxtMiddleware is not enabled: check DOWNLOADER_MIDDLEWARES"
            )
        self._crawler = crawler
        self._middleware: RobotsTxtMiddleware = middleware
        self._cache: PolicyCache = middleware.policy_cache
        self._store = without_passwords(read_settings(crawler).store)
        self._interrupts = noted_interrupts()  # `run` restores the handler
        if keep_bodies:
            self._cache.bodies = {}

    @property
    def is_closing(self) -> bool:
        """Whether Ctrl-C was pressed, so that nothing more is fetched."""
        return bool(self._interrupts) or self._cache.is_closing or not self._crawler.crawling

    def tdm_rule(self, response: Response) -> TdmRule | None:
        """Return the rule of the TDM file for a page, if REP_TDMREP is on and the file has one."""
        rule_of = self._middleware.tdm_rule
        return None if rule_of is None else rule_of(response)

    async def get_policy(self, origin: str, page_url: str | None = None) -> Policy | None:
        """Return the policy of an origin (``scheme://host[:port]``) when it is known.

        ``page_url`` is the page that needs it, if there is one. Returns None if the session closes
        before.
        """
        request = Request(page_url or robots_txt_url(origin))
        found = await self._cache.wait_for(origin, request)
        return None if found is None or self._is_unknown(found) else self._policy(found)

    async def get_policies(
        self,
        origins: Iterable[str],
        done: Callable[[], object] = lambda: None,
        *,
        page_url: str | None = None,
    ) -> dict[str, Policy]:
        """Return the policies of origins, which are fetched at the same time.

        ``done`` is called for each. ``page_url`` is the page that needs them, if there is one.
        Those that are not known when the session closes are missing.
        """
        found: dict[str, Policy] = {}

        async def get(origin: str) -> None:
            policy = await self.get_policy(origin, page_url)
            if policy is not None:
                found[origin] = policy
            done()

        tasks = [deferred_from_coro(get(origin)) for origin in origins]
        ended: Any = await maybe_deferred_to_future(DeferredList(tasks, consumeErrors=True))
        for is_success, result in ended:
            if not is_success:
                result.raiseException()
        return found

    async def download(self, request: Request) -> Response:
        """Return the response to a request, which passes all downloader middlewares.

        Raises KeyboardInterrupt if the session closes before. Otherwise Scrapy would wait for the
        response.
        """
        download = deferred_from_coro(self._crawler.engine.download_async(request))
        is_cancelled = False

        def check() -> None:
            nonlocal is_cancelled
            if self.is_closing and not is_cancelled:
                is_cancelled = True
                download.cancel()

        looping = create_looping_call(check)
        looping.start(CLOSE_CHECK_INTERVAL, now=False)
        try:
            response: Response = await maybe_deferred_to_future(download)
        except (asyncio.CancelledError, CancelledError):
            if is_cancelled:
                raise KeyboardInterrupt from None
            raise  # Scrapy 2.14 cancels a download that is too large
        finally:
            looping.stop()
        return response

    async def pause(self) -> None:
        """Let Scrapy handle what has happened. Call this between two pieces of long work."""
        await sleep(0)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Raise KeyboardInterrupt at once if Ctrl-C is pressed, as while a file is read.

        Raises it at the start if Ctrl-C was pressed before.
        """
        with raised_interrupts():
            if self._interrupts:
                raise KeyboardInterrupt
            yield

    def _policy(self, origin: Origin) -> Policy:
        bodies = self._cache.bodies
        return of_origin(
            origin,
            lambda url, tokens: self._middleware.verdict(origin, url, tokens),
            body=None if bodies is None else bodies.get(origin.key),
            store=str(self._store) if self._store else None,
        )

    def _is_unknown(self, origin: Origin) -> bool:
        return self._cache.is_closing and not origin.fetched_at


class SessionSpider(Spider):
    """Runs a coroutine function with a :class:`Session`, and requests nothing."""

    name = "scrapy-rep"

    def __init__(self, outcome: Outcome[Any], *, keep_bodies: bool = False, **kw: Any) -> None:
        super().__init__(**kw)
        self._outcome = outcome
        self._keep_bodies = keep_bodies
        self._is_working = False
        self._waiters: list[Deferred[None]] = []

    async def start(self) -> AsyncIterator[Any]:
        # Scrapy cancels this coroutine at Ctrl-C. The work runs on, to end with what it has.
        self.crawler.signals.connect(self._on_closed, signal=signals.spider_closed)
        self._is_working = True
        deferred_from_coro(self._work())
        await self._wait_for_work()
        requests: tuple[Request, ...] = ()
        for request in requests:  # none: the session makes its own
            yield request

    async def _work(self) -> None:
        outcome = self._outcome
        outcome.is_started = True
        try:
            session = Session(self.crawler, keep_bodies=self._keep_bodies)
            if session.is_closing:  # Ctrl-C while Scrapy started: not all versions end then
                raise KeyboardInterrupt
            outcome.result = await outcome.work(session)
        # Scrapy would log it, with a traceback. KeyboardInterrupt comes from `interruptible`.
        except (Exception, KeyboardInterrupt) as error:
            outcome.error = error
        else:
            outcome.is_finished = True
        self._is_working = False
        while self._waiters:
            fire(self._waiters.pop(), None)

    async def _wait_for_work(self) -> None:
        if self._is_working:
            waiter: Deferred[None] = Deferred()
            self._waiters.append(waiter)
            await maybe_deferred_to_future(waiter)

    async def _on_closed(self, reason: str) -> None:
        self._outcome.close_reason = reason
        await self._wait_for_work()


class Outcome(Generic[T]):
    """What happened to the work of a session."""

    def __init__(self, work: Callable[[Session], Awaitable[T]]) -> None:
        self.work = work
        self.is_started = False
        """Whether the work has begun. Before, only the settings can be wrong."""
        self.result: T | None = None
        self.error: BaseException | None = None
        self.is_finished = False
        self.close_reason: str | None = None
        """Why Scrapy closed the spider. None: it did not run."""

    def get(self) -> T:
        """Return the result of the work. Raises its error, and KeyboardInterrupt after Ctrl-C."""
        if self.error is not None:
            if self.is_started or not isinstance(self.error, Exception):
                raise self.error
            raise _start_error(self.error) from self.error
        if self.is_finished:
            result: Any = self.result
            return result  # type: ignore[no-any-return]
        # Without an error, only Ctrl-C ends Scrapy before it runs the spider.
        if self.close_reason in (None, "shutdown"):
            raise KeyboardInterrupt
        raise CommandError("Scrapy ended before the work did", ExitCode.UNKNOWN)


def run(
    settings: ScrapySettings,
    work: Callable[[Session], Awaitable[T]],
    *,
    log_level: str | None = None,
    keep_bodies: bool = False,
) -> T:
    """Start Scrapy, run ``work`` with a session, and return its result.

    ``keep_bodies``: keep the robots.txt files as they were received. Raises the error of the work,
    :class:`CommandError` for an unusable setting, and KeyboardInterrupt after Ctrl-C.
    """
    outcome = Outcome(work)
    try:
        settings = session_settings(settings)
        settings.set("LOG_ENABLED", log_level is not None, priority="cmdline")
        settings.set("LOG_LEVEL", log_level or "WARNING", priority="cmdline")
        process_class = AsyncCrawlerProcess if uses_async_process(settings) else CrawlerProcess
        process = process_class(settings)
        crawl: Any = process.crawl(SessionSpider, outcome, keep_bodies=keep_bodies)
        if isinstance(crawl, Deferred):
            crawl.addErrback(_keep_error, outcome)
        else:
            crawl.add_done_callback(lambda task: _keep_error_of_task(task, outcome))
        with restored_handlers():
            process.start()
    except Exception as error:  # of what the settings name
        if outcome.is_started:
            raise
        raise _start_error(error) from error
    return outcome.get()


def session_settings(settings: ScrapySettings) -> ScrapySettings:
    """Return the settings of a project as a session uses them."""
    settings = settings.copy()
    settings.setdict(OVERRIDDEN, priority="cmdline")
    addons = settings.getdict("ADDONS")
    if not any(load_object(each) is Addon for each in addons):
        settings.set("ADDONS", {**addons, Addon: 500}, priority="cmdline")
    return settings


def _keep_error(failure: Failure, outcome: Outcome[Any]) -> None:
    _keep(failure.value, outcome)


def _keep_error_of_task(task: Any, outcome: Outcome[Any]) -> None:
    if not task.cancelled():
        _keep(task.exception(), outcome)


def _keep(error: BaseException | None, outcome: Outcome[Any]) -> None:
    """Keep the error that stopped Scrapy, unless the work has one."""
    if error is not None and outcome.error is None:
        outcome.error = error


def _start_error(error: Exception) -> CommandError:
    """Return the error for settings with which Scrapy does not start."""
    if isinstance(error, (CommandError, SettingError)):
        return CommandError(str(error))
    return CommandError(
        f"Scrapy does not start with these settings: {type(error).__name__}: {error}"
    )
