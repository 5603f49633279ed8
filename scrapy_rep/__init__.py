r"""scrapy-rep: the robots.txt layer for Scrapy, and a robots.txt library by itself.

In a crawl, one line of ``settings.py`` turns it on::

    ADDONS = {"scrapy_rep.Addon": 500}

As a library, :class:`RobotsTxt` parses a file and answers questions about it. It does no I/O:

>>> from scrapy_rep import RobotsTxt, robots_txt_url
>>> robots_txt_url("https://example.com/shop?page=2")
'https://example.com/robots.txt'
>>> robots = RobotsTxt.from_response(200, b"User-agent: *\nDisallow: /shop\n")
>>> verdict = robots.verdict("https://example.com/shop?page=2", "mybot/1.0 (+https://example.com)")
>>> if not verdict:
...     print(verdict)
line 2, Disallow: /shop, for *

The public names are here, in :mod:`scrapy_rep.stores` and in :mod:`scrapy_rep.testing`. The other
modules may change from one version to the next. A name is imported when it is first used, because
Scrapy imports this package for each of its commands.
"""

from __future__ import annotations

from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .addon import Addon
    from .exceptions import (
        ItemNotIndexable,
        ItemUsageRefused,
        PageNotIndexable,
        RobotsTxtDisallowed,
        SettingError,
    )
    from .frontier.queued import Queued, Waits, queued, until_queued_below, waiting
    from .middleware import RobotsTxtMiddleware
    from .pages.directives import AccessTerms, PageDirectives
    from .pages.fingerprinter import CleanParamRequestFingerprinter
    from .pages.middleware import AnswerMiddleware, PageDirectivesMiddleware, page_directives
    from .policies.gate import Wait
    from .protocol.lint import Code, Finding, Severity, lint
    from .protocol.parser import Group
    from .protocol.paths import robots_txt_url
    from .protocol.records import CleanParam, RequestRate, VisitTime
    from .protocol.robotstxt import RobotsTxt
    from .protocol.verdict import Reason, Rule, Verdict
    from .robotparser import RepRobotParser

__version__ = "0.1.0"

__all__ = [
    "AccessTerms", "Addon", "AnswerMiddleware", "CleanParam", "CleanParamRequestFingerprinter",
    "Code", "Finding", "Group", "ItemNotIndexable", "ItemUsageRefused", "PageDirectives",
    "PageDirectivesMiddleware", "PageNotIndexable", "Queued", "Reason", "RepRobotParser",
    "RequestRate", "RobotsTxt", "RobotsTxtDisallowed", "RobotsTxtMiddleware", "Rule",
    "SettingError", "Severity", "Verdict", "VisitTime", "Wait", "Waits", "lint", "page_directives",
    "queued", "robots_txt_url", "until_queued_below", "waiting",
]  # fmt: skip

_NAMES = {
    "addon": ["Addon"],
    "middleware": ["RobotsTxtMiddleware"],
    "exceptions": [
        "ItemNotIndexable", "ItemUsageRefused", "PageNotIndexable", "RobotsTxtDisallowed",
        "SettingError",
    ],
    "frontier.queued": ["Queued", "Waits", "queued", "until_queued_below", "waiting"],
    "policies.gate": ["Wait"],
    "pages.directives": ["AccessTerms", "PageDirectives"],
    "pages.fingerprinter": ["CleanParamRequestFingerprinter"],
    "pages.middleware": ["AnswerMiddleware", "PageDirectivesMiddleware", "page_directives"],
    "protocol.lint": ["Code", "Finding", "Severity", "lint"],
    "protocol.parser": ["Group"],
    "protocol.paths": ["robots_txt_url"],
    "protocol.records": ["CleanParam", "RequestRate", "VisitTime"],
    "protocol.robotstxt": ["RobotsTxt"],
    "protocol.verdict": ["Reason", "Rule", "Verdict"],
    "robotparser": ["RepRobotParser"],
}  # fmt: skip
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each public name. Type checkers read the imports above."""

_import_lock = RLock()
"""Without it, threads that use names for the first time would import Scrapy's modules, which import
each other, in different orders. Python ends that with a deadlock error."""

if not TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name):
        """Import a public name when it is first used (PEP 562)."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with _import_lock:
            value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
