"""Workers of one crawl: processes that share a store."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from testing.faults import answer_when, silence
from testing.redis_server import RedisServer, wait_until
from testing.web import Page, Web, text
from tests.crawl.conftest import PRIVATE, in_turn, numbers

ROOT = Path(__file__).resolve().parents[1]
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


def output_of(process: subprocess.Popen[str]) -> str:
    """Return what a process has written when it has ended, without an error."""
    output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    assert "] ERROR: " not in errors
    return output


def test_workers_fetch_each_robots_txt_once(web: Web, store: str) -> None:
    late = Page(PRIVATE, delay=0.05)
    sites = [web.site(late, host=f"127.0.1.{number}") for number in range(1, 21)]
    asked = []
    for worker in range(3):
        paths = (f"/{worker}", f"/private/{worker}")
        asked.append([store, *(url for site in sites for url in site.urls(*paths))])
    with workers(*asked) as running:
        for process in running:
            output_of(process)
        assert [site.robots_fetches for site in sites] == [1] * 20
    assert all(site.page_paths == ["/0", "/1", "/2"] for site in sites)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_the_claim_of_a_worker_that_does_not_run_is_replaced(web: Web, store: str) -> None:
    """One worker is killed and one is stopped, each during a fetch. A third replaces both.

    The stopped worker goes on later. The answer that it then gets, which disallows all URLs, does
    not reach the store.
    """
    released = threading.Event()
    late = answer_when(released.is_set, text("User-agent: *\nDisallow: /\n"))
    sites = killed, stopped = [web.site(in_turn(late, then=text(PRIVATE))) for _ in range(2)]
    options = [store, "CLAIM_SECONDS=5"]
    first = [[*options, site.url("/first")] for site in sites]
    with workers(*first) as (one, other):
        wait_until(lambda: killed.received and stopped.received, "both fetches", TIMEOUT)
        with workers([*options, *(site.url("/third") for site in sites)]) as (third,):
            one.kill()
            other.send_signal(signal.SIGSTOP)
            output_of(third)
        released.set()
        other.send_signal(signal.SIGCONT)
        output_of(other)
    run(*options, *(site.url("/last") for site in sites))
    for site in sites:
        assert site.paths == ["/robots.txt", "/robots.txt", "/third", "/last"]


# A crawl with JOBDIR that is killed (``kill -9``)

KILLED_AT = 4
"""The number of the page that gets no answer, in the run that is killed."""


def run(*arguments: str) -> None:
    with workers(arguments) as (process,):
        output_of(process)


def test_a_crawl_that_was_stopped_and_then_killed_loses_nothing(web: Web, tmp_path: Path) -> None:
    """Scrapy writes the state of a queue when a crawl stops."""
    sites = [web.site(PRIVATE, host=f"127.0.5.{number}") for number in (1, 2)]

    def received() -> int:
        return sum(len(site.page_paths) for site in sites)

    common = ["", f"JOBDIR={tmp_path}", "CONCURRENT_REQUESTS=1"]
    asked = [url for site in sites for url in site.urls(*numbers(12))]
    run(*common, "CLOSESPIDER_PAGECOUNT=5", *asked)
    pages = in_turn(*[Page()] * (KILLED_AT - 1), silence)
    before = received()
    for site in sites:
        site.pages["*"] = pages
    with workers(common):
        wait_until(lambda: received() == before + KILLED_AT, "the page", TIMEOUT)
    run(*common)
    assert {site.url(path) for site in sites for path in site.page_paths} == set(asked)
    assert received() == len(asked) + KILLED_AT, "what it was given before is requested again"
