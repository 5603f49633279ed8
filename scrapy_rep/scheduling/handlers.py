"""Download handlers: which of them limit their connections, and how a download is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from .interruption import Interruption

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from scrapy import Request
    from scrapy.http import Response

TRANSFER = "robotstxt_transfer"
"""The meta key of the :class:`Transfer` of a request."""

_HANDLERS = "scrapy.core.downloader.handlers."
AIOHTTP_HANDLER = f"{_HANDLERS}_aiohttp.AiohttpDownloadHandler"
UNLIMITED_HANDLERS = frozenset(
    {
        AIOHTTP_HANDLER,  # once its pool is widened
        f"{_HANDLERS}http10.HTTP10DownloadHandler",
        f"{_HANDLERS}http11.HTTP11DownloadHandler",
        f"{_HANDLERS}http2.H2DownloadHandler",
    }
)
"""Download handlers that open as many connections as they get requests."""


class Transfer:
    """The download of one robots.txt by a download handler, and of the requests that replace it.

    ``on_start`` is called with a request before its download handler gets it, ``on_end`` with the
    request and the response that the handler returned. Scrapy has signals for both, but it would
    send them for each page, too.

    Scrapy's downloader does not end it when the download is cancelled. A handler without a
    time-out of its own would keep the connection.
    """

    __slots__ = ("_interruption", "_is_over", "_on_end", "_on_start", "excluded")

    def __init__(
        self,
        on_start: Callable[[Request], object],
        on_end: Callable[[Request, Response], object],
    ) -> None:
        self._on_start = on_start
        self._on_end = on_end
        self._interruption = Interruption()
        self._is_over = False
        self.excluded: set[Request] = set()
        """The requests of this download that do not use up CONCURRENT_REQUESTS."""

    @property
    def is_over(self) -> bool:
        """Whether the download has ended."""
        return self._is_over

    def end(self) -> None:
        """End the download: no caller waits for it any longer."""
        self._is_over = True
        self._interruption.interrupt()

    async def run(
        self, download: Callable[[Request], Awaitable[Response]], request: Request
    ) -> Response:
        """Return the response of a download handler.

        Raises TimeoutError if the download is ended. If it is ended before it has begun, the
        handler is not called.
        """
        if self._is_over:
            raise TimeoutError("the download was ended before it began")
        coroutine = self._download(download, request)
        return await self._interruption.run(coroutine, "the download was ended")

    async def _download(
        self, download: Callable[[Request], Awaitable[Response]], request: Request
    ) -> Response:
        self._on_start(request)
        response = await download(request)
        self._on_end(request, response)
        return response


def run_transfer(
    download: Callable[[Request], Awaitable[Response]], request: Request
) -> Awaitable[Response]:
    """Download a request, in such a way that its :class:`Transfer` can be ended."""
    transfer = request.meta.get(TRANSFER)
    if not isinstance(transfer, Transfer):
        return download(request)
    return transfer.run(download, request)


def transfer_of(request: Request) -> Transfer | None:
    """Return the :class:`Transfer` of a robots.txt that this package downloads, until it ends."""
    transfer = request.meta.get(TRANSFER)
    return transfer if isinstance(transfer, Transfer) and not transfer.is_over else None


def _bases(handler: Any) -> tuple[type, ...]:
    """Return the classes of a download handler, or of the path of one."""
    try:
        return tuple(load_object(handler).__mro__)
    except Exception:  # Scrapy logs an error for it
        return ()


def _name(base: type) -> str:
    return f"{base.__module__}.{base.__qualname__}"


def names_of(handler: Any) -> set[str]:
    """Return the paths of the classes of a download handler, or of the path of one."""
    return {_name(base) for base in _bases(handler)}


def is_limited(handler: Any) -> bool:
    """Whether a download handler may limit its connections.

    A handler in :data:`UNLIMITED_HANDLERS` does not. A class that is derived from one of these, and
    downloads by itself, may.
    """
    bases = _bases(handler)
    for base in bases:
        if _name(base) in UNLIMITED_HANDLERS:
            return False
        if {"download_request", "_make_request"} & vars(base).keys():
            return True
    return bool(bases)
