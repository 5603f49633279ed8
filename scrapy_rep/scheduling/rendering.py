"""Requests that go to a rendering service in the place of a page (scrapy-splash).

The middleware of scrapy-splash replaces a request for a page by one for its service. What the page
is stays in ``meta``: robots.txt and pace are those of the site of the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scrapy import Request


class RenderingService:
    """The rendering service of one crawl, which is at ``service``."""

    def __init__(self, service: str) -> None:
        self._service = service

    def page_url(self, request: Request) -> str:
        """The URL of the page that a request is for: its own, if it is for no service."""
        if "_splash_processed" in request.meta:
            return self._rendered(request) or request.url
        return request.url

    def is_replaced(self, request: Request) -> bool:
        """Whether a request to the service was made of this one for a page."""
        return "_splash_processed" in request.meta and self._rendered(request) is None

    def _rendered(self, request: Request) -> str | None:
        splash = request.meta.get("splash")
        if not isinstance(splash, Mapping):
            return None
        # A spider may copy all of this to a request for a page.
        if not _is_below(request.url, splash.get("splash_url", self._service)):
            return None
        args = splash.get("args")
        url = args.get("url") if isinstance(args, Mapping) else None
        return url if isinstance(url, str) and url else None


def _is_below(url: str, base: Any) -> bool:
    return isinstance(base, str) and bool(base) and url.startswith(base.rstrip("/") + "/")
