"""Downloaders whose slots are not those of Scrapy 2.14 to 2.19, such as its throttler branch's."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Downloader

from scrapy_rep.fetch.body_reader import WIRE_LIMIT
from testing.web import text

from .conftest import our_warnings

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from testing.web import Web

    from .conftest import Crawl

SLOWLY = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.4\n"

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


def without_slots(name: str) -> Any:
    """A downloader that lacks an attribute, once it is made."""

    class Lacking(Viewed):
        def __getattribute__(self, asked: str) -> Any:
            if asked == name and "_own" in self.__dict__:
                raise AttributeError(name)
            return super().__getattribute__(asked)

        def __init__(self, crawler: Crawler) -> None:
            super().__init__(crawler)
            self._own = True

        async def _enqueue_request(self, request: Request) -> Response:
            request.meta["download_slot"] = self.get_slot_key(request)
            self.signals.send_catch_log(signals.request_reached_downloader, request=request)
            try:
                return await self.handlers.download_request_async(request)
            finally:
                self.signals.send_catch_log(signals.request_left_downloader, request=request)

        def close(self) -> None:
            pass

    return Lacking


@pytest.mark.parametrize(
    "downloader",
    [
        pytest.param(Viewed, id="slots without attributes"),
        pytest.param(without_slots("slots"), id="no slots"),
        pytest.param(without_slots("_get_slot"), id="no _get_slot"),
    ],
)
async def test_the_pace_is_kept_without_slots(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture, downloader: Any
) -> None:
    site = web.site(SLOWLY)
    other = web.site(host="127.0.0.2")
    urls = [*site.urls("/1", "/2", "/private", "/3"), *other.urls("/a", "/b")]
    # Scrapy's default looks at the slots.
    outcome = await crawl(urls, {**PLAIN, "DOWNLOADER": downloader})
    assert site.page_paths == ["/1", "/2", "/3"]
    assert other.page_paths == ["/a", "/b"]
    assert all(later.at - sooner.at > 0.39 for sooner, later in pairwise(site.received))
    assert list(outcome.failures) == site.urls("/private")
    assert len(our_warnings(caplog)) == 1
    assert "Traceback" not in caplog.text


class OwnHandlers(Viewed):
    """A downloader whose handlers are not those of Scrapy: it sends the signals of Scrapy."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        scrapy_handlers = self.handlers
        self.handlers = SimpleNamespace(get=scrapy_handlers.download_request_async)  # type: ignore[assignment]

    async def _enqueue_request(self, request: Request) -> Response:
        request.meta["download_slot"], _ = self._get_slot(request)
        self.signals.send_catch_log(signals.request_reached_downloader, request=request)
        handlers: Any = self.handlers
        response: Response = await handlers.get(request)
        self.signals.send_catch_log(signals.response_downloaded, response=response, request=request)
        self.signals.send_catch_log(signals.request_left_downloader, request=request)
        return response


@pytest.mark.parametrize("downloader", [Downloader, OwnHandlers])
async def test_a_long_file_is_cut_whatever_downloads_it(
    web: Web, crawl: Crawl, downloader: Any
) -> None:
    # With its Content-Length, the download fails unless the limit of Scrapy is off.
    long_file = gzip.compress(SLOWLY.encode() + os.urandom(2 * WIRE_LIMIT), 1)
    site = web.site(text(long_file, Content_Encoding="gzip"))
    outcome = await crawl(site.urls("/a", "/private"), {**PLAIN, "DOWNLOADER": downloader})
    assert site.page_paths == ["/a"]
    assert list(outcome.failures) == site.urls("/private")


async def test_a_websocket_page_obeys_the_file_of_http(web: Web, crawl: Crawl) -> None:
    site = web.site(SLOWLY)
    url = site.url("/private").replace("http://", "ws://")
    outcome = await crawl([url])
    assert site.paths == ["/robots.txt"]
    assert "robots.txt" in str(outcome.failures[url])
