from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_rep import RobotsTxtDisallowed

if TYPE_CHECKING:
    from .conftest import Crawl
    from .web import Web


async def test_disallowed_page_never_reaches_the_server(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: *\nDisallow: /private\n")
    outcome = await crawl(site.urls("/", "/private/1"))
    assert site.paths == ["/robots.txt", "/"]
    error = outcome.failures[site.url("/private/1")]
    assert isinstance(error, RobotsTxtDisallowed)
    assert error.verdict.rule is not None
    assert error.verdict.rule.line == 2
