"""Opens what keeps the events of a crawl: its report (REP_REPORT), its archive (REP_ARCHIVE)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.crawler import Crawler

from ..clock import Clock
from ..exceptions import SettingError
from ..settings import Settings
from .files import path_from

if TYPE_CHECKING:
    from .archive import Archive
    from .event_log import CrawlLog


def open_recordings(
    crawler: Crawler, settings: Settings, clock: Clock
) -> tuple[CrawlLog | None, Archive | None]:
    """Open the event log of a crawl, which writes its report, and its archive, if they are set.

    The report has the hash of the archive, so it closes the archive. Raises :class:`SettingError`.
    """
    assert crawler.stats is not None
    log = archive = None
    if settings.archive is not None:
        spider = crawler.spider or crawler.spidercls
        with setting_errors("REP_ARCHIVE", settings.archive):
            from .archive import Archive

            path = path_from("REP_ARCHIVE", settings.archive, spider, clock.time())
            archive = Archive(path, spider.name, settings, crawler.stats)
        if not settings.report:
            crawler.signals.connect(archive.close, signal=signals.spider_closed)
    if settings.report:
        with setting_errors("REP_REPORT", ", ".join(settings.report)):
            from .event_log import CrawlReport

            log = CrawlReport(crawler, settings, clock, archive)
    return log, archive


@contextmanager
def setting_errors(setting: str, value: str) -> Iterator[None]:
    """Raise :class:`SettingError` for a path that cannot be written and for a missing library."""
    try:
        yield
        return
    except SettingError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        problem = f"it needs the package {package}: pip install {package}"
    except OSError as error:
        problem = f"{error.filename} cannot be written: {error.strerror or error}"
    except ValueError as error:  # a NUL in the path
        problem = f"it cannot be written: {error}"
    raise SettingError(f"{setting} is {value!r}: {problem}")
