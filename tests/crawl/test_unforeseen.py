"""An error that nobody foresaw is a failed attempt like any other, and a crawl with one ends."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep import Reason
from scrapy_rep.crawl.policy_cache import PolicyCache
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.frontier.clock import sleep
from scrapy_rep.origin import Origin
from testing.web import Page, Web, redirect

from .conftest import HAS_VERBATIM_URL, Closer, Crawl, Outcome
from .conftest import PRIVATE as RULES

PATHS = ("/a", "/b", "/private")
ERRORS = [ValueError, asyncio.CancelledError]


def fails(error: type[BaseException]) -> Any:
    def fail(*_: object, **__: object) -> Any:
        raise error("unforeseen")

    return fail


def our_errors(outcome: Outcome) -> list[logging.LogRecord]:
    records = (each for each in outcome.log.records if each.name.startswith("scrapy_rep"))
    return [each for each in records if each.levelno >= logging.ERROR]


PLACES = {
    "the parser": lambda patch, error: patch.setattr(
        Origin, "resource", Origin.resource._replace(parse=fails(error))
    ),
    "the response": lambda patch, error: patch.setattr(Fetcher, "_event", fails(error)),
    "the end": lambda patch, error: patch.setattr(PolicyCache, "_on_content", fails(error)),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("place", PLACES)
async def test_an_error_in_a_fetch_is_a_failed_attempt(
    place: str, error: type[BaseException], web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = web.site(redirect("/rules"), {"/rules": Page(RULES)})
    PLACES[place](monkeypatch, error)
    outcome = await crawl(site.urls(*PATHS), {"REP_RETRY_TIMES": 1})
    assert outcome.reasons == dict.fromkeys(site.urls(*PATHS), Reason.UNREACHABLE)
    assert site.page_paths.count("/a") == 0
    assert site.paths.count("/robots.txt") <= 2
    assert outcome.stats["robotstxt/unreachable"] == 1
    assert outcome.stats[f"robotstxt/exception_count/{error}"] >= 1
    (logged,) = our_errors(outcome)
    assert site.root in logged.getMessage()
    assert "unforeseen" in outcome.log.text
    assert logged.exc_info


async def test_an_error_after_a_fetch_does_not_change_its_result(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = web.site(RULES)
    monkeypatch.setattr(PolicyCache, "_on_result", fails(ValueError))
    outcome = await crawl(site.urls(*PATHS))
    assert set(outcome.responses) == set(site.urls("/a", "/b"))
    assert site.paths.count("/robots.txt") == 1
    assert len(our_errors(outcome)) == 1


@pytest.mark.skipif(not HAS_VERBATIM_URL, reason="Scrapy 2.14 refuses such a URL")
async def test_a_host_that_is_no_host_ends_the_crawl(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)
    hostile = Request("http://[fe80::1%25é]/", meta={"verbatim_url": True}, dont_filter=True)
    await crawl([hostile, *site.urls("/a")])
    assert site.paths == ["/robots.txt", "/a"]


@pytest.mark.each_loop
async def test_a_fetch_is_cancelled_once(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The copy came from the store. While it is being used, memory is short, and the spider
    closes.
    """
    site, other = web.site(RULES), web.site(RULES, {"/c": Page("slow", delay=2)})
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.db"}
    await crawl(site.urls("/a"), settings)
    cancelled: list[BaseException] = []

    async def wait(cache: PolicyCache, content: object, page: Request) -> None:
        if not page.url.startswith(site.root):
            return
        for seconds in (60, 1.2):  # it cleans up after it was cancelled
            try:
                await sleep(seconds)
            except BaseException as error:
                cancelled.append(error)

    monkeypatch.setattr(PolicyCache, "_on_content", wait)
    monkeypatch.setattr("scrapy_rep.crawl.file_table.MAX_PARSED", 0)
    await crawl([*site.urls("/b"), *other.urls("/c")], settings, spider=Closer, awaited=[other])
    assert len(cancelled) == 1
    assert site.paths.count("/robots.txt") == 1
