"""Runs coroutine tests on the event loop that the arguments of pytest select.

``pytest --reactor=asyncio`` is Scrapy's default, ``--reactor=default`` is Twisted's own reactor for
this platform, and ``-p no:twisted`` is asyncio without any reactor (Scrapy 2.15 and later).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from scrapy.utils.defer import deferred_from_coro

from testing.redis_server import RedisServer
from testing.web import Web

# No test depends on how busy the machine is. `checks/` and `fuzz/` try many more examples.
settings.register_profile(
    "any", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any")

NOT_MEASURED = (
    "tests/frontier/test_queue.py::test_a_crawl_of_scrapys_plain_queue_continues",
    *(
        f"tests/crawl/test_{name}.py"
        for name in (
            *("archive", "backoff", "beside_scrapy", "builtin", "closing", "faults"),
            *("gateways", "pace", "scheduler", "scrapy_redis", "sent_urls", "soak"),
        )
    ),
)
"""Their crawls repeat lines that others cover. Coverage doubles the CPU time of a crawl."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-event-loop",
        action="store_true",
        help="leave out tests that use no event loop of pytest: they do the same on each of them",
    )


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let ``-k`` find the tests of a rule by its name."""
    item.extra_keyword_matches.update(*(mark.args for mark in item.iter_markers("rule")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests, and do not measure the coverage of tests that repeat lines or are random.

    The coverage of random examples depends on chance. A test that is no coroutine function tests
    what needs no event loop, or what runs in a process of its own.
    """
    if config.getoption("only_event_loop"):
        left_out = [item for item in items if not _is_coroutine_function(item)]
        items[:] = filter(_is_coroutine_function, items)
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if item.get_closest_marker("hypothesis") or item.nodeid.startswith(NOT_MEASURED):
            item.add_marker("no_cover")


def _is_coroutine_function(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        # pytest-cov starts in a worker as if there were no workers, and once more when the session
        # starts. A test without coverage stops only the second: the first would trace it, which
        # takes most of the time, and discard what it finds.
        first = getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)
        if first is not None:
            first.pause()
    # A shell has its jobs in the background ignore Ctrl-C. The tests of Ctrl-C send the signal
    # themselves, and the tools that they start inherit what this process does with it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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

    # pytest and pytest-twisted run a plain function, and wait for the Deferred that it returns.
    pyfuncitem.obj = run


@contextmanager
def traced_memory() -> Iterator[Callable[[], tuple[int, int]]]:
    """Trace memory. Yields what returns the bytes that are used, and the most that were."""
    tracemalloc.start()
    try:
        yield tracemalloc.get_traced_memory
    finally:
        tracemalloc.stop()


@pytest.fixture
def web() -> Iterator[Web]:
    """Web sites on loopback, which are closed after the test."""
    web = Web()
    yield web
    web.close()


@pytest.fixture(scope="session")
def one_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def redis_server(one_redis: RedisServer) -> RedisServer:
    """An empty Redis server, which tests may share because none of them stops it."""
    with one_redis.client as client:
        client.flushall()
    return one_redis
