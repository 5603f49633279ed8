"""The sites that several workers crawl, what they have received, and a proxy to Redis.

Each site has an address of 127.0.0.0/8, and all share one socket. The page ``/n`` of a site leads
to ``/2n`` and ``/2n+1``, the page ``/1`` also to other sites. So workers find pages until the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from testing.web import Web

NAMED = "workers/1.0 (%s)"
"""The User-Agent of a worker, which has its name."""

RETRY_AFTER = 4
LATENCY = 0.03
IDLE = 5.0
"""Seconds for which a connection stays open without a request."""

FIRST = 10
"""The number of sites whose first page is a start URL. Each site leads to as many others."""

_AGENT = re.compile(rb"\r\nUser-Agent: workers/1.0 \(([^)]*)\)")


class Kind(NamedTuple):
    """What a site does."""

    delay: float = 0
    """The Crawl-delay."""
    robots: Sequence[int] = (200,)
    """The statuses of its robots.txt. The last one stays."""
    latency: float = LATENCY
    busy: bool = False
    """Whether every seventh page first answers 429."""
    wide: bool = False
    """Whether its page ``/1`` leads to all its pages."""


KINDS = (
    Kind(),
    Kind(delay=0.2),
    Kind(robots=[404]),
    Kind(robots=[503, 200]),
    Kind(),
    Kind(delay=0.5),
    Kind(busy=True),
    Kind(latency=0.5),
    Kind(),
    Kind(delay=1.0),
)

LARGE: Sequence[Callable[[int], tuple[Kind, int]]] = (
    lambda pages: (Kind(), pages // 10),
    lambda _: (Kind(wide=True), 101),
)
"""The first sites, each with its number of pages, from that of all pages."""


class Site:
    """One site, and its answers."""

    def __init__(self, number: int, kind: Kind, pages: int) -> None:
        self.host = f"127.0.{10 + number // 200}.{number % 200 + 1}"
        self.number, self.kind, self.pages = number, kind, pages
        self._served: Counter[str] = Counter()

    def answer(self, path: str) -> tuple[int, str]:
        """Return the status and the body, without the links to other sites."""
        self._served[path] += 1
        if path == "/robots.txt":
            delay = f"Crawl-delay: {self.kind.delay}\n" if self.kind.delay else ""
            number = min(self._served[path], len(self.kind.robots)) - 1
            return self.kind.robots[number], f"User-agent: *\nDisallow: /private/\n{delay}"
        page = int(path.rpartition("/")[2])
        if self.kind.busy and page % 7 == 0 and self._served[path] == 1:
            return 429, ""
        return 200, "".join(f'<a href="{link}">' for link in self._links(page))

    def _links(self, page: int) -> Iterator[str]:
        others = range(2, self.pages + 1) if page == 1 else range(0)
        pages = others if self.kind.wide else range(2 * page, 2 * page + 2)
        yield from (f"/{each}" for each in pages if 0 < each <= self.pages)
        yield "/1"  # as each page of a site leads to its first one
        if page % 5 == 1 and self.kind.robots != [404]:
            yield f"/private/{page}"


class Received(NamedTuple):
    """A request, with the times of ``time.monotonic`` at which it came and was answered."""

    host: str
    path: str
    start: float
    end: float
    worker: str
    status: int

    @property
    def is_page(self) -> bool:
        """Whether it asked for a page that exists."""
        return self.path != "/robots.txt" and self.status == 200


class Sites:
    """All sites, and what they have received, in the order of the answers."""

    def __init__(self, web: Web, count: int, pages: int, kinds: Sequence[Kind] = KINDS) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.received: list[Received] = []
        self.pages = 0
        """How many pages have been received."""
        self.by_host = {}
        for number in range(count):
            kind = kinds[number % len(kinds)]
            # One worker alone needs at least 20 seconds for a site with a delay.
            most = round(20 / kind.delay) if kind.delay else pages
            size = max(min(pages // count, most), 1)
            if kinds is KINDS and number < len(LARGE):
                kind, size = LARGE[number](pages)
            site = Site(number, kind, size)
            self.by_host[site.host] = site
        self._hosts = [*self.by_host]
        self.port = web.listen(self._serve, "0.0.0.0")

    def url(self, host: str, path: str = "/1") -> str:
        return f"http://{host}:{self.port}{path}"

    def seeds(self) -> list[str]:
        """Return the start URLs. The other sites are found from them."""
        return [self.url(host, "/0") for host in self._hosts[:FIRST]]

    def expected(self) -> set[tuple[str, str]]:
        """Return the host and the path of each page."""
        sites = self.by_host.values()
        first = {(host, "/0") for host in self._hosts[:FIRST]}
        return first | {(each.host, f"/{1 + n}") for each in sites for n in range(each.pages)}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site = self.by_host[writer.get_extra_info("sockname")[0]]
        with contextlib.suppress(OSError, EOFError, asyncio.TimeoutError):
            while True:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), IDLE)
                writer.write(await self._answer(site, head, time.monotonic()))

    async def _answer(self, site: Site, head: bytes, start: float) -> bytes:
        path = head.split(b" ", 2)[1].decode()
        status, body = site.answer(path)
        if path == "/1":
            others = range(FIRST * (site.number + 1), FIRST * (site.number + 2))
            hosts = (self._hosts[each] for each in others if each < len(self._hosts))
            body += "".join(f'<a href="{self.url(host)}">' for host in hosts)
        await asyncio.sleep(site.kind.latency)
        worker = _AGENT.split(head)[1].decode()
        # The time before the answer is sent: a client that has it waits from then on, or longer.
        received = Received(site.host, path, start, time.monotonic(), worker, status)
        self.received.append(received)
        self.pages += received.is_page
        kind = "plain" if path == "/robots.txt" else "html"
        wait = f"Retry-After: {RETRY_AFTER}\r\n" if status == 429 else ""
        answer = f"HTTP/1.1 {status} S\r\nContent-Type: text/{kind}\r\n{wait}"
        return f"{answer}Content-Length: {len(body)}\r\n\r\n{body}".encode()


class Proxy:
    """A port that leads to a server. Its attributes may change at any time."""

    def __init__(self, web: Web, port: int) -> None:
        self.delay = 0.0
        """Seconds in each direction."""
        self.lose_every = 0
        """Of so many replies one is lost: the connection is closed instead. 0: none."""
        self.is_paused = False
        self.replies = 0
        self._target = port
        self.url = f"redis://127.0.0.1:{web.listen(self._connected, '127.0.0.1')}/0"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            replies, requests = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            return
        ways = ((reader, requests, False), (replies, writer, True))
        pumps = [asyncio.ensure_future(self._pump(*way)) for way in ways]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(self.delay)
        finally:
            for pump in pumps:
                pump.cancel()
            requests.transport.abort()
            writer.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, are_replies: bool
    ) -> None:
        loop, due = asyncio.get_running_loop(), 0.0
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                while self.is_paused:  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.02)
                self.replies += are_replies
                if are_replies and self.lose_every and self.replies % self.lose_every == 0:
                    return
                due = max(loop.time() + self.delay, due + 1e-6)  # in the order of the data
                loop.call_at(due, writer.write, data)
