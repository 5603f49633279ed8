"""Decides which requests of the scheduler have to wait, and puts these into their queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..meta_keys import DONT_OBEY
from ..protocol.paths import host_of
from ..scheduling.hosts import EXEMPT

if TYPE_CHECKING:
    from scrapy import Request

    from ..scheduling.hosts import WaitingRequest
    from ..scheduling.rendering import RenderingService
    from ..scheduling.throttle import Throttle
    from .outages import Outages
    from .policy_cache import PolicyCache
    from .wait_stats import WaitStats


class AdmissionControl:
    """The part of the middleware that the scheduler calls."""

    def __init__(
        self,
        rendering: RenderingService,
        throttle: Throttle,
        policy_cache: PolicyCache,
        outages: Outages,
        wait_stats: WaitStats,
    ) -> None:
        self._origin_of = rendering.origin
        self._throttle = throttle
        self._policy_cache = policy_cache
        self._outages = outages
        self._wait_stats = wait_stats

    def queue_for(self, request: Request) -> tuple[str, str] | None:
        """Return the host and the queue in which a request has to wait; None if it may proceed."""
        key = self._origin_of(request)
        if key is None:
            return None
        if "_splash_processed" in request.meta:
            # The request that this one was made from has ended just now.
            self._throttle.collect_finished()
        name = host_of(key)
        exempt = request.meta.get(DONT_OBEY) or self._outages.has_exception(request, key)
        queue = name, EXEMPT if exempt else key
        if self._throttle.has_queue(*queue):
            # If the queue of an unreachable site is full, the middleware gets the request, and
            # drops it.
            return None if self._throttle.blocks.is_full(*queue) else queue
        if not exempt and self._policy_cache.needs_fetch(key):
            must_wait = self._policy_cache.fetches_early(key) or not self._policy_cache.allows_fetch
            return queue if must_wait else None
        # A request that is dropped must not come before others.
        if not exempt and self._is_dropped(key):
            return queue
        return queue if self._throttle.is_throttled(name, request) else None

    def is_dropped(self, entry: WaitingRequest) -> bool:
        """Whether a request in a queue is dropped when it starts: because it is overdue, or because
        its site disallows all requests.
        """
        if entry.limit is not None:
            return True
        key = None if entry.request.meta.get(DONT_OBEY) else self._origin_of(entry.request)
        return key is not None and self._is_dropped(key)

    def _is_dropped(self, key: str) -> bool:
        return self._policy_cache.disallows_all(key) and not self._outages.makes_wait(
            self._policy_cache.origins[key]
        )

    def enqueue(self, request: Request, queue: tuple[str, str]) -> None:
        """Put a request into its queue."""
        name, key = queue
        needs_fetch = self._throttle.blocks.is_blocked_for_fetch(name, key)  # the usual case
        if not needs_fetch and key != EXEMPT and self._policy_cache.needs_fetch(key):
            needs_fetch = True
            self._policy_cache.fetch_when_allowed(key, request)
        origin = self._policy_cache.origins.get(key)
        is_outage = origin is not None and self._outages.applies_to(origin)
        self._throttle.enqueue(request, name, key, for_policy=needs_fetch or is_outage)

    def count_wait(self, entry: WaitingRequest) -> None:
        """Count the wait of a request that leaves its queue."""
        for_policy = entry.for_policy
        if for_policy is None:
            key = self._origin_of(entry.request)
            origin = self._policy_cache.origins.get(key) if key is not None else None
            # The policy of its origin was not known when it began to wait.
            for_policy = origin is not None and origin.answered_at >= entry.arrived
        self._wait_stats.start(entry.request, for_policy=for_policy, since=entry.arrived)
