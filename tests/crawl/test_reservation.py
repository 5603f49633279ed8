"""Asking for a host that several crawlers share, by what the store is asked."""

from __future__ import annotations

from scrapy_rep.scheduling.clock import Clock, sleep
from scrapy_rep.scheduling.hosts import Host
from scrapy_rep.scheduling.reservation import Reservations


class OneStore:
    """A store in which another crawler has the host reserved, the first time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def reserve_host(self, host: str, lease: float) -> float:
        self.asked += 1
        return 30.0 if self.asked == 1 else 0.0

    async def release_host(self, host: str, delay: float) -> None:
        """Nobody else asks."""


async def test_a_host_that_is_wanted_again_at_once_is_asked_for_again() -> None:
    granted: list[Host] = []
    store = OneStore()
    reservations = Reservations(store, Clock(), wanted=lambda _: True, granted=granted.append)
    host = Host("example.com", Clock())
    host.set_delay("http://example.com", 0.2)
    reservations.request(host)
    await sleep(0.05)
    assert store.asked == 1
    reservations.cancel(host)  # nobody waits any more
    reservations.request(host)  # and now somebody does
    await sleep(0.5)
    assert store.asked == 2
    assert granted == [host]
    assert reservations.is_reserved(host)
    reservations.release(host, 0)
