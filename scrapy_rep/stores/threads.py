"""Threads for blocking calls. Only this module of the stores depends on Scrapy's event loops."""

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

QUEUE_TIMEOUT = 10.0
"""Seconds that a call may wait in the queue until it starts. Twice the 5 s after which a call to
SQLite or Redis fails, so that calls behind two failing ones fail at once."""

CALL_TIMEOUT = 30.0
"""Seconds after which a call counts as failed, even if it is still in progress. The default of
REP_TIMEOUT: after it, a fetch would have been as fast."""


class ThreadPool:
    """Threads for the calls of one store, so that no other part of the process waits for them.

    Calls start in the order in which they were made.
    """

    def __init__(self, size: int) -> None:
        self._executor = ThreadPoolExecutor(size, thread_name_prefix="robotstxt-store")
        self._in_progress: set[Future[Any]] = set()
        self._closed = False

    async def run(
        self,
        function: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], object] | None = None,
        shield: bool = False,
    ) -> T:
        """Call ``function`` in a thread, and return its result or raise its exception.

        A cancellation prevents a call that has not started, unless ``shield`` is true. A call that
        has started ends normally; then a thread calls ``undo``, if given, with its result.

        Raises StoreError for a call that does not start within :data:`QUEUE_TIMEOUT`, or does not
        end within :data:`CALL_TIMEOUT`.
        """
        if self._closed:
            raise StoreError("it is closed")
        call = _Call(function, arguments, undo)
        work = self._submit(call)
        try:
            return await _result(work, shield=shield)
        except BaseException:
            if call.abandon():
                self._submit(call.undo)
            raise

    async def close(self, function: Callable[[], None]) -> None:
        """Call ``function`` in a thread after all other calls, and end the threads.

        Waits for the other calls for at most :data:`CALL_TIMEOUT` seconds.
        """
        if self._closed:
            return
        self._closed = True
        until = monotonic() + CALL_TIMEOUT
        try:
            with suppress(StoreError):
                while True:
                    # At least once: a call that was just cancelled may still submit its undo.
                    before, left = tuple(self._in_progress), max(until - monotonic(), 0)
                    await _result(self._submit(partial(wait, before, left)), left, shield=True)
                    if not self._in_progress or not left:
                        break
                await _result(self._submit(function), shield=True)
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        work = self._executor.submit(call)
        self._in_progress.add(work)
        work.add_done_callback(self._in_progress.discard)
        return work


class _Call(Generic[T]):
    """One call in a thread. The caller may abandon its result at any moment."""

    def __init__(
        self,
        function: Callable[..., T],
        arguments: tuple[object, ...],
        undo: Callable[[T], object] | None,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._undo = undo
        self._made_at = monotonic()
        self._lock = Lock()
        self._abandoned = False
        self._results: list[T] = []
        """The result, once there is one."""

    def __call__(self) -> T:
        if monotonic() - self._made_at > QUEUE_TIMEOUT:
            raise StoreError(f"it is too slow: a call has waited for {QUEUE_TIMEOUT:g} s")
        result = self._function(*self._arguments)
        with self._lock:
            self._results.append(result)
            abandoned = self._abandoned
        if abandoned:
            self.undo()
        return result

    def abandon(self) -> bool:
        """Discard the result. Returns whether the caller must call :meth:`undo`."""
        with self._lock:
            self._abandoned = True
            return self._undo is not None and bool(self._results)

    def undo(self) -> None:
        """Undo the call, if it can be undone. It must have a result."""
        if self._undo is not None:
            self._undo(self._results[0])


async def _result(work: Future[T], timeout: float | None = None, *, shield: bool = False) -> T:
    """Return the result of ``work``. Without ``shield``, a cancellation also cancels ``work``."""
    timeout = CALL_TIMEOUT if timeout is None else timeout
    if not is_asyncio_available():
        return await _as_deferred(work, timeout, shield=shield)
    future = asyncio.wrap_future(work)
    try:
        await asyncio.wait((future,), timeout=timeout)
        if not future.done():
            raise _timeout_error(timeout)
        return future.result()
    finally:
        if not future.done():
            if shield:
                future.add_done_callback(lambda late: late.cancelled() or late.exception())
            else:
                future.cancel()


def _as_deferred(work: Future[T], timeout: float, *, shield: bool = False) -> Deferred[T]:
    from twisted.internet import reactor  # one is installed, since asyncio does not run

    clock: Any = reactor

    def cancel(_: Deferred[T]) -> None:
        if not shield:
            work.cancel()

    deferred: Deferred[T] = Deferred(cancel)

    def fire() -> None:
        if deferred.called:  # cancelled, or timed out
            return
        error = work.exception()
        if error is None:
            deferred.callback(work.result())
        else:
            deferred.errback(error)

    def on_done(_: Future[T]) -> None:
        if not work.cancelled():
            reactor.callFromThread(fire)

    def stop_timer(result: object) -> object:
        if timer.active():
            timer.cancel()
        return result

    timer = clock.callLater(timeout, lambda: deferred.errback(_timeout_error(timeout)))
    deferred.addBoth(stop_timer)
    work.add_done_callback(on_done)
    return deferred


def _timeout_error(timeout: float) -> StoreError:
    return StoreError(f"it has not answered for {timeout:g} s")
