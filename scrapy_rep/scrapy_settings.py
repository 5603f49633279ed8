"""The settings of Scrapy and of other plugins that the package uses.

Only this module and :mod:`~scrapy_rep.settings` read settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.settings import default_settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


def robotstxt_obey(crawler: Crawler) -> bool:
    """Whether the setting ROBOTSTXT_OBEY is on."""
    return crawler.settings.getbool("ROBOTSTXT_OBEY")


def uses_async_process(settings: BaseSettings) -> bool:
    """Return whether Scrapy's own commands use an AsyncCrawlerProcess with these settings."""
    # The next setting exists since Scrapy 2.15.
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        return True
    is_asyncio = settings["TWISTED_REACTOR"] == default_settings.TWISTED_REACTOR
    return is_asyncio and not settings.getbool("FORCE_CRAWLER_PROCESS")


def scrapy_settings(crawler: Crawler, names: Iterable[str]) -> dict[str, str]:
    """Return those of some settings of Scrapy that have a value, as text."""
    return {
        name: global_object_name(value) if isinstance(value, type) else str(value)
        for name in names
        if (value := crawler.settings.get(name)) is not None
    }


def downloader_middlewares(crawler: Crawler) -> list[type]:
    """Return the enabled downloader middlewares, in the order in which they process requests."""
    priorities = crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES")
    return [load_object(middleware) for middleware in build_component_list(priorities)]


def page_agent(settings: BaseSettings, spider: Spider | None) -> str | bytes | None:
    """Return the User-Agent header of requests that do not set one; None if there is none."""
    # Scrapy sets the header after this middleware: DefaultHeadersMiddleware first, then
    # UserAgentMiddleware, which prefers the attribute of the spider to the setting.
    for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items():
        if value is not None and str(name).lower() == "user-agent":
            return value if isinstance(value, bytes) else str(value)
    for agent in (getattr(spider, "user_agent", None), settings["USER_AGENT"]):
        if isinstance(agent, (str, bytes)) and agent:
            return agent
    return None


def zyte_api_params(settings: BaseSettings) -> tuple[str, ...] | None:
    """Return the names in ZYTE_API_AUTOMAP_PARAMS; None without scrapy-zyte-api."""
    params = settings.getdict("ZYTE_API_AUTOMAP_PARAMS")
    return tuple(params) if params or settings.getbool("ZYTE_API_TRANSPARENT_MODE") else None
