"""A crawl with JOBDIR that is killed (``kill -9``) loses nothing."""

from __future__ import annotations

import threading
from asyncio import StreamReader, StreamWriter
from pathlib import Path

from testing.web import Page, Received, Web
from tests.test_workers import PRIVATE, TIMEOUT, workers

PATHS = [f"/{number}" for number in range(12)]
KILLED_AT = 4
"""The number of the page that gets no answer, in the run that is killed."""


class Pages:
    """Pages of several sites. One of them gets no answer: the test kills the crawl meanwhile."""

    def __init__(self) -> None:
        self.is_held = threading.Event()
        self.left = -1
        """How many pages come before that one and with it; negative if there is none."""

    async def __call__(self, _: Received, reader: StreamReader, writer: StreamWriter) -> None:
        self.left -= 1
        if self.left == 0:
            self.is_held.set()
            await reader.read()  # until the process is killed
            return
        writer.write(Page(headers={"Connection": "close"}).octets())
        await writer.drain()


def run(*arguments: str) -> None:
    with workers(arguments) as (process,):
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
        assert "] ERROR: " not in errors


def test_a_crawl_that_was_stopped_and_then_killed_loses_nothing(web: Web, tmp_path: Path) -> None:
    """Scrapy writes the state of a queue when a crawl stops."""
    pages = Pages()
    sites = [web.site(PRIVATE, {"*": pages}, host=f"127.0.5.{number}") for number in (1, 2)]
    common = ["", f"JOBDIR={tmp_path}", "CONCURRENT_REQUESTS=1"]
    asked = [url for site in sites for url in site.urls(*PATHS)]
    run(*common, "CLOSESPIDER_PAGECOUNT=5", *asked)
    pages.left = KILLED_AT
    with workers(common):
        assert pages.is_held.wait(TIMEOUT)
    run(*common)
    received = [site.url(path) for site in sites for path in site.page_paths]
    assert set(received) == set(asked)
    assert len(received) == len(asked) + KILLED_AT, "what it was given before is requested again"
