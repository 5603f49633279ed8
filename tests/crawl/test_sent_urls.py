"""The URLs that download handlers send, and those at which their responses end."""

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
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import Reason, RobotsTxt
from testing.faults import answer_when, stall
from testing.web import Page, Received, Site, Web, redirect, text

from .conftest import EXEMPT, FOLLOWING, HAS_VERBATIM_URL, PRIVATE, Crawl, numbers

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


@pytest.mark.rule("URLs that download handlers change")
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
        server = web.site(RULES, {"*": h2_pages(lambda: server)}, tls=context)
    else:
        server = web.site(RULES)
    settings = {"DOWNLOAD_HANDLERS": {server.root.partition(":")[0]: handler}}

    def requests(**meta: bool) -> list[Request]:
        verbatim = {"verbatim_url": True, **meta}
        asked = [Request(server.url(path), meta=meta, dont_filter=True) for path in PATHS + OPEN]
        if HAS_VERBATIM_URL:
            asked += (
                Request(server.url(path), meta=verbatim, dont_filter=True) for path in VERBATIM
            )
        return asked

    assert all(ROBOTS.allowed(path, "testbot") for path in PATHS + VERBATIM), "as they stand"
    outcome = await crawl(requests(), settings)
    assert len(server.page_paths) == len(OPEN)
    assert [path for path in server.page_paths if not ROBOTS.allowed(path, "testbot")] == []
    assert len(outcome.reasons) == len(requests()) - len(OPEN)
    # The handler does change them.
    await crawl(requests(dont_obey_robotstxt=True), settings)
    assert any(not ROBOTS.allowed(path, "testbot") for path in server.page_paths)


# Final URLs: a browser or a download handler follows redirects itself

DROP = {**FOLLOWING, "REP_CHECK_FINAL_URL": "drop"}


@pytest.fixture
def site(web: Web) -> Site:
    return web.site(PRIVATE, {"/moved": redirect("/private"), "/fine": redirect("/public")})


@pytest.mark.rule("Pages that end at another URL")
async def test_a_disallowed_page_is_annotated_and_counted(site: Site, crawl: Crawl) -> None:
    outcome = await crawl(site.urls("/moved", "/fine", "/plain"), FOLLOWING)
    allowed = {url: outcome.responses[url].meta["robotstxt"] for url in outcome.responses}
    assert {url: verdict.allowed for url, verdict in allowed.items()} == {
        site.url("/private"): False,
        site.url("/public"): True,
        site.url("/plain"): True,
    }
    assert allowed[site.url("/private")].rule == (False, "/private", 2)
    assert outcome.stats["robotstxt/final_url"] == 2
    assert outcome.stats["robotstxt/final_url/disallowed"] == 1
    assert "robotstxt/forbidden" not in outcome.stats
    (warning,) = outcome.warnings
    assert warning.startswith(f"<GET {site.url('/moved')}> was redirected to {site.root}/private, ")
    assert "(line 2, Disallow: /private, for *)" in warning


@pytest.mark.rule("Pages that end at another URL")
async def test_a_disallowed_page_is_dropped_by_a_setting(site: Site, crawl: Crawl) -> None:
    outcome = await crawl(site.urls("/moved", "/fine"), DROP)
    assert list(outcome.responses) == site.urls("/public")
    error: Any = outcome.failures[site.url("/moved")]
    assert (error.url, error.verdict.rule) == (site.url("/private"), (False, "/private", 2))
    assert outcome.stats["robotstxt/forbidden"] == 1
    assert outcome.stats["robotstxt/forbidden/rules"] == 1
    assert f"<200 {site.url('/private')}> (line 2, Disallow: /private, for *)" in outcome.log.text
    assert not outcome.warnings


@pytest.mark.rule("Pages that end at another URL")
@pytest.mark.parametrize(
    ("robots", "settings", "allowed", "reason"),
    [
        pytest.param(text(PRIVATE), {}, True, Reason.RULES, id="rules that allow it"),
        pytest.param(text("User-agent: *\nDisallow: /\n"), {}, False, Reason.RULES, id="others"),
        pytest.param(Page(status=404), {}, True, Reason.UNAVAILABLE, id="none"),
        pytest.param(Page(status=503), {}, False, Reason.UNREACHABLE, id="unreachable"),
        pytest.param(
            Page(PRIVATE, delay=0.3), {"REP_CACHE_SIZE": 1}, True, Reason.RULES, id="late, no room"
        ),
    ],
)
async def test_the_robots_txt_of_another_origin_is_fetched(
    web: Web, crawl: Crawl, robots: Page, settings: dict[str, Any], allowed: bool, reason: Reason
) -> None:
    other = web.site(robots, host="127.0.0.2")
    pages = {f"/{number}": redirect(other.url(f"/page/{number}")) for number in range(4)}
    site = web.site(PRIVATE, pages)
    settings = {**DROP, **settings, "CONCURRENT_REQUESTS": 1}
    outcome = await crawl(site.urls(*pages), settings)
    assert len(outcome.responses) == (4 if allowed else 0)
    verdicts = [response.meta["robotstxt"] for response in outcome.responses.values()]
    verdicts += [failure.verdict for failure in outcome.failures.values()]  # type: ignore[attr-defined]
    assert {(verdict.allowed, verdict.reason) for verdict in verdicts} == {(allowed, reason)}
    if settings.get("REP_CACHE_SIZE") != 1:
        assert other.robots_fetches == 1


async def test_pages_that_wait_for_a_slow_robots_txt_block_none(web: Web, crawl: Crawl) -> None:
    paths = numbers(4)
    live = web.site(PRIVATE, host="127.0.0.3")
    late = answer_when(lambda: live.page_paths == paths, text(PRIVATE))
    slow = web.site(late, host="127.0.0.2")
    site = web.site(PRIVATE, {path: redirect(slow.url(path)) for path in paths})
    urls = [*site.urls(*paths), *live.urls(*paths)]
    outcome = await crawl(urls, {**DROP, "CONCURRENT_REQUESTS": 4, "REP_TIMEOUT": 10})
    assert sorted(outcome.responses) == sorted([*slow.urls(*paths), *live.urls(*paths)])


async def test_waiting_is_limited(web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.scrapy_internals.MAX_WAITING_BYTES", 2000)
    silent = web.site(stall(), host="127.0.0.2")
    paths = numbers(8)
    site = web.site(PRIVATE, {path: redirect(silent.url(path)) for path in paths})
    settings = {**DROP, "CONCURRENT_REQUESTS": 2, "REP_TIMEOUT": 1}
    outcome = await crawl(site.urls(*paths), settings)
    assert len(outcome.failures) == 8
    robots = silent.received[0].at
    early = [received for received in site.received if received.at < robots + 0.5]
    assert len(early) < 8


async def test_an_exempt_request_may_end_anywhere(site: Site, crawl: Crawl) -> None:
    outcome = await crawl([Request(site.url("/moved"), meta=dict(EXEMPT))], DROP)
    assert list(outcome.responses) == site.urls("/private")
    assert "robotstxt" not in outcome.responses[site.url("/private")].meta


class Browser:
    """Answers with a page at the URL that a request names."""

    def process_request(self, request: Request) -> HtmlResponse | None:
        final = request.meta.get("final")
        return HtmlResponse(final, body=b"<p>A page", request=request) if final else None


@pytest.mark.parametrize(
    ("final", "reasons"),
    [
        pytest.param("{root}/a%2D%7eb#part", [], id="a fragment, an escape"),
        pytest.param("{upper}/a-~b", [], id="upper case"),
        pytest.param("about:blank", [], id="no page of the web"),
        pytest.param("data:,", [], id="nor this"),
        pytest.param("http://a..b/", [Reason.INVALID_HOST], id="no host"),
    ],
)
async def test_equivalent_urls_and_urls_without_robots_txt_are_not_checked(
    web: Web, crawl: Crawl, final: str, reasons: list[Reason]
) -> None:
    site = web.site("User-agent: *\nAllow: /a-\nDisallow: /\n")
    final = final.format(root=site.root, upper=site.root.upper())
    settings = {"DOWNLOADER_MIDDLEWARES": {Browser: 800}, "REP_CHECK_FINAL_URL": "drop"}
    outcome = await crawl([Request(site.url("/a-~b"), meta={"final": final})], settings)
    assert [*outcome.reasons.values()] == reasons
    assert ("robotstxt/final_url" in outcome.stats) is bool(reasons)
