"""Requests to a rendering service (scrapy-splash), which fetches a page for the crawl.

The middleware of scrapy-splash replaces the request for a page by a request to its service, and
keeps the URL of the page in ``meta``. The robots.txt and the pace of the page's site apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..protocol.paths import host_of, origin_of

if TYPE_CHECKING:
    from scrapy import Request


class RenderingService:
    """The rendering service of one crawl. ``service`` is its URL."""

    def __init__(self, service: str) -> None:
        self._service = service

    def page_url(self, request: Request) -> str:
        """Return the URL of the page that a request is for, which may be its own."""
        if "_splash_processed" in request.meta:
            return self._rendered(request) or request.url
        return request.url

    def origin(self, request: Request) -> str | None:
        """Return the normal form of the origin of this page, if its URL has one."""
        return origin_of(self.page_url(request))

    def host(self, request: Request) -> str | None:
        """Return the host of this page, if its URL has an origin."""
        key = self.origin(request)
        return host_of(key) if key is not None else None

    def is_replaced(self, request: Request) -> bool:
        """Whether a request to the service has replaced this one for a page."""
        return "_splash_processed" in request.meta and self._rendered(request) is None

    def _rendered(self, request: Request) -> str | None:
        splash = request.meta.get("splash")
        if not isinstance(splash, Mapping):
            return None
        # A spider may copy all of this meta to a request for another page.
        if not _is_below(request.url, splash.get("splash_url", self._service)):
            return None
        args = splash.get("args")
        url = args.get("url") if isinstance(args, Mapping) else None
        return url if isinstance(url, str) and url else None


def _is_below(url: str, base: Any) -> bool:
    return isinstance(base, str) and bool(base) and url.startswith(base.rstrip("/") + "/")
