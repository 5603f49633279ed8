"""The server of ``python -m checks million``, and what is noted about its workers."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from testing.faults import ALLOWED, DISALLOWED, HEAD, RULES, RULES_HOLD, raw, stall
from testing.many_origins import MIX, Origins, workload
from testing.origin_records import IDENTITY, Records
from testing.origin_server import Connection, Server
from testing.processes import call, progress
from testing.soak import Kind
from testing.soak_cluster import Memory, StoreFailure, Worker
from testing.web import Page, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

BRIEF = text(RULES, Cache_Control="max-age=9", ETag='"1"')


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[int]:
    """Serve three origins: with rules that expire, without an answer, and with a fault."""
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(server), "0.0.0.0", 0)
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


async def test_a_fault_ends_with_its_connection() -> None:
    server = Server(Records())
    async with running(server) as port:
        _, writer = await asyncio.open_connection("127.0.0.3", port)
        writer.write(head("/robots.txt"))
        while not any(connection.task for connection in server.connections):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        writer.close()
        while server.connections:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_the_requests_to_an_origin_are_near_to_each_other() -> None:
    soak, requests = workload(100, 1, 80, 5_000, 0.1)
    assert len(requests) == len(set(requests)) == 5_000
    lasting = 0
    for origin in range(len(soak.sites)):
        places = [place for place, (number, _) in enumerate(requests) if number == origin]
        middle = places[len(places) // 10 : -len(places) // 10]
        lasting += middle[-1] - middle[0] < 1_000
    assert lasting > 90
    assert sum(name.startswith("has hostile") for _, name, _ in soak.sites) < 5
    assert sum(kind.lifetime == MIX.lifetime for _, _, kind in soak.sites) == 12


class _Worker(Worker):
    """A worker without a process."""

    def __init__(self) -> None:
        self.urls = {1: "http://a/1", 2: "http://a/2"}
        self.ends = {}
        self.memory = []
        self.unreachable = set()
        self.failures = []
        self.errors = []
        self.problems = []


def test_a_request_that_ends_again_is_a_problem() -> None:
    worker = _Worker()
    for line in ("1 r", "M 1024 9", "2 d", "U http://b", "S 1.5 no reply", "E ValueError", "1 r"):
        worker.note(line)
    assert worker.ends == {1: "r", 2: "d"}
    assert worker.problems == ["http://a/1 has ended again: r"]
    assert worker.memory == [Memory(1024, 9)]
    assert worker.unreachable == {"http://b"}
    assert worker.failures == [StoreFailure(1.5, "no reply")]
    assert worker.errors == ["ValueError"]
    worker.note("P 1 are left: waiting")
    assert worker.problems[1:] == ["1 are left: waiting"]


def test_a_called_function_reports_its_progress(capfd: pytest.CaptureFixture[str]) -> None:
    assert call(progress, "half of it") is None
    assert capfd.readouterr() == ("", "half of it\n")
