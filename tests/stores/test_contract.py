"""Each store passes the tests that a store of one's own can run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.stores import Entry, Store
from scrapy_rep.stores.fallback import FallbackStore
from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.stores.sqlite import MemoryStore, SQLiteStore
from scrapy_rep.testing import SharedStoreTests
from testing.redis_server import RedisCluster, RedisServer

ENTRY = Entry(AccessResult.UNAVAILABLE, 1, 2, 3, status=404)


class TestMemory(SharedStoreTests):
    def open_store(self) -> Store:
        return MemoryStore("contract", ttl=60)


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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    cluster = RedisCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


# redis-py 6.0 warns about a call of its own.
@pytest.mark.filterwarnings("ignore:.*cluster_error_retry_attempts:DeprecationWarning")
class TestRedisCluster(TestRedis):
    @pytest.fixture(autouse=True)
    def _choose_server(self, cluster: RedisCluster) -> None:
        self.url = f"{cluster.url}?prefix=news:"

    def test_all_entries_can_be_exported(self) -> None:
        store = RedisStore(self.url, ttl=60)
        keys = {f"https://{number}.example" for number in range(200)}
        for key in keys:
            store.add(key, ENTRY, replace=False)
        assert keys <= {key for key, entry in store.entries() if entry == ENTRY}
        store.disconnect()


# The commands that docs/usage/stores.md lists.
ACL = "on >secret ~news:rep:* +getrange +eval +set +del +pttl"


class TestRedisWithUser(TestRedis):
    """The user may use the keys with the prefix only, and only the commands that are needed."""

    @pytest.fixture(autouse=True)
    def _choose_server(self, redis_server: RedisServer) -> Iterator[None]:
        with redis_server.client as client:
            client.execute_command("ACL", "SETUSER", "crawler", *ACL.split())
        self.url = f"redis://crawler:secret@127.0.0.1:{redis_server.port}/0?prefix=news:"
        yield
        with redis_server.client as client:
            client.execute_command("ACL", "DELUSER", "crawler")
