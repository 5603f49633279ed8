"""The base of the stores whose calls block. It makes the calls in threads.

A subclass implements the blocking methods, which begin with an underscore and run in a thread, and
:meth:`ThreadedStore._errors`, which translates the errors of its client library. This class makes
the async methods of :class:`~.base.Store` of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from .entry import decode
from .threads import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from .base import Claim
    from .entry import Entry

T = TypeVar("T")

ADD_LEASE = 60.0
"""Seconds for which :meth:`ThreadedStore.add` claims an origin: more than a call takes."""


class Addition(Enum):
    """What :meth:`ThreadedStore.add` did with an entry."""

    ADDED = "added"
    """There was no entry."""
    REPLACED = "replaced"
    """There was an older entry, or one that had to be replaced."""
    OLDER = "older"
    """The entry in the store is as new or newer, and stays."""
    IN_PROGRESS = "in-progress"
    """A crawler is fetching the origin, so that a newer entry follows."""


class ThreadedStore(ABC):
    """A store whose calls run in ``threads`` threads."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPool(threads)

    @abstractmethod
    def open(self) -> None:
        """Implement :meth:`.Store.open`."""

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

    # Blocking methods for tools, which have no event loop

    def entries(self) -> Iterator[tuple[str, Entry | None]]:
        """Yield the keys and entries of the store; None for an entry that cannot be read.

        An entry that changes meanwhile may be yielded as it was or as it is. Only a few are in
        memory at once. This blocks. Raises StoreError.
        """
        position: object = None
        while True:
            position, page = self._call(self._page, position)
            for key, octets in page:
                try:
                    entry = None if octets is None else decode(octets)
                except ValueError:
                    entry = None
                yield key, entry
            if position is None:
                return

    def add(self, key: str, entry: Entry, *, replace: bool) -> Addition:
        """Store an entry, unless there is one that is as new.

        With ``replace``, it replaces a newer entry, too. The origin is claimed meanwhile, so that
        no crawler puts an entry between the comparison and the change. This blocks. Raises
        StoreError.
        """
        claimed, current, fence = self._call(self._claim, key, ADD_LEASE)
        try:
            if not replace:
                if current is not None and current.fetched_at >= entry.fetched_at:
                    return Addition.OLDER
                if not claimed:
                    return Addition.IN_PROGRESS
            if not self._call(self._put, key, entry, fence):
                return Addition.IN_PROGRESS  # a crawler has claimed it and put a newer one since
            return Addition.ADDED if current is None else Addition.REPLACED
        finally:
            if claimed:
                self._call(self._release, key)

    def disconnect(self) -> None:
        """Close the connections of the blocking methods. Never raises."""
        self._disconnect()

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

    @abstractmethod
    def _page(self, position: object) -> tuple[object, list[tuple[str, bytes | None]]]:
        """Return some keys and the octets of their entries, and where the next ones are.

        The first position is None, and so is that after the last page. The octets are None for what
        cannot be an entry.
        """
