"""Every fault of a server ends in an outcome of RFC 9309 §2.3.1, and in the stats."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import trustme
from scrapy import Request
from scrapy.http import Response
from scrapy.settings import default_settings
from twisted.internet.error import ConnectError

from scrapy_rep import Reason
from scrapy_rep.clock import Clock
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.fetch.fetches import Fetches
from scrapy_rep.origin import Origin
from testing.counters import left_over
from testing.faults import DISALLOWED, MEANINGS, PATHS, RULES, fault, outcome_of, raw
from testing.web import Page, Web, redirect

from .conftest import HAS_VERBATIM_URL, PRIVATE, Closer, Crawl, Outcome, ScrapysHandler

UNREACHABLE = [name for name, meaning in MEANINGS.items() if meaning == DISALLOWED]
OTHERS = [name for name, meaning in MEANINGS.items() if meaning != DISALLOWED]


def assert_nothing_went_wrong(outcome: Outcome) -> None:
    """Each request ended once, without an error in the log."""
    assert outcome.responses.keys() | outcome.failures.keys() == outcome.requests.keys()
    assert not outcome.responses.keys() & outcome.failures.keys()
    assert outcome.stats["finish_reason"] == "finished"
    assert outcome.errors == []
    assert not any(record.exc_info for record in outcome.log.records)


# A timeout, too, means that a robots.txt is unreachable. The other faults have time on any machine.
@pytest.mark.rule("2xx, except 206", "A redirect to another scheme, or without a valid URL")
@pytest.mark.rule("Network errors")
@pytest.mark.parametrize(
    ("names", "timeout"),
    [pytest.param(UNREACHABLE, 1.5, id="unreachable"), pytest.param(OTHERS, 60, id="others")],
)
async def test_rfc_every_fault_has_its_outcome(
    web: Web, crawl: Crawl, names: list[str], timeout: float
) -> None:
    sites = {name: web.site(fault(name)) for name in names}
    urls = [url for site in sites.values() for url in site.urls(*PATHS)]
    settings = {"REP_TIMEOUT": timeout, "CONCURRENT_REQUESTS_PER_DOMAIN": 200}
    outcome = await crawl(urls, settings)
    outcomes = {name: outcome_of(site) for name, site in sites.items()}
    wrong = {name: found for name, found in outcomes.items() if found not in MEANINGS[name]}
    assert wrong == {}
    assert_nothing_went_wrong(outcome)
    assert outcome.reasons.keys() == outcome.failures.keys()
    unreachable = [name for name, found in outcomes.items() if found == DISALLOWED]
    stats = outcome.stats
    assert stats.get("robotstxt/unreachable", 0) == len(unreachable)
    assert stats.get("robotstxt/forbidden/unreachable", 0) == 2 * len(unreachable)
    exceptions = sum(stats[key] for key in stats if key.startswith("robotstxt/exception_count/"))
    assert stats["robotstxt/request_count"] == stats["robotstxt/response_count"] + exceptions
    for name, site in sites.items():
        origin = outcome.middleware.origins[site.root]
        assert not origin.in_flight
        assert (origin.failure is not None) is (name in unreachable), name


@pytest.mark.rule("Network errors")
@pytest.mark.each_loop
async def test_rfc_network_errors_disallow_everything(web: Web, crawl: Crawl) -> None:
    """A name that does not resolve, a refused connection, and one that is closed: in words."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refusing = f"http://127.0.0.1:{closed.getsockname()[1]}"
        closing = web.site(raw())
        urls = ["http://nowhere.invalid/a", f"{refusing}/a", closing.url("/a")]
        outcome = await crawl(urls, {"REP_TIMEOUT": 5})
    assert outcome.reasons == dict.fromkeys(urls, Reason.UNREACHABLE)
    assert_nothing_went_wrong(outcome)
    assert outcome.failure_of(refusing) == "the connection was refused"
    words = "the connection was closed before the response was complete"
    assert outcome.failure_of(closing) == words
    assert not any("Failure" in text for text in outcome.warnings)


@pytest.mark.rule("Invalid hosts")
@pytest.mark.parametrize("url", ["http://what!/a", "http://e%2fx/a"])
async def test_a_url_without_a_host_is_dropped(web: Web, crawl: Crawl, url: str) -> None:
    proxy = web.site()
    outcome = await crawl([Request(url, meta={"proxy": proxy.root}, dont_filter=True)])
    assert [*outcome.reasons.values()] == [Reason.INVALID_HOST]
    assert proxy.received == []
    assert "robotstxt/request_count" not in outcome.stats


VERIFYING: dict[str, Any] = (
    {"DOWNLOAD_VERIFY_CERTIFICATES": True}
    if hasattr(default_settings, "DOWNLOAD_VERIFY_CERTIFICATES")
    else {
        "DOWNLOADER_CLIENTCONTEXTFACTORY": (
            "scrapy.core.downloader.contextfactory.BrowserLikeContextFactory"
        )
    }
)


# Scrapy 2.14 on the latest Twisted.
@pytest.mark.rule("Network errors")
@pytest.mark.filterwarnings("ignore:Passing method to twisted")
async def test_rfc_tls_errors_disallow_everything(web: Web, crawl: Crawl) -> None:
    """A certificate that fails verification, and a server without TLS.

    What Scrapy accepts for pages is accepted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    unknown = web.site(RULES, tls=context)
    plain = web.site(RULES)
    urls = [unknown.url("/public"), f"https://127.0.0.1:{plain.port}/public"]
    outcome = await crawl(urls, {**VERIFYING, "REP_TIMEOUT": 1})
    assert (unknown.paths, plain.paths) == ([], [])
    assert outcome.reasons == dict.fromkeys(urls, Reason.UNREACHABLE)
    assert_nothing_went_wrong(outcome)
    await crawl(unknown.urls(*PATHS))
    assert unknown.paths == ["/robots.txt", "/public"]


@pytest.mark.parametrize("setting", [{"RETRY_ENABLED": True}, {"REDIRECT_ENABLED": False}])
async def test_retries_and_redirects_of_scrapy_do_not_apply(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]
) -> None:
    monkeypatch.setattr("scrapy_rep.protocol.access.retry_pause", lambda retry: 0.1)
    site = web.site(fault("is down"))
    await crawl(site.urls("/a"), {"REP_RETRY_TIMES": 1, **setting})
    assert site.paths == ["/robots.txt"] * 2


# Errors that nobody foresaw: each is a failed attempt like any other

PAGES = ("/a", "/b", "/private")
ERRORS = [ValueError, asyncio.CancelledError]


PLACES = {
    "the parser": (Origin, "parse"),
    "the response": (Fetcher, "_event"),
    "the end": (Fetches, "_on_content"),
}


@pytest.mark.rule("Unexpected errors")
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("place", PLACES)
async def test_an_error_in_a_fetch_is_a_failed_attempt(
    place: str, error: type[BaseException], web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = web.site(redirect("/rules"), {"/rules": Page(RULES)})
    monkeypatch.setattr(*PLACES[place], Mock(side_effect=error("unforeseen")))
    outcome = await crawl(site.urls(*PAGES), {"REP_RETRY_TIMES": 1})
    assert outcome.reasons == dict.fromkeys(site.urls(*PAGES), Reason.UNREACHABLE)
    assert site.page_paths.count("/a") == 0
    assert site.paths.count("/robots.txt") <= 2
    assert outcome.stats["robotstxt/unreachable"] == 1
    assert outcome.stats[f"robotstxt/exception_count/{error}"] >= 1
    (logged,) = outcome.errors
    assert site.root in logged.getMessage()
    assert "unforeseen" in outcome.log.text
    assert logged.exc_info


async def test_an_error_after_a_fetch_does_not_change_its_result(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = web.site(RULES)
    monkeypatch.setattr(Fetches, "_on_result", Mock(side_effect=ValueError))
    outcome = await crawl(site.urls(*PAGES))
    assert set(outcome.responses) == set(site.urls("/a", "/b"))
    assert site.paths.count("/robots.txt") == 1
    assert len(outcome.errors) == 1


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

    async def wait(cache: Fetches, content: object, page: Request) -> None:
        if not page.url.startswith(site.root):
            return
        for seconds in (60, 1.2):  # it cleans up after it was cancelled
            try:
                await Clock().sleep(seconds)
            except BaseException as error:
                cancelled.append(error)

    monkeypatch.setattr(Fetches, "_on_content", wait)
    monkeypatch.setattr("scrapy_rep.policies.origins.MAX_PARSED", 0)
    await crawl([*site.urls("/b"), *other.urls("/c")], settings, spider=Closer, awaited=[other])
    assert len(cancelled) == 1
    assert site.paths.count("/robots.txt") == 1


class NoFileHandler(ScrapysHandler):
    """Cannot open a connection for the first two robots.txt files."""

    async def download_request(self, request: Request) -> Response:
        if request.url.endswith("/robots.txt") and len(self.seen) < 2:
            self.seen.append(request)
            raise ConnectError(errno.EMFILE) if len(self.seen) == 1 else OSError(errno.EMFILE, "")
        return await super().download_request(request)


@pytest.mark.each_loop
async def test_a_process_without_files_is_not_a_failure_of_a_site(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(PRIVATE)
    settings = {"DOWNLOAD_HANDLERS": {"http": NoFileHandler}, "JOBDIR": str(tmp_path)}
    outcome = await crawl(site.urls("/a", "/private"), settings)
    assert site.paths == ["/robots.txt", "/a"]
    (warning,) = outcome.warnings
    assert "too many open files" in warning
    assert "robotstxt/unreachable" not in outcome.stats
    assert left_over(outcome.crawler) == []
