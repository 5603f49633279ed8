"""Drops requests that are known to be disallowed, before they are scheduled (REP_FILTER_LINKS)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..meta_keys import DONT_OBEY, ROBOTSTXT
from ..origin import State
from ..protocol.paths import origin_of
from .drops import record_drop

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..origin import Origin
    from ..protocol.verdict import Verdict
    from .policy_cache import PolicyCache
    from .recorder import Recorder


class LinkFilter:
    """Drops the disallowed requests of one crawl whose policy is in memory.

    ``page_url`` returns the URL of the page that a request is for. ``verdict_of`` returns the
    verdict of an origin on a URL for the crawler of a request. ``local_disallow`` returns the
    verdict of a local rule that disallows a URL of an origin, or None.
    """

    def __init__(
        self,
        crawler: Crawler,
        policy_cache: PolicyCache,
        page_url: Callable[[Request], str],
        verdict_of: Callable[[Origin, Request, str], Verdict],
        local_disallow: Callable[[str, str], Verdict | None],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._policy_cache = policy_cache
        self._page_url = page_url
        self._verdict_of = verdict_of
        self._local_disallow = local_disallow
        self.recorder: Recorder | None = None

    def drop(self, request: Request) -> bool:
        """Record the drop of a request if it is known to be disallowed. Returns whether it is.

        Neither starts a fetch nor waits for one.
        """
        if request.meta.get(DONT_OBEY):
            return False
        url = self._page_url(request)
        key = origin_of(url)
        if key is None:
            return False
        verdict = self._local_disallow(key, url)
        if verdict is None:
            verdict = self._known_verdict(key, url, request)
        if verdict is None or verdict.allowed:
            return False
        request.meta[ROBOTSTXT] = verdict
        record_drop(self._crawler, self.recorder, request, url, verdict)
        self._stats.inc_value("robotstxt/filtered_count")
        return True

    def _known_verdict(self, key: str, url: str, request: Request) -> Verdict | None:
        origin = self._policy_cache.get_fresh(key)
        # An unreachable origin may answer before the request is due.
        if origin is None or origin.state is State.UNREACHABLE:
            return None
        return self._verdict_of(origin, request, url)
