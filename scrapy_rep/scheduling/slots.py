"""The limits that Scrapy itself keeps: how many requests a host gets at once, and how often.

Scrapy 2.14 to 2.19 keep them in download slots. The throttler that Scrapy develops
(``crawler.throttler``) keeps them in *scopes*: by default, one for each host. It holds a request
back before the downloader middlewares get it, and counts it until its download has ended.

:attr:`.Engine.slots` is an instance of one of these classes, selected when a crawl starts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scrapy import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from twisted.internet.defer import Deferred

DEFAULT_DOMAIN_CONCURRENCY = 8
"""Scrapy's default of CONCURRENT_REQUESTS_PER_DOMAIN."""


class Slots:
    """The limits of a downloader of which nothing is known.

    ``concurrency`` is how many requests a host gets at once.
    """

    def __init__(self, concurrency: int = DEFAULT_DOMAIN_CONCURRENCY) -> None:
        self._concurrency = concurrency

    @property
    def transfers(self) -> set[Request]:
        """The requests that were given to download handlers and have not ended."""
        return set()

    def limits(self, request: Request) -> tuple[int, float]:  # noqa: ARG002
        """Return how many requests may be sent at once, and the seconds between two of them."""
        return self._concurrency, 0

    def count(self, request: Request) -> None:
        """Count a request that waits in a queue of this package."""

    def uncount(self, request: Request) -> None:
        """End what :meth:`count` began."""

    def release(self, request: Request) -> None:
        """Have Scrapy not count a request that waits inside of the downloader, or is not sent."""

    async def acquire(self, request: Request) -> None:
        """Return when Scrapy allows a request that waited inside of the downloader to be sent."""

    def set_pace(self, request: Request, host: str, seconds: float) -> None:
        """Have Scrapy send one request at a time to a host, and one in so many seconds.

        The next one is ``request``. 0 seconds do what :meth:`remove_pace` does.
        """

    def remove_pace(self, host: str) -> None:
        """End what :meth:`set_pace` began."""

    def is_queued(self, request: Request) -> bool:  # noqa: ARG002
        """Whether a request that the downloader has is held back by these limits."""
        return False

    def remove_queued(
        self,
        requests: Collection[Request],  # noqa: ARG002
    ) -> Iterable[tuple[Request, Deferred[Any], Callable[[], None]]]:
        """Remove those of ``requests`` that are in the queues of slots, and return them.

        Each comes with the Deferred that the downloader waits for, and a call that puts it back.
        """
        return ()


class DownloadSlots(Slots):
    """The download slots of Scrapy 2.14 to 2.19."""

    def __init__(self, downloader: Any, concurrency: int) -> None:
        super().__init__(concurrency)
        self._downloader = downloader
        self._counted: dict[Request, Any] = {}
        """The slots in which requests that wait are counted."""

    @property
    def transfers(self) -> set[Request]:
        """The requests that were given to download handlers and have not ended."""
        found: set[Request] = set()
        for slot in self._downloader.slots.values():
            found |= slot.transferring
        return found

    def limits(self, request: Request) -> tuple[int, float]:
        """Return how many requests a slot allows at once, and the seconds between two of them."""
        downloader = self._downloader
        slots = downloader.slots
        if slots:
            key = request.meta.get("download_slot") or downloader.get_slot_key(request)
            slot = slots.get(key)
            if slot is not None:
                return slot.concurrency, slot.delay
        return super().limits(request)

    def count(self, request: Request) -> None:
        """Count a request that waits in its download slot.

        Scrapy's scheduler prefers the slots with the fewest active requests. So the engine gets
        requests of other hosts first.
        """
        _, slot = self._downloader._get_slot(request)
        slot.active.add(request)
        self._counted[request] = slot

    def uncount(self, request: Request) -> None:
        """End what :meth:`count` began."""
        slot = self._counted.pop(request, None)
        if slot is not None:
            slot.active.discard(request)

    def is_queued(self, request: Request) -> bool:
        """Whether a request waits in the queue of its slot, because of DOWNLOAD_DELAY."""
        slot = self._downloader.slots.get(request.meta.get("download_slot"))
        return slot is not None and request in slot.active and request not in slot.transferring

    def remove_queued(
        self, requests: Collection[Request]
    ) -> Iterable[tuple[Request, Deferred[Any], Callable[[], None]]]:
        """Remove those of ``requests`` that are in the queues of slots, and return them.

        Each comes with the Deferred that the downloader waits for, and a call that puts it back.
        """
        removed = []
        # Not all slots are searched: a broad crawl has one for each host of the last minute.
        slots, wanted = self._downloader.slots, set(requests)
        keys = dict.fromkeys(request.meta.get("download_slot") for request in requests)
        for slot in [slots[key] for key in keys if key in slots]:
            for queued in [queued for queued in slot.queue if queued[0] in wanted]:
                slot.queue.remove(queued)
                removed.append((*queued, partial(self._put_back, slot, queued)))
        return removed

    def _put_back(self, slot: Any, queued: tuple[Request, Deferred[Any]]) -> None:
        slot.queue.append(queued)
        self._downloader._process_queue(slot)


class ThrottlingScopes(Slots):
    """The scopes of Scrapy's throttler. The pace of sites is kept without them."""

    def __init__(self, throttler: Any, downloader: Any) -> None:
        super().__init__()
        self._throttler = throttler
        self._downloader = downloader
        self._acquiring: set[Request] = set()

    @property
    def transfers(self) -> set[Request]:
        """The requests that were given to download handlers and have not ended."""
        return set(self._downloader._in_download_handler)

    def limits(self, request: Request) -> tuple[int, float]:
        """Return the lowest concurrency and the longest delay of the scopes of a request."""
        names = self._throttler.get_applied_scopes(request)
        scopes = [self._throttler.get_scope_manager(name) for name in names]
        if not scopes:
            return super().limits(request)
        return (
            min(scope.get_concurrency() for scope in scopes),
            max(scope.get_base_delay() for scope in scopes),
        )

    def release(self, request: Request) -> None:
        """Give back the place of a request in its scopes.

        Otherwise, a request that is to start first could wait for this place in the throttler.
        """
        self._throttler.release(request)

    async def acquire(self, request: Request) -> None:
        """Return when the throttler allows a request that waited to be sent.

        Other requests may wait for this one: ``unscheduled`` has the throttler lend it their place.
        """
        self._acquiring.add(request)
        try:
            await self._throttler.acquire(request, unscheduled=True)
        finally:
            self._acquiring.discard(request)

    def is_queued(self, request: Request) -> bool:
        """Whether a request that has waited is held back by the throttler."""
        return request in self._acquiring


@dataclass(frozen=True, slots=True)
class Paced:
    """A scope that has the pace of a site, and the limits that it has without."""

    scope: Any
    delay: float
    concurrency: int
    jitter: float
    paced_delay: float
    """The delay that it was given. Another one was set by another component."""


class PacedScopes(ThrottlingScopes):
    """The scopes of Scrapy's throttler, which get the pace of sites.

    The scope that has the name of a host gets its pace. A scope with another name is the choice of
    a project, and may hold other sites: they are not slowed.

    The queues of this package keep the pace, too. They know which requests were not sent, and start
    no request that would have to wait in the throttler, where it would use up CONCURRENT_REQUESTS.
    """

    def __init__(self, throttler: Any, downloader: Any) -> None:
        super().__init__(throttler, downloader)
        self._paced: dict[str, Paced] = {}
        """The scopes that have the pace of a site, by host."""

    def release(self, request: Request) -> None:
        """Give back the place of a request in its scopes, and the delay that it began there.

        The throttler counts a request before the middlewares may drop or answer it.
        """
        super().release(request)
        for name in self._throttler.get_applied_scopes(request):
            if name in self._paced:
                self._paced[name].scope._next_allowed_time = None

    def set_pace(self, request: Request, host: str, seconds: float) -> None:
        """Set the delay of the scope of a host, a concurrency of 1, and no random part.

        The delay is never shorter than the one that the scope has without.
        """
        if not seconds:
            self.remove_pace(host)
            return
        if host not in self._throttler.get_applied_scopes(request):
            return
        # The throttler forgets idle scopes, and makes them anew from the configuration.
        scope = self._throttler.get_scope_manager(host)
        delay = scope.get_base_delay()
        known = self._paced.get(host)
        if known is None or known.scope is not scope:
            known = Paced(scope, delay, scope.get_concurrency(), scope._jitter, delay)
        elif delay != known.paced_delay:
            known = replace(known, delay=delay)
        paced_delay = max(known.delay, seconds)
        self._paced[host] = replace(known, paced_delay=paced_delay)
        scope.set_base_delay(paced_delay, only_increase=False)
        scope.set_concurrency(1)
        scope._jitter = 0.0

    def remove_pace(self, host: str) -> None:
        """Restore the limits of the scope of a host. A delay of another component stays."""
        known = self._paced.pop(host, None)
        if known is None:
            return
        if known.scope.get_base_delay() == known.paced_delay:
            known.scope.set_base_delay(known.delay, only_increase=False)
            if known.scope._next_allowed_time is not None:
                known.scope._next_allowed_time -= known.paced_delay - known.delay
        known.scope.set_concurrency(known.concurrency)
        known.scope._jitter = known.jitter


PROBE = "scrapy-rep"
"""The name of the slot or scope that is made to find out what it has."""


def new_slot(downloader: Any) -> Any:
    """Return a new download slot; None if the downloader has none, or other ones."""
    if not hasattr(downloader, "_get_slot") or not isinstance(
        getattr(downloader, "slots", None), dict
    ):
        return None
    try:
        request = Request("data:,", meta={"download_slot": PROBE})
        key, slot = downloader._get_slot(request)
    except Exception:  # of a downloader with another kind of slots
        return None
    downloader.slots.pop(key, None)
    return slot


def any_scope(throttler: Any) -> Any:
    """Return the manager of a scope; None if the throttler has none."""
    try:
        return throttler.get_scope_manager(PROBE)
    except Exception:  # of a throttler with another interface
        return None
