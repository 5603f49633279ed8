"""Tests of :class:`~scrapy_rep.stores.Store`, for stores of your own and for those of this package.

Derive a class from :class:`StoreTests`, or from :class:`SharedStoreTests` if several crawlers use
the store at once::

    from scrapy_rep.stores.testing import SharedStoreTests


    class TestMyStore(SharedStoreTests):
        def open_store(self):
            store = MyStore(ttl=60)
            store.open()
            return store

The tests are coroutines, so that pytest needs a plugin such as pytest-asyncio with
``asyncio_mode = "auto"``. Each test uses origins and hosts of its own: the store need not be empty.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from ..protocol.access import AccessResult, CopyInfo
from .base import MAX_RETRY
from .entry import Entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .base import Claim, Store

MAX_TRIES = 200
"""How often a test tries whether something has expired, every 0.05 s."""

_OLD = Entry(
    AccessResult.RULES,
    1_000.5,
    2_000,
    3_000,
    body=b"User-agent: *\nDisallow: /\n\xff\x00",
    copy=CopyInfo("https://a.example/robots.txt", etag='"1"', lifetime=60, sha256="a" * 64),
    status=200,
    url="https://a.example/robots.txt",
)
_NEW = Entry(
    AccessResult.UNREACHABLE,
    4_000,
    5_000,
    failure="status 503",
    unreachable_since=3_500,
    failures=2,
)
_LATER = Entry(AccessResult.UNAVAILABLE, 7_000, 8_000, 9_000, status=404)


class StoreTests:
    """What every store does."""

    def open_store(self) -> Store:
        """Return the store, opened for one more crawler."""
        raise NotImplementedError

    @asynccontextmanager
    async def _crawlers(self, number: int = 1) -> AsyncIterator[list[Store]]:
        stores = [self.open_store() for _ in range(number)]
        try:
            yield stores
        finally:
            for store in stores:
                await store.close()

    async def test_get_returns_the_last_entry(self) -> None:
        origin = _origin()
        async with self._crawlers() as (store,):
            assert await store.get(origin) is None
            for entry in (_OLD, _NEW, _LATER):
                assert await store.put(origin, entry)
                assert await store.get(origin) == entry
            assert await store.get(_origin()) is None

    async def test_an_entry_may_be_that_of_a_file(self) -> None:
        origin = _origin()
        key = f"{origin}/.well-known/tdmrep.json"
        async with self._crawlers() as (store,):
            assert await store.put(key, _OLD)
            assert await store.get(origin) is None
            assert await store.get(key) == _OLD

    async def test_a_claim_returns_the_last_entry(self) -> None:
        origin = _origin()
        async with self._crawlers() as (store,):
            claim = await store.claim(origin, 10)
            assert (claim.claimed, claim.entry) == (True, None)
            await store.put(origin, _OLD, claim.fence)
            await store.release(origin)
            claim = await store.claim(origin, 10)
            assert (claim.claimed, claim.entry) == (True, _OLD)

    async def test_each_claim_has_a_greater_fencing_token(self) -> None:
        origin = _origin()
        tokens = []
        async with self._crawlers() as (store,):
            for step in range(5):
                tokens.append(_token(await store.claim(origin, 10)))
                if step in (1, 3):
                    await store.put(origin, _OLD, tokens[-1])
                if step > 1:
                    await store.release(origin)
        assert tokens == sorted(set(tokens))

    async def test_an_entry_of_an_earlier_claim_is_refused(self) -> None:
        origin = _origin()
        async with self._crawlers() as (store,):
            first = _token(await store.claim(origin, 10))
            second = _token(await store.claim(origin, 10))
            assert await store.put(origin, _OLD, first), "the second has put nothing yet"
            assert await store.put(origin, _NEW, second)
            assert not await store.put(origin, _OLD, first)
            assert await store.get(origin) == _NEW
            assert await store.put(origin, _OLD, second), "the same token"
            assert await store.get(origin) == _OLD
            await store.release(origin)
            assert await store.put(origin, _LATER), "without a token"
            assert not await store.put(origin, _NEW, first), "the token of the entry stays"
            assert await store.get(origin) == _LATER

    async def test_a_host_cannot_be_reserved_during_its_delay(self) -> None:
        host = _host()
        async with self._crawlers() as (store,):
            assert await store.reserve_host(host, 30) == 0
            assert await store.reserve_host(host, 30) == 0, "renewed"
            await store.release_host(host, 30)
            assert 0 < await store.reserve_host(host, 30) <= 30
            other = _host()
            assert await store.reserve_host(other, 30) == 0
            await store.release_host(other, 0.3)
            await store.release_host(other, 30)  # not reserved: no effect
            while left := await store.reserve_host(other, 30):
                assert left <= 0.3
                _pause(left)
            await store.release_host(other, 0)
            assert await store.reserve_host(other, 30) == 0

    async def test_the_time_until_the_next_try_is_limited(self) -> None:
        host = _host()
        async with self._crawlers() as (store,):
            assert await store.reserve_host(host, 1e300) == 0
            await store.release_host(host, 1e300)
            assert await store.reserve_host(host, 30) == MAX_RETRY

    async def test_releasing_a_host_that_is_not_reserved_has_no_effect(self) -> None:
        host = _host()
        async with self._crawlers() as (store,):
            await store.release_host(host, 30)
            assert await store.reserve_host(host, 30) == 0

    async def test_a_store_may_be_closed_twice(self) -> None:
        async with self._crawlers() as (store,):
            await store.close()


class SharedStoreTests(StoreTests):
    """What a store does that several crawlers use at once. ``open_store`` returns views of it."""

    async def test_crawlers_share_the_entries(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            assert one.shared
            await one.put(origin, _OLD)
            assert await other.get(origin) == _OLD

    async def test_one_of_two_crawlers_gets_the_claim(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            mine = await one.claim(origin, 60)
            assert mine.claimed
            assert await other.claim(origin, 60) == (False, None, mine.fence)
            await other.release(origin)  # another crawler has it: no effect
            assert not (await other.claim(origin, 60)).claimed
            assert await one.put(origin, _OLD, mine.fence)
            assert await other.claim(origin, 60) == (False, _OLD, mine.fence)
            await one.release(origin)
            theirs = await other.claim(origin, 60)
            assert (theirs.claimed, theirs.entry) == (True, _OLD)
            assert _token(theirs) > _token(mine)

    async def test_a_claim_expires(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            assert (await one.claim(origin, 0.1)).claimed
            await _claim_when_expired(other, origin)
            await one.release(origin)  # another crawler has it now: no effect
            assert not (await one.claim(origin, 60)).claimed

    async def test_a_renewed_claim_lasts_longer(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            mine = _token(await one.claim(origin, 0.2))
            assert await one.renew(origin, mine, 60)
            _pause(0.3)
            assert not (await other.claim(origin, 60)).claimed
            assert await one.renew(origin, mine, 0.1)
            await _claim_when_expired(other, origin)

    async def test_an_expired_claim_can_be_renewed_until_another_crawler_has_it(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            mine = _token(await one.claim(origin, 0.05))
            _pause(0.1)
            assert await one.renew(origin, mine, 0.05)
            assert not await other.renew(origin, mine, 60), "it is not the claim of this crawler"
            theirs = await _claim_when_expired(other, origin)
            assert not await one.renew(origin, mine, 60)
            assert await other.renew(origin, _token(theirs), 60)
            await other.release(origin)
            assert not await one.renew(origin, mine, 60)
            assert not await other.renew(origin, _token(theirs), 60), "released"
            assert (await one.claim(origin, 60)).claimed

    async def test_a_crawler_that_was_paused_overwrites_nothing(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            mine = _token(await one.claim(origin, 0.05))
            theirs = _token(await _claim_when_expired(other, origin))
            assert theirs > mine
            assert await other.put(origin, _NEW, theirs)
            await other.release(origin)
            assert not await one.put(origin, _OLD, mine)
            await one.release(origin)
            assert await other.get(origin) == _NEW

    async def test_a_released_claim_without_an_entry_keeps_the_order_of_tokens(self) -> None:
        """The fetch was cancelled, and an earlier owner of the claim is still paused."""
        origin = _origin()
        async with self._crawlers(3) as (one, other, third):
            mine = _token(await one.claim(origin, 0.05))
            await _claim_when_expired(other, origin)
            await other.release(origin)
            claim = await third.claim(origin, 60)
            assert claim.claimed
            assert await third.put(origin, _NEW, claim.fence)
            assert not await one.put(origin, _OLD, mine)
            assert await other.get(origin) == _NEW

    async def test_one_of_two_crawlers_gets_the_reservation(self) -> None:
        host = _host()
        async with self._crawlers(2) as (one, other):
            assert await one.reserve_host(host, 50) == 0
            assert 0 < await other.reserve_host(host, 50) <= 50
            await other.release_host(host, 0)  # another crawler has it: no effect
            assert await other.reserve_host(host, 50) > 0
            assert await other.reserve_host(_host(), 50) == 0
            await one.release_host(host, 55)
            assert 0 < await one.reserve_host(host, 10) <= 55
            assert 0 < await other.reserve_host(host, 10) <= 55

    async def test_a_reservation_expires(self) -> None:
        host = _host()
        async with self._crawlers(2) as (one, other):
            assert await one.reserve_host(host, 0.2) == 0
            while left := await other.reserve_host(host, 60):
                assert left <= 0.2
                _pause(left)
            await one.release_host(host, 30)  # another crawler has it now: no effect
            assert await other.reserve_host(host, 60) == 0

    async def test_closing_one_store_leaves_the_others_open(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            await one.put(origin, _OLD)
            await one.close()
            assert await other.get(origin) == _OLD


async def _claim_when_expired(store: Store, origin: str) -> Claim:
    """Claim an origin as soon as the claim of another crawler has expired."""
    for _ in range(MAX_TRIES):
        claim = await store.claim(origin, 60)
        if claim.claimed:
            return claim
        _pause(0.05)
    raise AssertionError("a claim does not expire")


def _token(claim: Claim) -> int:
    assert claim.fence is not None
    return claim.fence


def _pause(seconds: float) -> None:
    """Block. The tests are alone in their event loop, which may be of any kind."""
    time.sleep(seconds)


def _origin() -> str:
    return f"https://{_host()}"


def _host() -> str:
    return f"{uuid4().hex}.example"
