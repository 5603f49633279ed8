"""The add-on, which enables the package: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

from __future__ import annotations

from typing import Any

from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from .fetch.ftp import FTPDownloadHandler
from .frontier.queue import OriginPriorityQueue, PriorityFirstQueue
from .middleware import RobotsTxtMiddleware
from .pages.middleware import AnswerMiddleware, PageDirectivesMiddleware

PRIORITY = 100  # of the downloader middleware, as of Scrapy's own
ANSWER_PRIORITY = 990  # of the one that sees each response before Scrapy's others
# Of the spider middleware. It is before Scrapy's HttpErrorMiddleware (50), so that error pages are
# also annotated. It gets the requests that all others have kept.
PAGE_PRIORITY = 40

QUEUES = {
    DownloaderAwarePriorityQueue: OriginPriorityQueue,
    ScrapyPriorityQueue: PriorityFirstQueue,
}
"""The priority queues of Scrapy's scheduler, each with the one of this package that does the same
and knows which requests may start."""


class Addon:
    """Replaces Scrapy's robots.txt middleware, and turns ROBOTSTXT_OBEY on.

    Also adds the spider middleware for page directives. Replaces Scrapy's FTP download handler with
    one that limits the size of a robots.txt.

    The settings of a project or spider take precedence: ROBOTSTXT_OBEY if it is set, the entries of
    DOWNLOADER_MIDDLEWARES and SPIDER_MIDDLEWARES, and another download handler for FTP.
    """

    def __repr__(self) -> str:
        return "scrapy_rep.Addon()"

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy before the crawl starts."""
        settings.set("ROBOTSTXT_OBEY", True, priority="addon")
        new: dict[str, Any] = {}
        middlewares, priority = settings.getdict("DOWNLOADER_MIDDLEWARES"), PRIORITY
        for middleware in tuple(middlewares):
            if load_object(middleware) is BuiltInMiddleware:
                value = middlewares.pop(middleware)
                priority = PRIORITY if value is None else value
        # Scrapy's base setting has the import path, and Scrapy 2.14 compares the keys as text.
        middlewares[global_object_name(BuiltInMiddleware)] = None
        if middlewares != settings.getdict("DOWNLOADER_MIDDLEWARES"):
            new["DOWNLOADER_MIDDLEWARES"] = middlewares
        handler = settings.getwithbase("DOWNLOAD_HANDLERS").get("ftp")
        if handler is not None and load_object(handler) is BuiltInHandler:
            handlers = settings.getdict("DOWNLOAD_HANDLERS")
            new["DOWNLOAD_HANDLERS"] = {**handlers, "ftp": FTPDownloadHandler}
        queue = load_object(settings["SCHEDULER_PRIORITY_QUEUE"])
        if queue in QUEUES:
            new["SCHEDULER_PRIORITY_QUEUE"] = QUEUES[queue]
        for name, value in new.items():  # each setting keeps its priority
            settings.set(name, value, settings.getpriority(name) or 0)
        add = settings.setdefault_in_component_priority_dict
        add("DOWNLOADER_MIDDLEWARES", RobotsTxtMiddleware, priority)
        add("DOWNLOADER_MIDDLEWARES", AnswerMiddleware, ANSWER_PRIORITY)
        add("SPIDER_MIDDLEWARES", PageDirectivesMiddleware, PAGE_PRIORITY)
