"""Tests that are coroutines run on the loop that this run of pytest is about.

``pytest --reactor=asyncio`` is Scrapy's default, ``--reactor=default`` is Twisted's own reactor for
this platform, and ``-p no:twisted`` is asyncio without any reactor (Scrapy 2.15 and later).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from scrapy.utils.defer import deferred_from_coro

from testing.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

# No test depends on how busy the machine is.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return
    with_reactor = pyfuncitem.config.pluginmanager.hasplugin("twisted")

    @functools.wraps(test)
    def run(**arguments: object) -> object:
        coroutine = test(**arguments)
        return deferred_from_coro(coroutine) if with_reactor else asyncio.run(coroutine)

    # What is no coroutine function any more, pytest and pytest-twisted know how to run.
    pyfuncitem.obj = run


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
