"""The exceptions that the code of a user may have to handle.

The stores raise :class:`~scrapy_rep.stores.StoreError`, which the package handles itself.
"""

from __future__ import annotations

from scrapy.exceptions import DropItem, IgnoreRequest

from .protocol.verdict import Reason, Verdict


class SettingError(ValueError):
    """A setting has an unusable value. The crawl does not start.

    The message names the setting, its value, and the values that are allowed.
    """


class RobotsTxtDisallowed(IgnoreRequest):
    """The robots.txt of a site, or a local rule, disallows a request.

    The errback of the request gets this exception. ``url`` is the disallowed URL. ``verdict`` is
    the :class:`~scrapy_rep.Verdict`, which gives the reason.
    """

    def __init__(self, url: str, verdict: Verdict) -> None:
        self.url = url
        self.verdict = verdict
        super().__init__(url, verdict)

    def __str__(self) -> str:
        return f"Forbidden by {forbidden_by(self.verdict)}: {self.verdict}"


def forbidden_by(verdict: Verdict) -> str:
    """Return what forbids a URL: your own rule (REP_LOCAL_RULES), or the robots.txt."""
    return "a local rule" if verdict.reason is Reason.LOCAL_RULE else "robots.txt"


class PageNotIndexable(IgnoreRequest):
    """A file of a media pipeline is dropped: its header says ``noindex`` or ``none`` (REP_NOINDEX).

    The message has its URL and the header.
    """


class ItemNotIndexable(DropItem):
    """An item is dropped because its page says ``noindex`` or has expired (REP_NOINDEX)."""

    stat = "robotstxt/noindex/dropped"


class ItemUsageRefused(DropItem):
    """An item is dropped because its page refuses a use in REP_INTENDED_USES."""

    stat = "robotstxt/usage/dropped"
