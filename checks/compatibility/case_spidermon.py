"""Spidermon, which judges a crawl by its stats when it is over."""

from __future__ import annotations

from typing import Any

from scrapy.http import Response

from testing.web import Web

from .crawling import Visitor, crawl
from .standard import PUBLIC, RULES, Standard

REQUIREMENTS = ("spidermon",)

PRIVATE = "/private/1"

SETTINGS: dict[str, Any] = {
    "SPIDERMON_ENABLED": True,
    "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
    "SPIDERMON_SPIDER_CLOSE_MONITORS": [
        "spidermon.contrib.scrapy.monitors.SpiderCloseMonitorSuite"
    ],
    "SPIDERMON_EXPECTED_FINISH_REASONS": ["finished"],
    "SPIDERMON_FIELD_COVERAGE_RULES": {"dict/url": 1.0},
    "SPIDERMON_ADD_FIELD_COVERAGE": True,
    "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 1,  # the disallowed page, as with Scrapy's middleware
    "SPIDERMON_MAX_ERRORS": 0,
    "SPIDERMON_MAX_ITEM_VALIDATION_ERRORS": 0,
    "SPIDERMON_MAX_REQUESTS_ALLOWED": len(PUBLIC) + 1,  # with that for robots.txt
    "SPIDERMON_MAX_RETRIES": 0,
    "SPIDERMON_MAX_WARNINGS": 0,
    "SPIDERMON_MIN_ITEMS": len(PUBLIC),
    "SPIDERMON_MIN_SUCCESSFUL_REQUESTS": len(PUBLIC),
    "SPIDERMON_UNWANTED_HTTP_CODES": {404: 0},
}


class Scraper(Visitor):
    """Makes an item of each page."""

    def parse(self, response: Response, asked_url: str = "") -> Any:
        super().parse(response, asked_url)
        return {"url": response.url}


async def its_monitors_pass(web: Web) -> None:
    site = web.site(RULES)
    outcome = await crawl(site.urls(*PUBLIC, PRIVATE), SETTINGS, spider=Scraper)
    assert site.page_paths == PUBLIC, f"received: {site.paths}"
    assert not outcome.warnings, f"{outcome.warnings}"


async def a_monitor_fails_where_more_is_disallowed_than_expected(web: Web) -> None:
    site = web.site(RULES)
    outcome = await crawl(site.urls(*PUBLIC, PRIVATE, "/private/2"), SETTINGS, spider=Scraper)
    assert any("FAIL: Downloader Exceptions monitor" in each for each in outcome.warnings), (
        f"{outcome.warnings}"
    )


CHECKS = (
    *Standard({**SETTINGS, "SPIDERMON_SPIDER_CLOSE_MONITORS": []}).checks,
    its_monitors_pass,
    a_monitor_fails_where_more_is_disallowed_than_expected,
)
