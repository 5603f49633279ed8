"""The beginning of one file over FTP (RFC 959). Who imports this module installs a reactor."""

from __future__ import annotations

from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet import reactor
from twisted.internet.protocol import ClientCreator, Protocol
from twisted.protocols.ftp import CommandFailed, FTPClient, FTPError

from ..protocol.lines import SIZE_LIMIT

TALK_LIMIT = 1 << 16
"""Octets of replies that are read: Twisted keeps the lines of one reply, however many come."""

NO_SUCH_FILE = "550"


async def retrieve(
    address: tuple[str, int], login: tuple[str, str], path: str, *, passive: bool
) -> bytes | None:
    """The file, one octet above the limit at most; None where there is none.

    ``login``: a user name and a password. Raises whatever Twisted does where nothing comes of it.
    """
    creator = ClientCreator(reactor, _Client, *login, passive=int(passive))
    client: Any = await maybe_deferred_to_future(creator.connectTCP(*address))
    beginning = _Beginning(client)
    try:
        await maybe_deferred_to_future(client.retrieveFile(path, beginning))
    except FTPError as error:
        if not beginning.data and _has_no_such_file(error):
            return None
        if not beginning.full:
            raise
    finally:
        client.transport.loseConnection()
    return bytes(beginning.data)


def _has_no_such_file(error: FTPError) -> bool:
    return isinstance(error, CommandFailed) and error.args[0][-1].startswith(NO_SUCH_FILE)


class _Client(FTPClient):
    """Hangs up on a server that talks without end."""

    _heard = 0

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self._heard += len(data)
        if self._heard > TALK_LIMIT:
            self.hang_up()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]

    def connectFactory(self, _: str, port: int, factory: Any) -> Any:  # type: ignore[override]  # noqa: N802
        """Open the data connection to the server itself, whatever address its PASV reply names."""
        peer: Any = self.transport
        connect: Any = reactor
        return connect.connectTCP(peer.getPeer().host, port, factory)

    def hang_up(self) -> None:
        """Whatever is under way fails, the data connection ends with it."""
        assert self.transport is not None
        self.transport.abortConnection()


class _Beginning(Protocol):
    """What comes by the data connection, until there is more than the limit."""

    def __init__(self, client: _Client) -> None:
        self.data = bytearray()
        self._client = client

    @property
    def full(self) -> bool:
        return len(self.data) > SIZE_LIMIT

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self.data += data[: SIZE_LIMIT + 1 - len(self.data)]
        if self.full:
            self._client.hang_up()
