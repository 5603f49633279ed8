"""A crawl with JOBDIR that is killed (``kill -9``) loses what it loses with Scrapy alone."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from testing.web import Page, Received, Site, Web
from tests.test_workers import PRIVATE, workers

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from pathlib import Path

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


def crawled(web: Web, folder: Path, *, obey: bool, stops_before: bool) -> list[Site]:
    """Kill a crawl, and continue it until its end. ``stops_before``: it was stopped once before."""
    pages = Pages()
    sites = [web.site(PRIVATE, {"*": pages}, host=f"127.0.5.{number}") for number in (1, 2)]
    asked = [url for site in sites for url in site.urls(*PATHS)]
    common = ["", f"JOBDIR={folder / str(obey)}", f"ROBOTSTXT_OBEY={obey}", "CONCURRENT_REQUESTS=1"]
    if stops_before:
        run(*common, "CLOSESPIDER_PAGECOUNT=5", *asked)
        asked = []
    pages.left = KILLED_AT
    with workers([*common, *asked]):
        assert pages.is_held.wait(60)
    run(*common)
    return sites


def run(*arguments: str) -> None:
    with workers(arguments) as (process,):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert "] ERROR: " not in errors


@pytest.mark.parametrize("stops_before", [True, False])
def test_a_killed_crawl_loses_what_scrapy_alone_loses(
    web: Web, tmp_path: Path, stops_before: bool
) -> None:
    figures = []
    for obey in (True, False):
        sites = crawled(web, tmp_path, obey=obey, stops_before=stops_before)
        received = [url for site in sites for url in site.urls(*site.page_paths)]
        figures.append((len(received), 2 * len(PATHS) - len(set(received))))
    assert figures[0] == figures[1]
    _, lost = figures[0]
    assert (lost == 0) is stops_before
