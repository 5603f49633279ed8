"""Tests of :class:`~scrapy_rep.stores.Store`, for stores of your own and for those of this package.

Derive a class from :class:`StoreTests`, or from :class:`SharedStoreTests` if several crawlers use
the store at once::

    from scrapy_rep.testing import SharedStoreTests


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
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from .protocol.access import AccessResult, CopyInfo
from .stores import Claim, Entry, Store
from .stores.base import MAX_RETRY

__all__ = ["SharedStoreTests", "StoreTests"]

MAX_TRIES = 200
"""How often a test tries whether something has expired, every 0.05 s."""

_OLD = Entry(
    AccessResult.SUCCESSFUL,
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
        file = f"{origin}/.well-known/tdmrep.json"
        async with self._crawlers() as (store,):
            for entry in (_OLD, _NEW, _LATER):
                assert await store.put(file, entry)
                assert await store.get(file) == entry
            assert await store.get(origin) is None, "the key may be an origin or a file"
            await store.close()  # a store may be closed twice

    async def test_a_claim_returns_the_last_entry_and_a_greater_token(self) -> None:
        origin, entry, tokens = _origin(), None, []
        async with self._crawlers() as (store,):
            for step in range(5):
                claim = await store.claim(origin, 10)
                assert (claim.claimed, claim.entry) == (True, entry)
                tokens.append(_token(claim))
                if step in (1, 3):
                    entry = _OLD
                    await store.put(origin, entry, claim.fence)
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
            await store.release(origin)
            assert await store.put(origin, _LATER), "without a token"
            assert not await store.put(origin, _NEW, first), "the token of the entry stays"
            assert await store.get(origin) == _LATER

    async def test_a_host_cannot_be_reserved_during_its_delay(self) -> None:
        host, other, third = _host(), _host(), _host()
        async with self._crawlers() as (store,):
            await store.release_host(host, 30)  # not reserved: no effect
            assert await store.reserve_host(host, 30) == 0
            assert await store.reserve_host(host, 30) == 0, "renewed"
            await store.release_host(host, 30)
            assert 0 < await store.reserve_host(host, 30) <= 30
            assert await store.reserve_host(other, 30) == 0
            await store.release_host(other, 0.3)
            await store.release_host(other, 30)  # not reserved any more
            while left := await store.reserve_host(other, 30):
                assert left <= 0.3
                _pause(left)
            await store.release_host(other, 0)
            assert await store.reserve_host(other, 30) == 0
            assert await store.reserve_host(third, 1e300) == 0
            await store.release_host(third, 1e300)
            assert await store.reserve_host(third, 30) == MAX_RETRY


class SharedStoreTests(StoreTests):
    """What a store does that several crawlers use at once. ``open_store`` returns views of it."""

    async def test_one_of_two_crawlers_gets_the_claim(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            assert one.shared
            mine = await one.claim(origin, 60)
            assert mine.claimed
            assert await other.claim(origin, 60) == (False, None, mine.fence)
            await other.release(origin)  # another crawler has it: no effect
            assert not (await other.claim(origin, 60)).claimed
            assert await one.put(origin, _OLD, mine.fence)
            assert await other.get(origin) == _OLD
            assert await other.claim(origin, 60) == (False, _OLD, mine.fence)
            await one.release(origin)
            await one.close()  # the other stays open
            theirs = await other.claim(origin, 60)
            assert (theirs.claimed, theirs.entry) == (True, _OLD)
            assert _token(theirs) > _token(mine)

    async def test_a_claim_lasts_until_it_expires(self) -> None:
        origin = _origin()
        async with self._crawlers(2) as (one, other):
            assert (await one.claim(origin, 0.05)).claimed
            await _claim_when_expired(other, origin)
            await one.release(origin)  # another crawler has it now: no effect
            assert not (await one.claim(origin, 60)).claimed
            await other.release(origin)
            assert (await one.claim(origin, 60)).claimed

    async def test_a_crawler_that_was_paused_overwrites_nothing(self) -> None:
        origin = _origin()
        async with self._crawlers(3) as (paused, cancelled, third):
            mine = _token(await paused.claim(origin, 0.05))
            await _claim_when_expired(cancelled, origin)
            await cancelled.release(origin)  # without an entry
            theirs = _token(await third.claim(origin, 60))
            assert theirs > mine
            assert await third.put(origin, _NEW, theirs)
            await third.release(origin)
            assert not await paused.put(origin, _OLD, mine)
            await paused.release(origin)
            assert await third.get(origin) == _NEW

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
