"""Ends a coroutine from outside, on each of Scrapy's event loops."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import CancelledError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class Interruption:
    """Runs one coroutine, which :meth:`interrupt` ends with a TimeoutError.

    With asyncio, the coroutine runs in the task that awaits :meth:`run`. A task of its own would
    take three more turns of the event loop, and the first page of each site waits for these.
    """

    __slots__ = ("_cancel", "has_interrupted")

    def __init__(self) -> None:
        self._cancel: Callable[[], object] | None = None
        self.has_interrupted = False
        """Whether the coroutine was interrupted."""

    def interrupt(self) -> None:
        """End the coroutine, if it runs."""
        if self._cancel is not None and not self.has_interrupted:
            self.has_interrupted = True
            self._cancel()

    async def run(self, coroutine: Coroutine[Any, Any, T], message: str) -> T:
        """Return the result of a coroutine.

        Raises TimeoutError with this message if it is interrupted. If its caller is cancelled, so
        is the coroutine.
        """
        task = None
        try:
            if is_asyncio_available():
                task = asyncio.current_task()
                assert task is not None
                self._cancel = task.cancel
                return await coroutine
            deferred = deferred_from_coro(coroutine)
            self._cancel = deferred.cancel
            return await maybe_deferred_to_future(deferred)
        except (asyncio.CancelledError, CancelledError):
            if self.has_interrupted:
                raise TimeoutError(message) from None
            raise
        finally:
            self._cancel = None
            if task is not None and self.has_interrupted:
                _uncancel(task)


def _uncancel(task: asyncio.Task[Any]) -> None:
    """Withdraw the cancellation of a task that goes on."""
    if hasattr(task, "uncancel"):  # since Python 3.11
        task.uncancel()
