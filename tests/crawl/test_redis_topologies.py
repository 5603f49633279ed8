"""A Redis Cluster and Sentinel, with failover and resharding during a crawl.

The tests check what the sites received. Each starts several servers, so that it has many steps.
``python -m checks soak --set crawls=cluster,sentinel`` kills servers, and takes longer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.stores.redis import RedisStore
from scrapy_rep.testing import SharedStoreTests
from testing.redis_server import RedisCluster, RedisWithSentinel

from .conftest import Disturber, our_warnings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_rep.stores import Store
    from testing.web import Site, Web

    from .conftest import Crawl

PRIVATE = "User-agent: *\nDisallow: /private\n"


class Contract(SharedStoreTests):
    def __init__(self, url: str) -> None:
        self._url = url

    def open_store(self) -> Store:
        store = RedisStore(self._url, ttl=60)
        store.open()
        return store

    async def run(self) -> None:
        for name in dir(self):
            if name.startswith("test_"):
                await getattr(self, name)()


def key_of(site: Site) -> str:
    return f"rep:6:{{{site.root}}}"


async def crawl_twice(
    web: Web,
    crawl: Crawl,
    url: str,
    events: list[Callable[[list[Site]], None]],
) -> None:
    """Crawl one site more than there are events, with an event between each two sites.

    An event gets the sites that are crawled after it. The second crawl needs no robots.txt, but for
    sites that were crawled while the store failed.
    """
    sites = [web.site(PRIVATE) for _ in range(len(events) + 1)]
    then = [
        lambda event=event, number=number: event(sites[number:])
        for number, event in enumerate(events, 1)
    ]
    settings: dict[str, Any] = {"REP_STORE": url}
    outcome = await crawl(
        sites[0].urls("/"),
        settings,
        spider=Disturber,
        then=then,
        next_urls=[site.url("/") for site in sites[1:]],
    )
    assert len(outcome.responses) == len(sites)
    again = await crawl([site.url("/again") for site in sites], settings)
    assert len(again.responses) == len(sites)
    for number, site in enumerate(sites):
        fetched_again = ["/robots.txt"] * (number > 0 and site.robots_fetches > 1)
        assert site.paths == ["/robots.txt", "/", *fetched_again, "/again"]


# redis-py 6.0 warns about a call of its own.
@pytest.mark.filterwarnings("ignore:.*cluster_error_retry_attempts:DeprecationWarning")
async def test_a_cluster_fails_over_and_moves_slots(
    web: Web,
    crawl: Crawl,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for limit in ("redis.SOCKET_TIMEOUT", "redis.MOVE_TIMEOUT", "threaded.CALL_TIMEOUT"):
        monkeypatch.setattr(f"scrapy_rep.stores.{limit}", 300.0)
    cluster = RedisCluster(tmp_path)

    def fail_over(sites: list[Site]) -> None:
        cluster.fail_over(key_of(sites[0]))

    def move(sites: list[Site]) -> None:
        cluster.begin_to_move(key_of(sites[0]))
        cluster.end_move()

    def move_slowly(sites: list[Site]) -> None:
        cluster.begin_to_move(key_of(sites[0]))
        timers.append(threading.Timer(1, cluster.end_move))
        timers[-1].start()

    timers: list[threading.Timer] = []
    try:
        await Contract(cluster.url).run()
        await crawl_twice(web, crawl, cluster.url, [fail_over, move, move_slowly])
        for timer in timers:
            timer.join()
        cluster.wait()
        assert our_warnings(caplog) == []
        await crawl_twice(web, crawl, f"{cluster.url}?prefix=a:", [fail_over])
        for url, number in ((cluster.url, 4), (f"{cluster.url}?prefix=a:", 2)):
            store = RedisStore(url, ttl=60)
            sites = [key for key, entry in store.entries() if key.startswith("http://127.0.0.1:")]
            store.disconnect()
            assert len(set(sites)) == number, "as in an export"
        assert our_warnings(caplog) == []
    finally:
        cluster.close()


async def test_sentinel_names_another_primary(
    web: Web, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.stores.fallback.RETRY_INTERVAL", 0.3)
    servers = RedisWithSentinel(tmp_path)
    try:
        await Contract(servers.url).run()
        await crawl_twice(web, crawl, servers.url, [lambda _: servers.fail_over()])
    finally:
        servers.close()
