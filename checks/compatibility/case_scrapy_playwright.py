"""scrapy-playwright with Chromium: Debian's (``apt install chromium``), or any in the PATH."""

from __future__ import annotations

import shutil
from typing import Any

from scrapy import Request

from scrapy_rep.protocol.lines import file_of
from testing.web import Web, text

from .crawling import CannotRunError, crawl
from .standard import PRIVATE, PUBLIC, RULES, Standard

REQUIREMENTS = ("scrapy-playwright",)

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"


class EveryRequest:
    """A downloader middleware that sends every request through the browser."""

    def process_request(self, request: Request) -> None:
        request.meta["playwright"] = True


def prepare(_: Web) -> dict[str, Any]:
    """The settings for Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise CannotRunError("there is no chromium in the PATH")
    return {
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": chromium, "args": ["--no-sandbox"]},
        "PLAYWRIGHT_PROCESS_REQUEST_HEADERS": None,  # the browser's own: they tell who asks
    }


STANDARD = Standard(meta={"playwright": True}, prepare=prepare)


async def robots_txt_is_not_rendered_whatever_asks_for_it(web: Web) -> None:
    for place in (50, 150, 950):
        site = web.site(RULES)
        settings = {"DOWNLOADER_MIDDLEWARES": {EveryRequest: place}}
        await Standard(prepare=prepare).crawl(web, site.urls(*PRIVATE, *PUBLIC), settings)
        by_browser = {each.path for each in site.received if "sec-fetch-mode" in each.headers}
        assert by_browser - {"/favicon.ico"} == set(PUBLIC), f"at {place}: {sorted(by_browser)}"
        assert site.robots_fetches == 1, f"at {place}: {site.paths}"


async def a_rendered_text_is_unwrapped(web: Web) -> None:
    bodies = [
        RULES,
        "User-agent: *\nDisallow: /<b>&amp;\"'\n",
        "\ufeffUser-agent: *\nDisallow: /\u30c4\u00a0\n",
        "\n\nUser-agent: *\r\nDisallow: /\t\f\n",
        "# " + "x" * 100_000 + "\nDisallow: /",
    ]
    pages = {
        f"/{n}.txt": text(body, Content_Type="text/plain; charset=utf-8")
        for n, body in enumerate(bodies)
    }
    site = web.site(pages=pages)
    outcome = await crawl(site.urls(*pages), prepare(web), meta={"playwright": True})
    for path, body in zip(pages, bodies, strict=True):
        (response,) = outcome.responses[site.url(path)]
        found = file_of(response.body)
        wanted = body.replace("\r\n", "\n").removeprefix("\ufeff")
        assert found.decode().splitlines() == wanted.splitlines(), f"{path}: {found[:500]!r}"


CHECKS = (
    *STANDARD.checks,
    robots_txt_is_not_rendered_whatever_asks_for_it,
    a_rendered_text_is_unwrapped,
)
