"""Final URLs: a browser or a download handler follows redirects itself."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse

from scrapy_rep import Reason, RobotsTxtDisallowed
from testing.faults import answer_when, stall
from testing.web import Page, Site, Web, redirect, text

from .conftest import EXEMPT, Crawl, numbers
from .conftest import PRIVATE as RULES
from .following import FOLLOWING

DROP = {**FOLLOWING, "REP_CHECK_FINAL_URL": "drop"}


@pytest.fixture
def site(web: Web) -> Site:
    return web.site(RULES, {"/moved": redirect("/private"), "/fine": redirect("/public")})


async def test_a_disallowed_page_is_annotated_and_counted(site: Site, crawl: Crawl) -> None:
    outcome = await crawl(site.urls("/moved", "/fine", "/plain"), FOLLOWING)
    allowed = {url: outcome.responses[url].meta["robotstxt"] for url in outcome.responses}
    assert {url: verdict.allowed for url, verdict in allowed.items()} == {
        site.url("/private"): False,
        site.url("/public"): True,
        site.url("/plain"): True,
    }
    assert allowed[site.url("/private")].rule == (False, "/private", 2)
    assert outcome.stats["robotstxt/final_url"] == 2
    assert outcome.stats["robotstxt/final_url/disallowed"] == 1
    assert "robotstxt/forbidden" not in outcome.stats
    (warning,) = outcome.warnings
    assert warning.startswith(
        f"<GET {site.url('/moved')}> was redirected to {site.url('/private')}, "
    )
    assert "(line 2, Disallow: /private, for *)" in warning


async def test_a_disallowed_page_is_dropped_where_the_setting_says_so(
    site: Site, crawl: Crawl
) -> None:
    outcome = await crawl(site.urls("/moved", "/fine"), DROP)
    assert list(outcome.responses) == site.urls("/public")
    error = outcome.failures[site.url("/moved")]
    assert isinstance(error, RobotsTxtDisallowed)
    assert (error.url, error.verdict.rule) == (site.url("/private"), (False, "/private", 2))
    assert outcome.stats["robotstxt/forbidden"] == 1
    assert outcome.stats["robotstxt/forbidden/rules"] == 1
    assert f"<200 {site.url('/private')}> (line 2, Disallow: /private, for *)" in outcome.log.text
    assert not outcome.warnings


@pytest.mark.parametrize(
    ("robots", "settings", "allowed", "reason"),
    [
        pytest.param(text(RULES), {}, True, Reason.RULES, id="rules that allow it"),
        pytest.param(
            text("User-agent: *\nDisallow: /\n"), {}, False, Reason.RULES, id="rules that do not"
        ),
        pytest.param(Page(status=404), {}, True, Reason.UNAVAILABLE, id="none"),
        pytest.param(Page(status=503), {}, False, Reason.UNREACHABLE, id="unreachable"),
        pytest.param(
            Page(RULES, delay=0.3), {"REP_CACHE_SIZE": 1}, True, Reason.RULES, id="late, no room"
        ),
    ],
)
async def test_the_robots_txt_of_another_origin_is_fetched_for_it(
    web: Web, crawl: Crawl, robots: Page, settings: dict[str, Any], allowed: bool, reason: Reason
) -> None:
    other = web.site(robots, host="127.0.0.2")
    pages = {f"/{number}": redirect(other.url(f"/page/{number}")) for number in range(4)}
    site = web.site(RULES, pages)
    settings = {**DROP, **settings, "CONCURRENT_REQUESTS": 1}
    outcome = await crawl(site.urls(*pages), settings)
    assert len(outcome.responses) == (4 if allowed else 0)
    verdicts = [response.meta["robotstxt"] for response in outcome.responses.values()]
    verdicts += [failure.verdict for failure in outcome.failures.values()]  # type: ignore[attr-defined]
    assert {(verdict.allowed, verdict.reason) for verdict in verdicts} == {(allowed, reason)}
    if settings.get("REP_CACHE_SIZE") != 1:
        assert other.robots_fetches == 1


async def test_pages_that_wait_for_a_slow_robots_txt_do_not_block_others(
    web: Web, crawl: Crawl
) -> None:
    paths = numbers(4)
    live = web.site(RULES, host="127.0.0.3")
    late = answer_when(lambda: live.page_paths == paths, text(RULES))
    slow = web.site(late, host="127.0.0.2")
    site = web.site(RULES, {path: redirect(slow.url(path)) for path in paths})
    urls = [*site.urls(*paths), *live.urls(*paths)]
    outcome = await crawl(urls, {**DROP, "CONCURRENT_REQUESTS": 4, "REP_TIMEOUT": 10})
    assert sorted(outcome.responses) == sorted([*slow.urls(*paths), *live.urls(*paths)])


async def test_the_size_of_waiting_pages_is_limited(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.frontier.engine.MAX_WAITING_BYTES", 2000)
    silent = web.site(stall(), host="127.0.0.2")
    paths = numbers(8)
    site = web.site(RULES, {path: redirect(silent.url(path)) for path in paths})
    settings = {**DROP, "CONCURRENT_REQUESTS": 2, "REP_TIMEOUT": 1}
    outcome = await crawl(site.urls(*paths), settings)
    assert len(outcome.failures) == 8
    robots = silent.received[0].at
    early = [received for received in site.received if received.at < robots + 0.5]
    assert len(early) < 8


async def test_an_exempt_request_may_end_anywhere(site: Site, crawl: Crawl) -> None:
    outcome = await crawl([Request(site.url("/moved"), meta=dict(EXEMPT))], DROP)
    assert list(outcome.responses) == site.urls("/private")
    assert "robotstxt" not in outcome.responses[site.url("/private")].meta


class Browser:
    """Answers with a page at the URL that a request names."""

    def process_request(self, request: Request) -> HtmlResponse | None:
        final = request.meta.get("final")
        return HtmlResponse(final, body=b"<p>A page", request=request) if final else None


@pytest.mark.parametrize(
    ("final", "reasons"),
    [
        pytest.param("{root}/a%2D%7eb#part", [], id="a fragment, an escape"),
        pytest.param("{upper}/a-~b", [], id="upper case"),
        pytest.param("about:blank", [], id="no page of the web"),
        pytest.param("data:,", [], id="nor this"),
        pytest.param("http://a..b/", [Reason.INVALID_HOST], id="no host"),
    ],
)
async def test_equivalent_urls_and_urls_without_robots_txt_are_not_checked(
    web: Web, crawl: Crawl, final: str, reasons: list[Reason]
) -> None:
    site = web.site("User-agent: *\nAllow: /a-\nDisallow: /\n")
    final = final.format(root=site.root, upper=site.root.upper())
    settings = {"DOWNLOADER_MIDDLEWARES": {Browser: 800}, "REP_CHECK_FINAL_URL": "drop"}
    outcome = await crawl([Request(site.url("/a-~b"), meta={"final": final})], settings)
    assert [*outcome.reasons.values()] == reasons
    assert ("robotstxt/final_url" in outcome.stats) is bool(reasons)
