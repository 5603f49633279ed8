"""What is said when a crawl starts: what stops it, and what its author may not have meant."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.downloadermiddlewares.stats import DownloaderStats

from .exceptions import SettingError
from .protocol.vocabularies import nearest_use
from .settings import downloader_middlewares, unknown_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

    from .settings import Settings

logger = logging.getLogger(__name__)

LATER = (DownloaderStats, HttpCacheMiddleware)
"""What counts requests, or answers them, before a middleware that stands after it sees them."""


@contextmanager
def abort_on_setting_error(crawler: Crawler) -> Iterator[None]:
    """Let a :class:`SettingError` end the crawl, with one line in the log.

    The caller of the crawl gets the error.
    """
    try:
        yield
    except SettingError as error:
        logger.error(
            "%(error)s. The crawl does not start.",
            {"error": error},
            extra={"spider": crawler.spider},
        )
        # Scrapy 2.14 takes a crawl for failed, and has an exit status, where there is no spider.
        crawler.spider = None
        _mark_as_reported()
        raise


def _mark_as_reported() -> None:
    """Keep asyncio from logging the error again, with a traceback, if nobody awaits the crawl.

    It does not where somebody has looked at the result of the task.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop is running: a crawl that is a Deferred
        return
    # Only in a task that Scrapy has made for a crawl: one of the caller's may fail otherwise.
    frame = getattr(task.get_coro(), "cr_frame", None) if task is not None else None
    if task is not None and frame is not None and frame.f_globals["__name__"] == "scrapy.crawler":
        task.add_done_callback(lambda done: done.cancelled() or done.exception())


def warn_about_configuration(crawler: Crawler, settings: Settings, middleware: type) -> None:
    """Warn, once each, of what a crawl is set up with and its author may not have meant.

    ``middleware``: the class of ours that obeys robots.txt.
    """
    for name, nearest in unknown_settings(crawler):
        hint = f" Did you mean {nearest}?" if nearest else ""
        _warn(crawler, f"There is no setting {name}: it is ignored.{hint}")
    for name in settings.require_usage:
        if (nearest := nearest_use(name)) != name:
            hint = f" Did you mean {nearest}?" if nearest else ""
            _warn(
                crawler,
                f"REP_REQUIRE_USAGE has {name}, which no vocabulary defines: no page refuses it."
                f"{hint}",
            )
    if settings.has_default_agent:
        _warn(
            crawler,
            "USER_AGENT is that of Scrapy itself: sites cannot tell who crawls them, and the rules "
            "for Scrapy hold. Set USER_AGENT to a name of your own, with an address where you can "
            "be reached.",
        )
    if crawler.get_downloader_middleware(BuiltInMiddleware) is not None:
        _warn(
            crawler,
            "Scrapy's own RobotsTxtMiddleware is enabled, too: each robots.txt is fetched twice, "
            "and what either of them disallows is dropped. Set it to None in "
            "DOWNLOADER_MIDDLEWARES, or use scrapy_rep.Addon.",
        )
    before = _before(middleware, downloader_middlewares(crawler))
    earlier = [other.__name__ for other in LATER if other in before]
    if earlier:
        _warn(
            crawler,
            f"{middleware.__name__} stands after {' and '.join(earlier)} in "
            "DOWNLOADER_MIDDLEWARES: these count or answer requests before robots.txt is asked. "
            "Its place is 100.",
        )


def _before(middleware: type, enabled: list[type]) -> list[type]:
    return enabled[: enabled.index(middleware)] if middleware in enabled else []


def _warn(crawler: Crawler, message: str) -> None:
    logger.warning(message, extra={"spider": crawler.spider})
