"""Opens what keeps the events of a crawl: its report (REP_REPORT), and its archive (REP_ARCHIVE).

Both are in :mod:`scrapy_rep.reports`, which no other crawl imports.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.misc import load_object

from ..exceptions import SettingError
from ..frontier.clock import Clock
from ..settings import Settings

if TYPE_CHECKING:
    from ..reports.archive import Archive
    from ..reports.event_log import CrawlLog


def open_recordings(
    crawler: Crawler, settings: Settings, clock: Clock
) -> tuple[CrawlLog | None, Archive | None]:
    """Open the event log of a crawl, which writes its report, and its archive, if they are set.

    The report has the hash of the archive, so it closes the archive.

    Raises :class:`SettingError` for a path that cannot be written, and if a library is missing.
    """
    log = archive = None
    if settings.archive is not None:
        spider = crawler.spider or crawler.spidercls
        path = path_from("REP_ARCHIVE", settings.archive, spider, clock.time())
        values = path, spider.name, settings, crawler.stats, clock
        archive = _opened("REP_ARCHIVE", settings.archive, "archive.Archive", *values)
        crawler.signals.connect(archive.start, signal=signals.spider_opened)
        if not settings.report:
            crawler.signals.connect(archive.close, signal=signals.spider_closed)
    if settings.report:
        value, arguments = ", ".join(settings.report), (crawler, settings, clock, archive)
        log = _opened("REP_REPORT", value, "event_log.CrawlReport", *arguments)
    return log, archive


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
