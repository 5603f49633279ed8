"""Every fault of a server ends in an outcome of RFC 9309 §2.3.1, and in the stats."""

from __future__ import annotations

import logging
import socket
import ssl
from typing import Any

import pytest
import trustme
from scrapy import Request
from scrapy.settings import default_settings

from scrapy_rep import Reason, RobotsTxtDisallowed
from testing.faults import DISALLOWED, NAMES, PATHS, RULES, fault, meaning_of, outcome_of
from testing.web import Web, text

from .conftest import Crawl, Outcome

UNREACHABLE = [name for name in NAMES if meaning_of(name) == DISALLOWED]
OTHERS = [name for name in NAMES if meaning_of(name) != DISALLOWED]


def assert_nothing_went_wrong(outcome: Outcome, caplog: pytest.LogCaptureFixture) -> None:
    """Each request ended once, without an error in the log."""
    assert outcome.responses.keys() | outcome.failures.keys() == outcome.requests.keys()
    assert not outcome.responses.keys() & outcome.failures.keys()
    assert outcome.stats["finish_reason"] == "finished"
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors] == []
    assert not any(record.exc_info for record in caplog.records)
    assert "Traceback" not in caplog.text


# A timeout, too, means that a robots.txt is unreachable. The other faults have time on any machine.
@pytest.mark.parametrize(
    ("names", "timeout"),
    [pytest.param(UNREACHABLE, 1.5, id="unreachable"), pytest.param(OTHERS, 60, id="others")],
)
async def test_rfc_every_fault_has_its_outcome(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture, names: list[str], timeout: float
) -> None:
    sites = {name: web.site(fault(name)) for name in names}
    urls = [url for site in sites.values() for url in site.urls(*PATHS)]
    settings = {"REP_TIMEOUT": timeout, "CONCURRENT_REQUESTS_PER_DOMAIN": 200}
    outcome = await crawl(urls, settings)
    outcomes = {name: outcome_of(site) for name, site in sites.items()}
    wrong = {name: found for name, found in outcomes.items() if found not in meaning_of(name)}
    assert wrong == {}
    assert_nothing_went_wrong(outcome, caplog)
    for error in outcome.failures.values():
        assert isinstance(error, RobotsTxtDisallowed)
    unreachable = [name for name, found in outcomes.items() if found == DISALLOWED]
    stats = outcome.stats
    assert stats.get("robotstxt/unreachable", 0) == len(unreachable)
    assert stats.get("robotstxt/forbidden/unreachable", 0) == 2 * len(unreachable)
    exceptions = sum(
        count for key, count in stats.items() if key.startswith("robotstxt/exception_count/")
    )
    assert stats["robotstxt/request_count"] == stats["robotstxt/response_count"] + exceptions
    for name, site in sites.items():
        origin = outcome.middleware.origins[site.root]
        assert not origin.in_flight
        assert (origin.failure is not None) is (name in unreachable), name


async def test_rfc_network_errors_disallow_everything(
    crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused connection, and a name that does not resolve."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{closed.getsockname()[1]}/a", "http://nowhere.invalid/a"]
        outcome = await crawl(urls, {"REP_TIMEOUT": 5})
    assert [type(outcome.failures[url]) for url in urls] == [RobotsTxtDisallowed] * 2
    assert_nothing_went_wrong(outcome, caplog)


@pytest.mark.parametrize("url", ["http://what!/a", "http://e%2fx/a"])
async def test_a_url_without_a_host_is_dropped_behind_a_proxy(
    web: Web, crawl: Crawl, url: str
) -> None:
    proxy = web.site()
    outcome = await crawl([Request(url, meta={"proxy": proxy.root}, dont_filter=True)])
    (error,) = outcome.failures.values()
    assert isinstance(error, RobotsTxtDisallowed)
    assert error.verdict.reason is Reason.INVALID_HOST
    assert proxy.received == []
    assert "robotstxt/request_count" not in outcome.stats


async def test_a_host_with_percent_escapes_has_the_robots_txt_of_its_name(
    web: Web, crawl: Crawl
) -> None:
    proxy = web.site("", {"http://127.0.0.1/robots.txt": text("User-agent: *\nDisallow: /\n")})
    await crawl([Request("http://127.%30.0.1/a", meta={"proxy": proxy.root}, dont_filter=True)])
    assert proxy.paths == ["http://127.0.0.1/robots.txt"]


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
deprecated_in_twisted = pytest.mark.filterwarnings("ignore:Passing method to twisted")


@deprecated_in_twisted
async def test_rfc_tls_errors_disallow_everything(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate that fails verification, and a server without TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    unknown = web.site(RULES, tls=context)
    plain = web.site(RULES)
    urls = [unknown.url("/public"), f"https://127.0.0.1:{plain.port}/public"]
    outcome = await crawl(urls, {**VERIFYING, "REP_TIMEOUT": 1})
    assert (unknown.paths, plain.paths) == ([], [])
    assert [outcome.failures[url].verdict.reason for url in urls] == (  # type: ignore[attr-defined]
        [Reason.UNREACHABLE] * 2
    )
    assert_nothing_went_wrong(outcome, caplog)


@deprecated_in_twisted
async def test_tls_that_scrapy_accepts_is_accepted(web: Web, crawl: Crawl) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    site = web.site(RULES, tls=context)
    await crawl(site.urls(*PATHS))
    assert site.paths == ["/robots.txt", "/public"]


@pytest.mark.parametrize(
    "setting", [{"RETRY_ENABLED": True, "RETRY_TIMES": 3}, {"REDIRECT_ENABLED": False}]
)
async def test_retries_and_redirects_of_scrapy_do_not_apply(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Any]
) -> None:
    monkeypatch.setattr("scrapy_rep.fetch.fetcher.retry_pause", lambda retry: 0.1)
    site = web.site(fault("is down"))
    await crawl(site.urls("/a"), {"REP_RETRY_TIMES": 1, **setting})
    assert site.paths == ["/robots.txt"] * 2
