"""How many robots.txt files are fetched at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.scheduling.fetch_limit import (
    MAX_PER_TURN,
    OLD,
    OLD_WITH_POOL,
    SLOW,
    SLOW_FACTOR,
    FetchLimit,
)

from .doubles import FakeClock, begin, settle

if TYPE_CHECKING:
    from scrapy_rep.scheduling.fetch_limit import Permit


class Fetches:
    """Fetches that need a permit, and what became of them."""

    def __init__(self, limit: int) -> None:
        self.clock = FakeClock()
        self.capacity_calls = 0
        self.limit = FetchLimit(limit, self.clock, self._on_capacity)
        self.permits: dict[int, Permit] = {}
        self.expired: list[int] = []
        self.acquiring: dict[int, Any] = {}

    def _on_capacity(self) -> None:
        self.capacity_calls += 1

    async def begin(self, *numbers: int) -> None:
        await self.begin_in_turn(*numbers)
        await self.clock.run()

    async def begin_in_turn(self, *numbers: int) -> None:
        """Begin fetches before the event loop runs."""
        for number in numbers:
            self.acquiring[number] = begin(self._acquire(number))
        await settle()

    async def _acquire(self, number: int) -> None:
        self.permits[number] = await self.limit.acquire(lambda: self.expired.append(number))

    async def end(self, number: int) -> None:
        self.limit.release(self.permits[number])
        await self.clock.run()


async def test_no_more_fetches_begin_than_the_limit() -> None:
    fetches = Fetches(2)
    await fetches.begin(1, 2, 3, 4)
    assert list(fetches.permits) == [1, 2]
    assert fetches.limit.capacity == 0
    await fetches.end(1)
    assert list(fetches.permits) == [1, 2, 3]
    for number in (2, 3):
        await fetches.end(number)
    await fetches.end(4)
    assert fetches.limit.capacity == 2
    assert fetches.clock.pending == []


async def test_few_fetches_begin_before_the_event_loop_runs() -> None:
    fetches = Fetches(100)
    await fetches.begin_in_turn(*range(3 * MAX_PER_TURN))
    assert list(fetches.permits) == list(range(MAX_PER_TURN))
    assert fetches.limit.capacity == 0, "others wait"
    await fetches.clock.run()
    assert list(fetches.permits) == list(range(3 * MAX_PER_TURN))
    assert fetches.limit.capacity == 100 - 3 * MAX_PER_TURN
    assert fetches.capacity_calls == 1
    await fetches.begin_in_turn(90)
    assert 90 in fetches.permits, "a fetch in a later turn begins at once"


async def test_a_slow_fetch_no_longer_counts() -> None:
    fetches = Fetches(2)
    await fetches.begin(1, 2, 3)
    await fetches.clock.run(SLOW - 0.1)
    assert list(fetches.permits) == [1, 2]
    await fetches.clock.run(0.1)
    assert list(fetches.permits) == [1, 2, 3]
    assert fetches.expired == []


async def test_the_oldest_fetch_is_ended_when_there_are_too_many() -> None:
    fetches = Fetches(1)
    for number in range(SLOW_FACTOR):
        await fetches.begin(number)
        await fetches.clock.run(SLOW)
    assert len(fetches.permits) == SLOW_FACTOR
    await fetches.begin(90)
    await fetches.clock.run(OLD - SLOW * SLOW_FACTOR - 0.1)
    fetches.limit.end_oldest()
    assert fetches.expired == [], "it is slow, but not old"
    await fetches.clock.run(0.1)
    fetches.limit.end_oldest()
    assert fetches.expired == [0]
    assert 90 not in fetches.permits, "it waits until the oldest has ended"
    fetches.limit.end_oldest()
    assert fetches.expired == [0], "a fetch is ended once"
    await fetches.end(0)
    assert 90 in fetches.permits


async def test_a_fetch_that_is_not_old_is_not_ended() -> None:
    fetches = Fetches(1)
    fetches.limit.share(2)
    await fetches.begin(1)
    await fetches.clock.run(OLD_WITH_POOL - 0.1)
    await fetches.begin(2)
    assert fetches.expired == []
    await fetches.clock.run(0.1)
    assert fetches.expired == [1]


@pytest.mark.parametrize(
    ("limit", "connections", "begun"), [(100, 8, 4), (100, 1, 1), (3, 8, 3), (100, 3, 1)]
)
async def test_fetches_get_half_of_the_connections(
    limit: int, connections: int, begun: int
) -> None:
    fetches = Fetches(limit)
    fetches.limit.share(connections)
    await fetches.begin(*range(20))
    assert len(fetches.permits) == begun
    await fetches.clock.run(OLD_WITH_POOL)
    assert len(fetches.permits) == begun, "slow ones count, too"


async def test_a_restarted_fetch_is_the_youngest() -> None:
    fetches = Fetches(2)
    fetches.limit.share(4)
    await fetches.begin(1, 2)
    await fetches.clock.run(OLD_WITH_POOL - 1)
    fetches.limit.restart(fetches.permits[1], lambda: fetches.expired.append(-1))
    await fetches.clock.run(1)
    await fetches.begin(3)  # ends the oldest one
    assert fetches.expired == [2]
    await fetches.begin(4)
    assert fetches.expired == [2]
    await fetches.clock.run(OLD_WITH_POOL)
    fetches.limit.end_oldest(2)
    assert fetches.expired == [2, -1]


async def test_a_fetch_that_is_canceled_while_it_waits_leaves_nothing() -> None:
    fetches = Fetches(1)
    await fetches.begin(1, 2, 3)
    fetches.acquiring[2].addErrback(lambda _: None)
    fetches.acquiring[2].cancel()
    await fetches.clock.run()
    await fetches.end(1)
    assert list(fetches.permits) == [1, 3]
    await fetches.end(3)
    assert fetches.limit.capacity == 1
    assert fetches.clock.pending == []


async def test_capacity_is_reported_when_no_fetch_waits() -> None:
    fetches = Fetches(1)
    await fetches.begin(1, 2)
    assert fetches.capacity_calls == 0
    await fetches.end(1)
    assert fetches.capacity_calls == 0
    await fetches.end(2)
    assert fetches.capacity_calls == 1
