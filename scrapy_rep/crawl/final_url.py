"""Checks the final URL of a response that is not the URL of its request (REP_CHECK_FINAL_URL).

Browsers and some download handlers follow redirects themselves, so that no request for the final
URL passes the middleware. A robots.txt may disallow the page that the spider then gets.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..protocol.paths import lacks_host, origin_of, path_of
from ..protocol.printable import printable
from ..protocol.verdict import Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ..origin import Origin
    from .policy_cache import PolicyCache
    from .recorder import Recorder
    from .waiting_responses import WaitingResponses

logger = logging.getLogger(__name__)

MAX_URL_LENGTH = 300
"""Characters of a URL in a log message."""


class FinalUrlChecker:
    """Checks the final URLs of the responses of one crawl.

    ``verdict_of`` returns the verdict of an origin on a URL that a request was redirected to.
    ``local_disallow`` returns the verdict of a local rule that disallows a URL of an origin, or
    None.
    """

    def __init__(
        self,
        crawler: Crawler,
        policy_cache: PolicyCache,
        waiting: WaitingResponses,
        verdict_of: Callable[[Origin, Request, str], Verdict],
        local_disallow: Callable[[str, str], Verdict | None],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._policy_cache = policy_cache
        self._waiting = waiting
        self._verdict_of = verdict_of
        self._local_disallow = local_disallow
        self.recorder: Recorder | None = None
        self._has_warned = False

    async def check(self, request: Request, url: str, response: Response) -> Verdict | None:
        """Return the verdict on the URL of a response, after its robots.txt is fetched.

        ``url`` is the URL that was checked before the request was sent. Returns None if both URLs
        are the same for robots.txt, and if the final URL has a scheme without robots.txt.
        """
        final_url = response.url
        key = origin_of(final_url)
        if key is None:
            if not lacks_host(final_url):
                return None
            verdict = Verdict(False, Reason.INVALID_HOST)
        elif key == origin_of(url) and path_of(final_url) == path_of(url):
            return None
        elif (local := self._local_disallow(key, final_url)) is not None:
            verdict = local  # its robots.txt is not fetched
        else:
            origin = self._policy_cache.get_fresh(key)
            if origin is None:
                with self._waiting.add(request, response):
                    origin = await self._policy_cache.wait_for(key, request)
            if origin is not None:
                verdict = self._verdict_of(origin, request, final_url)
            else:
                detail = "the spider closed before its robots.txt was known"
                verdict = Verdict(False, Reason.UNREACHABLE, detail=detail)
        self._stats.inc_value("robotstxt/final_url")
        if not verdict.allowed:
            self._stats.inc_value("robotstxt/final_url/disallowed")
        return verdict

    def warn(self, request: Request, response: Response, verdict: Verdict) -> None:
        """Record that the spider gets a disallowed page. Warn once in a crawl."""
        if self.recorder is not None:
            self.recorder.final_url_disallowed(response.url, verdict, dropped=False)
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning(
            "%(request)s was redirected to %(url)s, which robots.txt disallows (%(verdict)s). The "
            "spider gets this page, with the verdict in response.meta['robotstxt']. The stat "
            "robotstxt/final_url/disallowed counts such pages. Set REP_CHECK_FINAL_URL = 'drop' to "
            "drop them.",
            {
                "request": request,
                "url": printable(response.url, MAX_URL_LENGTH),
                "verdict": verdict,
            },
            extra={"spider": self._crawler.spider},
        )
