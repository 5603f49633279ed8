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
    from .addon import Addon as Addon
    from .exceptions import ItemNotIndexable as ItemNotIndexable
    from .exceptions import ItemUsageRefused as ItemUsageRefused
    from .exceptions import RobotsTxtDisallowed as RobotsTxtDisallowed
    from .exceptions import SettingError as SettingError
    from .frontier.queued import Queued as Queued
    from .frontier.queued import Waits as Waits
    from .frontier.queued import queued as queued
    from .frontier.queued import until_queued_below as until_queued_below
    from .frontier.queued import waiting as waiting
    from .middleware import RobotsTxtMiddleware as RobotsTxtMiddleware
    from .pages.directives import AccessTerms as AccessTerms
    from .pages.directives import PageDirectives as PageDirectives
    from .pages.fingerprinter import (
        CleanParamRequestFingerprinter as CleanParamRequestFingerprinter,
    )
    from .pages.middleware import AnswerMiddleware as AnswerMiddleware
    from .pages.middleware import PageDirectivesMiddleware as PageDirectivesMiddleware
    from .pages.middleware import page_directives as page_directives
    from .policies.gate import Wait as Wait
    from .protocol.lint import Finding as Finding
    from .protocol.lint import Severity as Severity
    from .protocol.lint import lint as lint
    from .protocol.parser import Group as Group
    from .protocol.paths import robots_txt_url as robots_txt_url
    from .protocol.records import CleanParam as CleanParam
    from .protocol.records import RequestRate as RequestRate
    from .protocol.records import VisitTime as VisitTime
    from .protocol.robotstxt import RobotsTxt as RobotsTxt
    from .protocol.verdict import Reason as Reason
    from .protocol.verdict import Rule as Rule
    from .protocol.verdict import Verdict as Verdict
    from .robotparser import RepRobotParser as RepRobotParser

__version__ = "0.1.0"

_NAMES = {
    "addon": ["Addon"],
    "middleware": ["RobotsTxtMiddleware"],
    "exceptions": ["ItemNotIndexable", "ItemUsageRefused", "RobotsTxtDisallowed", "SettingError"],
    "frontier.queued": ["Queued", "Waits", "queued", "until_queued_below", "waiting"],
    "policies.gate": ["Wait"],
    "pages.directives": ["AccessTerms", "PageDirectives"],
    "pages.fingerprinter": ["CleanParamRequestFingerprinter"],
    "pages.middleware": ["AnswerMiddleware", "PageDirectivesMiddleware", "page_directives"],
    "protocol.lint": ["Finding", "Severity", "lint"],
    "protocol.parser": ["Group"],
    "protocol.paths": ["robots_txt_url"],
    "protocol.records": ["CleanParam", "RequestRate", "VisitTime"],
    "protocol.robotstxt": ["RobotsTxt"],
    "protocol.verdict": ["Reason", "Rule", "Verdict"],
    "robotparser": ["RepRobotParser"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each public name. Type checkers read the imports above."""

__all__ = sorted(_MODULES)

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
