"""Crawls with Scrapy's HTTP cache."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrapy_rep import Reason
from testing.faults import PATHS, RULES, raw
from testing.web import Page, Pages, Site, Web, gaps, redirect, text

from .conftest import Crawl

DUMMY = "DummyPolicy"
RFC2616 = "RFC2616Policy"
FRESH = {"Cache-Control": "max-age=3600"}
KEPT: Pages = {path: Page(headers=FRESH) for path in PATHS}


def cache_settings(directory: Path, policy: str) -> dict[str, Any]:
    return {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(directory),
        "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{policy}",
    }


def expect_rules(outcome: Any, site: Site) -> None:
    assert list(outcome.responses) == site.urls("/public")
    assert outcome.responses[site.url("/public")].flags == ["cached"]
    assert list(outcome.failures) == site.urls("/private")


@pytest.mark.parametrize(
    ("policy", "ignore_missing", "asked_again"),
    [
        pytest.param(DUMMY, False, 0, id="DummyPolicy answers with every copy"),
        pytest.param(DUMMY, True, 0, id="DummyPolicy and HTTPCACHE_IGNORE_MISSING"),
        pytest.param(RFC2616, True, 0, id="RFC2616Policy and HTTPCACHE_IGNORE_MISSING"),
        pytest.param(RFC2616, False, 1, id="RFC2616Policy fetches robots.txt for a cached page"),
    ],
)
async def test_the_cache_policy_decides_whether_robots_txt_is_fetched_again(
    web: Web, crawl: Crawl, tmp_path: Path, policy: str, ignore_missing: bool, asked_again: int
) -> None:
    settings = cache_settings(tmp_path, policy)
    site = web.site(text(RULES, Cache_Control="max-age=3600"), KEPT)
    await crawl(site.urls(*PATHS), settings)
    settings["HTTPCACHE_IGNORE_MISSING"] = ignore_missing
    outcome = await crawl(site.urls(*PATHS), settings)
    expect_rules(outcome, site)
    assert site.paths == ["/robots.txt", "/public"] + ["/robots.txt"] * asked_again
    assert all("cache-control" not in received.headers for received in site.received)


@pytest.mark.parametrize("policy", [DUMMY, RFC2616])
async def test_a_redirected_and_compressed_file_is_replayed_without_the_site(
    crawl: Crawl, tmp_path: Path, policy: str
) -> None:
    settings = cache_settings(tmp_path, policy)
    body = gzip.compress(RULES + b"# nothing\n" * 200_000)
    with closing(Web()) as web:
        site = web.site(redirect("/moved.txt"), KEPT)
        site.pages["/moved.txt"] = Page(body, headers={**FRESH, "Content-Encoding": "gzip"})
        await crawl(site.urls(*PATHS), settings)
    settings["HTTPCACHE_IGNORE_MISSING"] = policy == RFC2616
    outcome = await crawl(site.urls(*PATHS), settings)
    expect_rules(outcome, site)
    assert [*outcome.reasons.values()] == [Reason.RULES]


@pytest.mark.parametrize("bad", [Page(status=503), raw(reset=True)], ids=["503", "no answer"])
async def test_the_cache_answers_for_no_origin_that_is_unreachable(
    web: Web, crawl: Crawl, tmp_path: Path, bad: Any
) -> None:
    settings = {**cache_settings(tmp_path, RFC2616), "REP_RETRY_TIMES": 0}
    site = web.site(text(RULES, Cache_Control="max-age=3600"), KEPT)
    await crawl(site.urls(*PATHS), settings)
    site.pages["/robots.txt"] = bad
    outcome = await crawl(site.urls(*PATHS), settings)
    assert not outcome.responses


async def test_a_replayed_file_is_not_stored(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    cache = cache_settings(tmp_path / "cache", DUMMY)
    store = {"REP_STORE": f"sqlite:///{tmp_path}/store.sqlite"}
    site = web.site(RULES)
    await crawl(site.urls("/public"), cache)
    await crawl(site.urls("/public"), {**cache, **store})
    assert site.robots_fetches == 1
    await crawl(site.urls("/public"), store)
    assert site.robots_fetches == 2


async def test_only_downloads_are_delayed(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    settings = {**cache_settings(tmp_path, DUMMY), "CLOSESPIDER_TIMEOUT": 120}
    site = web.site("User-agent: *\nCrawl-delay: 300\n")
    urls = site.urls("/1", "/2", "/3", "/4")
    await crawl(urls, {**settings, "REP_MAX_DELAY": 0.2})
    assert len(site.paths) == 5
    assert min(gaps(site)) >= 0.19
    outcome = await crawl(urls, {**settings, "REP_MAX_DELAY": 300})
    assert sorted(outcome.responses) == urls
    assert len(site.paths) == 5
