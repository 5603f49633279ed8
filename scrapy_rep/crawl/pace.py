"""Applies the delays of sites, from their robots.txt and from local rules, to their hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..origin import State
from ..protocol.paths import host_of
from .pace_log import log_pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..origin import Origin
    from ..protocol.pacing import Pacing
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from .local_rules import LocalRulesFile


class Pace:
    """The delays of the sites of a crawl.

    ``tokens`` returns the product tokens of the crawler for a request, ``now`` the time in seconds
    since 1970.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        throttle: Throttle,
        local_rules: LocalRulesFile,
        tokens: Callable[[Request], tuple[str, ...]],
        now: Callable[[], float],
    ) -> None:
        self._crawler = crawler
        self._settings = settings
        self._throttle = throttle
        self._local_rules = local_rules
        self._tokens = tokens
        self._now = now

    def applies_to(self, origin: Origin) -> bool:
        """Whether the crawl obeys a pace that the robots.txt of an origin sets."""
        return origin.has_pacing and self._settings.obey_crawl_delay

    def apply(self, origin: Origin, request: Request) -> Pacing | None:
        """Set the delay of the host of an origin, as it holds for the crawler of a request.

        Returns the pace that the robots.txt sets; None if it sets none, or if it is unknown.
        """
        pacing = None
        if self.applies_to(origin):
            tokens = self._tokens(request)
            pacing = origin.pacing(tokens)
        if origin.robots is None and origin.state is State.UNREACHABLE:
            # The pace is unknown: the last known delay still applies.
            self.apply_local_delay(origin.key, origin.last_request)
            return None
        now = self._now()
        seconds = self._local_rules.delay(origin.key, now)
        if pacing is not None:
            seconds = max(seconds, min(pacing.seconds_between(now), self._settings.max_delay))
            spider = self._crawler.spider
            log_pace(origin, pacing, tokens, settings=self._settings, now=now, spider=spider)
        if seconds or origin.host in self._throttle.hosts:
            self._throttle.set_delay(origin.host, origin.key, seconds, origin.last_request)
        return pacing

    def apply_local_delay(self, key: str, last_request: float | None) -> None:
        """Set the local delay of the origin ``key``, unless the origin has a longer one.

        ``last_request`` is the time on the monotonic clock of the last request to the origin.
        """
        seconds = self._local_rules.delay(key, self._now())
        host = self._throttle.hosts.get(host_of(key))
        if seconds and (host is None or seconds > host.delays.get(key, 0)):
            self._throttle.set_delay(host_of(key), key, seconds, last_request)
