"""The base of the stores whose calls block.

A subclass implements the blocking methods, which begin with an underscore and run in a thread, and
:meth:`ThreadedStore._errors`, which translates the errors of its client library. This class makes
the async methods of :class:`~.base.Store` of them.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from typing import Any, Literal, TypeVar

from scrapy.utils.asyncio import call_later, is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from .base import Claim, StoreError
from .entry import Entry, decode

T = TypeVar("T")

CALL_TIMEOUT = 30.0
"""Seconds after which a call has failed, even if it is still in progress. The default of
REP_TIMEOUT: after it, a fetch would have been as fast."""


class ThreadedStore(ABC):
    """A store whose calls run in ``threads`` threads of its own, in the order they were made in.

    A call always runs to its end, even if it was cancelled meanwhile.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="robotstxt-store")
        self._is_closed = False

    @abstractmethod
    def open(self) -> None:
        """Implement :meth:`.Store.open`."""

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        last = ThreadPoolExecutor(1)
        ended = last.submit(self._end)
        last.shutdown(wait=False)
        with suppress(TimeoutError):
            await result_of(ended, CALL_TIMEOUT)

    async def get(self, origin: str) -> Entry | None:
        return await self._run(self._get, origin)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        return await self._run(self._put, origin, entry, fence)

    async def claim(self, origin: str, seconds: float) -> Claim:
        return await self._run(self._claim, origin, seconds)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin)

    async def reserve_host(self, host: str, lease: float) -> float:
        return await self._run(self._reserve_host, host, lease)

    async def release_host(self, host: str, delay: float) -> None:
        await self._run(self._release_host, host, delay)

    # For tools, which have no event loop

    def entries(self) -> Iterator[tuple[str, Entry | None]]:
        """Yield the keys and entries of the store; None for an entry that cannot be read.

        An entry that changes meanwhile may be yielded as it was or as it is. Only a few are in
        memory at once. This blocks. Raises StoreError.
        """
        with self._errors():
            yield from ((key, decoded(data)) for key, data in self._entries())

    def count(self) -> int | None:
        """Return the number of keys that `entries` yields; None if it is not known in advance."""
        return None

    def add(
        self, key: str, entry: Entry, *, replace: bool
    ) -> Literal["added", "replaced", "older"]:
        """Store an entry, unless there is one that is as new. Returns what was done.

        With ``replace``, it also replaces a newer entry. This blocks. Raises StoreError.
        """
        current = self._call(self._get, key)
        if not replace and current is not None and current.fetched_at >= entry.fetched_at:
            return "older"
        self._call(self._put, key, entry, None)
        return "added" if current is None else "replaced"

    # Blocking methods, which implement those of Store

    @abstractmethod
    def _get(self, origin: str) -> Entry | None: ...
    @abstractmethod
    def _put(self, origin: str, entry: Entry, fence: int | None) -> bool: ...
    @abstractmethod
    def _claim(self, origin: str, seconds: float) -> Claim: ...
    @abstractmethod
    def _release(self, origin: str) -> None: ...
    @abstractmethod
    def _reserve_host(self, host: str, lease: float) -> float: ...
    @abstractmethod
    def _release_host(self, host: str, delay: float) -> None: ...
    @abstractmethod
    def _entries(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the keys and the bytes of all entries; None for what cannot be an entry."""

    @abstractmethod
    def disconnect(self) -> None:
        """Close the connections. Never raises."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Return a context manager that turns the errors of the client library into StoreError."""

    async def _run(self, method: Callable[..., T], *arguments: object) -> T:
        if self._is_closed:
            raise StoreError("it is closed")
        try:
            work = self._threads.submit(self._call, method, *arguments)
            return await result_of(work, CALL_TIMEOUT)
        except TimeoutError:
            raise StoreError(f"it has not answered for {CALL_TIMEOUT:g} s") from None

    def _call(self, method: Callable[..., T], *arguments: object) -> T:
        with self._errors():
            return method(*arguments)

    def _end(self) -> None:
        self._threads.shutdown()
        self.disconnect()


def decoded(data: bytes | None) -> Entry | None:
    """Return the entry that some bytes represent; None if they are damaged, or no entry."""
    try:
        return None if data is None else decode(data)
    except ValueError:
        return None


async def result_of(work: Future[T], timeout: float) -> T:
    """Return the result of ``work``, on each event loop. A cancellation does not end the work.

    Raises TimeoutError if it takes longer than ``timeout`` seconds.
    """
    deferred: Deferred[T] = Deferred()

    def end(error: BaseException | None) -> None:
        if not deferred.called:  # else it was cancelled, or timed out
            deferred.callback(work.result()) if error is None else deferred.errback(error)

    if is_asyncio_available():
        call_in_loop: Any = asyncio.get_running_loop().call_soon_threadsafe
    else:
        from twisted.internet import reactor  # one is installed, since asyncio does not run

        call_in_loop = reactor.callFromThread

    def ended(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            call_in_loop(end, work.exception())

    work.add_done_callback(ended)
    timer = call_later(timeout, end, TimeoutError(f"it took more than {timeout:g} s"))
    try:
        return await maybe_deferred_to_future(deferred)
    finally:
        timer.cancel()
