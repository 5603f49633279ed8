"""Opens what keeps the events of a crawl: its report (REP_REPORT), and its archive (REP_ARCHIVE).

Both are in :mod:`scrapy_rep.reports`, which no other crawl imports.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.utils.misc import load_object

from ..exceptions import SettingError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from ..frontier.clock import Clock
    from ..reports.archive import Archive
    from ..reports.event_log import CrawlLog
    from ..settings import Settings


def open_event_log(crawler: Crawler, settings: Settings, clock: Clock) -> CrawlLog | None:
    """Open the event log of a crawl, which writes its report; None without REP_REPORT.

    Raises :class:`SettingError` for a path that cannot be written, and if a library is missing.
    """
    if not settings.report:
        return None
    try:
        open_log = load_object("scrapy_rep.reports.crawl_report.CrawlReport")
    except ModuleNotFoundError as error:
        raise SettingError(
            f"REP_REPORT needs the package {error.name}: pip install scrapy-rep[report]"
        ) from None
    log: CrawlLog = open_log(crawler, settings, clock)
    return log


def open_archive(crawler: Crawler, settings: Settings, clock: Clock) -> Archive | None:
    """Open the archive of a crawl; None without REP_ARCHIVE.

    Raises :class:`SettingError` for a file that cannot be used, and if warcio is not installed.
    """
    if settings.archive is None:
        return None
    try:
        archive_type = load_object("scrapy_rep.reports.archive.Archive")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "warcio":
            raise
        raise SettingError(
            f"REP_ARCHIVE is {settings.archive!r}, which needs the package warcio: "
            "pip install warcio"
        ) from None
    name = crawler.spider.name if crawler.spider is not None else crawler.spidercls.name
    path = path_of(settings.archive, name)
    assert crawler.stats is not None
    try:
        archive: Archive = archive_type(path, name, settings, crawler.stats, clock)
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise SettingError(
            f"REP_ARCHIVE is {settings.archive!r}, which cannot be used: {path}: {reason}"
        ) from None
    crawler.signals.connect(archive.start, signal=signals.spider_opened)
    crawler.signals.connect(archive.close, signal=signals.spider_closed)
    return archive


def path_of(template: str, spider: str) -> str:
    """Return the path of an archive. The parameters are named as those of Scrapy's FEEDS."""
    now = time.strftime("%Y-%m-%dT%H-%M-%S+00-00", time.gmtime())
    return template % {"name": spider, "time": now, "pid": os.getpid()}
