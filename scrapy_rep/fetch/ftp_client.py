"""Reads the start of one file over FTP (RFC 959). Importing this module installs a reactor."""

from __future__ import annotations

from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet import reactor
from twisted.internet.protocol import ClientCreator, Protocol
from twisted.protocols.ftp import CommandFailed, FTPClient, FTPError

from ..protocol.lines import SIZE_LIMIT

REPLY_LIMIT = 1 << 16
"""The number of bytes of replies that are read. Twisted keeps all lines of a reply in memory."""

NO_SUCH_FILE = "550"


async def retrieve(
    address: tuple[str, int], login: tuple[str, str], path: str, *, passive: bool
) -> bytes | None:
    """Return a file, at most one byte longer than the limit; None if the server does not have it.

    ``login`` is a user name and a password. Raises the errors of Twisted.
    """
    creator = ClientCreator(reactor, _Client, *login, passive=int(passive))
    client: Any = await maybe_deferred_to_future(creator.connectTCP(*address))
    start = _FileStart(client)
    try:
        await maybe_deferred_to_future(client.retrieveFile(path, start))
    except FTPError as error:
        reply = error.args[0][-1] if isinstance(error, CommandFailed) else ""
        if not start.data and reply.startswith(NO_SUCH_FILE):
            return None
        if not start.full:
            raise
    finally:
        client.transport.loseConnection()
    return bytes(start.data)


class _Client(FTPClient):
    """A client that disconnects from a server whose replies do not end."""

    _received = 0

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self._received += len(data)
        if self._received > REPLY_LIMIT:
            self.disconnect()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]

    def connectFactory(self, _: str, port: int, factory: Any) -> Any:  # type: ignore[override]  # noqa: N802
        """Open the data connection to the server itself, not to the address in its reply."""
        peer: Any = self.transport
        connect: Any = reactor
        return connect.connectTCP(peer.getPeer().host, port, factory)

    def disconnect(self) -> None:
        """Abort both connections. The transfer in progress fails."""
        assert self.transport is not None
        self.transport.abortConnection()


class _FileStart(Protocol):
    """Collects what the data connection delivers, up to one byte more than the limit."""

    def __init__(self, client: _Client) -> None:
        self.data = bytearray()
        self._client = client

    @property
    def full(self) -> bool:
        return len(self.data) > SIZE_LIMIT

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self.data += data[: SIZE_LIMIT + 1 - len(self.data)]
        if self.full:
            self._client.disconnect()
