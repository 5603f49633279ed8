"""Checks at the start of a crawl: errors that stop it, and warnings about its configuration."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import files

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.settings import default_settings

from .exceptions import SettingError
from .logs import spider_logger
from .protocol.agents import product_tokens
from .scrapy_internals import note_failure
from .settings import Settings


@contextmanager
def abort_on_setting_error(crawler: Crawler) -> Iterator[None]:
    """Log a :class:`SettingError` in one line, and raise it again, which stops the crawl."""
    try:
        yield
    except SettingError as error:
        logger = spider_logger(__name__, crawler.spider)
        logger.error("%(error)s. The crawl does not start.", {"error": error})
        note_failure(crawler)
        logging.getLogger("asyncio").addFilter(_is_unreported)
        raise


def _is_unreported(record: logging.LogRecord) -> bool:
    """Whether asyncio may log an exception. It does so if no code awaits the task of the crawl."""
    return not (record.exc_info and isinstance(record.exc_info[1], SettingError))


def warn_about_configuration(crawler: Crawler, settings: Settings) -> None:
    """Warn about settings that are probably mistakes, once each."""
    logger = spider_logger(__name__, crawler.spider)
    if not settings.obey:
        logger.warning(
            "ROBOTSTXT_OBEY is off, although scrapy-rep is enabled: this crawl ignores robots.txt, "
            "local rules and the delays of sites. Set ROBOTSTXT_OBEY = True, or disable "
            "scrapy-rep."
        )
        return
    for name, similar in settings.unknown:
        hint = f" Did you mean {similar}?" if similar else ""
        logger.warning(f"The setting {name} does not exist and is ignored.{hint}")
    if settings.robots_agent is None and settings.page_agent == default_settings.USER_AGENT:
        logger.warning(
            "USER_AGENT has Scrapy's default value: sites cannot identify your crawler, and it "
            "follows the rules for Scrapy. Set USER_AGENT to the name of your crawler and an "
            "address where its owner can be reached."
        )
    # Unless ROBOTSTXT_USER_AGENT says that this crawl is the well-known crawler.
    tokens = set(product_tokens(settings.page_agent or ""))
    known = _known_crawler(tokens - set(product_tokens(settings.robots_agent or "")))
    if known is not None:
        name, operator = known
        logger.warning(
            f"The User-Agent of this crawl has the name of {name}, a crawler of {operator}: sites "
            f"take it for {name}. Set USER_AGENT to the name of your crawler. If {name} is yours, "
            "set ROBOTSTXT_USER_AGENT to it."
        )
    if crawler.get_downloader_middleware(BuiltInMiddleware) is not None:
        logger.warning(
            "Scrapy's own RobotsTxtMiddleware is also enabled: each robots.txt is fetched twice, "
            "and requests that either middleware disallows are dropped. Set Scrapy's to None in "
            "DOWNLOADER_MIDDLEWARES, or use scrapy_rep.Addon."
        )


def _known_crawler(tokens: Iterable[str]) -> tuple[str, str] | None:
    """Return the name and the operator of the first well-known crawler with one of the tokens."""
    text = files(__package__).joinpath("crawlers.toml").read_text("utf-8")
    lower = text.lower()
    wanted = {token for token in tokens if f'"{token}"' in lower}
    if not wanted:  # the usual case: the table takes long to read
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    rows = tomllib.loads(text)["crawler"]
    found = (row for row in rows if row.get("tokens", [row["name"]])[0].lower() in wanted)
    return next(((row["name"], row["operator"]) for row in found), None)
