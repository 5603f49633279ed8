"""What a host name resolves to, asked without blocking, as the downloads of the crawl ask it.

With a reactor that is Twisted's resolver, in which Scrapy installs the one of DNS_RESOLVER with its
cache: a connection made later gets the same answer. Without a reactor it is asyncio's.
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
    """The addresses of a host name: none where it has none, or none came in so many seconds."""
    try:
        host.encode("idna")  # what is no host name leaves an error in Twisted's resolvers
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
    from twisted.internet import reactor  # not before Scrapy has installed it

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
    """Takes what Twisted's resolver finds, until it is complete or the time is over."""

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
