"""What a robots.txt says to a well-known crawler, which may have rules of its own.

A crawler that falls back to the group of another (Googlebot-Image, Applebot) has several tokens. A
crawler that ignores the group for ``*`` (AdsBot-Google) is allowed everything if no group names it.
A crawler that ignores robots.txt is allowed everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.verdict import Reason, Rule, Verdict
from .crawlers import Compliance

if TYPE_CHECKING:
    from ..protocol.robotstxt import RobotsTxt
    from .crawlers import Crawler

_ANY_PATH = "/"
"""A path whose verdict names the group. That of robots.txt itself would not."""


def group_for(robots: RobotsTxt, crawler: Crawler) -> str | None:
    r"""Return the token of the group that applies to a crawler, in lower case, or None.

    ``*`` is the group of all other crawlers. None: no group applies, so everything is allowed.

    >>> from scrapy_rep import RobotsTxt
    >>> from scrapy_rep.commands.crawlers import crawler_named
    >>> robots = RobotsTxt(b"User-agent: Googlebot\nDisallow: /a\nUser-agent: *\nDisallow: /")
    >>> group_for(robots, crawler_named("Applebot")), group_for(robots, crawler_named("bingbot"))
    ('googlebot', '*')
    >>> group_for(robots, crawler_named("AdsBot-Google")) is None
    True
    """
    if crawler.compliance is Compliance.IGNORES:
        return None
    agent = robots.verdict(_ANY_PATH, crawler.tokens).agent
    return None if _is_ignored(agent, crawler) else agent


def verdict_for(robots: RobotsTxt, url: str, crawler: Crawler) -> Verdict:
    r"""Return whether a crawler may fetch a URL, and why, as `RobotsTxt.verdict` does.

    The verdict of a crawler that may ignore the file is that of the file. Raises ValueError if the
    URL is neither absolute nor a path that starts with ``/``.

    >>> from scrapy_rep import RobotsTxt
    >>> from scrapy_rep.commands.crawlers import crawler_named
    >>> robots = RobotsTxt(b"User-agent: *\nDisallow: /")
    >>> print(verdict_for(robots, "/a", crawler_named("AdsBot-Google")))
    no-rules: AdsBot-Google ignores the group for *
    """
    verdict = robots.verdict(url, crawler.tokens)
    if crawler.compliance is Compliance.IGNORES:
        return Verdict(True, Reason.NO_RULES, detail=f"{crawler.name} ignores robots.txt")
    if _is_ignored(verdict.agent, crawler):
        return Verdict(True, Reason.NO_RULES, detail=f"{crawler.name} ignores the group for *")
    return verdict


def matches_for(robots: RobotsTxt, url: str, crawler: Crawler) -> tuple[Rule, ...]:
    """Return every rule of the crawler's group that matches a URL, as `RobotsTxt.matches` does."""
    rules = robots.matches(url, crawler.tokens)
    return () if group_for(robots, crawler) is None else rules


def _is_ignored(agent: str | None, crawler: Crawler) -> bool:
    return crawler.ignores_wildcard and agent == WILDCARD_AGENT
