"""The queues that are blocked: no request of them may start, whatever the pace of their host.

A queue is blocked while the robots.txt of its origin is fetched, until the next attempt to fetch an
unreachable one, and outside of a Visit-time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import Timer
from .hosts import BlockReason, Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from .clock import Clock
    from .hosts import Host
    from .in_progress import RequestsInProgress
    from .queues import WaitQueues

_FOR_FETCH = frozenset({BlockReason.POLICY, BlockReason.FETCH_LIMIT})


class Blocks:
    """Blocks and unblocks the queues of one crawl.

    ``host`` returns the host of a name, which is created if there is none. ``update`` starts the
    requests of a host that may start.
    """

    def __init__(
        self,
        queues: WaitQueues,
        in_progress: RequestsInProgress,
        clock: Clock,
        host: Callable[[str], Host],
        update: Callable[[Host], None],
    ) -> None:
        self._queues = queues
        self._in_progress = in_progress
        self._clock = clock
        self._host = host
        self._update = update
        self.on_queue_change: Callable[[], None] = lambda: None
        """Called when requests that the scheduler has may no longer have to wait."""

    def block(self, name: str, key: str, reason: BlockReason) -> None:
        """Start no request of a queue until :meth:`unblock` is called."""
        self._host(name).queue(key).blocks.setdefault(reason, None)

    def block_for(
        self,
        name: str,
        key: str,
        seconds: float,
        reason: BlockReason,
        then: Callable[[str, str, BlockReason], None] | None = None,
    ) -> None:
        """Start no request of a queue for so many seconds.

        Then ``then`` is called with the host, the key and the reason: it has to call
        :meth:`unblock`. Without ``then`` the queue is unblocked.
        """
        if self._queues.closed:
            return
        queue = self._host(name).queue(key)
        if reason not in queue.blocks:
            timer = queue.blocks[reason] = Timer(self._clock)
            timer.start(seconds, then or self.unblock, name, key, reason)
        if reason is BlockReason.UNREACHABLE:
            self.on_queue_change()

    def unblock(self, name: str, key: str, reason: BlockReason) -> None:
        """End what :meth:`block` or :meth:`block_for` began for this reason."""
        queue = self._queues.find(name, key)
        if queue is not None and reason in queue.blocks:
            queue.unblock(reason)
            self._update(self._queues.hosts[name])
            self.on_queue_change()

    def postpone(
        self,
        name: str,
        key: str,
        seconds: float,
        *,
        most: float,
        then: Callable[[str, str, BlockReason], None],
        is_excepted: Callable[[Request], bool] = lambda _: False,
    ) -> None:
        """Block the queue of an unreachable origin for so many seconds more, as :meth:`block_for`.

        Requests that would wait for more than ``most`` seconds in all, those that are excepted, and
        those for which there is no capacity, move to the queue :data:`~.hosts.OVERDUE`, which is
        not blocked.
        """
        queue = self._queues.find(name, key)
        if queue is None:
            return
        host = self._queues.hosts[name]
        self._queues.load_all(host, queue)
        latest = self._clock.monotonic() + seconds - most
        self._queues.move_overdue(host, queue, latest, is_excepted)
        if queue:
            self.block_for(name, key, seconds, BlockReason.UNREACHABLE, then)
        self._update(host)

    def limit(
        self, request: Request, name: str, key: str, seconds: float, most: float
    ) -> Limit | None:
        """Return why a request may not wait for an unreachable origin for so many seconds.

        It may wait for ``most`` seconds in all. None means that it may wait.
        """
        if (overdue := self.overdue(request)) is not None:
            return overdue
        now = self._clock.monotonic()
        entry = self._in_progress.entry(request)
        if now + seconds > (now if entry is None else entry.arrived) + most:
            return Limit.TIME
        return None if self._queues.has_capacity(name, key) else Limit.NUMBER

    def overdue(self, request: Request) -> Limit | None:
        """Return why a request that has started could not wait any longer, if it is overdue."""
        entry = self._in_progress.entry(request)
        return None if entry is None else entry.limit

    def is_full(self, name: str, key: str) -> bool:
        """Whether an origin is unreachable, and no more of its requests may wait."""
        queue = self._queues.find(name, key)
        is_unreachable = queue is not None and BlockReason.UNREACHABLE in queue.blocks
        return is_unreachable and not self._queues.has_capacity(name, key)

    def is_blocked_for_fetch(self, name: str, key: str) -> bool:
        """Whether a queue is blocked because the robots.txt of its origin is being fetched, or
        cannot be fetched yet.
        """
        queue = self._queues.find(name, key)
        return queue is not None and not _FOR_FETCH.isdisjoint(queue.blocks)

    def first_waiting(self, name: str, key: str) -> Request | None:
        """Return the first request that waits for an origin, if there is one."""
        queue = self._queues.find(name, key)
        return queue.first() if queue is not None else None
