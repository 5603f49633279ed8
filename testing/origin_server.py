"""A server of thousands of origins on one socket, in a process of its own.

Every address of 127.0.0.0/8 reaches the socket, and each address is an origin. So the number of
origins is not limited by that of file descriptors. The server answers most requests without a task:
the crawlers that it serves share two cores with it.

``python -m testing.origin_server ORIGINS SEED DELAY`` prints its port. When its stdin is closed, it
prints as JSON what it has received, and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import sys
import time
from typing import TYPE_CHECKING

from testing.many_origins import workload
from testing.origin_records import IDENTITY, Records
from testing.web import Page, Received

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testing.soak import Kind
    from testing.web import Misbehaviour, Site

IDLE = 3.0
"""Seconds for which a connection stays open without a request, so that there are not too many."""

LONGEST_HEAD = 65_536
"""The octets of the longest head of a request."""

_IDENTITY = IDENTITY.encode()
_NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nCache-Control: %s\r\nETag: %s\r\n\r\n"


class Server:
    """The origins by address, and their connections."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.sites: dict[str, tuple[Site, Kind]] = {}
        self.connections: set[Connection] = set()
        self._rendered: dict[int, tuple[Page, bytes]] = {}
        self.page = Page()

    def octets(self, page: Page) -> bytes:
        """Return a page as it is sent. Most origins share their pages, so that few are kept."""
        found = self._rendered.get(id(page))
        if found is None:
            found = (page, page.octets())
            if len(self._rendered) < 1000:
                self._rendered[id(page)] = found
        return found[1]

    async def close_idle(self) -> None:
        """Close the connections that are not in use, again and again."""
        while True:
            await asyncio.sleep(IDLE / 2)
            before = time.monotonic() - IDLE
            for connection in tuple(self.connections):
                if connection.task is None and connection.used_at < before:
                    connection.transport.close()


class Connection(asyncio.Protocol):
    """One connection to an origin."""

    transport: asyncio.Transport
    _reader: asyncio.StreamReader

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self.task: asyncio.Task[None] | None = None
        self._pipe: asyncio.StreamReaderProtocol | None = None
        self.used_at = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._site, self._kind = self._server.sites[transport.get_extra_info("sockname")[0]]
        self._server.connections.add(self)

    def data_received(self, data: bytes) -> None:
        if self._pipe is not None:
            return
        self._buffer += data
        while self._pipe is None:
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                if len(head) > LONGEST_HEAD:
                    self.transport.abort()
                return
            self._buffer = rest
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        self.used_at = now = time.monotonic()
        line, _, lines = head.partition(b"\r\n")
        method, path, _ = line.decode("latin-1").split(" ")
        worker = lines.partition(_IDENTITY)[2].partition(b")")[0].decode("latin-1")
        is_robots_txt = path == "/robots.txt"
        if is_robots_txt:
            self._server.records.fetched(self._site.root, now, worker)
        elif path != "/shared.txt":
            self._server.records.received(self._site.root, self._kind, path, now)
        page = self._site.pages.get(path) or self._server.page
        if not isinstance(page, Page):
            self._start(page, Received(now, method, path, {}))
        elif self._kind.lifetime and is_robots_txt and b"\r\nIf-None-Match: " in head:
            self.transport.write(_not_modified(page.headers))
        else:
            self.transport.write(self._server.octets(page))

    def _start(self, page: Misbehaviour, received: Received) -> None:
        """Call a function that misbehaves. The connection is closed after it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        self._pipe = asyncio.StreamReaderProtocol(reader)
        self._pipe.connection_made(self.transport)
        writer = asyncio.StreamWriter(self.transport, self._pipe, reader, loop)
        self.task = loop.create_task(self._run(page, received, reader, writer))

    async def _run(
        self,
        page: Misbehaviour,
        received: Received,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        with contextlib.suppress(OSError, EOFError):
            await page(received, reader, writer)
        self.transport.close()

    def pause_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.pause_writing()

    def resume_writing(self) -> None:
        if self._pipe is not None:
            self._pipe.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._pipe is not None:
            self._pipe.connection_lost(error)
        if self.task is not None:
            self.task.cancel()


def _not_modified(headers: Mapping[str, str]) -> bytes:
    values = (headers[name].encode() for name in ("Cache-Control", "ETag"))
    return _NOT_MODIFIED % tuple(values)


async def serve(origins: int, seed: int, delay: float) -> None:
    """Serve the origins until stdin is closed."""
    server = Server(Records())
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(
        lambda: Connection(server), "0.0.0.0", 0, backlog=4096, start_serving=False
    )
    port = listening.sockets[0].getsockname()[1]
    soak, _ = workload(origins, seed, port, 0, delay)
    server.sites = {site.host: (site, kind) for site, _, kind in soak.sites}
    await listening.start_serving()
    closing_idle = loop.create_task(server.close_idle())
    _print(str(port))
    await loop.run_in_executor(None, sys.stdin.read)
    closing_idle.cancel()
    listening.close()
    _print(json.dumps({**server.records.as_json(), "cpu": time.process_time()}))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
