"""Beside the rest of Scrapy: with each of its parts that meets a robots.txt, the pair behaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import default_settings

from testing.faults import RULES
from testing.web import Page, Web, redirect, text

from .conftest import Crawl, Visitor, in_turn, scrapy

pytestmark = pytest.mark.each_loop


# RetryMiddleware, RedirectMiddleware, MetaRefreshMiddleware


async def test_a_retry_of_a_page_fetches_no_robots_txt(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES, {"/public": in_turn(Page(status=503))})
    outcome = await crawl(site.urls("/public"), {"RETRY_ENABLED": True})
    assert site.paths == ["/robots.txt", "/public", "/public"]
    assert set(outcome.responses) == {site.url("/public")}


# HttpAuthMiddleware, CookiesMiddleware


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


async def test_robots_txt_takes_and_leaves_no_cookies(web: Web, crawl: Crawl) -> None:
    pages = {"/first": Page(headers={"Set-Cookie": "from=page"})}
    site = web.site(text(RULES, Set_Cookie="from=robots"), pages)
    other = web.site(RULES)  # cookies do not know ports
    further = [site.url("/second"), other.url("/third")]
    await crawl(site.urls("/first"), spider=CallingCallback, further=further)
    cookies = [
        {received.path: received.headers.get("cookie") for received in each.received}
        for each in (site, other)
    ]
    assert cookies == [
        {"/robots.txt": None, "/first": None, "/second": "from=page"},
        {"/robots.txt": None, "/third": "from=page"},
    ]


class CallingCallback(Visitor):
    """Asks the engine for further pages from a callback."""

    further: list[str]

    async def parse(self, response: Response, **_: Any) -> Any:
        for url in self.further:
            await self.engine.download_async(Request(url))


# JOBDIR


async def test_an_annotated_request_can_be_stored(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(RULES, {"/moved": redirect("/public"), "/gone": redirect("/private")})
    settings = {"JOBDIR": str(tmp_path), "SCHEDULER_DEBUG": True}
    outcome = await crawl(site.urls("/moved", "/gone"), settings)
    assert site.page_paths == ["/gone", "/moved", "/public"]
    assert outcome.stats["scheduler/dequeued/disk"] == 4
    assert "Unable to serialize" not in outcome.log.text


# Commands


def test_scrapy_fetch(web: Web, tmp_path: Path) -> None:
    site = web.site(redirect("/r"), {"/r": text(RULES), "/public": text("a page")})
    addon = 'ADDONS={"scrapy_rep.Addon": 500}'
    fetched = scrapy("fetch", "--nolog", site.url("/public"), "-s", addon, cwd=tmp_path)
    assert fetched.stdout.strip() == "a page"
    assert site.paths == ["/robots.txt", "/r", "/public"]
