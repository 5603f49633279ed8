"""The connections of download handlers with a pool."""

from __future__ import annotations

from typing import Any

from scrapy import Request

from scrapy_rep.scheduling.connection_limit import CHECK_INTERVAL, ConnectionLimit

from .doubles import FakeClock, FakeEngine, begin


class Connections:
    """Fetches that need a connection."""

    def __init__(self, limit: int) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.engine.connection_limit = limit
        fake: Any = self.engine
        self.limit = ConnectionLimit(fake, self.clock)
        self.begun: list[Request] = []
        self.acquiring: dict[Request, Any] = {}

    async def fetch(self, *requests: Request) -> None:
        for request in requests:
            self.acquiring[request] = begin(self._acquire(request))
        await self.clock.run()

    async def _acquire(self, request: Request) -> None:
        await self.limit.acquire(request)
        self.begun.append(request)


def requests(count: int, name: str) -> list[Request]:
    return [Request(f"http://example.com/{name}/{number}") for number in range(count)]


async def test_without_a_limit_no_fetch_waits() -> None:
    connections = Connections(0)
    fetches = requests(50, "robots")
    await connections.fetch(*fetches)
    assert connections.begun == fetches
    assert connections.clock.pending == []


async def test_a_fetch_waits_until_a_page_has_ended_and_the_engine_checks() -> None:
    connections = Connections(2)
    pages, fetches = requests(2, "page"), requests(2, "robots")
    connections.engine.in_downloader = connections.engine.transfers = set(pages)
    await connections.fetch(*fetches)
    assert connections.begun == []
    connections.engine.in_downloader.discard(pages[0])
    assert connections.engine.reserved_connections() == 2
    await connections.clock.run()
    assert connections.begun == [], "to ask for the number is no reason to begin"
    connections.engine.on_capacity_check()
    connections.engine.on_capacity_check()
    await connections.clock.run()
    assert connections.begun == fetches[:1]
    assert connections.engine.reserved_connections() == 2, "the downloader does not have it yet"
    connections.engine.in_downloader.add(fetches[0])
    assert connections.engine.reserved_connections() == 1


async def test_a_query_starts_no_timer() -> None:
    connections = Connections(1)
    connections.engine.in_downloader = connections.engine.transfers = set(requests(1, "page"))
    await connections.fetch(*requests(1, "robots"))
    before = connections.clock.pending
    for _ in range(10):
        assert connections.engine.reserved_connections() == 1
    assert connections.clock.pending == before


async def test_the_end_of_a_fetch_begins_the_next() -> None:
    connections = Connections(1)
    fetches = requests(3, "robots")
    await connections.fetch(*fetches)
    assert connections.begun == fetches[:1]
    connections.limit.release(fetches[0])
    await connections.clock.run()
    assert connections.begun == fetches[:2]
    for fetch in fetches[1:]:
        connections.limit.release(fetch)
        await connections.clock.run()
    assert connections.begun == fetches
    assert connections.clock.pending == []


async def test_a_page_without_a_connection_does_not_keep_a_fetch() -> None:
    connections = Connections(1)
    connections.engine.in_downloader = set(requests(1, "page"))  # it may wait for the robots.txt
    fetches = requests(1, "robots")
    await connections.fetch(*fetches)
    await connections.clock.run(CHECK_INTERVAL)
    assert connections.begun == [], "it may be about to get a connection"
    await connections.clock.run(CHECK_INTERVAL)
    assert connections.begun == fetches


async def test_a_page_that_is_transferred_keeps_a_fetch() -> None:
    connections = Connections(1)
    connections.engine.in_downloader = connections.engine.transfers = set(requests(1, "page"))
    await connections.fetch(*requests(1, "robots"))
    await connections.clock.run(10 * CHECK_INTERVAL)
    assert connections.begun == []


async def test_a_fetch_that_is_canceled_leaves_no_timer() -> None:
    connections = Connections(1)
    connections.engine.in_downloader = connections.engine.transfers = set(requests(1, "page"))
    fetches = requests(1, "robots")
    await connections.fetch(*fetches)
    connections.engine.on_capacity_check()
    connections.acquiring[fetches[0]].addErrback(lambda _: None)
    connections.acquiring[fetches[0]].cancel()
    await connections.clock.run()
    assert connections.clock.pending == []
    assert connections.engine.reserved_connections() == 0
