"""``REP_UNREACHABLE="wait"``: requests of an unreachable site wait for the next attempt.

They wait in the line of their origin, which is held. When the next attempt is due, it begins with
the first of them; when it has failed, they wait for the one after it. A request that would wait for
longer than REP_MAX_WAIT in all goes on, and so do those for which there is no room: they are
dropped as without this setting (RFC 9309, section 2.3.1.4).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..scheduling.hosts import BlockReason, Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..origin import Origin, UnreachablePolicy
    from ..scheduling.clock import Clock
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from .policy_cache import PolicyCache

logger = logging.getLogger(__name__)


class Outages:
    """The unreachable sites of one crawl for which requests wait.

    ``is_excepted`` says whether a local rule allows a request for an origin, so that it does not
    wait.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        patience: UnreachablePolicy,
        throttle: Throttle,
        policies: PolicyCache,
        clock: Clock,
        is_excepted: Callable[[Request, str], bool],
    ) -> None:
        assert crawler.stats is not None
        self.waits = settings.unreachable == "wait"
        """Whether requests wait at all."""
        self._crawler = crawler
        self._stats = crawler.stats
        self._max_wait = settings.max_wait
        self._patience = patience
        self._throttle = throttle
        self._policy_cache = policies
        self._now = clock.time
        self._is_excepted = is_excepted

    def holds(self, origin: Origin) -> bool:
        """Whether an origin is one for which requests wait."""
        return self._seconds_left(origin) is not None

    def postpone(self, request: Request, origin: Origin) -> Limit | None:
        """Hold the line of a request for an origin of :meth:`holds`, until the next attempt.

        The line is not held where the request may not wait for so long: returns why.
        """
        seconds = self._seconds_left(origin) or 0
        name, key = origin.host, origin.key
        limit = self._throttle.limit(request, name, key, seconds, self._max_wait)
        if limit is None:
            self._throttle.block_for(name, key, seconds, BlockReason.UNREACHABLE, self._try_again)
        return limit

    def note_drop(self, origin: Origin, limit: Limit) -> None:
        """A request is dropped that may not wait: count it, and tell so once in an outage."""
        self._stats.inc_value(f"robotstxt/wait_limit_count/{limit}")
        if not origin.reported_drops:
            origin.reported_drops = True
            self._report(origin, limit)

    def learn(self, origin: Origin) -> None:
        """An attempt at a robots.txt has ended: those who wait go on waiting if it has failed."""
        seconds = self._seconds_left(origin)
        if seconds is not None:
            self._throttle.postpone(
                origin.host,
                origin.key,
                seconds,
                most=self._max_wait,
                then=self._try_again,
                may_start=lambda request: self._is_excepted(request, origin.key),
            )
        else:
            origin.reported_drops = False

    def _seconds_left(self, origin: Origin) -> float | None:
        if not self.waits:
            return None
        return origin.next_attempt(self._now(), self._patience)

    def _try_again(self, name: str, key: str, reason: BlockReason) -> None:
        request = self._throttle.first_in_line(name, key)
        if request is not None and self._policy_cache.needs_fetch(key):
            self._policy_cache.get_or_fetch(key, request)  # which holds the line until it has ended
        self._throttle.unblock(name, key, reason)

    def _report(self, origin: Origin, limit: Limit) -> None:
        why = "as many requests wait as REP_MAX_WAITING allows"
        if limit is Limit.TIME:
            why = (
                f"the next attempt, in {self._seconds_left(origin):.0f} s, comes too late for "
                f"them: requests wait up to {self._max_wait:g} s (REP_MAX_WAIT)"
            )
        logger.warning(
            "Requests to %(origin)s are dropped. Its robots.txt is still unreachable "
            "(%(failure)s), and %(why)s.",
            {"origin": origin.key, "failure": origin.failure, "why": why},
            extra={"spider": self._crawler.spider},
        )
