"""Keeps the event log of a crawl, and writes its report when the spider closes (REP_REPORT).

A failure to write is logged once, and the crawl continues.
"""

from __future__ import annotations

import os
from errno import EACCES, EISDIR
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import scrapy
from scrapy import signals
from scrapy.utils.asyncio import create_looping_call

from .. import __version__
from ..atomic_write import write_atomically
from ..crawl.recording import path_of, user_agent_text
from ..exceptions import SettingError
from ..logs import get_logger
from ..protocol.agents import product_tokens
from ..protocol.printable import cut, printable
from ..settings import changed_settings, scrapy_settings
from .answers import SETTINGS
from .background_file import BackgroundFile
from .event_log import CrawlLog
from .reading import read_reports
from .records import MAX_NAMES, MAX_TEXT, Run, json_text, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.crawler import Crawler

    from ..frontier.clock import Clock
    from ..settings import Settings
    from .archive import Archive
    from .records import Report

logger = get_logger(__name__)

LOG_SUFFIX = ".events.gz"

JOB_FOLDER = "robots-report"
"""The folder in JOBDIR for the event logs of all runs of a job."""

WRITE_INTERVAL = 5.0
"""Seconds between two writes of the event log. A process that is killed loses what happened since
the last one."""

REPORT_TIMEOUT = 600.0
"""Seconds that the spider waits at most for the report before it closes. The process ends only when
the thread of the file does. A report of a million requests takes about ten."""

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


def html_text(report: Report) -> str:
    """Return the page of a report."""
    # Its libraries are loaded only when a crawl ends, and only for a page.
    from .pages import report_page

    return report_page(report)


RENDERERS: dict[str, Callable[[Report], str]] = {".json": json_text, ".html": html_text}
"""The form that each suffix of a path selects."""


class CrawlReport(CrawlLog):
    """The event log of one crawl, from which its report is written.

    Raises :class:`~scrapy_rep.exceptions.SettingError` for a path that cannot be written.
    """

    def __init__(
        self, crawler: Crawler, settings: Settings, clock: Clock, archive: Archive | None
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._clock = clock
        self._archive = archive
        now = clock.time()
        run_id = f"{utc(now):%Y%m%dT%H%M%S}-{os.getpid()}-{token_hex(4)}"
        self._targets, self._log_path = paths_of(
            settings.report, crawler.spider, run_id, now, settings.jobdir
        )
        self._is_job = bool(settings.jobdir)
        self._failures = 0
        tokens = product_tokens(settings.user_agent(None))[:MAX_NAMES]
        run = Run(
            run_id,
            str(getattr(crawler.spider, "name", "")),
            f"scrapy-rep {__version__}, Scrapy {scrapy.__version__}",
            cut(user_agent_text(settings), MAX_TEXT),
            utc(now),
            utc(now),
            [cut(token, MAX_TEXT) for token in tokens],
            _cut({name: repr(value) for name, value in changed_settings(settings).items()}),
            archive=None if archive is None else cut(archive.file.path, MAX_TEXT),
            scrapy_settings=_cut(scrapy_settings(crawler, SETTINGS)),
        )
        self._file = _opened(settings.report[0], self._log_path)
        super().__init__(run, settings, clock, self._file)
        self._looping = create_looping_call(self._write)
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signal=signals.spider_closed)

    async def _on_spider_opened(self) -> None:
        self._looping.start(WRITE_INTERVAL, now=True)

    def _write(self) -> None:
        self.flush()
        if self._file.failure and not self._failures:
            self._report_failure(self._log_path, self._file.failure)

    async def _on_spider_closed(self, reason: str) -> None:
        if self._looping.running:
            self._looping.stop()
        if self._archive is not None:
            await self._archive.close()
            self.run.archive_sha256 = self._archive.file.sha256
        self.end(self._downloads(), reason)
        failures: list[tuple[Path, object]] = []
        try:
            failures += await self._file.call(self._write_report, self._clock, REPORT_TIMEOUT)
        # Whatever it is, the crawl has to end as without a report.
        except Exception as error:
            failures.append((self._log_path, error))
        await self._file.close(self._clock)
        if self._file.failure:  # comes first: the report may lack events because of it
            failures.insert(0, (self._log_path, self._file.failure))
        for path, failure in failures:
            self._report_failure(path, failure)

    def _downloads(self) -> dict[str, int]:
        """Return some stats of Scrapy's downloader."""
        found = {
            name.removeprefix("downloader/"): value
            for name, value in self._stats.get_stats().items()
            if name.startswith(DOWNLOAD_STATS) and type(value) is int
        }
        return {name: found[name] for name in sorted(found)[:MAX_DOWNLOAD_STATS]}

    def _report_failure(self, path: Path, error: object) -> None:
        self._failures += 1
        self._stats.set_value("robotstxt/report_error_count", self._failures)
        if self._failures > 1:
            return
        logger.error(
            "The report of the crawl cannot be written to %(path)s (REP_REPORT): %(error)s. The "
            "crawl continues. Later failures are counted in the stat robotstxt/report_error_count.",
            {"path": path, "error": printable(str(error) or type(error).__name__, MAX_MESSAGE)},
            extra={"spider": self._crawler.spider},
        )

    # The thread of the file calls these.

    def _write_report(self) -> list[tuple[Path, object]]:
        """Write the report. Returns the paths that cannot be written."""
        logs = [self._log_path]
        if self._is_job:
            logs = sorted(self._log_path.parent.glob(f"*{LOG_SUFFIX}"))
        report = read_reports(logs, self._note, skip=self._is_job)
        failures: list[tuple[Path, object]] = []
        for path in self._targets:
            try:
                text = RENDERERS[path.suffix.lower()](report)
                write_atomically(path, text.encode("utf-8", "backslashreplace"))
            # One form that fails must not cost the other.
            except Exception as error:
                failures.append((path, error))
            else:
                logger.info(
                    "The report of the crawl is %(path)s.",
                    {"path": path},
                    extra={"spider": self._crawler.spider},
                )
        return failures

    def _note(self, message: str) -> None:
        logger.warning(
            "The report of the crawl does not cover all runs of the job: %(message)s.",
            {"message": printable(message, MAX_MESSAGE)},
            extra={"spider": self._crawler.spider},
        )


def _cut(settings: dict[str, str]) -> dict[str, str]:
    """Return settings with short values. They are in a line of the log, which has a limit."""
    return {name: cut(value, MAX_TEXT) for name, value in settings.items()}


def paths_of(
    templates: Sequence[str], spider: object, run_id: str, started_at: float, jobdir: str | None
) -> tuple[list[Path], Path]:
    """Return the paths of the reports of a run, after creating their folders, and of its event log.

    Raises :class:`~scrapy_rep.exceptions.SettingError` if one of them cannot be written.
    """
    targets = []
    for template in templates:
        path = Path(path_of("REP_REPORT", template, spider, started_at))
        if path.suffix.lower() not in RENDERERS:
            raise _error(template, f"it must be a path that ends in {' or '.join(RENDERERS)}")
        if path.suffix.lower() == ".html" and find_spec("jinja2") is None:
            problem = "a page needs the package jinja2: pip install scrapy-rep[report]"
            raise _error(template, problem)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(EISDIR, "it is a directory")
            if not os.access(path.parent, os.W_OK):
                raise PermissionError(EACCES, "its folder cannot be written to")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise _not_writable(template, path, error) from None
        targets.append(path)
    if jobdir:
        return targets, Path(jobdir, JOB_FOLDER, f"{run_id}{LOG_SUFFIX}")
    first = targets[0]
    # A file name has at most 255 bytes.
    stem = os.fsencode(first.stem)[:150].decode(errors="ignore")
    return targets, first.with_name(f"{stem}.{run_id}{LOG_SUFFIX}")


def _opened(template: str, log: Path) -> BackgroundFile:
    try:
        return BackgroundFile(str(log))
    except (OSError, ValueError) as error:
        raise _not_writable(template, log, error) from None


def _not_writable(template: str, path: Path, error: Exception) -> SettingError:
    problem = getattr(error, "strerror", None) or error
    return _error(template, f"{path} cannot be written: {problem}")


def _error(template: str, problem: str) -> SettingError:
    return SettingError(f"REP_REPORT is {template!r}: {problem}")
