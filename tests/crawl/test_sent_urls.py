"""The URLs that download handlers send, judged by the request lines that the server received."""

from __future__ import annotations

import ssl
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import trustme
from scrapy import Request
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import RobotsTxt
from testing.web import Received, Site, Web

from .conftest import HAS_VERBATIM_URL, Crawl

RULES = """
User-agent: *
Disallow: /private$
Disallow: /secret
Disallow: /search?q
Disallow: /bang!
Disallow: /a/,
Disallow: /a/@:=&;'()
Disallow: /x?q=,!:@
Disallow: /x?q=a+b
Disallow: /%25zz
"""
ROBOTS = RobotsTxt(RULES.encode())

# Each is allowed as it stands, and some handler makes a disallowed URL of it.
FOLDERS = (
    *("/./", "/../", "/a/../", "/a/b/../../", "/a/./../", "/a/.././", "/a//../../"),
    *("/%2e/", "/%2E%2e/", "/a/%2e%2e/", "/a/.%2e/", "/a/%2E./"),
)
PATHS = (
    *map("".join, product(FOLDERS, ("private", "secret/1", "search?q=1"))),
    *("/private;", "/private;x", "/private;x=1;y", "/search;?q=1", "/search;x?q=1", "/search;;?q"),
    *("/bang%21", "/a/%2C", "/a/%2c;", "/a/%40%3A%3D%26%3B%27%28%29", "/x?q=%2C%21%3A%40"),
    *("/./bang%21", "/%2e/a/%2C;", "/a/../%73ecret"),
)
VERBATIM = (
    *("/private?", "/private ", "/private? ", "/private\t", "/private\x00"),
    *("/private?#a", "/private;?", "/a\\..\\secret", "/%zz", "/x?q=a b"),
)
OPEN = ("/open;x", "/a/../open", "/open?a=%2C", "/open%21")
HANDLERS = {
    "HTTP/1.1": "http11.HTTP11DownloadHandler",
    "HTTP/2": "http2.H2DownloadHandler",
    "aiohttp": "_aiohttp.AiohttpDownloadHandler",
    "httpx": "_httpx.HttpxDownloadHandler",
}
REQUIRED = {"HTTP/2": "h2", "aiohttp": "aiohttp", "httpx": "httpx2"}


def h2_pages(site: Callable[[], Site]) -> Any:
    """Answer the requests of a connection with HTTP/2, and record their paths."""
    config, connections, events = (
        pytest.importorskip(f"h2.{name}") for name in ("config", "connection", "events")
    )

    async def serve(preface: Received, reader: StreamReader, writer: StreamWriter) -> None:
        site().received.remove(preface)
        connection = connections.H2Connection(config.H2Configuration(client_side=False))
        connection.initiate_connection()
        octets = preface.head
        while octets:
            for event in connection.receive_data(octets):
                if not isinstance(event, events.RequestReceived):
                    continue
                path = dict(event.headers)[b":path"].decode()
                site().received.append(replace(preface, method="GET", path=path))
                robots = path == "/robots.txt"
                headers = [(":status", "200"), ("content-type", "text/plain")]
                connection.send_headers(event.stream_id, headers)
                body = RULES.encode() if robots else b"A page"
                connection.send_data(event.stream_id, body, end_stream=True)
            writer.write(connection.data_to_send())
            await writer.drain()
            octets = await reader.read(65536)

    return serve


@pytest.mark.parametrize("name", HANDLERS)
async def test_no_handler_sends_a_disallowed_url(web: Web, crawl: Crawl, name: str) -> None:
    handler = f"scrapy.core.downloader.handlers.{HANDLERS[name]}"
    pytest.importorskip(handler.rpartition(".")[0])
    pytest.importorskip(REQUIRED.get(name, "scrapy"))
    if not (is_reactor_installed() if name.startswith("HTTP") else is_asyncio_available()):
        pytest.skip("the handler is for another event loop")
    if name == "HTTP/2":
        if not HAS_VERBATIM_URL:
            pytest.skip("the HTTP/2 handler of Scrapy 2.14 does not work with today's h2")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["h2"])
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        site = web.site(RULES, {"*": h2_pages(lambda: site)}, tls=context)
    else:
        site = web.site(RULES)
    settings = {"DOWNLOAD_HANDLERS": {site.root.partition(":")[0]: handler}}

    def requests(**meta: bool) -> list[Request]:
        verbatim = {"verbatim_url": True, **meta}
        asked = [Request(site.url(path), meta=meta, dont_filter=True) for path in PATHS + OPEN]
        if HAS_VERBATIM_URL:
            asked += (Request(site.url(path), meta=verbatim, dont_filter=True) for path in VERBATIM)
        return asked

    outcome = await crawl(requests(), settings)
    assert len(site.page_paths) == len(OPEN)
    assert [path for path in site.page_paths if not ROBOTS.allowed(path, "testbot")] == []
    assert len(outcome.reasons) == len(requests()) - len(OPEN)
    # The handler does change them.
    await crawl(requests(dont_obey_robotstxt=True), settings)
    assert any(not ROBOTS.allowed(path, "testbot") for path in site.page_paths)


def test_each_url_is_allowed_as_it_stands() -> None:
    assert [path for path in PATHS + VERBATIM if not ROBOTS.allowed(path, "testbot")] == []
