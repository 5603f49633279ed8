"""Crawls through gateways and browsers. What those and the sites received is checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import Reason
from scrapy_rep.fetch.downloader import remove_browser_meta
from testing.faults import PATHS, RULES, RULES_HOLD, outcome_of
from testing.web import Page, Received, Web, between, redirect, text

from .conftest import ALL, PRIVATE, Crawl, InTurn, Outcome, ScrapysHandler, in_turn, numbers

PAGE = Path(__file__).parents[2] / "docs/usage/proxies-and-browsers.md"
SLOW, BUSY, FREE, OLD = (f"{name}.example" for name in ("slow", "busy", "free", "old"))


class Gateway:
    """A gateway on loopback, and when it received requests for each URL."""

    def __init__(self, web: Web) -> None:
        self.received: list[tuple[float, str]] = []
        self.pages: dict[str, Page] = {
            f"http://{SLOW}/robots.txt": text(f"{PRIVATE}Crawl-delay: 1\n"),
            f"http://{BUSY}/robots.txt": text(PRIVATE),
            f"https://{FREE}/robots.txt": text(PRIVATE),
            f"https://{OLD}/robots.txt": redirect(f"https://{FREE}/robots.txt"),
        }
        self._busy = in_turn(Page("busy", 503, {"Retry-After": "2"}))
        self.site = web.site(ALL, {"*": self._relay})
        self.api = self.site.url("/?key=secret&url=")

    async def _relay(self, received: Received, *connection: Any) -> None:
        (url,) = parse_qs(urlsplit(received.path).query)["url"]
        self.received.append((received.at, url))
        is_busy = urlsplit(url).hostname == BUSY and url not in self.pages
        answer = self._busy if is_busy else in_turn(self.pages.get(url, Page(delay=0.05)))
        await answer(received, *connection)

    def times(self, host: str) -> list[float]:
        """When pages of a site were requested."""
        sent = [(at, urlsplit(url)) for at, url in self.received]
        return [at for at, url in sent if url.hostname == host and url.path != "/robots.txt"]


def example(gateway: Gateway) -> type:
    """The download handler of the documentation, for a gateway."""
    if not is_reactor_installed():
        pytest.skip("the handler derives from one that needs a reactor")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if "class GatewayHandler" in block)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    namespace["API"] = gateway.api
    handler: type = namespace["GatewayHandler"]
    return handler


@pytest.mark.each_loop
async def test_the_handler_keeps_rules_delays_and_back_off_by_site(web: Web, crawl: Crawl) -> None:
    gateway = Gateway(web)
    handler = example(gateway)
    roots = f"http://{SLOW}", f"http://{BUSY}", f"https://{FREE}", f"https://{OLD}"
    urls = [root + path for path in ("/private/1", *numbers(4)) for root in roots]
    settings = {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "RETRY_ENABLED": True,
    }
    outcome = await crawl(urls, settings)
    assert gateway.site.robots_fetches == 0
    assert set(outcome.failures) == {f"{root}/private/1" for root in roots}
    assert set(outcome.responses) == set(urls) - set(outcome.failures)
    asked = [url for _, url in gateway.received]
    assert not [url for url in asked if "/private" in url]
    assert all(asked.count(f"{root}/robots.txt") == 1 for root in roots[:2])
    assert min(between(gateway.times(SLOW))) >= 1
    assert all("download_latency" in response.meta for response in outcome.responses.values())
    busy, resumed, *_ = gateway.times(BUSY)
    assert resumed >= busy + 2
    assert any(busy < time < resumed for time in gateway.times(FREE) + gateway.times(OLD))


async def test_an_error_of_the_gateway_is_no_answer_of_a_site(web: Web, crawl: Crawl) -> None:
    gateway = Gateway(web)
    gateway.pages[f"http://{OLD}/robots.txt"] = Page("", 401, {"X-Gateway-Error": "quota"})
    handlers = {"DOWNLOAD_HANDLERS": {"http": example(gateway)}}
    outcome = await crawl([f"http://{OLD}/1"], handlers)
    assert [*outcome.reasons.values()] == [Reason.UNREACHABLE]
    assert not gateway.times(OLD)


class Replaces:
    """A downloader middleware that replaces each request with one to the gateway."""

    api = ""

    def process_request(self, request: Request) -> Request | None:
        if request.url.startswith(self.api):
            return None
        return request.replace(url=self.api + quote(request.url, safe=""), dont_filter=True)


class Encodes(Replaces):
    """The URL of the gateway does not have the name of the site."""

    def process_request(self, request: Request) -> Request | None:
        sent = super().process_request(request)
        return sent and sent.replace(url=self.api + sent.url[len(self.api) :].replace(".", "%2E"))


class Rebuilds:
    """A downloader middleware that replaces each request with one to the same site."""

    def process_request(self, request: Request) -> Request | None:
        if "rebuilt" in request.meta:
            return None
        return request.replace(meta={**request.meta, "rebuilt": True}, dont_filter=True)


NOTE = "A middleware has replaced <GET http"


def notes(outcome: Outcome) -> list[str]:
    """The lines of the log about replaced requests."""
    messages = [record.getMessage() for record in outcome.log.records]
    return [message for message in messages if message.startswith(NOTE)]


@pytest.mark.parametrize("in_jobdir", [False, True])
@pytest.mark.parametrize(
    ("middleware", "number"), [(Replaces, 725), (Replaces, 995), (Encodes, 725), (Replaces, 50)]
)
async def test_replaced_requests_are_noted_once_in_a_crawl(
    web: Web, crawl: Crawl, tmp_path: Path, middleware: type[Replaces], number: int, in_jobdir: bool
) -> None:
    gateway = Gateway(web)
    settings: dict[str, Any] = {"JOBDIR": str(tmp_path)} if in_jobdir else {}
    Replaces.api = gateway.api
    urls = [f"http://{FREE}{path}" for path in ("/private/1", *numbers(4))]
    gateway.pages[f"http://{FREE}/robots.txt"] = text(PRIVATE)
    outcome = await crawl(urls, {**settings, "DOWNLOADER_MIDDLEWARES": {middleware: number}})
    assert len(gateway.times(FREE)) == (4 if number > 100 else 5)
    (note,) = notes(outcome)
    assert f"<GET http://{FREE}/" in note
    assert "a request to 127.0.0.1. " in note
    assert "secret" not in note


class CopiesMeta(InTurn):
    """Requests further pages with the meta of the response."""

    def parse(self, response: Any, **_: Any) -> Any:
        for request in super().parse(response):
            yield request.replace(meta=response.meta)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"DOWNLOADER_MIDDLEWARES": {Rebuilds: 50}},
        {"DOWNLOADER_MIDDLEWARES": {Rebuilds: 725}},
        {"HTTPCACHE_ENABLED": True},
    ],
    ids=str,
)
async def test_no_other_request_is_noted(
    web: Web, crawl: Crawl, tmp_path: Path, settings: dict[str, Any]
) -> None:
    others = [web.site(ALL, host=f"127.0.0.{n}") for n in range(2, 8)]
    moved = {path: redirect(others[0].url(path)) for path in numbers(9)}
    busy = {path: in_turn(Page("busy", 500), then=Page()) for path in ("/r1", "/r2", "/r3")}
    site = web.site(ALL, {**moved, **busy})
    urls = [*site.urls(*moved, *busy), *(other.url("/x") for other in others)]
    then = {
        url: [Request(other.url(f"/{url[-1]}?share={site.host}")) for other in others]
        for url in urls
    }
    settings = {**settings, "RETRY_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for _ in range(2):  # the second one gets the redirects from the cache
        outcome = await crawl(urls, settings, spider=CopiesMeta, then=then)
        assert len(outcome.responses) > 20
    assert notes(outcome) == []


# Browsers, which load pages only


WRAPPED = (
    b'<html><head><meta name="color-scheme" content="light dark"></head><body>'
    b'<pre style="word-wrap: break-word; white-space: pre-wrap;">%s</pre></body></html>' % RULES
)


class Browser(ScrapysHandler):
    """A download handler that uses a browser for requests with ``playwright`` in their meta."""

    async def download_request(self, request: Request) -> Response:
        response = await super().download_request(request)
        if not request.meta.get("playwright"):
            return response
        self.seen.append(urlsplit(request.url).path)
        body = WRAPPED if response.body == RULES else response.body
        return HtmlResponse(response.url, status=response.status, body=body)


class Assigns:
    """A downloader middleware that sends every request to the browser."""

    def process_request(self, request: Request) -> None:
        request.meta["playwright"] = True


class RebuildsForBrowser:
    """A downloader middleware that replaces every request by a new one."""

    def process_request(self, request: Request) -> Request | None:
        if "rebuilt" in request.meta:
            return None
        meta = {**request.meta, "playwright": True, "rebuilt": True}
        return Request(request.url, request.callback, meta=meta, errback=request.errback)


@pytest.mark.rule("Pages of a browser")
@pytest.mark.parametrize("place", [50, 950])
@pytest.mark.parametrize("middleware", [Assigns, RebuildsForBrowser])
async def test_no_robots_txt_goes_through_a_browser(
    web: Web, crawl: Crawl, middleware: type, place: int
) -> None:
    site = web.site(RULES)
    places = {"DOWNLOADER_MIDDLEWARES": {middleware: place}}
    await crawl(site.urls(*PATHS), {**places, "DOWNLOAD_HANDLERS": {"http": Browser}})
    assert outcome_of(site) == RULES_HOLD
    assert Browser.seen == ["/public"]


def test_the_keys_of_browsers_are_removed() -> None:
    keys = ("playwright", "playwright_page_methods", "_splash_processed", "selenium", "proxy", 1)
    meta: dict[Any, bool] = dict.fromkeys(keys, True)
    remove_browser_meta(meta)
    assert [*meta] == ["proxy", 1]


class Driver:
    """A downloader middleware that returns the page that a browser makes of a robots.txt."""

    def process_request(self, request: Request) -> Response | None:
        if request.url.endswith("/robots.txt"):
            return HtmlResponse(request.url, body=WRAPPED)
        return None


@pytest.mark.rule("Pages of a browser")
async def test_the_page_of_a_browser_is_unwrapped(web: Web, crawl: Crawl) -> None:
    answered, sent = web.site(RULES), web.site(Page(WRAPPED))
    missing = web.site(Page(WRAPPED, 404))
    outcome = await crawl(answered.urls(*PATHS), {"DOWNLOADER_MIDDLEWARES": {Driver: 800}})
    assert (answered.paths, outcome.stats["robotstxt/unwrapped_count"]) == (["/public"], 1)
    bare = web.site(Page(b"<html><head></head><body>%s</body></html>" % RULES))
    outcome = await crawl([url for site in (sent, missing, bare) for url in site.urls(*PATHS)])
    assert (outcome_of(sent), outcome_of(bare)) == (RULES_HOLD, RULES_HOLD)
    assert outcome.stats["robotstxt/unwrapped_count"] == 2
    assert missing.page_paths == ["/private", "/public"]


class Recorder(ScrapysHandler):
    """A download handler that records each request for a robots.txt."""

    async def download_request(self, request: Request) -> Response:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(request)
        return Response(request.url, body=RULES)


async def test_some_meta_keys_of_the_page_are_used(crawl: Crawl) -> None:
    used = {"proxy": "http://127.0.0.1:1", "bindaddress": "127.0.0.1", "download_slot": "a slot"}
    others = {"impersonate": "chrome", "cookiejar": 1, "handle_httpstatus_all": False}
    page = Request("http://a.example/public", meta={**used, **others})
    await crawl([page], {"DOWNLOAD_HANDLERS": {"http": Recorder}})
    (request,) = Recorder.seen
    assert {key for key in page.meta if request.meta.get(key) == page.meta[key]} >= used.keys()
    assert not {key for key in others if request.meta.get(key) == others[key]}
    assert request.meta["dont_obey_robotstxt"] is True


@pytest.mark.parametrize("transparent", [True, False])
async def test_scrapy_zyte_api_gets_no_coding_of_ours(crawl: Crawl, transparent: bool) -> None:
    """It decodes bodies itself, and warns about this header."""
    handled = {"DOWNLOAD_HANDLERS": {"http": Recorder}, "COMPRESSION_ENABLED": False}
    settings = {**handled, "ZYTE_API_TRANSPARENT_MODE": transparent}
    await crawl(["http://a.example/public"], settings)
    (request,) = Recorder.seen
    assert ("Accept-Encoding" in request.headers) is not transparent
