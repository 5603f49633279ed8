"""Where another component does the download, and a URL that differs from those of most crawls."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from time import monotonic

import msgspec
import pytest
from scrapy import Request
from scrapy.core.downloader import Downloader
from scrapy.http import HtmlResponse, Response

from scrapy_rep.frontier.clock import sleep
from scrapy_rep.reports.answers import Obedience, obedience
from scrapy_rep.reports.records import Report
from testing.web import Web

from .conftest import Crawl

PRIVATE = "User-agent: *\nDisallow: /private\n"


async def test_a_websocket_page_obeys_the_file_of_http(web: Web, crawl: Crawl) -> None:
    site = web.site(PRIVATE)
    url = site.url("/private").replace("http://", "ws://")
    outcome = await crawl([url])
    assert site.paths == ["/robots.txt"]
    assert "robots.txt" in str(outcome.failures[url])


class Silent(Downloader):
    """A downloader that sends no signals."""

    async def _enqueue_request(self, request: Request) -> Response:
        request.meta["download_slot"] = self.get_slot_key(request)
        return await self.handlers.download_request_async(request)


@pytest.mark.parametrize("downloader", [Downloader, Silent])
async def test_a_report_says_whether_the_downloader_shows_what_it_sends(
    web: Web, crawl: Crawl, tmp_path: Path, downloader: type[Downloader]
) -> None:
    path = tmp_path / "report.json"
    site = web.site(PRIVATE)
    urls = [*site.urls("/a", "/private"), "data:,text"]
    settings = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
    await crawl(urls, {**settings, "DOWNLOADER": downloader, "REP_REPORT": str(path)})
    assert site.page_paths == ["/a"]
    report = msgspec.json.decode(path.read_bytes(), type=Report)
    is_shown = downloader is Downloader
    assert report.runs[0].sent_is_known is is_shown
    assert report.totals.sent == is_shown
    assert obedience(report) is (Obedience.OBEYED if is_shown else Obedience.NOT_KNOWN)


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
