"""The request fingerprinter: pages that differ only in a parameter of Clean-param are one page."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.request import RequestFingerprinter

from ..frontier.queued import find_frontier
from ..protocol.paths import origin_of


class CleanParamRequestFingerprinter(RequestFingerprinter):
    """Scrapy's fingerprint of the URL that ``RobotsTxt.canonicalize`` returns.

    For the setting REQUEST_FINGERPRINTER_CLASS: Scrapy's duplicate filter and its HTTP cache
    compare requests by these fingerprints. The robots.txt of the URL's origin applies from the
    moment at which the crawl knows it. Before that, and for ``verbatim_url``, the fingerprint is
    Scrapy's own. The request itself does not change: it is sent with all its parameters.
    """

    def __init__(self, crawler: Crawler | None = None) -> None:
        super().__init__(crawler)
        self._crawler = crawler

    def fingerprint(self, request: Request) -> bytes:
        """Return the fingerprint of a request, for every URL that Scrapy's own class accepts."""
        url, frontier = request.url, None
        if "?" in url and self._crawler is not None and not request.meta.get("verbatim_url"):
            frontier = find_frontier(self._crawler)
        key = origin_of(url) or ""
        origin = None if frontier is None else frontier.policies.origins.get(key)
        if origin is not None and origin.content is not None:
            url = origin.content.canonicalize(url)
        if url != request.url:  # Scrapy's own fingerprint reads method, URL and body
            request = Request(url, method=request.method, body=request.body)
        return super().fingerprint(request)
