"""How one robots.txt is fetched: redirects, statuses, retries, timeout and size.

The tests judge by what the servers received.
"""

from __future__ import annotations

import gc
import gzip
import zlib
from collections import UserDict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydispatch.dispatcher import getAllReceivers, liveReceivers  # type: ignore[import-untyped]
from scrapy import Request, signals
from scrapy.downloadermiddlewares.httpcompression import ACCEPTED_ENCODINGS
from scrapy.exceptions import IgnoreRequest, StopDownload, _InvalidOutput
from scrapy.http import Response

from scrapy_rep import Reason
from scrapy_rep.clock import Clock
from scrapy_rep.protocol.lines import SIZE_LIMIT
from testing import faults
from testing.faults import ALLOWED, DISALLOWED, PATHS, RULES, RULES_HOLD, outcome_of, raw
from testing.measure import forget_peak, peak
from testing.web import Misbehaviour, Page, Received, Site, Web, redirect, text

from .conftest import Crawl, ScrapysHandler, in_turn

# Redirects


async def outcomes(
    crawl: Crawl, sites: dict[Any, Site], settings: dict[str, Any] | None = None
) -> dict[Any, str]:
    """Crawl sites, and tell the outcome of each robots.txt."""
    await crawl([url for site in sites.values() for url in site.urls(*PATHS)], settings)
    return {key: outcome_of(site) for key, site in sites.items()}


@pytest.mark.rule("301, 302, 303, 307, 308")
async def test_rfc_redirects_are_followed(web: Web, crawl: Crawl) -> None:
    pages = {"/r%C3%A9?x=%5B": text(RULES)}
    sites = {
        status: web.site(redirect("r%C3%A9?x=%5B", status), pages)
        for status in (301, 302, 303, 307, 308)
    }
    raw_utf_8 = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /r\xc3\xa9?x=%5B\r\n\r\n"
    sites[0] = web.site(raw(raw_utf_8), pages)
    assert await outcomes(crawl, sites) == dict.fromkeys(sites, RULES_HOLD)
    found = [site.paths for site in sites.values()]
    assert found == [["/robots.txt", "/r%C3%A9?x=%5B", "/public"]] * 6


@pytest.mark.rule("Scheme, host and port", "301, 302, 303, 307, 308")
async def test_rfc_redirects_are_followed_to_other_authorities(web: Web, crawl: Crawl) -> None:
    """RFC 9309 §2.3.1.2: "even across authorities (for example, hosts in the case of HTTP)"."""
    elsewhere = web.site(pages={"/r": text(RULES)}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    outcome = await crawl([*site.urls(*PATHS), elsewhere.url("/private")])
    assert outcome_of(site) == RULES_HOLD
    assert elsewhere.page_paths == ["/private", "/r"], "the rules are of the other origin"
    assert outcome.middleware.origins[site.root].url == elsewhere.url("/r")


@pytest.mark.rule("301, 302, 303, 307, 308", "A sixth redirect, or a loop")
@pytest.mark.parametrize(("name", "more"), [("unavailable", ALLOWED), ("unreachable", DISALLOWED)])
async def test_rfc_five_hops_are_followed(web: Web, crawl: Crawl, name: str, more: str) -> None:
    """The status of the last one counts."""
    sites: dict[Any, Site] = {n: web.site(pages=faults.endless_redirects(n)) for n in (5, 6, 100)}
    last = {200: RULES_HOLD, 404: ALLOWED, 503: DISALLOWED}
    ended = {status: web.site(redirect("r"), {"/r": Page(RULES, status)}) for status in last}
    looping = web.site(redirect("/r"), {"/r": redirect("/robots.txt#again")})
    settings = {"REP_ON_TOO_MANY_REDIRECTS": name}
    found = await outcomes(crawl, {**sites, **ended, 0: looping}, settings)
    assert found == {5: RULES_HOLD, **dict.fromkeys((6, 100, 0), more), **last}
    hops = ["/robots.txt", *(f"/hop/{number}" for number in range(1, 6))]
    for site in sites.values():
        assert [path for path in site.paths if path not in PATHS] == hops
    assert [path for path in looping.paths if path not in PATHS] == ["/robots.txt", "/r"]


@pytest.mark.rule("Credentials and cookies")
async def test_redirects_carry_no_cookies_and_no_credentials(web: Web, crawl: Crawl) -> None:
    """No cookies and no credentials: none of the page, of the spider or of a Location."""
    elsewhere = web.site(pages={"/r": text(RULES)}, host="127.0.0.2")
    location = f"http://user:secret@127.0.0.2:{elsewhere.port}/r"
    site = web.site(moved(location, "a=robots"), {"/first": Page(headers={"Set-Cookie": "a=page"})})
    headers = {"Authorization": "Basic c2VjcmV0", "Cookie": "a=request", "X-Token": "secret"}
    page = Request(site.url("/first"), headers=headers, cookies={"b": "request"})
    outcome = await crawl([page])
    assert site.page_paths == ["/first"]
    assert len(elsewhere.received) == 1
    for received in (site.received[0], elsewhere.received[0]):
        assert {"authorization", "cookie", "x-token", "referer"}.isdisjoint(received.headers)
        assert "secret" not in str(received)
    assert not outcome.failures


def moved(location: str, cookie: str) -> Page:
    """A redirect that sets a cookie."""
    return Page(b"", 307, {"Location": location, "Set-Cookie": cookie})


def wall(*pages: tuple[str, Page]) -> Misbehaviour:
    """Answer with the page of the first cookie that is missing, or with rules if none is."""

    async def answer(received: Received, *connection: Any) -> None:
        sent = received.headers.get("cookie", "").split("; ")
        page = next((page for cookie, page in pages if cookie not in sent), text(RULES))
        await in_turn(page)(received, *connection)

    return answer


def fetches(site: Site) -> list[tuple[str, str | None]]:
    """The requests that a site received for its robots.txt, with their cookies."""
    return [
        (each.path, each.headers.get("cookie")) for each in site.received if each.path not in PATHS
    ]


ATTRIBUTES = "; Path=/x; Domain=127.0.0.2; Max-Age=60; HttpOnly"
ITSELF = moved("/robots.txt", "a=1" + ATTRIBUTES)


@pytest.mark.rule("A redirect that sets a cookie")
@pytest.mark.each_loop
async def test_a_redirect_with_a_cookie_is_no_loop(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    """The cookie is returned in this fetch only, also if Scrapy caches responses."""
    second = moved("/robots.txt", "b=2")
    consent = {"/consent": moved("/robots.txt", "a=1")}
    sites = [
        web.site(wall(("a=1", ITSELF))),
        web.site(wall(("a=1", ITSELF), ("b=2", second))),
        web.site(wall(("a=1", redirect("/consent"))), consent),
    ]
    urls = [url for site in sites for url in site.urls(*PATHS)]
    await crawl(urls)
    assert [fetches(site) for site in sites] == [
        [("/robots.txt", None), ("/robots.txt", "a=1")],
        [("/robots.txt", None), ("/robots.txt", "a=1"), ("/robots.txt", "a=1; b=2")],
        [("/robots.txt", None), ("/consent", None), ("/robots.txt", "a=1")],
    ]
    assert not any("cookie" in each.headers for site in sites for each in site.received[-1:])
    for _ in range(2):
        cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
        outcome = await crawl(urls, cache)
        assert outcome.reasons == {site.url("/private"): Reason.RULES for site in sites}
        assert outcome.warnings == []
        assert fetches(sites[0])[-2:] == [("/robots.txt", None), ("/robots.txt", "a=1")]


@pytest.mark.rule("A redirect that sets a cookie")
async def test_a_cookie_is_returned_to_no_other_origin(web: Web, crawl: Crawl) -> None:
    """Two origins send each other's fetch to and fro, and one sets a cookie for the other host."""
    first, second = web.site(), web.site(host="127.0.0.2")
    there, back = second.url("/there"), first.url("/back")
    first.pages["/robots.txt"] = moved(there, "a=1; Domain=127.0.0.2")
    second.pages["/there"] = moved(back, "b=2; Domain=127.0.0.1")
    first.pages["/back"] = redirect(second.url("/rules"))
    second.pages["/rules"] = text(RULES)
    await crawl(first.urls(*PATHS))
    assert outcome_of(first) == RULES_HOLD
    assert fetches(first) == [("/robots.txt", None), ("/back", "a=1")]
    assert fetches(second) == [("/there", None), ("/rules", "b=2")]


async def endless_cookies(received: Received, *connection: Any) -> None:
    """A robots.txt that answers each request with a new cookie, and a redirect to itself."""
    cookie = "x" + received.headers.get("cookie", "a=")[2:]
    await in_turn(moved("/robots.txt", f"a={cookie}"))(received, *connection)


LONG_COOKIES = (
    b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close\r\nLocation: /robots.txt\r\n"
    b"Set-Cookie: a=%b\r\nSet-Cookie: b=%b\r\n\r\n" % (b"1" * 5000, b"2" * 5000)
)

LOOPS: dict[str, tuple[Page | Misbehaviour, int]] = {
    "without a cookie": (redirect("/robots.txt"), 1),
    "the same cookie": (moved("/robots.txt", "a=1"), 2),
    "cookies that are too long": (raw(LONG_COOKIES), 2),
    "no cookie": (moved("/robots.txt", "a"), 1),
    "an expired cookie": (moved("/robots.txt", "a=1; Max-Age=0"), 1),
    "always a new cookie": (endless_cookies, 6),
}


@pytest.mark.rule("A sixth redirect, or a loop")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("setting", ["unavailable", "unreachable"])
@pytest.mark.no_cover
async def test_rfc_a_loop_is_logged_once(web: Web, crawl: Crawl, loop: str, setting: str) -> None:
    page, requests = LOOPS[loop]
    site = web.site(page)
    outcome = await crawl(site.urls(*PATHS), {"REP_ON_TOO_MANY_REDIRECTS": setting})
    assert outcome_of(site) == (ALLOWED if setting == "unavailable" else DISALLOWED)
    assert site.robots_fetches == requests
    (warning,) = outcome.warnings
    other = {"unavailable": "unreachable", "unreachable": "unavailable"}[setting]
    assert f"set REP_ON_TOO_MANY_REDIRECTS = '{other}'" in warning


# Statuses and content codings, by the settings

BROTLI = bytes.fromhex("0b1080557365722d6167656e743a202a0a446973616c6c6f773a202f707269766174650a03")
READS_BROTLI = RULES_HOLD if b"br" in ACCEPTED_ENCODINGS else DISALLOWED
DEFLATED = zlib.compress(RULES)
PLAIN = {"COMPRESSION_ENABLED": False}


@pytest.mark.rule("4xx, except 407 and 429", "5xx", "5xx for every missing page", "407 and 429")
@pytest.mark.rule("Compression")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, dict.fromkeys((401, 403, 410, 451), ALLOWED) | {203: RULES_HOLD}),
        ({}, dict.fromkeys((407, 429, 500, 599), DISALLOWED)),
        ({"REP_DISALLOW_STATUSES": [401, 403]}, {403: DISALLOWED, 404: ALLOWED}),
        ({"REP_DISALLOW_STATUSES": [429]}, {403: ALLOWED, 429: DISALLOWED}),
        ({"REP_5XX_AS_404_HOSTS": ["127.0.0.1"]}, {503: ALLOWED, 429: DISALLOWED}),
        ({"REP_5XX_AS_404_HOSTS": ["127.0.0.2"]}, {503: DISALLOWED}),
        ({"REP_ON_UNREACHABLE": "allow"}, {200: RULES_HOLD, 503: ALLOWED}),
        ({"REP_UNREACHABLE_DAYS": 0}, {200: RULES_HOLD, 503: ALLOWED}),
        ({}, {("identity", RULES): RULES_HOLD, ("gzip", faults.gzip_bomb(0)): RULES_HOLD}),
        ({}, {("deflate", DEFLATED): RULES_HOLD, ("deflate", b"\xff rubbish"): DISALLOWED}),
        ({}, {("br", BROTLI): READS_BROTLI}),
        (PLAIN, {("identity", RULES): RULES_HOLD, ("gzip", faults.gzip_bomb(0)): RULES_HOLD}),
        (PLAIN, {("deflate", DEFLATED): DISALLOWED}),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_rfc_the_status_and_the_content_coding_decide(
    web: Web, crawl: Crawl, settings: dict[str, Any], expected: dict[Any, str]
) -> None:
    pages = {
        key: Page(RULES, key)
        if isinstance(key, int)
        else Page(key[1], headers={"Content-Encoding": key[0]})
        for key in expected
    }
    sites = {key: web.site(page) for key, page in pages.items()}
    assert await outcomes(crawl, sites, settings) == expected


# Retries


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, in seconds. They take no time here."""
    pauses: list[float] = []
    sleep = Clock.sleep

    async def take_no_time(clock: Clock, seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(clock, 0)

    monkeypatch.setattr(Clock, "sleep", take_no_time)
    return pauses


@pytest.mark.rule("Retries", "Retry-After")
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param([Page(b"", 503)] * 8, [1, 2, 4, 8, 16, 32, 60, 60], id="growing pauses"),
        pytest.param([Page(b"", 503, {"Retry-After": "20"})], [20], id="a short Retry-After"),
    ],
)
async def test_an_unreachable_robots_txt_is_retried(
    web: Web, crawl: Crawl, pauses: list[float], answers: list[Page], expected: list[float]
) -> None:
    site, down = web.site(in_turn(*answers, then=text(RULES))), web.site(Page(status=503))
    outcome = await crawl(site.urls(*PATHS), {"REP_RETRY_TIMES": len(answers)})
    assert (outcome_of(site), pauses) == (RULES_HOLD, expected)
    assert outcome.stats["robotstxt/retry_count"] == len(answers)
    assert not outcome.warnings
    outcome = await crawl(down.urls("/a", "/b"), {"REP_RETRY_TIMES": len(answers)})
    assert down.paths == ["/robots.txt"] * (1 + len(answers))
    assert outcome.stats["robotstxt/unreachable"] == len(outcome.warnings) == 1


@pytest.mark.rule("Retries", "Retry-After")
@pytest.mark.usefixtures("pauses")
async def test_rfc_a_long_retry_after_replaces_the_retries(web: Web, crawl: Crawl) -> None:
    fetches = {
        (503, "30"): 2,  # REP_TIMEOUT
        (503, "31"): 1,
        (503, "120"): 1,
        (500, "Fri, 01 Jan 2100 00:00:00 GMT"): 1,
        (429, "1"): 2,
        (503, "0"): 2,
        (503, "soon"): 2,
        (407, "120"): 2,  # Retry-After has a meaning with 429 and 5xx only
        (404, "0"): 1,  # nothing is retried
    }
    sites = {key: web.site(Page(b"", key[0], {"Retry-After": key[1]})) for key in fetches}
    await crawl([site.url("/a") for site in sites.values()], {"REP_RETRY_TIMES": 1})
    assert {key: site.robots_fetches for key, site in sites.items()} == fetches


# Time


@pytest.mark.rule("Time")
async def test_rep_timeout_is_for_all_hops_together(web: Web, crawl: Crawl) -> None:
    """Each hop takes half of it, so that three hops take more than all of it."""
    slow = Page(b"", 302, {"Location": "/1"}, delay=0.5)
    pages = {"/1": Page(b"", 302, {"Location": "/2"}, delay=0.5), "/2": Page(RULES, delay=0.5)}
    site = web.site(slow, pages)
    outcome = await crawl(site.urls("/a"), {"REP_TIMEOUT": 1})
    assert site.page_paths in ([], ["/1"], ["/1", "/2"]), "only hops were fetched"
    assert "longer than" in outcome.failure_of(site)
    in_time = web.site(slow, pages)
    await crawl(in_time.urls(*PATHS), {"REP_TIMEOUT": 60})
    assert outcome_of(in_time) == RULES_HOLD


@pytest.mark.rule("Time")
async def test_rep_timeout_does_not_include_time_in_the_queue(web: Web, crawl: Crawl) -> None:
    """Requests wait in the queue of their download slot for longer than REP_TIMEOUT.

    Before Scrapy 2.19 only some of them do: the delay is random.
    """
    site = web.site(pages=faults.endless_redirects(2))
    settings = {"DOWNLOAD_DELAY": 2.2, "DOWNLOAD_DELAY_JITTER": 0, "REP_TIMEOUT": 2}
    outcome = await crawl(site.urls("/private"), settings)
    assert site.paths == ["/robots.txt", "/hop/1", "/hop/2"]
    assert [*outcome.reasons.values()] == [Reason.RULES]


class Hanging:
    """A downloader middleware that never returns for a robots.txt."""

    async def process_request(self, request: Request) -> None:
        if request.meta.get("is_robotstxt_request"):
            await Clock().sleep(3600)


@pytest.mark.rule("Time")
async def test_rep_timeout_includes_time_in_downloader_middlewares(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES)
    settings = {"DOWNLOADER_MIDDLEWARES": {Hanging: 950}, "REP_TIMEOUT": 0.3}
    outcome = await crawl(site.urls("/a"), settings)
    assert site.paths == []
    assert outcome.failure_of(site) == "it took longer than REP_TIMEOUT"


# Size


@pytest.mark.rule("500 KiB of a body")
async def test_rfc_the_first_500_kib_are_read(web: Web, crawl: Crawl) -> None:
    """RFC 9309 §2.5: "The parsing limit MUST be at least 500 kibibytes"."""
    filler = b"#" * (SIZE_LIMIT - len(RULES) - 1) + b"\n"
    body = filler + RULES + b"Disallow: /public\n"
    packed = Page(gzip.compress(body, mtime=0), headers={"Content-Encoding": "gzip"})
    sites = {"": web.site(body), "gzip": web.site(packed)}
    assert await outcomes(crawl, sites) == dict.fromkeys(sites, RULES_HOLD)


async def test_the_size_limits_of_scrapy_do_not_apply(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES + b"#" * 2000)
    outcome = await crawl(site.urls(*PATHS), {"DOWNLOAD_MAXSIZE": 1000, "DOWNLOAD_WARNSIZE": 500})
    assert outcome_of(site) == RULES_HOLD
    assert "size" not in outcome.log.text


@pytest.mark.rule("500 KiB of a body", "Compression")
@pytest.mark.no_cover
async def test_too_large_responses_take_little_memory(web: Web, crawl: Crawl) -> None:
    expected = {name: faults.MEANINGS[name] for name in faults.TOO_LARGE}
    sites = {name: web.site(faults.fault(name)) for name in faults.TOO_LARGE}
    sites["deflate"] = web.site(Page(deflate_bomb(), headers={"Content-Encoding": "deflate"}))
    settings = {"CONCURRENT_REQUESTS": 1, "REP_CONCURRENT_ROBOTSTXT_REQUESTS": 1, "REP_TIMEOUT": 5}
    await crawl(web.site(RULES).urls(*PATHS), settings)  # what every crawl needs
    gc.collect()
    forget_peak()
    before = peak()
    assert await outcomes(crawl, sites, settings) == {**expected, "deflate": DISALLOWED}
    assert peak() - before < 20 << 10


class Witness:
    """A downloader middleware that records the response or exception of each robots.txt."""

    seen: list[Response | Exception]

    def __init__(self) -> None:
        type(self).seen = []

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(exception)


class NearWitness(Witness):
    """Next to the downloader, as a cache is."""


class FarWitness(Witness):
    """Next to the engine, after Scrapy's HttpCompressionMiddleware has decoded the response."""


WITNESSES = {"DOWNLOADER_MIDDLEWARES": {NearWitness: 950, FarWitness: 110}}


@cache
def deflate_bomb() -> bytes:
    """Data that inflates to the rules and 60 MiB."""
    return zlib.compress(RULES + bytes(60 << 20), 1)


@pytest.mark.rule("Files over the limit")
@pytest.mark.parametrize("name", ["sends gzip that is none", *faults.TOO_LARGE])
async def test_other_middlewares_receive_one_response(web: Web, crawl: Crawl, name: str) -> None:
    site = web.site(faults.fault(name))
    outcome = await crawl(site.urls(*PATHS), WITNESSES)
    assert outcome_of(site) == faults.MEANINGS[name]
    exceptions = {key.rpartition(".")[2] for key in outcome.stats if "exception_type" in key}
    assert exceptions == {"RobotsTxtDisallowed"}, "those of pages"
    assert not any(key.startswith("robotstxt/exception_count") for key in outcome.stats)
    for witness in (NearWitness, FarWitness):
        (response,) = witness.seen
        assert isinstance(response, Response)
        assert response.status == 200
        assert len(response.body) <= 2 * SIZE_LIMIT


class Silent(ScrapysHandler):
    """A download handler that sends no signals, and leaves the decoding to Scrapy."""

    answers: dict[str, tuple[bytes, str]]

    async def download_request(self, request: Request) -> Response:
        body, coding = self.answers.get(request.url, (b"a page", ""))
        headers = {"Content-Encoding": coding} if coding else {}
        return Response(request.url, headers=headers, body=body)


ANSWERS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "plain": (lambda: RULES, "", RULES_HOLD),
    "gzip": (lambda: gzip.compress(RULES), "gzip", RULES_HOLD),
    "plain, too large": (lambda: RULES + bytes(SIZE_LIMIT), "", RULES_HOLD),
    "gzip bomb": (lambda: faults.gzip_bomb(300), "gzip", RULES_HOLD),
    "gzip bomb, cut off": (lambda: faults.gzip_bomb(300)[:1000], "gzip", RULES_HOLD),
    "gzip, cut off": (lambda: gzip.compress(RULES)[:-9], "gzip", DISALLOWED),
    "deflate": (lambda: DEFLATED, "deflate", RULES_HOLD),
    "deflate bomb": (deflate_bomb, "deflate", DISALLOWED),
    "brotli, too large": (lambda: bytes(2 * SIZE_LIMIT + 1), "br", DISALLOWED),
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_handler_that_sends_no_signals(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = "http://silent.example"
    body, coding, expected = ANSWERS[name]
    monkeypatch.setattr(Silent, "answers", {root + "/robots.txt": (body(), coding)}, raising=False)
    handled: dict[str, Any] = {**WITNESSES, "DOWNLOAD_HANDLERS": {"http": Silent}}
    outcome = await crawl([root + path for path in PATHS], handled)
    fetched = tuple(path for path in PATHS if root + path in outcome.responses)
    assert fetched == {RULES_HOLD: ("/public",), DISALLOWED: ()}[expected]
    (near,) = NearWitness.seen
    assert isinstance(near, Response)
    assert len(near.body) <= 2 * SIZE_LIMIT
    assert all(len(far.body) <= 2 * SIZE_LIMIT for far in FarWitness.seen)  # type: ignore[union-attr]
    assert outcome.errors == []


# Other components that change a download


def stop() -> None:
    """A signal handler of a spider that reads the headers, or the first bytes, of each page."""
    raise StopDownload(fail=False)


def stop_and_fail() -> None:
    raise StopDownload


class Watcher:
    """A signal handler that is no function, and stops nothing."""

    def __call__(self) -> None:
        pass


PACKED = Page(gzip.compress(RULES), headers={"Content-Encoding": "gzip"})
NO_LENGTH = raw(faults.CHUNKED + faults.chunked(RULES))
PART = Page(RULES + bytes(300_000))
NO_GZIP = Page(b"no gzip", headers={"Content-Encoding": "gzip"})


@pytest.mark.rule("A body whose download a signal handler stops")
@pytest.mark.parametrize("stopping", [stop, stop_and_fail])
@pytest.mark.parametrize(
    ("robots", "after_headers", "after_bytes"),
    [
        pytest.param(text(RULES), DISALLOWED, RULES_HOLD, id="whole"),
        pytest.param(PACKED, DISALLOWED, RULES_HOLD, id="gzip"),
        pytest.param(text(b""), ALLOWED, ALLOWED, id="empty"),
        pytest.param(NO_LENGTH, DISALLOWED, DISALLOWED, id="no length"),
        pytest.param(PART, DISALLOWED, DISALLOWED, id="a part"),
        pytest.param(Page(RULES, 404), ALLOWED, ALLOWED, id="404"),
        pytest.param(redirect("/r"), DISALLOWED, RULES_HOLD, id="redirect"),
    ],
)
@pytest.mark.no_cover
async def test_a_spider_stops_each_download(
    web: Web, crawl: Crawl, robots: Any, after_headers: str, after_bytes: str, stopping: Any
) -> None:
    """What has arrived is the file only if that is all of it (Content-Length)."""
    stopped_after = {signals.headers_received: after_headers, signals.bytes_received: after_bytes}
    for signal, expected in stopped_after.items():
        site = web.site(robots, {"/r": text(RULES)})
        watcher = Watcher()
        on = {signals.headers_received: watcher, signals.bytes_received: watcher, signal: stopping}
        outcome = await crawl(site.urls(*PATHS), {"REP_RETRY_TIMES": 2}, on=on)
        assert outcome_of(site) == expected
        assert site.robots_fetches == 1, "the download would be stopped again"
        if expected != DISALLOWED:
            assert not outcome.warnings
            continue
        failure = outcome.failure_of(site)
        assert failure.startswith("a signal handler of this crawl stopped the download (")
        assert f"({__name__}.Watcher, {__name__}.{stopping.__name__})" in failure
        (warning,) = outcome.warnings
        assert f"is unreachable: {failure}. All requests to the site are disallowed" in warning
        outcome.log.clear()


@pytest.mark.rule("A body whose download a signal handler stops")
async def test_what_no_other_component_stopped_is_not_blamed_on_one(web: Web, crawl: Crawl) -> None:
    """The fetch ends this download itself, and a retry may help."""
    site = web.site(NO_GZIP)
    on = {signals.bytes_received: stop}
    outcome = await crawl(site.urls(*PATHS), {"REP_RETRY_TIMES": 1}, on=on)
    assert outcome.failure_of(site) == "a body that is cut off or cannot be decoded"
    assert site.paths == ["/robots.txt"] * 2


class Blocker:
    """A downloader middleware that ignores the requests to one host."""

    def process_request(self, request: Request) -> None:
        if "127.0.0.1" in request.url:
            raise IgnoreRequest("not there")


async def test_a_robots_txt_that_is_ignored_is_unreachable(web: Web, crawl: Crawl) -> None:
    sites = [web.site(RULES), web.site(RULES, host="127.0.0.2")]
    urls = [url for site in sites for url in site.urls(*PATHS)]
    settings = {"DOWNLOADER_MIDDLEWARES": {Blocker: 200}, "REP_RETRY_TIMES": 1}
    outcome = await crawl([*urls, "http://127.0.0.1:1/"], settings)
    assert [outcome_of(site) for site in sites] == [DISALLOWED, RULES_HOLD]
    assert not any(key.startswith("robotstxt/exception_count") for key in outcome.stats)
    assert outcome.stats["robotstxt/ignored_count"] == 4
    (warning,) = [each for each in outcome.warnings if "ignored_count" in each]
    assert warning.startswith(f"{Blocker.__module__}.Blocker raised IgnoreRequest: not there for ")
    assert outcome.failure_of(sites[0]) == "IgnoreRequest: not there"


def plan_of(request: Request) -> None:
    """Fail in a library, as a middleware does that expects each request to have a plan."""
    if request.meta.get("is_robotstxt_request"):
        UserDict[str, str]()["plan"]


def time_out(self: object, request: Request) -> None:
    if request.meta.get("is_robotstxt_request"):
        raise TimeoutError("no browser")


def fail(self: object, request: Request, response: Response | None = None, **_: object) -> Any:
    plan_of(request)
    return response


async def fail_later(self: object, request: Request) -> None:
    await Clock().sleep(0)
    plan_of(request)


def decorated(*_: object, request: Request) -> None:
    """No frame of the traceback has the middleware."""
    plan_of(request)


def return_garbage(self: object, request: Request) -> Any:
    return "garbage" if request.meta.get("is_robotstxt_request") else None


def return_nothing(self: object, request: Request, response: Response) -> Any:
    return None if request.meta.get("is_robotstxt_request") else response


def pass_on(self: object, request: Request, exception: Exception) -> None:
    raise exception


NO_PLAN = (KeyError, "KeyError: 'plan'")
GARBAGE = (_InvalidOutput, "_InvalidOutput: Middleware return_")

FAILING: dict[str, tuple[Any, type[Exception], str]] = {
    "process_request": (fail, *NO_PLAN),
    "process_request later": (fail_later, *NO_PLAN),
    "process_request decorated": (decorated, *NO_PLAN),
    "process_request timing out": (time_out, TimeoutError, "TimeoutError: no browser"),
    "process_request garbage": (return_garbage, *GARBAGE),
    "process_response": (fail, *NO_PLAN),
    "process_response garbage": (return_nothing, *GARBAGE),
    "process_exception": (fail, *NO_PLAN),
}
SILENT = raw(b"")
"""A site that closes each connection, so that there is an exception to process."""


@pytest.mark.rule("Unexpected errors")
@pytest.mark.parametrize("name", FAILING)
async def test_a_middleware_that_fails_is_named_with_one_traceback(
    web: Web, crawl: Crawl, name: str
) -> None:
    robots = SILENT if name == "process_exception" else text(RULES)
    sites = [web.site(robots), web.site(robots, host="127.0.0.2")]
    method, error, words = FAILING[name]
    planner = type("Planner", (), {name.partition(" ")[0]: method})
    settings = {"DOWNLOADER_MIDDLEWARES": {planner: 600}, "REP_RETRY_TIMES": 1}
    outcome = await crawl([url for site in sites for url in site.urls(*PATHS)], settings)
    assert [outcome_of(site) for site in sites] == [DISALLOWED] * 2
    (record,) = [each for each in outcome.log.records if "Planner raised" in each.getMessage()]
    message = record.getMessage()
    assert message.startswith(f"{__name__}.Planner raised {words}")
    assert f"The stat robotstxt/exception_count/{error} counts such requests." in message
    assert outcome.stats[f"robotstxt/exception_count/{error}"] == 4
    assert record.exc_info
    assert record.exc_info[0] is error
    assert all(outcome.failure_of(site).startswith(words) for site in sites)
    assert len(outcome.warnings) == 3, "one for each site"
    assert outcome.errors == []


class Lost(ScrapysHandler):
    """A download handler with a fault of its own."""

    async def download_request(self, request: Request) -> Response:
        plan_of(request)
        return await super().download_request(request)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="network"),
        pytest.param({"DOWNLOAD_HANDLERS": {"http": Lost}}, id="download handler"),
        pytest.param({"DOWNLOAD_HANDLERS": {"http": None}}, id="no download handler"),
        pytest.param({"REP_TIMEOUT": 0.3}, id="time-out"),
    ],
)
@pytest.mark.parametrize("passing", [pass_on, lambda self, request, exception: None])
async def test_no_middleware_is_blamed_for_a_failure_of_the_download(
    web: Web, crawl: Crawl, settings: dict[str, Any], passing: Any
) -> None:
    """Not even one that sees the exception, and raises it again."""
    site = web.site(faults.stall() if "REP_TIMEOUT" in settings else SILENT)
    witness = type("Witness", (), {"process_exception": passing})
    outcome = await crawl(site.urls("/a"), {"DOWNLOADER_MIDDLEWARES": {witness: 600}, **settings})
    (warning,) = outcome.warnings
    assert f"The robots.txt of {site.root} is unreachable: " in warning
    assert not any(record.exc_info for record in outcome.log.records)


# The proxy of the page


@pytest.mark.parametrize(
    ("headers", "user"),
    [({"Proxy-Authorization": "Basic bWU6c2VjcmV0"}, ""), ({}, "me:secret@")],
    ids=["of a header", "of the URL"],
)
async def test_the_proxy_of_the_page_is_used_with_its_credentials(
    web: Web, crawl: Crawl, headers: dict[str, str], user: str
) -> None:
    proxy = web.site(pages={"http://name.example/robots.txt": text(RULES)})
    meta = {"proxy": f"http://{user}127.0.0.1:{proxy.port}"}
    urls = [f"http://name.example{path}" for path in PATHS]
    outcome = await crawl([Request(url, headers=headers, meta=dict(meta)) for url in urls])
    assert proxy.paths == ["http://name.example/robots.txt", urls[1]]
    sent = {received.headers.get("proxy-authorization") for received in proxy.received}
    assert sent == {"Basic bWU6c2VjcmV0"}
    assert outcome.reasons == {urls[0]: Reason.RULES}


# Connections


async def test_the_page_uses_the_connection_of_the_robots_txt(web: Web, crawl: Crawl) -> None:
    for robots in (text(RULES), PACKED, text(b""), Page(RULES, 404), redirect("/other.txt")):
        site = web.site(robots, {"/other.txt": text(RULES)})
        await crawl(site.urls("/public"))
        assert site.page_paths[-1] == "/public"
        assert site.connections == 1


async def test_the_pages_after_a_fetch_have_no_signal_handlers(web: Web, crawl: Crawl) -> None:
    site = web.site(RULES, {"/": Page(delay=1)})
    outcome = await crawl(site.urls("/"))
    assert site.paths == ["/robots.txt", "/"]
    for signal in (signals.headers_received, signals.bytes_received):
        receivers = getAllReceivers(outcome.crawler.signals.sender, signal)
        modules = [receiver.__module__ for receiver in liveReceivers(receivers)]
        assert not [module for module in modules if module.startswith("scrapy_rep")]
