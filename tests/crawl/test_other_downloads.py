"""Where another component does the download: rendering services, browsers, another downloader."""

from __future__ import annotations

from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse

from scrapy_rep.frontier.clock import sleep

if TYPE_CHECKING:
    from scrapy import Request

    from testing.web import Web

    from .conftest import Crawl

SLOWLY = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.2\n"
DELAY = 0.2


class Browser:
    """Answers in ``process_request``, as the middleware of scrapy-selenium4 does."""

    visits: list[tuple[float, float]] = []  # noqa: RUF012

    async def process_request(self, request: Request) -> HtmlResponse | None:
        if request.meta.get("is_robotstxt_request"):
            return None
        began = monotonic()
        await sleep(0.2)
        self.visits.append((began, monotonic()))
        if request.url.endswith("/fails"):
            raise OSError("the browser crashed")
        return HtmlResponse(request.url, body=b"<p>A page", request=request)


async def test_the_pace_is_kept_where_no_download_slot_is_passed(web: Web, crawl: Crawl) -> None:
    Browser.visits.clear()
    site = web.site(SLOWLY)
    settings = {"DOWNLOADER_MIDDLEWARES": {Browser: 800}}
    await crawl(site.urls("/1", "/2", "/fails", "/private", "/3"), settings)
    assert site.paths == ["/robots.txt"]
    assert len(Browser.visits) == 4
    assert all(second[0] - first[1] > DELAY - 0.01 for first, second in pairwise(Browser.visits))
