"""How many robots.txt files are fetched at once."""

from __future__ import annotations

from typing import Any

from scrapy_rep.frontier.fetch_limit import OLD, FetchLimit, Permit

from .doubles import FakeClock, begin, settle


class Engine:
    """Counts how often it is woken."""

    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


class Fetches:
    """The fetches of a crawl, which end when the test says so."""

    def __init__(self, limit: int, connections: int | None = None) -> None:
        self.clock = FakeClock()
        engine: Any = Engine()
        self.engine: Engine = engine
        self.limit = FetchLimit(limit, self.clock, engine, connections)
        self.permits: list[Permit] = []
        self.ended: list[Permit] = []

    async def begin(self, number: int = 1) -> None:
        for _ in range(number):
            begin(self._fetch())
        await settle()

    async def _fetch(self) -> None:
        permit = await self.limit.acquire()
        permit.expire = lambda: self._expire(permit)
        self.permits.append(permit)

    def _expire(self, permit: Permit) -> None:
        self.ended.append(permit)
        self.limit.release(permit)


async def test_all_fetches_are_bounded_and_the_oldest_ends_for_another() -> None:
    fetches = Fetches(3)
    await fetches.begin(4)
    assert len(fetches.permits) == 3
    assert not fetches.limit.can_begin(), "none is old"
    assert fetches.ended == []
    fetches.clock.advance(OLD)
    fetches.limit.update()
    await settle()
    assert len(fetches.permits) == 4
    assert fetches.ended == fetches.permits[:1]
    assert fetches.limit.can_begin()
    assert fetches.ended == fetches.permits[:2]


async def test_a_fetch_that_no_longer_waits_leaves_nothing() -> None:
    fetches = Fetches(1)
    await fetches.begin()
    waiting = begin(fetches.limit.acquire())
    await settle()
    waiting.addErrback(lambda _: None)
    waiting.cancel()
    await settle()
    fetches.limit.release(fetches.permits[0])
    await fetches.begin()
    assert len(fetches.permits) == 2


async def test_a_pool_of_connections_is_shared_with_pages() -> None:
    fetches = Fetches(100, connections=4)
    await fetches.begin(3)
    assert len(fetches.permits) == 2, "half of them"
    fetches.clock.advance(10 * OLD)
    assert not fetches.limit.can_begin()
    assert fetches.ended == [], "the handler might keep the connection"
