"""The server of ``python -m checks million``, and what is noted about its workers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from testing.faults import ALLOWED, DISALLOWED, HEAD, RULES, RULES_HOLD, raw, stall
from testing.many_origins import Origins
from testing.origin_records import IDENTITY, Records
from testing.origin_server import Server
from testing.soak import Kind
from testing.web import Page, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


BRIEF = text(RULES, Cache_Control="max-age=9", ETag='"1"')


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[int]:
    """Serve three origins: with rules that expire, without an answer, and with a fault."""
    listening = await asyncio.start_server(server.answer_all, "0.0.0.0", 0)
    port = int(listening.sockets[0].getsockname()[1])
    origins = Origins(port)
    kinds = [
        Kind(BRIEF, RULES_HOLD, lifetime=9),
        Kind(stall(), DISALLOWED),
        Kind(raw(HEAD + b"Content-Length: 9\r\n\r\n4"), ALLOWED),
    ]
    for number, kind in enumerate(kinds):
        host = f"127.0.0.{2 + number}"
        server.sites[host] = (origins.site(kind.robots, host=host), kind)
    try:
        yield port
    finally:
        listening.close()


def head(path: str, *lines: str) -> bytes:
    """Return a request as Scrapy sends it."""
    agent = f"User-Agent: {IDENTITY}7)"
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *lines, agent, "", ""]).encode()


async def test_the_server_answers_and_records() -> None:
    server = Server(Records())
    async with running(server) as port:
        reader, writer = await asyncio.open_connection("127.0.0.2", port)
        first = head("/robots.txt")
        writer.write(first[:9])
        await asyncio.sleep(0.01)
        writer.write(first[9:] + head("/private/1") + head("/robots.txt", 'If-None-Match: "1"'))
        page = Page().octets()
        assert await reader.readexactly(len(BRIEF.octets() + page)) == BRIEF.octets() + page
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 304 ")
        writer.close()
        root = f"http://127.0.0.2:{port}"
        assert [worker for _, worker in server.records.fetches[root]] == ["7", "7"]
        assert server.records.disallowed == [f"{root}/private/1"]
        assert server.records.unasked == []


async def test_a_page_before_any_robots_txt_is_recorded() -> None:
    server = Server(Records())
    async with running(server) as port:
        reader, writer = await asyncio.open_connection("127.0.0.4", port)
        writer.write(head("/public/1") + head("/shared.txt") + head("/robots.txt"))
        assert (await reader.read()).endswith(b"Content-Length: 9\r\n\r\n4")  # and it is closed
        writer.close()
        assert server.records.unasked == [f"http://127.0.0.4:{port}/public/1"]
        assert server.records.pages == 1
