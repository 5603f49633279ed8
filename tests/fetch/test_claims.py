"""A claim lasts as long as its fetch, and no longer if its crawler does not run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.fetch.policy_store import PolicyStore
from scrapy_rep.origin import Origin
from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.settings import Settings
from scrapy_rep.stores import Claim, Entry
from scrapy_rep.stores.base import LEASE
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.clock import FakeClock

ORIGIN = "https://a.example"


def entry(body: bytes) -> Entry:
    return Entry(AccessResult.UNREACHABLE, 1, 2, 3, body)


class Crawler:
    """One of several crawlers with a store in the same file."""

    def __init__(self, path: Path, time: FakeClock) -> None:
        self.time = time
        self.store = SQLiteStore(path, ttl=1e9, now=time.monotonic)
        self.store.open()
        settings = Settings.read(ScrapySettings())
        self.policies = PolicyStore(self.store, settings, time, Mock())
        self.origin = Origin(ORIGIN)

    async def load(self) -> None:
        self.origin.start_fetch(self.time.time())
        assert await self.policies.load(self.origin) is None

    async def save(self, entry: Entry | None) -> None:
        await self.policies.save(self.origin, entry)


Pair = tuple[Crawler, Crawler]


@pytest.fixture
def crawlers(tmp_path: Path) -> Iterator[Pair]:
    time = FakeClock()
    made = Crawler(tmp_path / "a.db", time), Crawler(tmp_path / "a.db", time)
    yield made
    for crawler in made:
        crawler.store.disconnect()
        crawler.store._threads.shutdown()


async def test_the_claim_of_a_long_fetch_is_renewed(crawlers: Pair) -> None:
    one, other = crawlers
    await one.load()
    for _ in range(10):
        one.time.now += LEASE / 2
        await one.policies.renew()
        assert not (await other.store.claim(ORIGIN, LEASE)).claimed
    await one.save(entry(b"one"))
    assert (await other.store.claim(ORIGIN, LEASE)).claimed


async def test_a_crawler_that_did_not_run_is_replaced(crawlers: Pair) -> None:
    """When it goes on, its late result does not replace that of its successor."""
    stopped, other = crawlers
    await stopped.load()
    began = other.time.now
    await other.time.wait_for(other.load())  # which waits until the claim has expired
    assert began + LEASE <= other.time.now < began + LEASE + 5
    await other.save(entry(b"other"))
    await stopped.policies.renew()
    await stopped.save(entry(b"stopped"))
    assert await other.store.get(ORIGIN) == entry(b"other")
    assert (await other.store.claim(ORIGIN, LEASE)).claimed


async def test_a_claim_that_is_released_during_its_renewal_ends(crawlers: Pair) -> None:
    one, other = crawlers
    await one.load()
    claim = one.store.claim

    async def claim_late(origin: str, seconds: float) -> Claim:
        await one.save(None)
        return await claim(origin, seconds)

    one.store.claim = claim_late  # type: ignore[method-assign]
    one.time.now += LEASE / 2
    await one.policies.renew()
    assert (await other.store.claim(ORIGIN, LEASE)).claimed
