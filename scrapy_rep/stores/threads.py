"""Calls that block, in threads: the one module of the stores that knows Scrapy's loops."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Threads:
    """Threads of its own, so that nothing else in the process waits for what happens there.

    Calls begin in the order in which they were made.
    """

    def __init__(self, number: int) -> None:
        self._executor = ThreadPoolExecutor(number, thread_name_prefix="robotstxt-store")
        self._under_way: set[Future[Any]] = set()

    async def run(self, call: Callable[..., T], *arguments: object) -> T:
        """What ``call`` returns or raises. Whoever waits may be cancelled; what has begun ends."""
        work = self._executor.submit(call, *arguments)
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        if is_asyncio_available():
            return await asyncio.wrap_future(work)
        return await _as_deferred(work)

    async def close(self, last: Callable[[], None]) -> None:
        """Make one last call, after all others."""
        before = tuple(self._under_way)

        def finish() -> None:
            wait(before)
            last()

        await self.run(finish)
        self._executor.shutdown(wait=False)


def _as_deferred(work: Future[T]) -> Deferred[T]:
    from twisted.internet import reactor  # there is one: it is no asyncio that runs

    def cancel(_: Deferred[T]) -> None:
        work.cancel()

    deferred: Deferred[T] = Deferred(cancel)

    def settle() -> None:
        if deferred.called:  # cancelled
            return
        error = work.exception()
        if error is None:
            deferred.callback(work.result())
        else:
            deferred.errback(error)

    def done(_: Future[T]) -> None:
        if not work.cancelled():
            reactor.callFromThread(settle)

    work.add_done_callback(done)
    return deferred
