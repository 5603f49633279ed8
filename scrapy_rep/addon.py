"""One line in settings.py turns it all on: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from .middleware import RobotsTxtMiddleware

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

PRIORITY = 100
"""Where Scrapy's own middleware stands, and where users expect it."""


class Addon:
    """Replaces Scrapy's robots.txt middleware, and turns ROBOTSTXT_OBEY on.

    What a project or a spider says stands: ROBOTSTXT_OBEY where it is set, our middleware where
    it is already among DOWNLOADER_MIDDLEWARES, and everything else there.
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
        if not any(load_object(written) is RobotsTxtMiddleware for written in middlewares):
            middlewares[RobotsTxtMiddleware] = priority
        settings.set(
            "DOWNLOADER_MIDDLEWARES",
            middlewares,
            settings.getpriority("DOWNLOADER_MIDDLEWARES") or 0,
        )
