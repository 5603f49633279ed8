"""The requests that have started: they wait no longer, and have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request
    from scrapy.signalmanager import SignalManager

    from .engine import Engine
    from .hosts import Host, WaitingRequest
    from .rendering import RenderingService


class RequestsInProgress:
    """The requests in progress of one crawl.

    A request that leaves a queue starts. After that, the middleware checks it against the policy of
    that time. Until then, the request is *unchecked*.
    """

    def __init__(self, engine: Engine, rendering: RenderingService) -> None:
        self._engine = engine
        self._rendering = rendering
        self._hosts: dict[Request, Host] = {}
        self._unchecked: set[Request] = set()
        self._finish: Callable[..., None] | None = None

    def listen(self, manager: SignalManager, finish: Callable[..., None]) -> None:
        """Call ``finish(request, sent=...)`` when a signal says that a request has ended."""
        if self._finish is None:
            self._finish = finish
            manager.connect(self._left_downloader, signal=signals.request_left_downloader)

    def _left_downloader(self, request: Request) -> None:
        assert self._finish is not None
        self._finish(request, sent=True)

    def __len__(self) -> int:
        return len(self._hosts)

    def __contains__(self, request: Request) -> bool:
        return request in self._hosts

    def host(self, request: Request) -> Host | None:
        """Return the host of a request, if the request is in progress."""
        return self._hosts.get(request)

    def entry(self, request: Request) -> WaitingRequest | None:
        """Return a request as it waited before, if it is in progress."""
        host = self._hosts.get(request)
        return host.in_progress[request] if host is not None else None

    def start(self, host: Host, entry: WaitingRequest, *, checked: bool) -> None:
        """Add a request. ``checked`` is False for one that comes from a queue."""
        self._engine.slots.set_pace(entry.request, host.name, host.delay)
        host.in_progress[entry.request] = entry
        self._hosts[entry.request] = host
        if not checked:
            self._unchecked.add(entry.request)

    def remove(self, request: Request) -> WaitingRequest | None:
        """Remove a request that has ended or waits again. Return it as it waited before."""
        self._unchecked.discard(request)
        host = self._hosts.pop(request, None)
        return host.in_progress.pop(request, None) if host is not None else None

    def has_unchecked(self, host: Host, key: str) -> bool:
        """Whether a request of an origin has started and is not checked."""
        return any(
            self._rendering.origin(request) == key
            for request in host.in_progress
            if request in self._unchecked
        )

    def ended(self) -> Iterator[tuple[Request, bool]]:
        """Return the requests that the downloader no longer has, and whether each may be sent.

        There was no signal for them: another middleware has dropped, answered or replaced them.
        """
        for request in tuple(self._hosts):
            if not self._engine.is_active(request):
                is_checked = request not in self._unchecked
                may_be_sent = is_checked and self._engine.has_reached_slot(request)
                yield request, may_be_sent and not self._rendering.is_replaced(request)


def waiter_of(
    request: Request,
    download: Deferred[Any],
    put_back: Callable[[], None],
    try_reschedule: Callable[[Request], bool],
    cancelled: Callable[[], None],
) -> Deferred[bool]:
    """Return the waiter of a request that was removed from the queue of its download slot.

    The waiter puts the request back when it may start. When the spider closes, the waiter ends the
    download. ``cancelled`` is called if the download was cancelled in the meantime.
    """

    def end_wait(may_start: bool) -> bool:
        if download.called:
            cancelled()
        elif may_start:
            put_back()
        elif try_reschedule(request):
            download.callback(request)
        else:
            download.errback(IgnoreRequest("the spider is closing"))
        return may_start

    waiter: Deferred[bool] = Deferred()
    waiter.addCallback(end_wait)
    return waiter
