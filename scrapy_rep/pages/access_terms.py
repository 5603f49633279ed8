"""The downloader middleware for pages that require a payment or a license.

Such a response is counted, logged once for each site, and not retried. Nothing is paid, and no
license is acquired. The spider middleware annotates it with the
:class:`~scrapy_rep.AccessTerms`.

The answer to a request for a robots.txt is not a page: its status decides whether the robots.txt is
unavailable (RFC 9309 §2.3.1.3).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..meta_keys import DONT_RETRY, IS_ROBOTSTXT_REQUEST
from ..protocol.access_terms import HEADERS, STATUSES, AccessTerms, access_terms
from ..protocol.pages import licenses
from ..protocol.paths import origin_of
from ..protocol.printable import printable

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from ..crawl.recorder import Recorder

logger = logging.getLogger(__name__)

MAX_LOGGED_SITES = 10_000
"""The sites that are known to be in the log. The first one is forgotten when there are more."""

MAX_URL_LENGTH = 300
"""Characters of a URL in a log message."""

_NOT_RETRIED = "access terms"
"""The value of ``dont_retry`` that this middleware sets. It differs from the value of a user."""


def terms_of(response: Response) -> AccessTerms | None:
    """Return what a response requires; None if it requires neither a payment nor a license."""
    lines = {
        name: [line.decode("latin-1") for line in response.headers.getlist(name)]
        for name in HEADERS
    }
    return access_terms(response.status, lines)


class AccessTermsMiddleware:
    """Counts and logs responses that require a payment or a license, and prevents their retry.

    Scrapy's RetryMiddleware and others do not retry a request with ``dont_retry`` in its ``meta``.
    This middleware sets it for these responses, and so it has to process them first: its value in
    DOWNLOADER_MIDDLEWARES is higher than theirs.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._logged: dict[str, None] = {}
        self.recorder: Recorder | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Make sure that a request can be retried if its ``meta`` is a copy of another one's."""
        if request.meta.get(DONT_RETRY) == _NOT_RETRIED:
            del request.meta[DONT_RETRY]

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, after it is counted, logged and excluded from retries."""
        if response.status not in STATUSES or request.meta.get(IS_ROBOTSTXT_REQUEST):
            return response
        terms = terms_of(response)
        if terms is None:
            return response
        if not request.meta.get(DONT_RETRY):
            request.meta[DONT_RETRY] = _NOT_RETRIED
        if terms.payment_required:
            self._stats.inc_value("robotstxt/payment_required")
        if terms.license_required:
            self._stats.inc_value("robotstxt/license_required")
        if self.recorder is not None:
            self.recorder.terms(response.url, terms)
        self._log(response, terms)
        return response

    def _log(self, response: Response, terms: AccessTerms) -> None:
        site = origin_of(response.url) or ""
        if site in self._logged:
            return
        if len(self._logged) >= MAX_LOGGED_SITES:
            del self._logged[next(iter(self._logged))]
        self._logged[site] = None
        lines = [line.decode("latin-1") for line in response.headers.getlist("Link")]
        urls = licenses(lines, response.url)
        logger.info(
            "%(site)s requires %(terms)s for %(url)s (status %(status)d).%(license)s The response "
            "is not retried. scrapy-rep pays nothing and acquires no license. Later responses of "
            "this site are only counted.",
            {
                "site": site or "A site",
                "terms": terms,
                "url": printable(response.url, MAX_URL_LENGTH),
                "status": response.status,
                "license": f" License: {printable(urls[0], MAX_URL_LENGTH)}." if urls else "",
            },
            extra={"spider": self._crawler.spider},
        )
