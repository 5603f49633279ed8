"""Calls that block, in threads: the one module of the stores that knows Scrapy's loops."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from twisted.internet.defer import Deferred

from .base import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

QUEUE_LIMIT = 10.0
"""Seconds that a call waits at most until it begins. Where each call takes its time to fail, those
behind it fail at once."""

CALL_LIMIT = 30.0
"""Seconds after which a call counts as failed, whatever becomes of it."""


class Threads:
    """Threads of its own, so that nothing else in the process waits for what happens there.

    Calls begin in the order in which they were made.
    """

    def __init__(self, number: int) -> None:
        self._executor = ThreadPoolExecutor(number, thread_name_prefix="robotstxt-store")
        self._in_progress: set[Future[Any]] = set()
        self._closed = False

    async def run(
        self,
        call: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], object] | None = None,
        always: bool = False,
    ) -> T:
        """What ``call`` returns or raises. Whoever waits may be cancelled; what has begun ends.

        What has not begun by then is not done, unless it is to be done ``always``. Where the result
        comes too late for somebody who was cancelled, ``undo`` is called with it, in a thread.
        Raises StoreError for what does not begin, or end, in time.
        """
        if self._closed:
            raise StoreError("it is closed")
        one = _Call(call, arguments, undo)
        work = self._submit(one)
        try:
            return await _result(work, keep=always)
        except BaseException:
            if one.give_up():
                self._submit(one.take_back)
            raise

    async def close(self, last: Callable[[], None]) -> None:
        """Make one last call, after all others: those take :data:`CALL_LIMIT` seconds at most."""
        if self._closed:
            return
        self._closed = True
        until = monotonic() + CALL_LIMIT
        try:
            with suppress(StoreError):
                while True:
                    # Once at least: somebody may have been cancelled who does not know it yet.
                    before, left = tuple(self._in_progress), max(until - monotonic(), 0)
                    await _result(self._submit(partial(wait, before, left)), left, keep=True)
                    if not self._in_progress or not left:
                        break
                await _result(self._submit(last), keep=True)
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        work = self._executor.submit(call)
        self._in_progress.add(work)
        work.add_done_callback(self._in_progress.discard)
        return work


class _Call(Generic[T]):
    """One call, whose result may be given up at any moment."""

    def __init__(
        self,
        call: Callable[..., T],
        arguments: tuple[object, ...],
        undo: Callable[[T], object] | None,
    ) -> None:
        self._call = call
        self._arguments = arguments
        self._undo = undo
        self._made_at = monotonic()
        self._lock = Lock()
        self._abandoned = False
        self._results: list[T] = []
        """The result, once it is there; nothing before."""

    def __call__(self) -> T:
        if monotonic() - self._made_at > QUEUE_LIMIT:
            raise StoreError(f"it is too slow: a call has waited for {QUEUE_LIMIT:g} s")
        result = self._call(*self._arguments)
        with self._lock:
            self._results.append(result)
            late = self._abandoned
        if late:
            self.take_back()
        return result

    def give_up(self) -> bool:
        """Nobody waits for the result any longer. Whether it is there and has to be undone."""
        with self._lock:
            self._abandoned = True
            return self._undo is not None and bool(self._results)

    def take_back(self) -> None:
        """Undo it, where that can be done."""
        if self._undo is not None:
            self._undo(self._results[0])


async def _result(work: Future[T], limit: float | None = None, *, keep: bool = False) -> T:
    """What it comes to, in time. ``keep``: it is not cancelled with whoever waits for it."""
    limit = CALL_LIMIT if limit is None else limit
    if not is_asyncio_available():
        return await _as_deferred(work, limit, keep=keep)
    future = asyncio.wrap_future(work)
    try:
        await asyncio.wait((future,), timeout=limit)
        if not future.done():
            raise _too_late(limit)
        return future.result()
    finally:
        if not future.done():
            if keep:
                future.add_done_callback(lambda late: late.cancelled() or late.exception())
            else:
                future.cancel()


def _as_deferred(work: Future[T], limit: float, *, keep: bool = False) -> Deferred[T]:
    from twisted.internet import reactor  # there is one: it is no asyncio that runs

    clock: Any = reactor

    def cancel(_: Deferred[T]) -> None:
        if not keep:
            work.cancel()

    deferred: Deferred[T] = Deferred(cancel)

    def settle() -> None:
        if deferred.called:  # cancelled, or too late
            return
        error = work.exception()
        if error is None:
            deferred.callback(work.result())
        else:
            deferred.errback(error)

    def done(_: Future[T]) -> None:
        if not work.cancelled():
            reactor.callFromThread(settle)

    def stop(result: object) -> object:
        if timer.active():
            timer.cancel()
        return result

    timer = clock.callLater(limit, lambda: deferred.errback(_too_late(limit)))
    deferred.addBoth(stop)
    work.add_done_callback(done)
    return deferred


def _too_late(limit: float) -> StoreError:
    return StoreError(f"it has not answered for {limit:g} s")
