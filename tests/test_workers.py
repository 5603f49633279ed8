"""Workers of one crawl: processes that share a store."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testing.redis_server import RedisServer
from testing.web import Page, Web, text

ROOT = Path(__file__).resolve().parents[1]
PRIVATE = "User-agent: *\nDisallow: /private\n"
TIMEOUT = 300
"""Seconds after which a process hangs. Each takes a few on a machine that is not busy."""


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/robots.db"
    else:
        server = RedisServer(tmp_path)
        yield server.url
        server.kill()


@contextmanager
def workers(
    *arguments: Sequence[str], module: str = "tests.stores.worker"
) -> Iterator[list[subprocess.Popen[str]]]:
    """Start a process for each list of arguments, and kill those that still run at the end."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", module, *each],
            cwd=ROOT,
            stdout=subprocess.PIPE,
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


def test_workers_fetch_each_robots_txt_once(web: Web, store: str) -> None:
    late = Page(PRIVATE, delay=0.05)
    sites = [web.site(late, host=f"127.0.1.{number}") for number in range(1, 21)]
    asked = []
    for worker in range(3):
        paths = (f"/{worker}", f"/private/{worker}")
        asked.append([store, *(url for site in sites for url in site.urls(*paths))])
    with workers(*asked) as running:
        for process in running:
            _, errors = process.communicate(timeout=TIMEOUT)
            assert process.returncode == 0, errors
        assert [site.robots_fetches for site in sites] == [1] * 20
    assert all(site.page_paths == ["/0", "/1", "/2"] for site in sites)


class Held:
    """A robots.txt. The answer to the first request for it is held back until the test releases it.

    The first answer differs from the later ones: it disallows all URLs.
    """

    def __init__(self, web: Web) -> None:
        self.site = web.site(self._answer)
        self.is_asked = threading.Event()
        self.is_released = threading.Event()

    async def _answer(self, _: Any, __: Any, writer: asyncio.StreamWriter) -> None:
        is_first = not self.is_asked.is_set()
        self.is_asked.set()
        while is_first and not self.is_released.is_set():  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.02)
        page = text("User-agent: *\nDisallow: /\n" if is_first else PRIVATE, Connection="close")
        writer.write(page.octets())
        await writer.drain()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_claim_of_a_worker_that_does_not_run_is_replaced(web: Web, store: str) -> None:
    """One worker is killed and one is stopped, each during a fetch. A third replaces both.

    The stopped worker goes on later. The answer that it then gets does not reach the store.
    """
    killed, stopped = Held(web), Held(web)
    options = [store, "CLAIM_SECONDS=5"]
    with workers([*options, killed.site.url("/first")], [*options, stopped.site.url("/first")]) as (
        one,
        other,
    ):
        assert killed.is_asked.wait(TIMEOUT)
        assert stopped.is_asked.wait(TIMEOUT)
        both = [killed.site.url("/third"), stopped.site.url("/third")]
        with workers([*options, *both]) as (third,):
            one.kill()
            other.send_signal(signal.SIGSTOP)
            _, errors = third.communicate(timeout=TIMEOUT)
            assert third.returncode == 0, errors
        stopped.is_released.set()
        other.send_signal(signal.SIGCONT)
        _, errors = other.communicate(timeout=TIMEOUT)
        assert other.returncode == 0, errors
    with workers([*options, killed.site.url("/last"), stopped.site.url("/last")]) as (last,):
        _, errors = last.communicate(timeout=TIMEOUT)
        assert last.returncode == 0, errors
    for held in (killed, stopped):
        assert held.site.paths == ["/robots.txt", "/robots.txt", "/third", "/last"]
