"""RepRobotParser: Scrapy's parser interface, for ROBOTSTXT_PARSER and the robots_parsed signal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.robotstxt import RobotParser

from .protocol.paths import verdict_as_sent
from .protocol.robotstxt import RobotsTxt

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from typing_extensions import Self


class RepRobotParser(RobotParser):
    """Scrapy's interface :class:`~scrapy.robotstxt.RobotParser`, implemented by :class:`RobotsTxt`.

    With ``ROBOTSTXT_PARSER = "scrapy_rep.RepRobotParser"`` Scrapy's own middleware reads the rules
    as RFC 9309 says. That middleware still decides what statuses and failures mean.
    """

    def __init__(self, robots: RobotsTxt) -> None:
        self.robots = robots

    @classmethod
    def from_crawler(cls, crawler: Crawler | None, robotstxt_body: bytes) -> Self:  # noqa: ARG003
        r"""Parse the body of a response. No body raises an exception.

        >>> parser = RepRobotParser.from_crawler(None, b"User-agent: *\nDisallow: /private")
        >>> parser.allowed("https://example.com/private", "mybot")
        False
        """
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Return whether a crawler may fetch a URL, and all paths that a handler may send for it.

        `user_agent` is a product token or a whole User-Agent header. A URL whose scheme has no
        robots.txt, such as ``s3:``, is allowed, because Scrapy's middleware also checks such URLs.
        Raises ValueError for a text that is neither a URL nor a path.
        """
        if isinstance(url, bytes):
            url = url.decode()
        try:
            return verdict_as_sent(self.robots.verdict, url, user_agent).allowed
        except ValueError:
            if re.match("[A-Za-z][A-Za-z0-9+.-]*:", url):
                return True
            raise

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Return the Crawl-delay of the crawler's group in seconds, or None."""
        return self.robots.crawl_delay(user_agent)
