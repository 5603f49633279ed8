"""scrapy-selenium4, with a remote WebDriver on loopback in the place of a browser.

It blocks the process while the browser loads a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testing.web import Web

from .crawling import Outcome, crawl
from .services import WebDriver
from .standard import Standard

REQUIREMENTS = ("scrapy-selenium4",)


def prepare(web: Web) -> dict[str, Any]:
    """The settings for a remote driver."""
    return {
        "SELENIUM_DRIVER_NAME": "chrome",
        "SELENIUM_DRIVER_ARGUMENTS": [],
        "SELENIUM_COMMAND_EXECUTOR": WebDriver(web).site.root,
        "DOWNLOADER_MIDDLEWARES": {"scrapy_selenium4.SeleniumMiddleware": 800},
    }


class Rendered(Standard):
    """The checks with requests of the plugin."""

    async def crawl(
        self, web: Web, urls: list[str], settings: Mapping[str, Any] | None = None
    ) -> Outcome:
        from scrapy_selenium4 import SeleniumRequest  # type: ignore[import-not-found]

        asked = [SeleniumRequest(url=url) for url in urls]
        return await crawl(asked, {**prepare(web), **(settings or {})})


CHECKS = Rendered(rendering_agent="a browser").checks
