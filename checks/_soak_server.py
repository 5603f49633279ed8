"""A server of many origins on one socket, and what it has received.

Every address of 127.0.0.0/8 reaches the socket, and each address is an origin. So the number of
origins is not limited by that of file descriptors. A server that kept a million requests would take
gigabytes. So it keeps the time of each fetch of a robots.txt, and the requests that break a law.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from typing import Any

from checks._soak import Kind, Origin
from testing.web import Misbehaviour, Page, Received

IDENTITY = "soak/1.0 ("
"""The start of the User-Agent of a worker. Its name and a parenthesis come after it."""

MOST = 10_000
"""How many requests that break the same law are kept."""

LATENESS = 10.0
"""Seconds between the question whether a page is allowed, and the time when its server receives the
request, at most."""

_IDENTITY = IDENTITY.encode()
_PAGE = Page()


class Records:
    """What the origins have received. Times are those of the monotonic clock."""

    def __init__(self) -> None:
        self.fetches: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        """When each robots.txt was requested, and the worker that requested it."""
        self.pages = 0
        self.disallowed: list[str] = []
        """Pages that the robots.txt disallows."""
        self.unasked: list[str] = []
        """Pages of origins whose robots.txt no worker has requested."""
        self.expired: list[tuple[str, str]] = []
        """Pages of origins whose robots.txt was requested too long ago: origin and path."""
        self.hurried: list[tuple[str, float, float]] = []
        """Pages that came too early for the delay, with the times of the page before and of it."""
        self.injected: list[str] = []
        """Requests with a header that a poisoned store has made up."""
        self._last: dict[str, tuple[float, str]] = {}

    def fetched(self, root: str, at: float, worker: str) -> None:
        """Note a request for a robots.txt."""
        self.fetches[root].append((at, worker))

    def received(self, root: str, kind: Kind, path: str, at: float) -> None:
        """Note a request for a page."""
        self.pages += 1
        url = root + path
        if not kind.allows(path):
            _add(self.disallowed, url)
        fetches = self.fetches.get(root)
        if fetches is None:
            _add(self.unasked, url)
        elif kind.lifetime and at - fetches[-1][0] > kind.lifetime + LATENESS:
            _add(self.expired, (root, path))
        if not kind.delay:
            return
        earlier, other = self._last.get(root, (0.0, ""))
        # Twisted's client repeats a request if the server closes the connection just then.
        if at - earlier < kind.delay and path != other:
            _add(self.hurried, (url, earlier, at))
        self._last[root] = (at, path)

    def as_json(self) -> dict[str, Any]:
        """Return everything in a form that is valid in JSON."""
        return {name: each for name, each in vars(self).items() if name != "_last"}


def _add(records: list[Any], record: Any) -> None:
    if len(records) < MOST:
        records.append(record)


class Server:
    """The origins by address."""

    origins: dict[str, Origin]

    def __init__(self, idle: float | None = None) -> None:
        self.records = Records()
        self._idle = idle
        """Seconds for which a connection stays open without a request. None: as long as the client
        keeps it."""

    async def answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, which is then closed."""
        origin = self.origins[writer.get_extra_info("sockname")[0]]
        errors = OSError, EOFError, asyncio.TimeoutError, asyncio.CancelledError  # at the end
        with contextlib.suppress(*errors):
            while await self._answer(origin, reader, writer):
                pass
        writer.close()

    async def _answer(
        self, origin: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request. Returns whether the connection stays open."""
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), self._idle)
        now = time.monotonic()
        line, _, lines = head.partition(b"\r\n")
        method, path, _ = line.decode("latin-1").split(" ")
        is_robots_txt = path == "/robots.txt"
        if is_robots_txt:
            worker = lines.partition(_IDENTITY)[2].partition(b")")[0].decode("latin-1")
            self.records.fetched(origin.root, now, worker)
            if b"x-injected" in lines.lower():
                _add(self.records.injected, origin.root + path)
        elif path != "/shared.txt":
            self.records.received(origin.root, origin.kind, path, now)
        page = origin.pages.get(path) or _PAGE
        if not isinstance(page, Page):
            await _misbehave(page, Received(now, method, path, {}), reader, writer)
            return False
        if origin.kind.lifetime and is_robots_txt and b"\r\nIf-None-Match: " in lines:
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
    try:
        while not task.done() and not reader.at_eof():
            await asyncio.wait({task}, timeout=0.5)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
