"""Requests that wait for an unreachable site (``REP_UNREACHABLE="wait"``).

The requests wait in the queue of their origin, which is blocked until the next attempt to fetch
the robots.txt. If the attempt fails, they wait for the one after it. A request that exceeds
REP_MAX_WAIT or REP_MAX_WAITING proceeds at once: it is dropped, as it is without this setting
(RFC 9309 §2.3.1.4).
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
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from .policy_cache import PolicyCache

logger = logging.getLogger(__name__)


class Outages:
    """Blocks and unblocks the queues of the unreachable origins of one crawl.

    ``is_excepted`` returns whether a local rule allows a request to an origin. Such a request does
    not wait.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        unreachable_policy: UnreachablePolicy,
        throttle: Throttle,
        policy_cache: PolicyCache,
        is_excepted: Callable[[Request, str], bool],
    ) -> None:
        assert crawler.stats is not None
        self.is_enabled = settings.unreachable == "wait"
        """Whether requests wait for unreachable sites."""
        self._crawler = crawler
        self._stats = crawler.stats
        self._max_wait = settings.max_wait
        self._unreachable_policy = unreachable_policy
        self._throttle = throttle
        self._policy_cache = policy_cache
        self._now = policy_cache.now
        self._is_excepted = is_excepted

    def applies_to(self, origin: Origin) -> bool:
        """Whether requests to an origin wait for the next attempt to fetch its robots.txt."""
        return self._seconds_left(origin) is not None

    def get_or_fetch(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy can be used, else start a fetch and return None.

        For a request that does not wait for the next attempt at an unreachable origin, the result
        of the last attempt is used, even if the next one is due or in progress.
        """
        known = self._policy_cache.origins.get(key) if self.is_enabled else None
        if known is None or not self.applies_to(known):
            return self._policy_cache.get_or_fetch(key, request)
        blocks = self._throttle.blocks
        # A timer begins the next attempt for the requests that wait.
        is_new = not self._throttle.is_in_progress(request)
        if blocks.overdue(request) is not None or (is_new and blocks.is_full(known.host, key)):
            return known
        origin = self._policy_cache.get_or_fetch(key, request)
        return known if origin is None and self._is_excepted(request, key) else origin

    def has_exception(self, request: Request, key: str) -> bool:
        """Whether a local rule allows a request to an unreachable origin. It does not wait then."""
        if not self.is_enabled:
            return False
        origin = self._policy_cache.origins.get(key)
        is_outage = origin is not None and self.applies_to(origin)
        return is_outage and self._is_excepted(request, key)

    def block(self, request: Request, origin: Origin) -> Limit | None:
        """Block the queue of an origin to which this applies, until the next attempt.

        If the request may not wait so long, returns the limit that prevents it, and does not block
        the queue. Otherwise returns None.
        """
        seconds = self._seconds_left(origin) or 0
        name, key = origin.host, origin.key
        limit = self._throttle.blocks.limit(request, name, key, seconds, self._max_wait)
        if limit is None:
            self._throttle.blocks.block_for(
                name, key, seconds, BlockReason.UNREACHABLE, self._retry
            )
        return limit

    def record_drop(self, origin: Origin, limit: Limit) -> None:
        """Count a request that is dropped because of a limit. Warn about it once in an outage."""
        self._stats.inc_value(f"robotstxt/wait_limit_count/{limit}")
        if not origin.reported_drops:
            origin.reported_drops = True
            self._warn(origin, limit)

    def update(self, origin: Origin) -> None:
        """Apply the result of an attempt: if it failed, the requests wait for the next one."""
        seconds = self._seconds_left(origin)
        if seconds is not None:
            self._throttle.blocks.postpone(
                origin.host,
                origin.key,
                seconds,
                most=self._max_wait,
                then=self._retry,
                is_excepted=lambda request: self._is_excepted(request, origin.key),
            )
        else:
            origin.reported_drops = False

    def makes_wait(self, origin: Origin) -> bool:
        """Whether a new request waits for the next attempt, which is not too late for it."""
        seconds = self._seconds_left(origin)
        return seconds is not None and seconds <= self._max_wait

    def _seconds_left(self, origin: Origin) -> float | None:
        if not self.is_enabled:
            return None
        return origin.next_attempt(self._now(), self._unreachable_policy)

    def _retry(self, _: str, key: str, reason: BlockReason) -> None:
        self._policy_cache.unblock(key, reason, fetch=self._policy_cache.needs_fetch(key))

    def _warn(self, origin: Origin, limit: Limit) -> None:
        if limit is Limit.TIME:
            reason = (
                f"The next attempt, in {self._seconds_left(origin):.0f} s, is too late: a request "
                f"waits at most {self._max_wait:g} s. Increase REP_MAX_WAIT to keep these requests"
            )
        else:
            reason = (
                "As many requests wait as REP_MAX_WAITING allows. Increase it to keep more requests"
            )
        logger.warning(
            "Requests to %(origin)s are dropped, because its robots.txt is still unreachable "
            "(%(failure)s). %(reason)s.",
            {"origin": origin.key, "failure": origin.failure, "reason": reason},
            extra={"spider": self._crawler.spider},
        )
