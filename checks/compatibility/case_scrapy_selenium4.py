"""scrapy-selenium4, with a remote WebDriver on loopback in the place of a browser.

It blocks the process while the browser loads a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .crawling import Outcome, crawl
from .services import WebDriver
from .standard import PRIVATE, PUBLIC, RULES, Standard

if TYPE_CHECKING:
    from collections.abc import Mapping

    from testing.web import Web

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


STANDARD = Rendered()


async def only_robots_txt_is_not_rendered(web: Web) -> None:
    site = web.site(RULES)
    await STANDARD.crawl(web, site.urls(*PRIVATE, *PUBLIC))
    rendered = {each.path for each in site.received if each.headers["user-agent"] == "a browser"}
    assert rendered == set(PUBLIC), f"rendered: {rendered}"
    assert site.robots_fetches == 1, f"received: {site.paths}"


CHECKS = (*STANDARD.checks, only_robots_txt_is_not_rendered)
