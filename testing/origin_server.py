"""A server of thousands of origins on one socket, in a process of its own.

Every address of 127.0.0.0/8 reaches the socket, and each address is an origin. So the number of
origins is not limited by that of file descriptors.

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
    from testing.soak import Kind
    from testing.web import Misbehaviour, Site

IDLE = 3.0
"""Seconds for which a connection stays open without a request, so that there are not too many."""

_IDENTITY = IDENTITY.encode()
_PAGE = Page()


class Server:
    """The origins by address."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.sites: dict[str, tuple[Site, Kind]] = {}

    async def answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, which is then closed."""
        site, kind = self.sites[writer.get_extra_info("sockname")[0]]
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            while await self._answer(site, kind, reader, writer):
                pass
        writer.close()

    async def _answer(
        self, site: Site, kind: Kind, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request. Returns whether the connection stays open."""
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE)
        now = time.monotonic()
        line, _, lines = head.partition(b"\r\n")
        method, path, _ = line.decode("latin-1").split(" ")
        is_robots_txt = path == "/robots.txt"
        if is_robots_txt:
            worker = lines.partition(_IDENTITY)[2].partition(b")")[0].decode("latin-1")
            self.records.fetched(site.root, now, worker)
        elif path != "/shared.txt":
            self.records.received(site.root, kind, path, now)
        page = site.pages.get(path) or _PAGE
        if not isinstance(page, Page):
            await _misbehave(page, Received(now, method, path, {}), reader, writer)
            return False
        if kind.lifetime and is_robots_txt and b"\r\nIf-None-Match: " in lines:
            page = Page(b"", 304, page.headers)
        writer.write(page.octets())
        return True


async def _misbehave(
    page: Misbehaviour,
    received: Received,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Call a function that misbehaves, until it ends or the client closes the connection."""
    task = asyncio.ensure_future(page(received, reader, writer))
    while not task.done() and not reader.at_eof():
        await asyncio.wait({task}, timeout=0.5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def serve(origins: int, seed: int, delay: float) -> None:
    """Serve the origins until stdin is closed."""
    server = Server(Records())
    listening = await asyncio.start_server(
        server.answer_all, "0.0.0.0", 0, backlog=4096, start_serving=False
    )
    port = listening.sockets[0].getsockname()[1]
    soak, _ = workload(origins, seed, port, 0, delay)
    server.sites = {site.host: (site, kind) for site, _, kind in soak.sites}
    await listening.start_serving()
    _print(str(port))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
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
