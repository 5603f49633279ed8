"""Tests of :class:`~scrapy_rep.stores.Store`, for stores of your own and for those of this package.

Derive a class from :class:`StoreTests`, or from :class:`SharedStoreTests` if several crawlers use
the store at once, and define its ``open_store``. The tests are coroutines, so that pytest needs a
plugin such as pytest-asyncio with ``asyncio_mode = "auto"``. Each test uses origins and hosts of
its own: the store need not be empty.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from .protocol.access import AccessResult, CopyInfo
from .stores import Entry, Store
from .stores.base import MAX_RETRY

__all__ = ["SharedStoreTests", "StoreTests"]

_pause = time.sleep  # The tests are alone in their event loop, which may be of any kind.

_URL, _BODY = "https://a.example/robots.txt", b"User-agent: *\nDisallow: /\n\xff\x00"
_COPY = CopyInfo(_URL, etag='"1"', lifetime=60, sha256="a" * 64)
_OLD = Entry(
    AccessResult.SUCCESSFUL, 1_000.5, 2_000, 3_000, body=_BODY, copy=_COPY, status=200, url=_URL
)
_NEW = Entry(
    AccessResult.UNREACHABLE, 4_000, 5_000, failure="503", unreachable_since=3_500, failures=2
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
        origin = f"https://{_host()}"
        file = f"{origin}/.well-known/tdmrep.json"
        async with self._crawlers() as (store,):
            for entry in (_OLD, _NEW, _LATER):
                assert await store.put(file, entry)
                assert await store.get(file) == entry
            assert await store.get(origin) is None, "the key may be an origin or a file"
            await store.close()  # a store may be closed twice

    async def test_a_claim_returns_the_last_entry_and_a_greater_token(self) -> None:
        origin, entry, fences = f"https://{_host()}", None, []
        async with self._crawlers() as (store,):
            for step in range(5):
                claim = await store.claim(origin, 10)
                assert (claim.claimed, claim.entry) == (True, entry)
                fences.append(claim.fence or 0)
                if step in (1, 3):
                    entry = _OLD
                    await store.put(origin, entry, claim.fence)
                if step > 1:
                    await store.release(origin)
        assert fences == sorted(set(fences))

    async def test_an_entry_of_an_earlier_claim_is_refused(self) -> None:
        origin = f"https://{_host()}"
        async with self._crawlers() as (store,):
            first, second = [(await store.claim(origin, 10)).fence for _ in range(2)]
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
        origin = f"https://{_host()}"
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
            assert (theirs.fence or 0) > (mine.fence or 0)

    async def test_a_claim_lasts_until_it_expires(self) -> None:
        origin = f"https://{_host()}"
        async with self._crawlers(2) as (one, other):
            assert (await one.claim(origin, 0.05)).claimed
            await _claim_when_expired(other, origin)
            await one.release(origin)  # another crawler has it now: no effect
            assert not (await one.claim(origin, 60)).claimed
            await other.release(origin)
            assert (await one.claim(origin, 60)).claimed

    async def test_a_crawler_that_was_paused_overwrites_nothing(self) -> None:
        origin = f"https://{_host()}"
        async with self._crawlers(3) as (paused, cancelled, third):
            mine = (await paused.claim(origin, 0.05)).fence
            await _claim_when_expired(cancelled, origin)
            await cancelled.release(origin)  # without an entry
            theirs = (await third.claim(origin, 60)).fence
            assert (theirs or 0) > (mine or 0)
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
            host = _host()  # whose reservation expires
            assert await one.reserve_host(host, 0.2) == 0
            while left := await other.reserve_host(host, 60):
                assert left <= 0.2
                _pause(left)
            await one.release_host(host, 30)  # another crawler has it now: no effect
            assert await other.reserve_host(host, 60) == 0


async def _claim_when_expired(store: Store, origin: str) -> None:
    """Claim an origin as soon as the claim of another crawler has expired."""
    for _ in range(200):  # 10 s
        if (await store.claim(origin, 60)).claimed:
            return
        _pause(0.05)
    raise AssertionError("a claim does not expire")


def _host() -> str:
    return f"{uuid4().hex}.example"
