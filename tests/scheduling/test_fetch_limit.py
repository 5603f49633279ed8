"""How many robots.txt files are fetched at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.scheduling.fetch_limit import (
    MAX_FACTOR,
    MAX_PER_TURN,
    OLD,
    OLD_SHARE,
    OLD_WITH_POOL,
    SILENT_SHARE,
    SLOW,
    WAITING_FOR_EACH,
    FetchLimit,
)

from .doubles import FakeClock, begin, settle

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy_rep.scheduling.fetch_limit import Permit


class Fetches:
    """Fetches that need a permit, and what became of them."""

    def __init__(self, limit: int) -> None:
        self.clock = FakeClock()
        self.capacity_calls = 0
        self.is_downloading = False
        self.limit = FetchLimit(
            limit, self.clock, self._on_capacity, is_downloading=lambda: self.is_downloading
        )
        self.permits: dict[int, Permit] = {}
        self.expired: list[int] = []
        self.acquiring: dict[int, Any] = {}
        self.silent: Collection[int] = ()
        """Fetches of files whose last fetch was slow and failed."""

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
        permit = await self.limit.acquire(is_silent=number in self.silent)
        permit.expire = lambda: self.expired.append(number)
        self.permits[number] = permit

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
    for number in range(MAX_FACTOR):
        await fetches.begin(number)
        await fetches.clock.run(SLOW)
    assert len(fetches.permits) == MAX_FACTOR
    await fetches.begin(90)
    await fetches.clock.run(OLD - SLOW * MAX_FACTOR - 0.1)
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
    fetches.permits[1].expire = lambda: fetches.expired.append(-1)
    fetches.limit.restart(fetches.permits[1])
    await fetches.clock.run(1)
    await fetches.begin(3)  # ends the oldest one
    assert fetches.expired == [2]
    await fetches.begin(4)
    assert fetches.expired == [2]
    await fetches.clock.run(OLD_WITH_POOL)
    fetches.limit.end_oldest(2)
    assert fetches.expired == [2, -1]


# While pages are downloaded, they come first.


def downloading(limit: int, *, silent: Collection[int] = ()) -> Fetches:
    """Return the fetches of a crawl that downloads pages."""
    fetches = Fetches(limit)
    fetches.is_downloading = True
    fetches.silent = silent
    return fetches


async def test_few_fetches_of_silent_files_are_in_progress() -> None:
    fetches = downloading(8, silent=range(9))
    most = int(8 * SILENT_SHARE)
    await fetches.begin(*range(9))
    assert list(fetches.permits) == list(range(most))
    await fetches.begin(90)
    assert 90 in fetches.permits, "other fetches begin meanwhile"
    assert fetches.limit.capacity > 0
    await fetches.end(0)
    assert most in fetches.permits
    fetches.is_downloading = False
    fetches.limit.update()
    await fetches.clock.run()
    assert len(fetches.permits) == 9, "eight are in progress: the limit of all fetches"
    await fetches.clock.run(SLOW)
    assert len(fetches.permits) == 10


async def test_more_fetches_of_silent_files_are_in_progress_if_many_wait() -> None:
    count = 5 * WAITING_FOR_EACH
    fetches = downloading(8, silent=range(count))
    await fetches.begin(*range(count))
    begun = list(fetches.permits)
    assert len(begun) == 4, "one for each 16 of the 76 others"
    for number in begun:
        await fetches.end(number)
    assert len(fetches.permits) == 8, "one for each 16 of the 72 others"


async def test_old_fetches_of_silent_files_are_ended_for_those_that_wait() -> None:
    fetches = downloading(8, silent=range(9))
    most = int(8 * SILENT_SHARE)
    await fetches.begin(*range(most + 1))
    await fetches.clock.run(OLD - 0.1)
    fetches.limit.end_oldest()
    assert fetches.expired == []
    await fetches.clock.run(0.2)
    fetches.limit.end_oldest()
    assert fetches.expired == [0], "no more than needed"


async def test_few_old_fetches_are_in_progress() -> None:
    fetches = downloading(8)
    kept = int(8 * OLD_SHARE)
    await fetches.begin(*range(8))
    await fetches.clock.run(OLD - 0.1)
    fetches.limit.end_oldest()
    assert fetches.expired == []
    fetches.is_downloading = False
    await fetches.clock.run(0.2)
    fetches.limit.end_oldest()
    assert fetches.expired == [], "nothing else needs the time"
    fetches.is_downloading = True
    fetches.limit.end_oldest()
    assert fetches.expired == list(range(8 - kept))


async def test_few_fetches_are_ended_before_the_event_loop_runs() -> None:
    fetches = downloading(8 * MAX_PER_TURN)
    await fetches.begin(*range(8 * MAX_PER_TURN))
    await fetches.clock.run(OLD + 0.1)
    assert fetches.expired == []
    fetches.limit.end_oldest()
    assert fetches.expired == list(range(MAX_PER_TURN))
    await fetches.clock.run()
    assert fetches.expired == list(range(4 * MAX_PER_TURN))


async def test_fetches_begin_for_half_of_the_time() -> None:
    fetches = downloading(100)
    await fetches.begin_in_turn(*range(2 * MAX_PER_TURN))
    fetches.clock.now += 0.03  # the turn takes so long
    await fetches.clock.run(0.02)
    assert len(fetches.permits) == MAX_PER_TURN
    await fetches.clock.run(0.02)
    assert len(fetches.permits) == 2 * MAX_PER_TURN
    fetches.is_downloading = False
    await fetches.begin_in_turn(*range(50, 50 + 2 * MAX_PER_TURN))
    fetches.clock.now += 0.03
    await fetches.clock.run()
    assert len(fetches.permits) == 4 * MAX_PER_TURN, "nothing else needs the time"


async def test_half_of_the_connections_are_enough_for_pages() -> None:
    fetches = downloading(100, silent=range(20))
    fetches.limit.share(8)
    await fetches.begin(*range(20))
    assert len(fetches.permits) == 4


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


async def test_a_silent_one_that_is_canceled_while_it_waits_leaves_nothing() -> None:
    fetches = downloading(4, silent=range(3))
    await fetches.begin(0, 1)
    fetches.acquiring[1].addErrback(lambda _: None)
    fetches.acquiring[1].cancel()
    await fetches.clock.run()
    await fetches.begin(2)
    await fetches.end(0)
    assert list(fetches.permits) == [0, 2]
    await fetches.end(2)
    assert fetches.clock.pending == []


async def test_capacity_is_reported_when_no_fetch_waits() -> None:
    fetches = Fetches(1)
    await fetches.begin(1, 2)
    assert fetches.capacity_calls == 0
    await fetches.end(1)
    assert fetches.capacity_calls == 0
    await fetches.end(2)
    assert fetches.capacity_calls == 1
