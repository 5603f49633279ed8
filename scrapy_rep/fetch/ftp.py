"""The download handler for FTP (RFC 959), which limits the size of a robots.txt.

Scrapy's own handler reads a whole file before it reports anything. It downloads all other files.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from scrapy import Request
from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.http import Response, TextResponse
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet.protocol import ClientCreator, Protocol

from ..protocol.lines import SIZE_LIMIT
from ..settings import IS_ROBOTSTXT_REQUEST

REPLY_LIMIT = 1 << 16
"""The number of bytes of replies that are read. Twisted keeps all lines of a reply in memory."""


class FTPDownloadHandler(BuiltInHandler):
    """The handler for ``ftp`` in DOWNLOAD_HANDLERS. The add-on puts it there."""

    async def download_request(self, request: Request) -> Response:
        """Download a file: of a robots.txt, at most one byte more than the limit.

        Without a robots.txt, the status is 404. Other failures raise Twisted's errors.
        """
        if not request.meta.get(IS_ROBOTSTXT_REQUEST):
            response = await super().download_request(_sendable(request))
            return response.replace(url=request.url) if response.url != request.url else response
        # These import the reactor, which Scrapy must have installed.
        from twisted.internet import reactor
        from twisted.protocols.ftp import CommandFailed, FTPError

        url, passive = urlparse_cached(request), int(bool(self.passive_mode))
        login = request.meta["ftp_user"], request.meta["ftp_password"]
        creator = ClientCreator(reactor, _client_class(), *login, passive=passive)
        connected = creator.connectTCP(url.hostname or "", url.port or 21)
        client: Any = await maybe_deferred_to_future(connected)
        start = _FileStart(client)
        try:
            await maybe_deferred_to_future(client.retrieveFile(url.path, start))
        except FTPError as error:
            reply = error.args[0][-1] if isinstance(error, CommandFailed) else ""
            if not start.data and reply.startswith("550"):  # no such file
                return Response(request.url, status=404)
            if not start.is_full:
                raise
        finally:
            client.transport.loseConnection()
        return TextResponse(request.url, body=bytes(start.data))


def _sendable(request: Request) -> Request:
    """Return a request whose path Twisted can send, which sends Latin-1.

    A path with other characters is sent as the bytes of its UTF-8 (RFC 2640 §2.2).
    """
    url = urlparse_cached(request)
    path = unquote(url.path)
    try:
        path.encode("latin-1")
    except UnicodeEncodeError:
        sent = quote(path.encode("utf-8").decode("latin-1"))
        return request.replace(url=url._replace(path=sent).geturl())
    return request


def _client_class() -> type[Any]:
    """Return the class of a client that disconnects from a server whose replies do not end."""
    from twisted.internet import reactor
    from twisted.protocols.ftp import FTPClient

    class Client(FTPClient):
        transport: Any
        _received = 0

        def dataReceived(self, data: bytes) -> None:  # noqa: N802
            self._received += len(data)
            if self._received > REPLY_LIMIT:
                self.transport.abortConnection()
            else:
                super().dataReceived(data)  # type: ignore[no-untyped-call]

        def connectFactory(self, _: str, port: int, factory: Any) -> Any:  # type: ignore[override]  # noqa: N802
            """Open the data connection to the server itself, not to the address in its reply."""
            connect: Any = reactor
            return connect.connectTCP(self.transport.getPeer().host, port, factory)

    return Client


class _FileStart(Protocol):
    """Collects what the data connection delivers, up to one byte more than the limit."""

    def __init__(self, client: Any) -> None:
        self.data = bytearray()
        self._client = client

    @property
    def is_full(self) -> bool:
        return len(self.data) > SIZE_LIMIT

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self.data += data[: SIZE_LIMIT + 1 - len(self.data)]
        if self.is_full:
            self._client.transport.abortConnection()
