"""The parser behind Scrapy's own interface, for ROBOTSTXT_PARSER and the robots_parsed signal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser as ScrapyRobotParser

from .protocol.lines import SIZE_LIMIT
from .protocol.robotstxt import RobotsTxt
from .protocol.unwrap import unwrap_browser_page
from .settings import is_strict
from .startup import abort_on_setting_error

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class RobotParser(ScrapyRobotParser):
    """Scrapy's :class:`~scrapy.robotstxt.RobotParser` over a :class:`RobotsTxt`.

    ``ROBOTSTXT_PARSER = "scrapy_rep.RobotParser"`` makes Scrapy's own middleware read the rules
    right; what it makes of statuses and failures stays as it is.
    """

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:
        """Parse a body as it came, through a browser or not. Never raises for what it holds."""
        strict = False
        if crawler is not None:
            with abort_on_setting_error(crawler):
                strict = is_strict(crawler)
        text = unwrap_browser_page(robotstxt_body, cut_off=len(robotstxt_body) > SIZE_LIMIT)
        return cls(RobotsTxt.parse(robotstxt_body if text is None else text, strict=strict))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether a crawler of this product token, or with this User-Agent, may fetch ``url``."""
        return self.robots.allowed(url if isinstance(url, str) else url.decode(), user_agent)

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """The seconds between two requests that the crawler's group asks for, if it does."""
        return self.robots.crawl_delay(user_agent)
