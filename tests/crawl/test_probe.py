"""Sites that answer 5xx for every missing page, judged by what the servers received."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.protocol.verdict import Reason
from testing.web import Page, Web

from .conftest import EXEMPT, Crawl, Disturber

DOWN, GONE = Page(status=503), Page(status=404)
BUSY = Page(status=503, headers={"Retry-After": "90"})
NO_PROBE = ["/first", "/robots.txt"]


@pytest.mark.each_loop
async def test_google_a_5xx_for_every_missing_page_means_404(web: Web, crawl: Crawl) -> None:
    site = web.site(DOWN, {"*": DOWN, "/first": Page(), "/1": Page(), "/2": Page()})
    first = Request(site.url("/first"), meta=dict(EXEMPT))
    later = site.urls("/1", "/2")
    outcome = await crawl([first], spider=Disturber, then=[], next_urls=later)
    probe = site.paths[2]
    assert site.paths == ["/first", "/robots.txt", probe, "/1", "/2"]
    assert len(probe) == 33
    assert outcome.stats["robotstxt/probe_count"] == 1
    assert outcome.stats["robotstxt/request_count"] == 2
    verdict = outcome.responses[site.url("/1")].meta["robotstxt"]
    assert (verdict.reason, verdict.detail) == (Reason.UNAVAILABLE, "status 503")
    assert "for its robots.txt and for a page that cannot exist" in outcome.log.text


@pytest.mark.parametrize(
    ("robots", "missing", "meta", "received"),
    [
        pytest.param(DOWN, GONE, EXEMPT, [*NO_PROBE, "probe"], id="404 for missing pages"),
        pytest.param(DOWN, Page(status=500), EXEMPT, [*NO_PROBE, "probe"], id="another 5xx"),
        pytest.param(BUSY, BUSY, EXEMPT, NO_PROBE, id="asks for later"),
        pytest.param(DOWN, DOWN, {}, ["/robots.txt"], id="no page yet"),
        pytest.param(GONE, DOWN, EXEMPT, [*NO_PROBE, "/1"], id="no robots.txt"),
    ],
)
async def test_other_sites_that_answer_5xx_are_unreachable(
    web: Web, crawl: Crawl, robots: Page, missing: Page, meta: dict[str, Any], received: list[str]
) -> None:
    site = web.site(robots, {"*": missing, "/first": Page(), "/1": Page(), "/2": Page()})
    first = Request(site.url("/first"), meta=meta)
    await crawl([first], spider=Disturber, then=[], next_urls=site.urls("/1"))
    assert ["probe" if len(path) == 33 else path for path in site.paths] == received


async def test_an_outage_is_probed_once(web: Web, crawl: Crawl, clock: Any) -> None:
    """The next attempt at the robots.txt is made without another probe."""
    site = web.site(DOWN, {"*": GONE, "/first": Page(), "/1": Page(), "/2": Page()})
    await crawl(
        [Request(site.url("/first"), meta=dict(EXEMPT))],
        {"REP_UNREACHABLE": "allow"},
        spider=Disturber,
        then=[lambda: None, lambda: setattr(clock, "ahead", 100)],
        next_urls=site.urls("/1", "/2"),
    )
    assert ["probe" if len(path) == 33 else path for path in site.paths] == (
        ["/first", "/robots.txt", "probe", "/1", "/robots.txt", "/2"]
    )
