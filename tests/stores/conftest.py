from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .servers import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def one_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_server(one_redis: RedisServer) -> RedisServer:
    """An empty Redis, of which no more is asked than to be there."""
    with one_redis.client as client:
        client.flushall()
    return one_redis
