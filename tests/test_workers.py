"""Workers of one crawl, each a process, that share a store."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testing.redis_server import RedisServer
from testing.web import Page, Web, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = "User-agent: *\nDisallow: /private\n"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/robots.db"
    else:
        server = RedisServer(tmp_path)
        yield server.url
        server.kill()


@contextmanager
def workers(*arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """One process for each, which end when all is done."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.stores.worker", *each],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in arguments
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_four_workers_fetch_each_robots_txt_once(web: Web, store: str) -> None:
    late = Page(PRIVATE, delay=0.05)
    sites = [web.site(late, host=f"127.0.1.{number}") for number in range(1, 101)]
    asked = []
    for worker in range(4):
        paths = (f"/{worker}", f"/private/{worker}")
        asked.append([store, *(url for site in sites for url in site.urls(*paths))])
    with workers(*asked) as running:
        for process in running:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
        assert [site.robots_fetches for site in sites] == [1] * 100
    assert all(site.page_paths == ["/0", "/1", "/2", "/3"] for site in sites)


def test_a_worker_that_dies_is_replaced(web: Web, store: str) -> None:
    """The first to ask never gets an answer, and is killed while it waits for one."""
    asked = threading.Event()

    async def silent_once(*_: Any) -> None:
        site.pages["/robots.txt"] = text(PRIVATE)
        asked.set()
        await asyncio.sleep(60)

    site = web.site(silent_once)
    with workers([store, site.url("/first"), "REP_TIMEOUT=2"]) as (first,):
        assert asked.wait(30)
        first.kill()
        first.wait()
    other = web.site(PRIVATE, host="127.0.0.2")
    with workers([store, other.url("/"), site.url("/second"), "REP_TIMEOUT=2"]) as (second,):
        _, errors = second.communicate(timeout=60)
        assert second.returncode == 0, errors
    assert site.paths == ["/robots.txt", "/robots.txt", "/second"]
    assert site.received[1].at - site.received[0].at > 1.9, "after its claim"
    assert site.received[1].at - other.received[0].at < 5, "from when it is running"
