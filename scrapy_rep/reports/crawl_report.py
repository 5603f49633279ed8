"""Keeps the event log of a crawl, and writes its report when the spider closes (REP_REPORT).

A failure to write is logged once, and the crawl continues.
"""

from __future__ import annotations

import os
from contextlib import suppress
from errno import EACCES, EISDIR, ELOOP
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR, S_ISLNK
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
from .background_file import BackgroundFile, new_file
from .event_log import CrawlLog
from .reading import ReportError, read_reports
from .records import MAX_NAMES, MAX_TEXT, Run, json_text, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.crawler import Crawler

    from ..frontier.clock import Clock
    from ..settings import Settings
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

    def __init__(self, crawler: Crawler, settings: Settings, clock: Clock) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._clock = clock
        now = clock.time()
        run_id = f"{utc(now):%Y%m%dT%H%M%S}-{os.getpid()}-{token_hex(4)}"
        self._targets, self._log_path = paths_of(
            settings.report, crawler.spider, run_id, now, settings.jobdir
        )
        self._is_job = bool(settings.jobdir)
        self._is_abandoned = False
        self._has_failed = False
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
            scrapy_settings=_cut(scrapy_settings(crawler, SETTINGS)),
        )
        descriptor, _ = new_file(str(self._log_path))
        self._file = BackgroundFile(descriptor)
        super().__init__(run, settings, clock, self._file)
        self._looping = create_looping_call(self._write)
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signal=signals.spider_closed)

    async def _on_spider_opened(self) -> None:
        self._looping.start(WRITE_INTERVAL, now=True)

    def _write(self) -> None:
        self.flush()
        for error in self._file.failures():
            self._report_failure(self._log_path, error)

    async def _on_spider_closed(self, reason: str) -> None:
        if self._looping.running:
            self._looping.stop()
        self.end(self._downloads(), reason)
        try:
            failures = await self._file.call(self._write_report, self._clock, REPORT_TIMEOUT)
            await self._file.close(self._clock)
        # Whatever it is, the crawl has to end as without a report.
        except Exception as error:
            self._is_abandoned = True
            self._file.abandon()
            failures = [(self._log_path, error)]
        # What hindered the log comes first: the report may lack a log because of it.
        earlier = [(self._log_path, error) for error in self._file.failures()]
        for path, failure in [*earlier, *failures]:
            self._report_failure(path, failure)

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
            "crawl continues. Later failures are counted in the stat robotstxt/report_error_count.",
            {"path": path, "error": printable(str(error) or type(error).__name__, MAX_MESSAGE)},
            extra={"spider": self._crawler.spider},
        )

    # The thread of the file calls these.

    def _write_report(self) -> list[tuple[Path, Exception]]:
        """Write the report. Returns the paths that cannot be written."""
        logs = [self._log_path]
        if self._is_job:
            logs = sorted(self._log_path.parent.glob(f"*{LOG_SUFFIX}"))
        try:
            report = read_reports(logs, self._note, skip=self._is_job)
        except ReportError as error:
            return [(self._log_path, error)]
        failures: list[tuple[Path, Exception]] = []
        for path in self._targets:
            try:
                self._write_target(path, report)
            # One form that fails must not cost the other.
            except Exception as error:
                failures.append((path, error))
        return failures

    def _write_target(self, path: Path, report: Report) -> None:
        text = RENDERERS[path.suffix.lower()](report)
        if self._is_abandoned:  # the crawl has said that it is not written
            return
        _check_file(path)
        write_atomically(path, text.encode("utf-8", "backslashreplace"))
        logger.info(
            "The report of the crawl is %(path)s.",
            {"path": path},
            extra={"spider": self._crawler.spider},
        )

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
    """Return the paths of the reports of a run and of its event log, after creating their folders.

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
        targets.append(path)
        _check_folder(template, path)
    if jobdir:
        log = Path(jobdir, JOB_FOLDER, f"{run_id}{LOG_SUFFIX}")
    else:
        first = targets[0]
        # A file name has at most 255 bytes.
        stem = os.fsencode(first.stem)[:150].decode(errors="ignore")
        log = first.with_name(f"{stem}.{run_id}{LOG_SUFFIX}")
    _check_folder(templates[0], log)
    return targets, log


def _check_folder(template: str, path: Path) -> None:
    """Create the folder of a file, and check that the file can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_file(path)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(EACCES, "its folder cannot be written to")
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _error(template, f"{path} cannot be written: {problem}") from None


def _check_file(path: Path) -> None:
    """Raise OSError for a directory, and for a symbolic link, which another user may have made."""
    with suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if S_ISDIR(mode):
            raise IsADirectoryError(EISDIR, "it is a directory")
        if S_ISLNK(mode):
            raise OSError(ELOOP, "it is a symbolic link: use the path of the file itself")


def _error(template: str, problem: str) -> SettingError:
    return SettingError(f"REP_REPORT is {template!r}: {problem}")
