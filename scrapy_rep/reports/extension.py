"""The extension that writes the report of a crawl (REP_REPORT).

While the crawl runs, it keeps a part file. When the spider closes, it writes the report. A failure
to write is logged once, and the crawl goes on.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from ..atomic_write import write_atomically
from ..crawl.middleware import RobotsTxtMiddleware
from ..pages.access_terms import AccessTermsMiddleware
from ..pages.middleware import PageDirectivesMiddleware
from ..protocol.agents import product_tokens
from ..protocol.printable import printable
from ..scheduling.clock import Clock
from ..scrapy_settings import robotstxt_obey, scrapy_settings
from ..settings import changed_settings, read_settings
from ..startup import abort_on_setting_error
from ..stores import StoreError
from ..stores.threads import ThreadPool
from . import practices
from .destination import (
    PART_SUFFIX,
    Target,
    destination_of,
    has_other_parts,
    new_run_id,
)
from .files import PartFile, turns
from .model import Run, Time
from .reading import ReportError, merge_reports, read_report
from .recorder import CrawlRecorder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from .model import Report

logger = logging.getLogger(__name__)

WRITE_INTERVAL = 20.0
"""Seconds between two writes of the part file. A process that is killed loses what happened since
the last one."""

CLOSE_POLL_INTERVAL = 0.02
"""Seconds between two checks whether the last write has ended."""

DOWNLOAD_STATS = (
    "downloader/request_method_count/",
    "downloader/response_status_count/",
    "downloader/exception_type_count/",
)
"""The stats of Scrapy that the report has, by the start of their names."""

MAX_DOWNLOAD_STATS = 100
"""How many of them the report has at most. A site chooses its statuses."""

MAX_MESSAGE = 500
"""Characters of a message about a file that cannot be read."""


class CrawlReport:
    """Records a crawl, and writes its report. The add-on enables it if REP_REPORT is set."""

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        settings = read_settings(crawler)
        if not settings.report:
            raise NotConfigured
        if not robotstxt_obey(crawler):
            raise NotConfigured("REP_REPORT writes no report, because ROBOTSTXT_OBEY is off")
        self._crawler = crawler
        self._stats = crawler.stats
        self._clock = clock = Clock()
        now = clock.time()
        run_id = new_run_id(now)
        self._destination = destination_of(
            settings.report, crawler.spider, run_id, now, settings.jobdir
        )
        user_agent = _text(settings.user_agent(None))
        run = Run(
            run_id,
            str(getattr(crawler.spider, "name", "")),
            _software(),
            user_agent,
            list(product_tokens(settings.user_agent(None))),
            {name: repr(value) for name, value in changed_settings(settings).items()},
            Time(now),
            Time(now),
            scrapy_settings=scrapy_settings(crawler, practices.SETTINGS),
        )
        self._recorder = CrawlRecorder(settings, clock, run)
        self._part = PartFile(self._destination.part)
        self._threads = ThreadPool(1)
        self._is_recording = False
        self._is_writing = False
        self._has_failed = False
        self._looping = create_looping_call(self._write_part_soon)
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.

        Raises NotConfigured without REP_REPORT, and :class:`~scrapy_rep.exceptions.SettingError`
        for an unusable setting or a path that cannot be written.
        """
        with abort_on_setting_error(crawler):
            return cls(crawler)

    async def _on_spider_opened(self) -> None:
        robots = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        if robots is None:
            logger.warning(
                "REP_REPORT writes no report, because scrapy_rep.RobotsTxtMiddleware is not "
                "enabled. Use scrapy_rep.Addon.",
                extra={"spider": self._crawler.spider},
            )
            return
        self._is_recording = True
        robots.record(self._recorder)
        pages: Any = self._crawler.get_spider_middleware(PageDirectivesMiddleware)
        terms: Any = self._crawler.get_downloader_middleware(AccessTermsMiddleware)
        for middleware in (pages, terms):
            if middleware is not None:
                middleware.recorder = self._recorder
        self._looping.start(WRITE_INTERVAL, now=True)

    async def _on_spider_closed(self, reason: str) -> None:
        if not self._is_recording:
            return
        if self._looping.running:
            self._looping.stop()
        while self._is_writing:
            await self._clock.sleep(CLOSE_POLL_INTERVAL)
        run = self._recorder.run
        run.ended_at, run.finish_reason = Time(self._clock.time()), reason
        try:
            await self._write_part()
            await self._write_report()
        finally:
            await self._threads.close(_do_nothing)

    # The part file.

    def _write_part_soon(self) -> None:
        if not self._is_writing:
            deferred_from_coro(self._write_part())

    async def _write_part(self) -> None:
        """Write what has changed since the last write."""
        self._is_writing = True
        try:
            self._recorder.run.sent_is_known = self._recorder.is_complete()
            self._recorder.run.downloads = self._downloads()
            if self._part.needs_all:
                self._recorder.mark_all_as_changed()
            records: list[str] = []
            for turn in turns(self._recorder.changes()):
                records += turn
                await self._clock.sleep(0)
            await self._threads.run(self._part.write, self._recorder.head(), records, shield=True)
        except (OSError, StoreError) as error:
            self._part.needs_all = True
            self._report_failure(self._part.path, error)
        finally:
            self._is_writing = False

    def _downloads(self) -> dict[str, int]:
        """Return some stats of Scrapy's downloader."""
        found = {
            name.removeprefix("downloader/"): value
            for name, value in self._stats.get_stats().items()
            if name.startswith(DOWNLOAD_STATS) and type(value) is int
        }
        return {name: found[name] for name in sorted(found)[:MAX_DOWNLOAD_STATS]}

    def _report_failure(self, path: Path, error: Exception) -> None:
        self._stats.inc_value("robotstxt/report_error_count")
        if self._has_failed:
            return
        self._has_failed = True
        logger.error(
            "The report of the crawl cannot be written to %(path)s (REP_REPORT): %(error)s. The "
            "crawl goes on. Later failures are counted in the stat robotstxt/report_error_count.",
            {"path": path, "error": error},
            extra={"spider": self._crawler.spider},
        )

    # The report.

    async def _write_report(self) -> None:
        try:
            report = await self._threads.run(self._merged_report)
        except StoreError as error:  # it took too long
            self._report_failure(self._part.path, error)
            return
        is_written = True
        for target in self._destination.targets:
            try:
                await self._threads.run(_write, target, report)
            except (OSError, StoreError) as error:
                self._report_failure(target.path, error)
                is_written = False
            else:
                logger.info(
                    "The report of the crawl is %(path)s.",
                    {"path": target.path},
                    extra={"spider": self._crawler.spider},
                )

        if is_written and not self._destination.is_job:
            with suppress(OSError, StoreError):
                await self._threads.run(self._remove_part)

    def _remove_part(self) -> None:
        """Remove the part file, whose content the report has.

        It stays if another run writes the same report: then only the parts have all runs. A part
        file of a run that is in progress has been written since the last interval.
        """
        since = self._recorder.run.started_at - 2 * WRITE_INTERVAL
        if not has_other_parts(self._part.path, since):
            self._part.path.unlink(missing_ok=True)

    def _merged_report(self) -> Report:
        """Return the report of this run, and of the earlier runs of the job."""
        own = self._recorder.report()
        if not self._destination.is_job:
            return own
        found = [(self._part.path, own)]
        for path in sorted(self._part.path.parent.glob(f"*{PART_SUFFIX}")):
            if path == self._part.path:
                continue
            try:
                found.append((path, read_report(path)))
            except ReportError as error:
                self._note(str(error))
        return merge_reports(found, self._note)

    def _note(self, message: str) -> None:
        logger.warning(
            "The report of the crawl does not have all runs of the job: %(message)s.",
            {"message": printable(message, MAX_MESSAGE)},
            extra={"spider": self._crawler.spider},
        )


def _write(target: Target, report: Report) -> None:
    text = target.render(report)
    write_atomically(target.path, text.encode("utf-8", "backslashreplace"))


def _do_nothing() -> None:
    """Do nothing: the threads have no connection to close."""


def _software() -> str:
    # The package is above this module, and is imported already.
    version = sys.modules[__name__.partition(".")[0]].__version__
    return f"scrapy-rep {version}, Scrapy {scrapy.__version__}"


def _text(user_agent: str | bytes | Sequence[str]) -> str:
    if isinstance(user_agent, bytes):
        return user_agent.decode("latin-1")
    return user_agent if isinstance(user_agent, str) else ", ".join(user_agent)
