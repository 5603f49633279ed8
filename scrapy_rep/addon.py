"""One line in settings.py turns it all on: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from .crawl.middleware import RobotsTxtMiddleware
from .fetch.ftp import FTPDownloadHandler
from .pages.middleware import PageDirectivesMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PRIORITY = 100
"""Where Scrapy's own middleware stands, and where users expect it."""
PAGE_PRIORITY = 40
"""Before Scrapy's HttpErrorMiddleware (50), so that error pages are annotated as well."""


class Addon:
    """Replaces Scrapy's robots.txt middleware, and turns ROBOTSTXT_OBEY on.

    Adds the spider middleware for what pages say, and gives Scrapy's download handler for FTP a
    limit. What a project or a spider says stands: ROBOTSTXT_OBEY where it is set, our middlewares
    where they are already among DOWNLOADER_MIDDLEWARES and SPIDER_MIDDLEWARES, everything else
    there, and a download handler for FTP of its own.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy before the crawl starts."""
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        middlewares = settings.getdict("DOWNLOADER_MIDDLEWARES")
        priority = PRIORITY
        for written in tuple(middlewares):
            if load_object(written) is BuiltInMiddleware:
                place = middlewares.pop(written)
                priority = PRIORITY if place is None else place
        # By its path: that is how Scrapy's base has it, and Scrapy 2.14 compares the keys as text.
        middlewares[global_object_name(BuiltInMiddleware)] = None
        _put(settings, "DOWNLOADER_MIDDLEWARES", middlewares, RobotsTxtMiddleware, priority)
        middlewares = settings.getdict("SPIDER_MIDDLEWARES")
        _put(settings, "SPIDER_MIDDLEWARES", middlewares, PageDirectivesMiddleware, PAGE_PRIORITY)
        written = settings.getwithbase("DOWNLOAD_HANDLERS").get("ftp")
        if written is not None and load_object(written) is BuiltInHandler:
            handlers = {**settings.getdict("DOWNLOAD_HANDLERS"), "ftp": FTPDownloadHandler}
            _set(settings, "DOWNLOAD_HANDLERS", handlers)


def _put(
    settings: BaseSettings,
    name: str,
    middlewares: dict[Any, int | None],
    ours: type,
    priority: int,
) -> None:
    """Set these middlewares, with ours among them."""
    if not any(load_object(written) is ours for written in middlewares):
        middlewares[ours] = priority
    _set(settings, name, middlewares)


def _set(settings: BaseSettings, name: str, value: dict[Any, Any]) -> None:
    """Set it with the priority that it has."""
    settings.set(name, value, settings.getpriority(name) or 0)
