"""Beside the rest of Scrapy: with each of its parts that meets a robots.txt, the pair behaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import default_settings

from scrapy_rep import RobotsTxtDisallowed
from testing.faults import PATHS, RULES, RULES_HOLD, outcome_of
from testing.web import Page, Received, Web, redirect, text

from .conftest import Crawl, Visitor

pytestmark = pytest.mark.each_loop

REPOSITORY = Path(__file__).parents[2]


# RetryMiddleware, RedirectMiddleware, MetaRefreshMiddleware


async def test_a_retry_of_a_page_fetches_no_robots_txt(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)

    async def recovers(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        site.pages["/public"] = Page()
        writer.write(Page(status=503).octets())

    site.pages["/public"] = recovers
    outcome = await crawl(site.urls("/public"), {"RETRY_ENABLED": True})
    assert site.paths == ["/robots.txt", "/public", "/public"]
    assert set(outcome.responses) == {site.url("/public")}


# OffsiteMiddleware


class AtHome(Visitor):
    """Visits one host only."""

    allowed_domains = ["127.0.0.1"]  # noqa: RUF012


async def test_allowed_domains_are_for_pages(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(pages={"/r": text(RULES)}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    offsite = web.site(RULES, host="127.0.0.3")
    outcome = await crawl([*site.urls(*PATHS), Request(offsite.url("/public"))], spider=AtHome)
    assert outcome_of(site) == RULES_HOLD
    assert elsewhere.paths == ["/r"]
    assert offsite.paths == []
    assert outcome.stats["offsite/filtered"] == 1


# HttpAuthMiddleware, CookiesMiddleware


async def test_the_crawls_password_stays_with_its_host(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(pages={"/r": text(RULES)}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    domain = f"127.0.0.1:{site.port}"
    settings: dict[str, str] = {}
    attributes: dict[str, str] = {}
    if hasattr(default_settings, "HTTPAUTH_USER"):
        settings = {
            "HTTPAUTH_USER": "me",
            "HTTPAUTH_PASS": "secret",
            "HTTPAUTH_DOMAIN": domain,
        }
    else:
        attributes = {"http_user": "me", "http_pass": "secret", "http_auth_domain": domain}
    await crawl(site.urls("/public"), settings, **attributes)
    secrets = [received.headers.get("authorization") for received in site.received]
    assert secrets == ["Basic bWU6c2VjcmV0"] * 2
    assert [received.headers.get("authorization") for received in elsewhere.received] == [None]


async def test_robots_txt_takes_and_leaves_no_cookies(web: Web, crawl: Crawl) -> None:
    pages = {"/first": Page(headers={"Set-Cookie": "from=page"})}
    site = web.site(text(RULES, Set_Cookie="from=robots"), pages)
    other = web.site(RULES)  # cookies do not know ports
    further = [site.url("/second"), other.url("/third")]
    await crawl(site.urls("/first"), {"FURTHER": further}, spider=CallingCallback)
    cookies = [
        {received.path: received.headers.get("cookie") for received in each.received}
        for each in (site, other)
    ]
    assert cookies == [
        {"/robots.txt": None, "/first": None, "/second": "from=page"},
        {"/robots.txt": None, "/third": "from=page"},
    ]


# The engine: pausing, closing, its own downloads


class CallingCallback(Visitor):
    """Asks the engine for further pages from a callback."""

    async def parse(self, response: Response, **_: Any) -> Any:
        engine = self.crawler.engine
        assert engine is not None
        self.outcome.responses[response.url] = response
        for url in self.crawler.settings["FURTHER"]:
            try:
                self.outcome.responses[url] = await engine.download_async(Request(url))
            except RobotsTxtDisallowed as error:
                self.outcome.failures[url] = error


# JOBDIR


async def test_a_request_with_annotations_can_be_stored_on_disk(
    web: Web, crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(RULES, {"/moved": redirect("/public"), "/gone": redirect("/private")})
    settings = {"JOBDIR": str(tmp_path), "SCHEDULER_DEBUG": True}
    outcome = await crawl(site.urls("/moved", "/gone"), settings, spider=Storable)
    assert site.page_paths == ["/gone", "/moved", "/public"]
    assert outcome.stats["scheduler/dequeued/disk"] == 4
    assert "Unable to serialize" not in caplog.text


class Storable(Visitor):
    """Its requests have the callbacks of a spider, which can be stored."""

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request.replace(meta={"keep": True})


# Commands


def scrapy(*arguments: str) -> str:
    """What ``scrapy …`` prints, with the add-on on."""
    addons = json.dumps({"scrapy_rep.Addon": 500})
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "SCRAPY_SETTINGS_MODULE": ""}
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments, "-s", f"ADDONS={addons}"],
        capture_output=True,
        check=False,
        cwd=REPOSITORY,
        env=environment,
        text=True,
        timeout=300,
    )
    return done.stdout


def test_scrapy_fetch(web: Web) -> None:
    site = web.site(redirect("/r"), {"/r": text(RULES), "/public": text("a page")})
    assert scrapy("fetch", "--nolog", site.url("/public")).strip() == "a page"
    assert site.paths == ["/robots.txt", "/r", "/public"]
