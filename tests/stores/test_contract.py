"""Each store passes the tests that a store of one's own can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_rep.stores import FallbackStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import SQLiteStore
from scrapy_rep.stores.testing import SharedStoreTests, StoreTests

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy_rep.stores import Store
    from testing.redis_server import RedisServer


class TestMemory(StoreTests):
    def open_store(self) -> Store:
        return MemoryStore()


class TestNamedMemory(SharedStoreTests):
    def open_store(self) -> Store:
        return MemoryStore.named("contract", ttl=60)


class TestSQLite(SharedStoreTests):
    @pytest.fixture(autouse=True)
    def _choose_path(self, tmp_path: Path) -> None:
        self.path = tmp_path / "robots.db"

    def open_store(self) -> Store:
        store = SQLiteStore(self.path, ttl=60)
        store.open()
        return store


class TestFallback(TestSQLite):
    def open_store(self) -> Store:
        return FallbackStore(super().open_store())


class TestRedis(SharedStoreTests):
    @pytest.fixture(autouse=True)
    def _choose_server(self, redis_server: RedisServer) -> None:
        self.url = redis_server.url

    def open_store(self) -> Store:
        store = RedisStore(self.url, ttl=60)
        store.open()
        return store
