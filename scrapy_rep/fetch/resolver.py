"""Resolves host names without blocking, with the resolver that the downloads of the crawl use.

With a Twisted reactor, this is Twisted's resolver. Scrapy installs the one that DNS_RESOLVER names,
with a cache, so a later connection gets the same answer. Without a reactor it is asyncio's.
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from .addresses import Address


async def addresses_of(host: str, seconds: float) -> tuple[Address, ...]:
    """Return the addresses of a host name.

    The result is empty if the name has none, or if there is no answer within ``seconds``.
    """
    try:
        host.encode("idna")  # Twisted's resolvers leave an unhandled error for an invalid name
        if is_reactor_installed():
            found = await _ask_twisted(host, seconds)
        else:
            found = await asyncio.wait_for(_ask_asyncio(host), seconds)
        return tuple(ip_address(address.partition("%")[0]) for address in found)
    except (OSError, UnicodeError, ValueError, asyncio.TimeoutError):
        return ()


async def _ask_asyncio(host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


async def _ask_twisted(host: str, seconds: float) -> list[str]:
    from twisted.internet import reactor  # Scrapy must have installed it before

    resolver: Any = reactor.nameResolver
    receiver = _Receiver()
    timer = call_later(seconds, receiver.resolutionComplete)
    try:
        resolver.resolveHostName(receiver, host)
        await maybe_deferred_to_future(receiver.complete)
    finally:
        timer.cancel()
    return receiver.found


@implementer(IResolutionReceiver)
class _Receiver:
    """Collects the addresses that Twisted's resolver finds, until it is complete or times out."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.complete: Deferred[None] = Deferred()

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802
        pass

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        if not self.complete.called:
            self.found.append(address.host)

    def resolutionComplete(self) -> None:  # noqa: N802
        if not self.complete.called:
            self.complete.callback(None)
