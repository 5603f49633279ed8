"""A crawl with JOBDIR that is killed (``kill -9``) loses nothing."""

from __future__ import annotations

from pathlib import Path

from testing.faults import silence
from testing.redis_server import wait_until
from testing.web import Page, Web
from tests.test_workers import PRIVATE, TIMEOUT, workers

from .conftest import in_turn, numbers

KILLED_AT = 4
"""The number of the page that gets no answer, in the run that is killed."""


def run(*arguments: str) -> None:
    with workers(arguments) as (process,):
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, errors
        assert "] ERROR: " not in errors


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
