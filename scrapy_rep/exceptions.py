"""The exceptions that a user of the package can meet.

:class:`~scrapy_rep.stores.StoreError` is raised by stores only, and handled by the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import DropItem, IgnoreRequest

if TYPE_CHECKING:
    from .protocol.verdict import Verdict


class SettingError(ValueError):
    """A setting has a value that cannot be used.

    The message names the setting, its value, and the values that are allowed.
    """


class RobotsTxtDisallowed(IgnoreRequest):
    """The robots.txt of a site disallows a request. ``verdict`` says why.

    It reaches the errback of the request.
    """

    def __init__(self, url: str, verdict: Verdict) -> None:
        self.url = url
        self.verdict = verdict
        super().__init__(url, verdict)

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {self.verdict}"


class ItemNotIndexable(DropItem):
    """An item was dropped because its page says ``noindex`` or has expired (REP_NOINDEX)."""

    stat = "robotstxt/noindex/dropped"


class ItemUsageRefused(DropItem):
    """An item was dropped because its page refuses a use that REP_REQUIRE_USAGE names."""

    stat = "robotstxt/usage/dropped"
