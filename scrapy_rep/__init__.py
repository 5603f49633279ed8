"""scrapy-rep: the Robots Exclusion Protocol, obeyed by a Scrapy crawl.

These are the public names; the README shows how to turn it on.
"""

from .addon import Addon
from .crawl.middleware import RobotsTxtMiddleware
from .exceptions import RobotsTxtDisallowed
from .pages.middleware import PageDirectivesMiddleware, page_directives
from .protocol.pages import PageDirectives
from .protocol.robotstxt import Reason, RobotsTxt, Rule, Verdict
from .robotparser import RobotParser

__all__ = [
    "Addon",
    "PageDirectives",
    "PageDirectivesMiddleware",
    "Reason",
    "RobotParser",
    "RobotsTxt",
    "RobotsTxtDisallowed",
    "RobotsTxtMiddleware",
    "Rule",
    "Verdict",
    "page_directives",
]
