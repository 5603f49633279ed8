"""Reserving a host that several crawlers share, by what the store is asked."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import AsyncMock, call

import pytest
from twisted.internet.defer import Deferred

from scrapy_rep.frontier import reservation
from scrapy_rep.frontier.hosts import Host
from scrapy_rep.frontier.reservation import MIN_RETRY_INTERVAL, TURN, Reservations
from scrapy_rep.policies.gate import Place
from scrapy_rep.stores.base import LEASE
from testing.clock import FakeClock

from .doubles import BEGUN, FakeCrawl


class Shared:
    """The reservations of one crawler, its frontier, and a store with a list of answers.

    The last answer stays. An answer may be an error.
    """

    is_closing = False

    def __init__(self, *answers: float | BaseException, delay: float = 1) -> None:
        self.clock = FakeClock()
        self.answers = list(answers)
        self.reserved: list[float] = []
        """When the store was asked."""
        self.released: list[float] = []
        """The delays with which the host was released."""
        self.seconds = 0.0
        """How long a call to the store takes."""
        self.wanted = True
        self.asks_again = False
        self.granted: list[float] = []
        self.host = Host("example.com", 8)
        self.host.set_delay("http://example.com", delay)
        both: Any = self
        self.reservations = Reservations(both, self.clock, both)
        BEGUN.append(Deferred(lambda _: self.reservations.release(self.host, 0)))

    async def reserve_host(self, host: str, lease: float) -> float:
        assert (host, lease) == ("example.com", LEASE)
        self.reserved.append(self.clock.now - 1000)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await self._take()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def release_host(self, host: str, delay: float) -> None:
        self.released.append(delay)
        await self._take()

    async def _take(self) -> None:
        if self.seconds:
            await self.clock.sleep(self.seconds)

    def is_wanted(self, _: Host) -> bool:
        return self.wanted

    def own_delay_left(self, _: Host) -> float:
        return 0

    def update_host(self, _: Host) -> None:
        self.granted.append(self.clock.now - 1000)
        if self.asks_again:
            self.asks_again = False
            self.reservations.request(self.host)

    @property
    def is_reserved(self) -> bool:
        return self.reservations.is_reserved(self.host)


@pytest.mark.parametrize(
    ("answers", "delay", "at"),
    [
        pytest.param([0.0], 1, [0], id="free"),
        pytest.param([30.0, 0.0], 1, [0, 1], id="after the delay, for it may be released early"),
        pytest.param([0.4, 0.0], 1, [0, 0.4], id="when the lease ends"),
        pytest.param([5.0, 5.0, 0.0], 0.001, [0, 0.1, 0.2], id="not too often"),
    ],
)
async def test_when_the_store_is_asked(answers: list[float], delay: float, at: list[float]) -> None:
    assert MIN_RETRY_INTERVAL == 0.1
    shared = Shared(*answers, delay=delay)
    shared.reservations.request(shared.host)
    shared.reservations.request(shared.host)  # it has begun
    await shared.clock.run(4)
    assert [round(each, 6) for each in shared.reserved] == at
    assert [round(each, 6) for each in shared.granted] == at[-1:]
    assert shared.is_reserved


async def test_a_reservation_is_renewed_until_it_is_released() -> None:
    shared = Shared(0.0)
    shared.reservations.request(shared.host)
    await shared.clock.run(LEASE)
    assert shared.reserved == [0, LEASE / 3, 2 * LEASE / 3, LEASE]
    shared.reservations.release(shared.host, 7)
    shared.reservations.release(shared.host, 8)  # it is released
    await shared.clock.run(LEASE)
    assert len(shared.reserved) == 4
    assert shared.released == [7]
    assert not shared.is_reserved
    assert shared.clock.pending == []


async def test_a_host_is_not_reserved_again_before_its_release_has_ended() -> None:
    # The store has several threads and connections. If the release came after the reservation, it
    # would end the new reservation, and another crawler would send a request at the same time.
    shared = Shared(0.0)
    shared.reservations.request(shared.host)
    await shared.clock.run(1)
    shared.seconds = 5
    shared.reservations.release(shared.host, 1)
    await shared.clock.run(2)
    shared.reservations.request(shared.host)
    shared.asks_again = True
    await shared.clock.run(2)
    assert shared.reserved == [0]
    await shared.clock.run(10)
    assert shared.reserved == [0, 6]
    assert shared.is_reserved
    shared.seconds = 0


async def test_a_host_that_no_request_waits_for_is_not_reserved() -> None:
    shared = Shared(30.0)
    shared.reservations.request(shared.host)
    await shared.clock.run(3.5)
    shared.wanted = False
    await shared.clock.run(60)
    assert shared.reserved == [0, 1, 2, 3]
    assert shared.granted == [4]
    assert not shared.is_reserved
    assert shared.clock.pending == []


async def test_a_crawler_goes_on_without_a_reservation_in_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reservation, "MAX_RESERVATION_WAIT", 10.0)
    shared = Shared(30.0)
    shared.reservations.request(shared.host)
    await shared.clock.run(10)
    assert shared.is_reserved
    assert shared.granted == [10]
    assert "continues without a reservation" in caplog.text


@pytest.mark.parametrize("error", [OSError("gone"), asyncio.CancelledError()])
async def test_a_crawl_goes_on_without_a_store_that_fails(error: BaseException) -> None:
    shared = Shared(error, 0.0, delay=5)
    shared.reservations.request(shared.host)
    await shared.clock.run(1)
    assert (shared.reserved, len(shared.granted)) == ([0], 1)
    shared.reservations.request(shared.host)
    await shared.clock.run(LEASE / 3)
    assert shared.reserved == [0, LEASE / 3], "it is tried again with the renewal"


async def test_a_crawl_that_closes_ends_its_attempts() -> None:
    store = AsyncMock(**{"reserve_host.return_value": 30.0})
    crawl = FakeCrawl(reservations=lambda frontier: Reservations(store, frontier.clock, frontier))
    crawl.push("http://example.com/")
    crawl.frontier.set_delay("example.com", "http://example.com", 1)
    crawl.set_ready("http://example.com")
    await crawl.clock.run(2.5)
    crawl.frontier.close()
    await crawl.clock.run(100)
    assert (store.reserve_host.await_count, crawl.clock.pending) == (3, [])


async def test_a_host_that_nothing_waits_for_any_more_is_released() -> None:
    store, origin = AsyncMock(**{"reserve_host.return_value": 0.0}), "http://example.com"
    crawl = FakeCrawl(reservations=lambda frontier: Reservations(store, frontier.clock, frontier))
    crawl.push(f"{origin}/")
    crawl.frontier.set_delay("example.com", origin, 1)
    crawl.set_ready(origin)
    await crawl.clock.run()
    store.release_host.assert_not_awaited()
    crawl.set(origin, Place.DROPS)
    await crawl.clock.run()
    store.release_host.assert_awaited_once_with("example.com", 0)


# The delay of the crawl itself


def crawl_of(*hosts: str, pages: int) -> tuple[FakeCrawl, AsyncMock]:
    """Return a crawl with a delay of its own and some requests to each host, and its store."""
    store = AsyncMock(**{"reserve_host.return_value": 0.0})
    crawl = FakeCrawl(
        {"DOWNLOAD_DELAY": 2, "CONCURRENT_REQUESTS_PER_DOMAIN": 100},
        reservations=lambda frontier: Reservations(store, frontier.clock, frontier),
    )
    for host in hosts:
        crawl.push(*(f"http://{host}/{page}" for page in range(pages)))
        crawl.set_ready(f"http://{host}")
    return crawl, store


async def test_a_host_with_an_own_delay_is_reserved_for_a_turn() -> None:
    crawl, store = crawl_of("a.example", pages=TURN + 2)
    crawl.engine.delays["a.example"] = 1.5
    assert crawl.pop() is None, "it is not reserved"
    await crawl.clock.run()
    for _ in range(TURN):
        crawl.engine.unsent = 0.1
        crawl.take()
        await crawl.clock.run(0.3)
        assert crawl.pop() is None, "the last request was not sent"
        store.release_host.assert_not_awaited()
        crawl.engine.unsent = 0
        await crawl.clock.run(0.1)
    store.release_host.assert_awaited_once_with("a.example", 1.5)
    assert store.reserve_host.await_count == 2
    crawl.take()
    await crawl.clock.run()
    crawl.engine.unsent = 0.1
    crawl.frontier.note_reached(crawl.take())
    await crawl.clock.run(0.3)
    assert store.release_host.await_count == 1
    crawl.engine.unsent = 0
    await crawl.clock.run(0.1)
    assert store.release_host.await_args_list == [call("a.example", 1.5)] * 2, "none waits"


async def test_a_host_with_two_delays_is_released_after_the_longer_one() -> None:
    crawl, store = crawl_of("a.example", pages=3)
    for delay in (1, 3):
        crawl.frontier.set_delay("a.example", "http://a.example", delay)
        crawl.engine.delays["a.example"] = 2
        await crawl.clock.run(3)
        request = crawl.take()
        await crawl.clock.run(1)
        crawl.end(request)
        await crawl.clock.run()
    assert store.release_host.await_args_list == [call("a.example", 2), call("a.example", 3)]


async def test_hosts_take_turns_if_too_many_are_to_be_reserved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reservation, "MAX_TURNS", 2)
    hosts = [f"{name}.example" for name in "abcd"]
    crawl, store = crawl_of(*hosts, pages=2)
    seen: list[str] = []
    for _ in range(4):
        await crawl.clock.run()
        requests = [crawl.take(), crawl.take()]
        assert crawl.pop() is None
        seen += sorted(request.url for request in requests)
        for request in requests:
            crawl.end(request)
    # The first ones wait behind the others.
    assert seen == [f"http://{host}/{page}" for page in (0, 1) for host in hosts]
    await crawl.clock.run()
    assert store.release_host.await_count == 8
    assert crawl.left_over() == {}


async def test_a_host_that_was_forgotten_while_it_is_released_is_reserved_again() -> None:
    crawl, store = crawl_of("a.example", pages=1)
    await crawl.clock.run()

    async def release(*_: object) -> None:
        await crawl.clock.sleep(1)

    store.release_host.side_effect = release
    crawl.end(crawl.take())
    await crawl.clock.run(0.5)
    del crawl.frontier.hosts.hosts["a.example"]
    crawl.push("http://a.example/2")
    assert crawl.pop() is None
    await crawl.clock.run(1)
    request = crawl.take()
    assert request.url == "http://a.example/2"
    crawl.end(request)
    await crawl.clock.run(1)
