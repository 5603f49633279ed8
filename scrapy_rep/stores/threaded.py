"""The base of the stores whose calls block. It makes the calls in threads.

A subclass implements the blocking methods, which begin with an underscore and run in a thread, and
:meth:`ThreadedStore._errors`, which translates the errors of its client library. This class makes
the async methods of :class:`~.base.Store` of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeVar

from .threads import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .base import Claim
    from .entry import Entry

T = TypeVar("T")


class ThreadedStore(ABC):
    """A store whose calls run in ``threads`` threads."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPool(threads)

    async def close(self) -> None:
        await self._threads.close(self._disconnect)

    async def get(self, origin: str) -> Entry | None:
        return await self._run(self._get, origin)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        return await self._run(self._put, origin, entry, fence, shield=True)

    async def claim(self, origin: str, seconds: float) -> Claim:
        def undo(claim: Claim) -> None:
            if claim.claimed:
                self._call(self._release, origin)

        return await self._run(self._claim, origin, seconds, undo=undo)

    async def renew(self, origin: str, fence: int, seconds: float) -> bool:
        return await self._run(self._renew, origin, fence, seconds)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin, shield=True)

    async def reserve_host(self, host: str, lease: float) -> float:
        def undo(result: tuple[float, bool]) -> None:
            _, is_new = result
            if is_new:
                self._call(self._release_host, host, 0)

        seconds, _ = await self._run(self._reserve_host, host, lease, undo=undo)
        return seconds

    async def release_host(self, host: str, delay: float) -> None:
        await self._run(self._release_host, host, delay, shield=True)

    async def _run(
        self,
        method: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], object] | None = None,
        shield: bool = False,
    ) -> T:
        return await self._threads.run(self._call, method, *arguments, undo=undo, shield=shield)

    def _call(self, method: Callable[..., T], *arguments: object) -> T:
        with self._errors():
            return method(*arguments)

    # Blocking methods

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """Return a context manager that turns the errors of the client library into StoreError."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Close the connections. Never raises."""

    @abstractmethod
    def _get(self, origin: str) -> Entry | None:
        """Implement :meth:`.Store.get`."""

    @abstractmethod
    def _put(self, origin: str, entry: Entry, fence: int | None) -> bool:
        """Implement :meth:`.Store.put`."""

    @abstractmethod
    def _claim(self, origin: str, seconds: float) -> Claim:
        """Implement :meth:`.Store.claim`."""

    @abstractmethod
    def _renew(self, origin: str, fence: int, seconds: float) -> bool:
        """Implement :meth:`.Store.renew`."""

    @abstractmethod
    def _release(self, origin: str) -> None:
        """Implement :meth:`.Store.release`."""

    @abstractmethod
    def _reserve_host(self, host: str, lease: float) -> tuple[float, bool]:
        """Implement :meth:`.Store.reserve_host`.

        Returns the seconds to wait, and whether the reservation is new. It is not new if it was
        renewed.
        """

    @abstractmethod
    def _release_host(self, host: str, delay: float) -> None:
        """Implement :meth:`.Store.release_host`."""
