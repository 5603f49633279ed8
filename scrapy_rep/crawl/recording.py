"""Opens what keeps the events of a crawl: its report (REP_REPORT), and its archive (REP_ARCHIVE).

Both are in :mod:`scrapy_rep.reports`, which no other crawl imports.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, cast

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from ..exceptions import SettingError
from ..frontier.clock import Clock
from ..settings import Settings

if TYPE_CHECKING:
    from ..reports.archive import Archive
    from ..reports.event_log import CrawlLog


def open_event_log(
    crawler: Crawler, settings: Settings, clock: Clock, archive: Archive | None
) -> CrawlLog | None:
    """Open the event log of a crawl, which writes its report; None without REP_REPORT.

    The report has the hash of the archive, so it closes the archive.

    Raises :class:`SettingError` for a path that cannot be written, and if a library is missing.
    """
    if not settings.report:
        return None
    value, arguments = ", ".join(settings.report), (crawler, settings, clock, archive)
    return cast("CrawlLog", _opened("REP_REPORT", value, "event_log.CrawlReport", *arguments))


def open_archive(crawler: Crawler, settings: Settings, clock: Clock) -> Archive | None:
    """Open the archive of a crawl; None without REP_ARCHIVE.

    Raises :class:`SettingError` for a file that cannot be made, and if warcio is not installed.
    """
    if settings.archive is None:
        return None
    spider = crawler.spider or crawler.spidercls
    path = path_from("REP_ARCHIVE", settings.archive, spider, clock.time())
    arguments = path, spider.name, settings, crawler.stats, clock
    archive: Archive = _opened("REP_ARCHIVE", settings.archive, "archive.Archive", *arguments)
    crawler.signals.connect(archive.start, signal=signals.spider_opened)
    if not settings.report:
        crawler.signals.connect(archive.close, signal=signals.spider_closed)
    return archive


def _opened(setting: str, value: str, name: str, *arguments: object) -> Any:
    """Return an object of a class in reports/. Raises :class:`SettingError`."""
    try:
        return load_object(f"scrapy_rep.reports.{name}")(*arguments)
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


def user_agent_text(settings: Settings) -> str:
    """Return the user agent that selects the rules: a header, or the tokens of a setting."""
    agent = settings.user_agent(None)
    if isinstance(agent, bytes):
        return agent.decode("latin-1")
    return agent if isinstance(agent, str) else ", ".join(agent)


def path_from(setting: str, template: str, spider: object, now: float) -> str:
    """Return the path that a setting names, with the parameters of Scrapy's FEEDS.

    ``%(pid)s`` is the number of the process. Raises :class:`SettingError`.
    """
    name = str(getattr(spider, "name", None) or "spider")
    time = f"{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%dT%H-%M-%S+00-00}"
    try:
        return template % _Parameters(spider, name=name, time=time, pid=str(os.getpid()))
    except KeyError as error:
        problem = f"the spider has no attribute {error}"
    except (TypeError, ValueError) as error:
        problem = f"it is not a template such as '%(name)s.json': {error}"
    raise SettingError(f"{setting} is {template!r}: {problem}")


class _Parameters(dict[str, str]):
    """The values for ``%(name)s`` in a path. Any other name is an attribute of the spider."""

    def __init__(self, spider: object, **values: str) -> None:
        super().__init__(values)
        self._spider = spider

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._spider, name)
        except AttributeError:
            raise KeyError(name) from None
