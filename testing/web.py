"""A web on loopback, in a thread of its own, that records what it received.

A site is one origin: an address and a port. ``pages`` has its responses by path; all other paths
get a small page. A response is a :class:`Page`, or a coroutine function that writes to the
connection, as broken as a test needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from typing import Any, TypeVar

T = TypeVar("T")

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Misbehaviour = Callable[["Received", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SMALL_PAGE = b"<html><head><title>A page</title></head><body>A page</body></html>"


@dataclass(frozen=True)
class Received:
    """One request. ``at`` is the time of ``time.monotonic`` when the server read it."""

    at: float
    method: str
    path: str
    headers: Mapping[str, str]
    head: bytes = b""
    """The request line and the headers as they were received."""


@dataclass(frozen=True)
class Page:
    """A response. ``delay`` is in seconds, before the first octet."""

    body: bytes | str = SMALL_PAGE
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0

    def octets(self) -> bytes:
        body = self.body.encode() if isinstance(self.body, str) else self.body
        headers = {"Content-Type": "text/html", "Content-Length": str(len(body)), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Status\r\n{head}\r\n".encode("latin-1") + body


Pages = Mapping[str, "Page | Misbehaviour"]


def text(body: bytes | str, **headers: str) -> Page:
    """A response with status 200 and a plain text. Underscores in header names mean hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Page(body, headers={"Content-Type": "text/plain", **named})


def redirect(location: str, status: int = 301) -> Page:
    """A response that redirects to ``location``."""
    return Page(b"", status, {"Location": location})


class Site:
    """One origin, and the requests that it received."""

    def __init__(self, host: str, port: int, pages: dict[str, Page | Misbehaviour], tls: bool):
        self.host = host
        self.port = port
        self.pages = pages
        self.received: list[Received] = []
        self.connections = 0
        """The number of connections that were opened."""
        self.root = f"{'https' if tls else 'http'}://{host}:{port}"

    def url(self, path: str = "/") -> str:
        return self.root + path

    def urls(self, *paths: str) -> list[str]:
        return [self.root + path for path in paths]

    @property
    def paths(self) -> list[str]:
        """The requested paths in order."""
        return [received.path for received in self.received]

    @property
    def page_paths(self) -> list[str]:
        """The requested paths without robots.txt, sorted."""
        return sorted(path for path in self.paths if path != "/robots.txt")

    @property
    def robots_fetches(self) -> int:
        """The number of requests for robots.txt."""
        return self.paths.count("/robots.txt")


def gaps(*sites: Site) -> list[float]:
    """The seconds between each two consecutive requests that these sites received.

    The first is the first page: it need not wait after its robots.txt.
    """
    requests = sorted((each.at, each.path) for site in sites for each in site.received)
    return between(at for at, _ in dropwhile(lambda each: each[1] == "/robots.txt", requests))


def between(times: Iterable[float]) -> list[float]:
    """The differences between each two consecutive times."""
    return [later - earlier for earlier, later in pairwise(sorted(times))]


class Web:
    """A thread with an event loop, and the sites that it serves."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._transports: set[asyncio.WriteTransport] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def site(
        self,
        robots: str | bytes | Page | Misbehaviour | None = None,
        pages: Pages | None = None,
        *,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> Site:
        """Start a site on a free port. Without ``robots`` its robots.txt is a 404."""
        if robots is None:
            robots = Page(b"", 404)
        elif isinstance(robots, (str, bytes)):
            robots = text(robots)
        site = Site(host, 0, {"/robots.txt": robots, **(pages or {})}, tls is not None)
        site.port = self.listen(lambda r, w: _serve(site, r, w), host, tls)
        netloc = f"[{host}]" if ":" in host else host
        site.root = f"{'https' if tls else 'http'}://{netloc}:{site.port}"
        return site

    def listen(self, handler: Connected, host: str, tls: ssl.SSLContext | None = None) -> int:
        """Call a coroutine function for each connection to a new port, which is returned."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            self._transports.add(writer.transport)
            try:
                await handler(reader, writer)
            except asyncio.CancelledError:
                pass
            finally:
                self._connections.discard(task)
                writer.close()

        server = self._run(asyncio.start_server(connected, host, 0, ssl=tls))
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        """Close every connection and every site."""
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        # asyncio loses a connection that it has accepted when its server is closed in the same
        # moment. No client connects now, so that these turns of the loop accept all of them.
        for _ in range(5):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for transport in self._transports:
            transport.abort()
        await asyncio.sleep(0)

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


async def _serve(site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    site.connections += 1
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while await answer(site, reader, writer):
            pass


async def answer(
    site: Site,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    idle: float | None = None,
) -> bool:
    """Answer one request. Returns whether the connection stays open.

    Raises asyncio.TimeoutError if there is no request within ``idle`` seconds.
    """
    start = await asyncio.wait_for(reader.readexactly(1), idle)
    if start == b"\x16":  # a TLS handshake, which a server without TLS refuses at once
        return False
    octets = start + await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), idle)
    head = octets.decode("latin-1")
    request_line, *lines = head.rstrip("\r\n").split("\r\n")
    method, target = request_line.rpartition(" ")[0].split(" ", 1)  # the target may have spaces
    headers = {
        name.lower(): value.strip() for name, _, value in (ln.partition(":") for ln in lines)
    }
    received = Received(time.monotonic(), method, target, headers, octets)
    site.received.append(received)
    page = site.pages.get(target) or site.pages.get("*") or Page()
    if not isinstance(page, Page):
        await page(received, reader, writer)
        return False
    if page.delay:
        await asyncio.sleep(page.delay)
    writer.write(page.octets())
    await writer.drain()
    return True
