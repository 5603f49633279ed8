"""The fingerprints of requests, without the parameters that a site declares irrelevant.

Scrapy's duplicate filter and its HTTP cache compare requests by these fingerprints.
"""

from __future__ import annotations

from contextlib import suppress

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import RequestFingerprinter

from ..protocol.paths import origin_of
from .middleware import RobotsTxtMiddleware


class CleanParamRequestFingerprinter(RequestFingerprinter):
    """Scrapy's fingerprint of the URL that ``RobotsTxt.canonicalize`` returns.

    For the setting REQUEST_FINGERPRINTER_CLASS. The robots.txt of the URL's origin applies from the
    moment at which the crawl knows it. Before that, and for ``verbatim_url``, the fingerprint is
    Scrapy's own. The request itself does not change: it is sent with all its parameters.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        super().__init__(crawler)
        self._crawler = crawler
        self._middleware: RobotsTxtMiddleware | None = None

    def fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint of a request, for every URL that Scrapy's own class accepts."""
        url = self._canonical_url(request)
        if url == request.url:
            return super().fingerprint(request)
        # Method, URL and body are all that Scrapy's own fingerprint reads here.
        return super().fingerprint(Request(url, method=request.method, body=request.body))

    def _canonical_url(self, request: Request) -> str:
        url = request.url
        if "?" not in url or request.meta.get("verbatim_url"):
            return url
        if self._middleware is None and self._crawler is not None:
            with suppress(RuntimeError):  # the crawl has no engine yet, and so no middlewares
                self._middleware = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        origins = self._middleware.origins if self._middleware is not None else {}
        origin = origins.get(origin_of(url) or "")
        return url if origin is None or origin.content is None else origin.content.canonicalize(url)
