"""Beside the rest of Scrapy: with each of its parts that meets a robots.txt, the pair behaves."""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import default_settings

from scrapy_rep import Reason
from testing.faults import PATHS, RULES, raw
from testing.web import Page, Pages, Site, Web, gaps, redirect, text

from .conftest import Crawl, scrapy, travel

EACH_LOOP = pytest.mark.each_loop


# HttpAuthMiddleware, CookiesMiddleware


@pytest.mark.rule("Credentials and cookies")
@EACH_LOOP
async def test_the_crawls_password_stays_with_its_host(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(pages={"/r": text(RULES)}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    domain = f"127.0.0.1:{site.port}"
    if hasattr(default_settings, "HTTPAUTH_USER"):
        names = ("HTTPAUTH_USER", "HTTPAUTH_PASS", "HTTPAUTH_DOMAIN")
        await crawl(site.urls("/public"), dict(zip(names, ("me", "secret", domain))))
    else:
        user = {"http_user": "me", "http_pass": "secret", "http_auth_domain": domain}
        await crawl(site.urls("/public"), **user)
    secrets = [received.headers.get("authorization") for received in site.received]
    assert secrets == ["Basic bWU6c2VjcmV0"] * 2
    assert [received.headers.get("authorization") for received in elsewhere.received] == [None]


@pytest.mark.rule("Credentials and cookies")
@EACH_LOOP
async def test_robots_txt_takes_and_leaves_no_cookies(web: Web) -> None:
    pages = {"/first": Page(headers={"Set-Cookie": "from=page"})}
    site = web.site(text(RULES, Set_Cookie="from=robots"), pages)
    other = web.site(RULES)  # cookies do not know ports
    async with travel() as spider:
        for url in (*site.urls("/first", "/second"), other.url("/third")):
            await spider.fetches(url)
    cookies = [
        {received.path: received.headers.get("cookie") for received in each.received}
        for each in (site, other)
    ]
    assert cookies == [
        {"/robots.txt": None, "/first": None, "/second": "from=page"},
        {"/robots.txt": None, "/third": "from=page"},
    ]


# JOBDIR


@EACH_LOOP
async def test_an_annotated_request_can_be_stored(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(RULES, {"/moved": redirect("/public"), "/gone": redirect("/private")})
    settings = {"JOBDIR": str(tmp_path), "SCHEDULER_DEBUG": True}
    outcome = await crawl(site.urls("/moved", "/gone"), settings)
    assert site.page_paths == ["/gone", "/moved", "/public"]
    assert outcome.stats["scheduler/dequeued/disk"] == 4
    assert "Unable to serialize" not in outcome.log.text


# Commands


@EACH_LOOP
def test_scrapy_fetch(web: Web, tmp_path: Path) -> None:
    site = web.site(redirect("/r"), {"/r": text(RULES), "/public": text("a page")})
    addon = 'ADDONS={"scrapy_rep.Addon": 500}'
    fetched = scrapy("fetch", "--nolog", site.url("/public"), "-s", addon, cwd=tmp_path)
    assert fetched.stdout.strip() == "a page"
    assert site.paths == ["/robots.txt", "/r", "/public"]


# HttpCacheMiddleware

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
    await crawl(urls, {**settings, "REP_MAX_CRAWL_DELAY": 0.2})
    assert len(site.paths) == 5
    assert min(gaps(site)) >= 0.19
    outcome = await crawl(urls, {**settings, "REP_MAX_CRAWL_DELAY": 300})
    assert sorted(outcome.responses) == urls
    assert len(site.paths) == 5
