"""Downloaders whose slots are not those of Scrapy 2.14 to 2.19, such as its throttler branch's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Downloader

from scrapy_rep.reports.answers import Obedience, obedience
from scrapy_rep.reports.reading import read_reports

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.http import Response

    from testing.web import Web

    from .conftest import Crawl

SLOWLY = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.2\n"

# The default queue reads an attribute of slots.
PLAIN = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}


class View:
    """A slot without attributes."""

    def close(self) -> None:
        pass


class Viewed(Downloader):
    """A downloader whose slots have no attributes."""

    def _get_slot(self, request: Request, spider: Any = None) -> Any:
        key = self.get_slot_key(request)
        return key, self.slots.setdefault(key, View())  # type: ignore[arg-type]

    async def _enqueue_request(self, request: Request) -> Response:
        request.meta["download_slot"], _ = self._get_slot(request)
        self.signals.send_catch_log(signals.request_reached_downloader, request=request)
        try:
            response = await self.handlers.download_request_async(request)
            self.signals.send_catch_log(
                signals.response_downloaded, response=response, request=request
            )
            return response
        finally:
            self.signals.send_catch_log(signals.request_left_downloader, request=request)


async def test_a_websocket_page_obeys_the_file_of_http(web: Web, crawl: Crawl) -> None:
    site = web.site(SLOWLY)
    url = site.url("/private").replace("http://", "ws://")
    outcome = await crawl([url])
    assert site.paths == ["/robots.txt"]
    assert "robots.txt" in str(outcome.failures[url])


class Silent(Viewed):
    """A downloader that sends no signals."""

    async def _enqueue_request(self, request: Request) -> Response:
        request.meta["download_slot"], _ = self._get_slot(request)
        return await self.handlers.download_request_async(request)


@pytest.mark.parametrize("downloader", [Viewed, Silent])
async def test_a_report_says_whether_the_downloader_shows_what_it_sends(
    web: Web, crawl: Crawl, tmp_path: Path, downloader: Any
) -> None:
    path = tmp_path / "report.json"
    site = web.site(SLOWLY)
    urls = [*site.urls("/a", "/private"), "data:,text"]
    await crawl(urls, {**PLAIN, "DOWNLOADER": downloader, "REP_REPORT": str(path)})
    assert site.page_paths == ["/a"]
    report = read_reports([path])
    is_shown = downloader is Viewed
    assert report.runs[0].sent_is_known is is_shown
    assert report.totals.sent == is_shown
    assert obedience(report) is (Obedience.OBEYED if is_shown else Obedience.NOT_KNOWN)
