"""scrapy-rep: the Robots Exclusion Protocol, obeyed by a Scrapy crawl.

These are the public names; the README shows how to turn it on.
"""

from .addon import Addon
from .middleware import RobotsTxtDisallowed, RobotsTxtMiddleware
from .protocol.robotstxt import Reason, RobotsTxt, Rule, Verdict
from .robotparser import RobotParser

__all__ = [
    "Addon",
    "Reason",
    "RobotParser",
    "RobotsTxt",
    "RobotsTxtDisallowed",
    "RobotsTxtMiddleware",
    "Rule",
    "Verdict",
]
