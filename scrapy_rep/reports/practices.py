"""A crawl held against draft-illyes-webbotauth-cbcp-01, "Crawler best practices" (October 2026).

Each of the six points of its section 2 is divided into what a crawl can show, which is judged here,
and what only the operator can know. ``practices.html`` has the points with their evidence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .answers import Obedience, obedience, pace

if TYPE_CHECKING:
    from .records import Report, Run

SETTINGS = (
    "USER_AGENT",
    "AUTOTHROTTLE_ENABLED",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "DEPTH_LIMIT",
    "DOWNLOAD_DELAY",
    "DUPEFILTER_CLASS",
    "HTTPCACHE_ENABLED",
    "HTTPCACHE_POLICY",
)
"""The settings of Scrapy on which the judgment depends."""

# The lookbehind lets a mail address begin only where a word begins, so that a search is linear.
_CONTACT = re.compile(r"https?://[^\s/]+\.[^\s/]+|(?<![^\s@])[^\s@]+@[^\s@]+\.[^\s@]+")
_DEFAULT_USER_AGENT = re.compile(r"Scrapy/\S+ \(\+https://scrapy\.org\)")


def is_on(run: Run, name: str) -> bool:
    """Whether a setting of Scrapy is true."""
    return run.scrapy_settings.get(name, "").lower() in {"true", "1", "yes", "on"}


def user_agents(report: Report) -> dict[str, bool]:
    """Return each user agent, and whether it names a URL or an address of its own."""
    names = {run.scrapy_settings.get("USER_AGENT", run.user_agent) for run in report.runs}
    return {
        name: not _DEFAULT_USER_AGENT.fullmatch(name) and bool(_CONTACT.search(name))
        for name in sorted(names)
    }


def judged(report: Report) -> dict[str, bool | None]:
    """Return which points are met. None: the record does not tell."""
    runs, kept = report.runs, pace(report)
    is_identified = all(user_agents(report).values()) and all(run.tokens for run in runs)
    has_header = all("USER_AGENT" in run.scrapy_settings for run in runs)
    is_shown = all(run.sent_is_known for run in runs)
    has_cache_settings = all("HTTPCACHE_ENABLED" in run.scrapy_settings for run in runs)
    caches = all(
        is_on(run, "HTTPCACHE_ENABLED")
        and run.scrapy_settings.get("HTTPCACHE_POLICY", "").endswith("RFC2616Policy")
        for run in runs
    )
    drops = all(
        run.settings.get(name) == repr("drop")
        for name in ("REP_NOINDEX", "REP_NOFOLLOW")
        for run in runs
    )
    return {
        "rules": {Obedience.DISALLOWED: False, Obedience.OBEYED: True}.get(obedience(report)),
        "directives": drops or None,
        "user agent": is_identified and (has_header or None),
        "speed": False if kept.too_short else (bool(kept.asked) and is_shown) or None,
        "robots.txt cache": all(
            run.settings.get("REP_CONDITIONAL_GET") != repr(False) for run in runs
        ),
        "page cache": caches if has_cache_settings else None,
    }
