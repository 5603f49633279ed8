"""Pages that end at another URL than the one that was judged (REP_CHECK_FINAL_URL).

A browser follows redirects itself, and so do some download handlers. The page that the spider gets
may then be one that its robots.txt disallows: its URL is judged, too.
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
    from ..scheduling.engine import Engine
    from .policy_cache import PolicyCache

logger = logging.getLogger(__name__)

MOST_HELD = 5_000_000
"""Octets of pages that may wait for a robots.txt without using up CONCURRENT_REQUESTS: as many as
SCRAPER_SLOT_MAX_ACTIVE_SIZE of Scrapy allows."""

LEAST_SIZE = 1024
"""Octets that a page counts at least, as for that setting."""

URL_LENGTH = 300
"""Characters of a URL that are shown."""


class FinalUrls:
    """Judges the final URLs of the pages of one crawl.

    ``judge`` gives the verdict of an origin on a URL that a request has led to.
    ``disallowed_locally`` gives that of a local rule which disallows a URL of an origin, or None.
    """

    def __init__(
        self,
        crawler: Crawler,
        engine: Engine,
        policies: PolicyCache,
        judge: Callable[[Origin, Request, str], Verdict],
        disallowed_locally: Callable[[str, str], Verdict | None],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._engine = engine
        self._policy_cache = policies
        self._judge = judge
        self._disallowed_locally = disallowed_locally
        self._held = 0
        self._has_warned = False

    async def verdict(self, request: Request, asked: str, response: Response) -> Verdict | None:
        """The verdict on the URL of a response, once its robots.txt is known.

        ``asked`` is the URL that was judged before the request was sent. None where both are the
        same for robots.txt, and where the final URL is of a scheme without one.
        """
        url = response.url
        key = origin_of(url)
        if key is None:
            if not lacks_host(url):
                return None
            verdict = Verdict(False, Reason.INVALID_HOST)
        elif key == origin_of(asked) and path_of(url) == path_of(asked):
            return None
        elif (local := self._disallowed_locally(key, url)) is not None:
            verdict = local  # no robots.txt is fetched for it
        else:
            origin = await self._known(key, request, len(response.body))
            if origin is not None:
                verdict = self._judge(origin, request, url)
            else:
                detail = "the spider closed before its robots.txt was known"
                verdict = Verdict(False, Reason.UNREACHABLE, detail=detail)
        self._stats.inc_value("robotstxt/final_url")
        if not verdict.allowed:
            self._stats.inc_value("robotstxt/final_url/disallowed")
        return verdict

    def warn(self, request: Request, response: Response, verdict: Verdict) -> None:
        """Say, once in a crawl, that disallowed pages reach the spider."""
        if self._has_warned:
            return
        self._has_warned = True
        logger.warning(
            "%(request)s ended at %(url)s, which is disallowed (%(because)s). The spider gets this "
            "page and others like it; response.meta['robotstxt'] says so, and the stat "
            "robotstxt/final_url/disallowed counts them. REP_CHECK_FINAL_URL = 'drop' drops them.",
            {"request": request, "url": printable(response.url, URL_LENGTH), "because": verdict},
            extra={"spider": self._crawler.spider},
        )

    async def _known(self, key: str, request: Request, size: int) -> Origin | None:
        """The origin, once it can be asked. The response waits for that in memory."""
        origin = self._policy_cache.get_fresh(key)
        if origin is not None:
            return origin
        size = max(size, LEAST_SIZE)
        if self._held < MOST_HELD:
            self._engine.exclude(request)
        self._held += size
        try:
            return await self._policy_cache.settled(key, request)
        finally:
            self._held -= size
            self._engine.include(request)
