"""The policies of a crawl: the robots.txt of each origin, for which requests wait in a queue."""

from __future__ import annotations

import logging
from collections import OrderedDict
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy import signals

from ..fetch.fetcher import TOO_MANY_REDIRECTS, Fetcher
from ..fetch.redirects import NOT_PUBLIC
from ..origin import Action, Origin, State
from ..protocol.access import Unreachable
from ..protocol.paths import host_of
from ..robotparser import RobotParser
from ..scheduling.fetch_limit import FetchLimit
from ..scheduling.hosts import BlockReason
from .archiving import open_archive
from .file_cache import FileCache
from .policy_store import open_policy_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler

    from ..origin import UnreachablePolicy
    from ..protocol.access import FetchResult
    from ..protocol.robotstxt import RobotsTxt
    from ..scheduling.clock import Clock
    from ..scheduling.engine import Engine
    from ..scheduling.throttle import Throttle
    from ..settings import Settings
    from ..stores import Store
    from .recorder import Recorder

logger = logging.getLogger(__name__)

MIN_USE = 1.0
"""Seconds for which requests that waited for a fetch use its result, even if it expires earlier."""

# Scrapy has this signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class PolicyCache(FileCache[Origin]):
    """The policies of one crawl, by origin.

    After each fetch, ``on_policy`` is called with the origin and with the request that started the
    fetch. ``new_origin`` returns a new origin for its normal form.
    """

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        throttle: Throttle,
        clock: Clock,
        unreachable_policy: UnreachablePolicy,
        on_policy: Callable[[Origin, Request], object],
        new_origin: Callable[[str], Origin],
    ) -> None:
        assert crawler.stats is not None
        self.store = open_policy_store(settings, crawler.stats, clock, self.now)
        """The store; None if the crawl has none."""
        if self.store is not None:
            crawler.signals.connect(self.store.close, signal=signals.spider_closed)
        self._fetch_limit = FetchLimit(
            settings.concurrent_fetches,
            clock,
            on_capacity=self.unblock_origins,
            is_downloading=lambda: engine.is_downloading,
        )
        self._blocked_by_limit: OrderedDict[str, None] = OrderedDict()
        """Origins whose requests wait until REP_CONCURRENT_FETCHES allows another fetch. In a dict,
        a search for the first one passes over all that were removed."""
        archive = open_archive(crawler, settings, clock)
        shared = self.shared_store is not None
        self.fetcher = Fetcher(
            crawler,
            settings,
            engine,
            throttle,
            self._fetch_limit,
            clock,
            shared=shared,
            record=archive.record if archive is not None else None,
        )
        self.recorder: Recorder | None = None
        self.can_fetch_early = False
        """Whether a fetch may begin while the first request of its origin is in its queue, where it
        costs less than in the downloader. Otherwise the fetch begins when the downloader has the
        request: another middleware may drop it, or send it elsewhere."""
        super().__init__(crawler, settings, clock, self.fetcher, self.store, new_origin)
        self.companions: list[FileCache[Any]] = []
        """Caches of other files, which are closed with this one and use the same clock."""
        self._throttle = throttle
        self._unreachable_policy = unreachable_policy
        self._on_policy = on_policy

    @property
    def origins(self) -> Mapping[str, Origin]:
        """The origins in memory, by their normal form. Read-only."""
        return self.files

    @property
    def shared_store(self) -> Store | None:
        """The store if several crawlers can share it; else None."""
        return self.store.store if self.store is not None and self.store.store.shared else None

    def get_or_fetch(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy can be used, else start a fetch and return None.

        The queue of the origin is blocked until the fetch ends. Also returns None if the policy has
        to be fetched and the spider is closing.
        """
        origin = super().get_or_fetch(key, request)
        if origin is None and self._parsed[key].in_flight:
            self._throttle.blocks.block(host_of(key), key, BlockReason.POLICY)
        return origin

    def _has_waiting(self, key: str) -> bool:
        return super()._has_waiting(key) or self._throttle.has_waiting(host_of(key), key)

    def _is_in_use(self, key: str) -> bool:
        return super()._is_in_use(key) or self._throttle.is_in_use(host_of(key), key)

    def _next_action(self, file: Origin, request: Request) -> Action:
        # A request that waited uses the result of the fetch even if it has expired since. Otherwise
        # no page would be fetched from a site whose delay is longer than the lifetime of its file.
        if not file.in_flight and self._throttle.is_in_progress(request):
            usable_for = max(2 * self._throttle.delay(file.host), MIN_USE)
            if self._clock.monotonic() < file.answered_at + usable_for:
                return Action.NONE
        return super()._next_action(file, request)

    def needs_fetch(self, key: str) -> bool:
        """Whether requests to an origin have to wait for a fetch of its robots.txt."""
        origin = self._files.find(key)
        return origin is None or origin.next_action(self.now()) in (Action.FETCH, Action.WAIT)

    def disallows_all(self, key: str) -> bool:
        """Whether no request to an origin is allowed now, whatever its URL is."""
        origin = self._files.find(key)
        return (
            origin is not None
            and origin.disallows_all(self.now(), self._unreachable_policy)
            and not self.needs_fetch(key)
        )

    @property
    def allows_fetch(self) -> bool:
        """Whether REP_CONCURRENT_FETCHES allows another fetch now."""
        return bool(self._fetch_limit.capacity) or self._closing

    def fetches_early(self, key: str) -> bool:
        """Whether the fetch for the first request of an origin begins while it is in its queue."""
        return self.can_fetch_early and key not in self.files

    def fetch_when_allowed(self, key: str, request: Request) -> None:
        """Fetch the robots.txt of an origin for a request that is put into its queue.

        If REP_CONCURRENT_FETCHES does not allow it yet, the queue is blocked until it does.
        """
        if self.fetches_early(key) and self.allows_fetch:
            self.get_or_fetch(key, request)
        elif key not in self._blocked_by_limit and not (
            key in self._parsed and self._parsed[key].in_flight
        ):
            self._throttle.blocks.block(host_of(key), key, BlockReason.FETCH_LIMIT)
            self._blocked_by_limit[key] = None

    def share_connections(self, connections: int) -> None:
        """Limit the fetches to a share of a connection pool that pages use, too."""
        self._fetch_limit.share(connections)

    def unblock_origins(self) -> None:
        """Unblock as many origins as REP_CONCURRENT_FETCHES allows to fetch."""
        self._fetch_limit.end_oldest(len(self._blocked_by_limit))
        for key in tuple(islice(self._blocked_by_limit, self._fetch_limit.capacity)):
            # If a fetch ends at once, this method is called again, and has removed the next keys.
            if key in self._blocked_by_limit:
                del self._blocked_by_limit[key]
                self.unblock(key, BlockReason.FETCH_LIMIT, fetch=self.fetches_early(key))

    def unblock(self, key: str, reason: BlockReason, *, fetch: bool) -> None:
        """End what blocks the queue of an origin for this reason.

        If ``fetch`` is set, a fetch for the first request of the queue begins. It blocks the queue,
        too.
        """
        request = self._throttle.blocks.first_waiting(host_of(key), key) if fetch else None
        if request is not None:
            self.get_or_fetch(key, request)
        self._throttle.blocks.unblock(host_of(key), key, reason)

    def poll(self) -> None:
        """Do the work that no request causes. Called twice a second."""
        self._fetch_limit.update()
        self.unblock_origins()
        self.fetcher.disconnect_idle()
        self.now()  # notes a change of the system clock
        self.evict()

    def close(self) -> None:
        super().close()
        for cache in self.companions:
            cache.close()

    def cancel_background_fetches(self) -> None:
        super().cancel_background_fetches()
        for cache in self.companions:
            cache.cancel_background_fetches()

    def _shift_clock(self, step: float, now: float) -> None:
        super()._shift_clock(step, now)
        for cache in self.companions:
            cache.now()
        if self.store is not None:
            self.store.shift_clock(step, now)

    async def _on_content(self, content: RobotsTxt, page: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RobotParser(content), request=page
            )

    def _on_result(self, file: Origin, page: Request) -> None:
        self._on_policy(file, page)

    def _record_fetch(self, file: Origin, event: FetchResult, body: bytes | None) -> None:
        if self.recorder is not None:
            self.recorder.fetched(file, event, body, from_store=file.from_store)

    def _on_end(self, file: Origin) -> None:
        self._throttle.blocks.unblock(file.host, file.key, BlockReason.POLICY)

    def _record_result(self, file: Origin, event: FetchResult) -> None:
        """Count a failed fetch. Warn about the first one of an outage."""
        super()._record_result(file, event)
        if not isinstance(event, Unreachable):
            return
        if file.state is not State.UNREACHABLE or file.failures > 1:
            return
        now = self.now()
        if file.robots is not None:
            effect = "Its last good copy is used"
        elif self._settings.unreachable == "allow":
            effect = "All requests to the site are allowed, because REP_UNREACHABLE is 'allow'"
        elif self._settings.unreachable == "wait":
            effect = (
                f"Requests to the site wait up to {self._settings.max_wait:g} s (REP_MAX_WAIT), "
                f"then they are dropped. The next attempt is in {file.refresh_at - now:.0f} s"
            )
        else:
            effect = (
                "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch "
                f"succeeds. To change that, set {' or '.join(settings_for(event))}"
            )
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s. %(effect)s.",
            {"origin": file.key, "failure": event.failure.rstrip("."), "effect": effect},
            extra={"spider": self._crawler.spider},
        )


def settings_for(event: Unreachable) -> list[str]:
    """Return the settings that change what a failure means, the most specific one first."""
    status = event.status or 0
    names = ["REP_UNREACHABLE"]
    if event.failure == TOO_MANY_REDIRECTS:
        names.insert(0, "REP_TOO_MANY_REDIRECTS")
    elif event.failure.endswith(NOT_PUBLIC):
        names.insert(0, "REP_ALLOW_PRIVATE_REDIRECTS")
    elif 400 <= status <= 499:
        names.insert(0, "REP_UNREACHABLE_STATUSES")
    elif 500 <= status <= 599:
        names.insert(0, "REP_5XX_AS_404")
    return names
