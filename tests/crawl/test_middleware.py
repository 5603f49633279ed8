"""The downloader middleware: requests, origins, verdicts, stats and log messages."""

from __future__ import annotations

import logging
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import Reason, RepRobotParser, RobotsTxtDisallowed
from testing.web import Page, Web, redirect, text

from .conftest import Crawl, Visitor, our_warnings

pytestmark = pytest.mark.each_loop

NOTHING_PRIVATE = "User-agent: *\nDisallow: /private\n"


async def test_a_late_robots_txt_applies_to_all_waiting_requests(web: Web, crawl: Crawl) -> None:
    """Eight disallowed and two allowed pages at once of each of four sites, half a second early."""
    late = Page(NOTHING_PRIVATE, delay=0.5)
    sites = [web.site(late, host=f"127.0.0.{number}") for number in (1, 2, 3, 4)]
    private = [f"/private/{number}" for number in range(8)]
    urls = [url for site in sites for url in site.urls(*private, "/a", "/b")]
    outcome = await crawl(urls, {"CONCURRENT_REQUESTS": 64})
    assert [site.page_paths for site in sites] == [["/a", "/b"]] * 4
    assert [site.robots_fetches for site in sites] == [1] * 4
    assert len(outcome.failures) == 32
    assert all(isinstance(error, RobotsTxtDisallowed) for error in outcome.failures.values())


class Canceller(Visitor):
    """Cancels the first of its downloads while all of them wait for robots.txt."""

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            if request.url.endswith("/first"):
                engine = self.crawler.engine
                assert engine is not None
                download = deferred_from_coro(engine.download_async(request))
                self.cancelled: list[BaseException] = []
                download.addErrback(self._ended)
                self.download = download
            else:
                yield request
        self.crawler.signals.connect(self._cancel, signal=signals.headers_received)

    def _ended(self, failure: Any) -> None:
        self.cancelled.append(failure.value)

    def _cancel(self, request: Request, **_: Any) -> None:
        if request.url.endswith("/robots.txt") and not self.download.called:
            self.download.cancel()


async def test_the_first_waiting_request_may_be_cancelled(web: Web, crawl: Crawl) -> None:
    site = web.site(Page(NOTHING_PRIVATE, delay=0.2))
    outcome = await crawl(site.urls("/first", "/private/1", "/second"), spider=Canceller)
    spider: Canceller = outcome.crawler.spider  # type: ignore[assignment]
    assert len(spider.cancelled) == 1
    assert site.paths == ["/robots.txt", "/second"]
    assert set(outcome.responses) == {site.url("/second")}
    assert isinstance(outcome.failures[site.url("/private/1")], RobotsTxtDisallowed)


async def test_ports_and_addresses_are_origins_of_their_own(web: Web, crawl: Crawl) -> None:
    closed = web.site("User-agent: *\nDisallow: /\n")
    other_port = web.site(NOTHING_PRIVATE)
    other_host = web.site("User-agent: *\nDisallow: /a\n", host="127.0.0.2")
    sites = (closed, other_port, other_host)
    await crawl([url for site in sites for url in site.urls("/a", "/private")])
    assert [site.page_paths for site in sites] == [[], ["/a"], ["/private"]]


async def test_dont_obey_robotstxt_passes_one_request(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: *\nDisallow: /\n")
    exempt = Request(site.url("/exempt"), meta={"dont_obey_robotstxt": True})
    outcome = await crawl([exempt, site.url("/other")])
    assert site.page_paths == ["/exempt"]
    assert set(outcome.failures) == {site.url("/other")}


class Copier(Visitor):
    """Downloads two URLs in its callback, with the meta of its response."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.copies: list[dict[str, Any]] = []

    async def parse(self, response: Any, **_: Any) -> None:
        engine = self.crawler.engine
        assert engine is not None
        for url in ("data:,x", response.urljoin("/other")):
            request = Request(url, meta=dict(response.meta))
            self.copies.append(dict((await engine.download_async(request)).meta))


async def test_a_copied_verdict_is_removed_from_a_request_that_is_not_scheduled(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(NOTHING_PRIVATE)
    outcome = await crawl(site.urls("/public"), spider=Copier)
    data, other = outcome.crawler.spider.copies  # type: ignore[union-attr]
    assert "robotstxt" not in data
    assert other["robotstxt"].rule is None, "it has a verdict of its own"


async def test_schemes_without_robots_txt_pass(crawl: Crawl, tmp_path: Any) -> None:
    (tmp_path / "page.html").write_text("a page")
    urls = ["data:text/plain,hello", f"file://{tmp_path}/page.html"]
    outcome = await crawl(urls)
    assert set(outcome.responses) == set(urls)
    assert "robotstxt/request_count" not in outcome.stats


# User agents

BY_AGENT = """
User-agent: *
Disallow: /
User-agent: alpha
Disallow: /not-for-alpha
User-agent: beta
Disallow: /not-for-beta
"""
PATHS = ("/not-for-alpha", "/not-for-beta")


@pytest.mark.parametrize(
    ("settings", "headers", "fetched"),
    [
        pytest.param({"ROBOTSTXT_USER_AGENT": "Alpha"}, {}, ["/not-for-beta"], id="token"),
        pytest.param({"ROBOTSTXT_USER_AGENT": "gamma"}, {}, [], id="token without a group"),
        pytest.param(
            {"ROBOTSTXT_USER_AGENT": ["gamma", "beta", "alpha"]},
            {},
            ["/not-for-alpha"],
            id="the first of a list that has a group",
        ),
        pytest.param(
            {"ROBOTSTXT_USER_AGENT": "gamma,beta"}, {}, ["/not-for-alpha"], id="a command line's"
        ),
        pytest.param(
            {"ROBOTSTXT_USER_AGENT": "Mozilla/5.0 (compatible; beta/1.0; +https://b.example)"},
            {},
            ["/not-for-alpha"],
            id="header",
        ),
        pytest.param(
            {"ROBOTSTXT_USER_AGENT": "alpha"},
            {"User-Agent": "beta/1"},
            ["/not-for-beta"],
            id="wins",
        ),
        pytest.param({}, {"User-Agent": "beta/1"}, ["/not-for-alpha"], id="the request's own"),
        pytest.param({"USER_AGENT": "alpha/2 (+x)"}, {}, ["/not-for-beta"], id="USER_AGENT"),
        pytest.param(
            {"DEFAULT_REQUEST_HEADERS": {"user-agent": "beta/2"}, "USER_AGENT": "alpha/2"},
            {},
            ["/not-for-alpha"],
            id="DEFAULT_REQUEST_HEADERS is what will be sent",
        ),
    ],
)
async def test_the_user_agent_that_rules_apply_to(
    web: Web,
    crawl: Crawl,
    settings: dict[str, Any],
    headers: dict[str, str],
    fetched: list[str],
) -> None:
    site = web.site(BY_AGENT)
    requests = [Request(site.url(path), headers=headers) for path in PATHS]
    outcome = await crawl(requests, settings)
    assert site.page_paths == fetched
    sent = {received.headers["user-agent"] for received in site.received if fetched}
    assert len(sent) <= 1, "robots.txt is asked for under the name of the page"
    assert len(outcome.responses) == len(fetched)


# Verdicts, stats and log


async def test_the_verdict_is_on_the_request_and_in_the_exception(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: testbot\n\nDisallow: /private*.html$\nAllow: /\n")
    outcome = await crawl(site.urls("/a", "/private/1.html"))
    passed = outcome.responses[site.url("/a")].meta["robotstxt"]
    assert (passed.allowed, passed.reason, passed.agent) == (True, Reason.RULES, "testbot")
    assert passed.rule == (True, "/", 4)
    error = outcome.failures[site.url("/private/1.html")]
    assert isinstance(error, RobotsTxtDisallowed)
    assert error.verdict.rule == (False, "/private*.html$", 3)
    assert error.verdict == outcome.requests[error.url].meta["robotstxt"]
    assert str(error) == ("Forbidden by robots.txt: line 3, Disallow: /private*.html$, for testbot")
    again = pickle.loads(pickle.dumps(error))
    assert (again.url, again.verdict, str(again)) == (error.url, error.verdict, str(error))


async def test_origins_and_their_states_are_public(web: Web, crawl: Crawl) -> None:
    rules = web.site(NOTHING_PRIVATE)
    missing = web.site()
    broken = web.site(Page(status=503), host="127.0.0.3")
    outcome = await crawl([rules.url("/a"), missing.url("/b"), broken.url("/c")])
    origins = outcome.middleware.origins
    assert {key: (str(origin.state), origin.status) for key, origin in origins.items()} == {
        rules.root: ("fresh", 200),
        missing.root: ("unavailable", 404),
        broken.root: ("unreachable", 503),
    }
    assert origins[rules.root].summary() == "rules"
    assert origins[missing.root].summary() == "status 404: no rules"
    assert origins[broken.root].summary() == "unreachable: status 503"
    with pytest.raises(TypeError):
        origins["http://elsewhere.example"] = origins[rules.root]  # type: ignore[index]


async def test_stats_have_the_names_of_scrapy(web: Web, crawl: Crawl) -> None:
    rules = web.site(NOTHING_PRIVATE)
    missing = web.site()
    refused = "http://127.0.0.1:1"
    outcome = await crawl([*rules.urls("/private", "/a"), missing.url("/b"), refused + "/c"])
    stats = {key: value for key, value in outcome.stats.items() if key.startswith("robotstxt/")}
    (exception_count,) = (key for key in stats if key.startswith("robotstxt/exception_count/<cl"))
    assert "Refused" in exception_count
    assert stats.pop(exception_count) == 1
    assert stats.pop("robotstxt/wait_seconds/robots_txt", 1) > 0
    stats.pop("robotstxt/wait_count/robots_txt", None)
    assert stats == {
        "robotstxt/forbidden": 2,
        "robotstxt/forbidden/rules": 1,
        "robotstxt/forbidden/unreachable": 1,
        "robotstxt/request_count": 3,
        "robotstxt/response_count": 2,
        "robotstxt/response_status_count/200": 1,
        "robotstxt/response_status_count/404": 1,
        "robotstxt/unavailable": 1,
        "robotstxt/unreachable": 1,
    }


UNREACHABLE = (
    "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch succeeds, "
    "for 30 days at most (REP_UNREACHABLE_DAYS): then they are allowed. To allow them now, set"
)
ALLOW = "REP_UNREACHABLE = 'allow'"


@pytest.mark.parametrize(
    ("robots", "settings", "report"),
    [
        (
            Page(status=503),
            {},
            f"status 503. {UNREACHABLE} REP_5XX_AS_404 = ['127.0.0.1'] or {ALLOW}",
        ),
        (
            Page(status=429),
            {},
            f"status 429. {UNREACHABLE} {ALLOW}",
        ),
        (
            redirect("/robots.txt"),
            {"REP_TOO_MANY_REDIRECTS": "unreachable"},
            f"too many redirects. {UNREACHABLE} REP_TOO_MANY_REDIRECTS = 'unavailable' or {ALLOW}",
        ),
        (Page(status=206), {}, f"status 206. {UNREACHABLE} {ALLOW}"),
    ],
    ids=["5xx", "429", "redirects", "206"],
)
async def test_an_unreachable_origin_is_reported_once(
    web: Web,
    crawl: Crawl,
    caplog: pytest.LogCaptureFixture,
    robots: Page,
    settings: dict[str, Any],
    report: str,
) -> None:
    site = web.site(robots)
    await crawl(site.urls("/a", "/b", "/c"), settings)
    assert set(site.paths) == {"/robots.txt"}
    assert our_warnings(caplog) == [f"The robots.txt of {site.root} is unreachable: {report}."]


async def test_a_crawl_explains_what_it_dropped(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    closed, private = web.site("User-agent: *\nDisallow: /\n"), web.site(NOTHING_PRIVATE)
    down = web.site(Page(status=503))
    exempt = Request(private.url("/exempt"), meta={"dont_obey_robotstxt": True})
    await crawl([*closed.urls("/a", "/b", "/c"), exempt, *private.urls("/d"), *down.urls("/e")])
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.INFO]
    (line,) = [each for each in lines if each.startswith("Dropped ")]
    assert line == (
        "Dropped 4 of 6 requests, on 2 sites. Most by rules (3), such as on "
        f"{closed.root}: line 2, Disallow: /, for *. Exempt from robots.txt: 1 with "
        "dont_obey_robotstxt, 0 by exceptions in REP_LOCAL_RULES."
    )


class Listener(Visitor):
    """Keeps what robots_parsed brings."""

    async def start(self) -> AsyncIterator[Any]:
        self.heard: list[tuple[Any, Request]] = []
        if hasattr(signals, "robots_parsed"):  # Scrapy 2.18
            self.crawler.signals.connect(self._parsed, signal=signals.robots_parsed)
        async for request in super().start():
            yield request

    def _parsed(self, robotparser: Any, request: Request) -> None:
        self.heard.append((robotparser, request))


async def test_robots_parsed_is_sent_where_scrapy_has_it(web: Web, crawl: Crawl) -> None:
    site = web.site(NOTHING_PRIVATE)
    outcome = await crawl(site.urls("/a", "/b"), spider=Listener)
    heard = outcome.crawler.spider.heard  # type: ignore[union-attr]
    if hasattr(signals, "robots_parsed"):
        ((robotparser, request),) = heard
        assert isinstance(robotparser, RepRobotParser)
        assert not robotparser.allowed(site.url("/private"), b"testbot")
        assert request.url == site.url("/a")
    else:
        assert heard == []


# Known origins and memory


class Sender(Visitor):
    """Runs process_request by hand once its first response is there."""

    def parse(self, response: Any, **_: Any) -> Any:
        super().parse(response)
        middleware = self.outcome.middleware
        self.ended: list[BaseException] = []
        for path in ("/b", "/private"):
            try:
                middleware.process_request(Request(response.urljoin(path))).send(None)
            except (StopIteration, RobotsTxtDisallowed) as ended:
                self.ended.append(ended)


async def test_a_known_origin_awaits_nothing(web: Web, crawl: Crawl) -> None:
    outcome = await crawl(web.site(NOTHING_PRIVATE).urls("/a"), spider=Sender)
    ended = outcome.crawler.spider.ended  # type: ignore[union-attr]
    assert [type(end) for end in ended] == [StopIteration, RobotsTxtDisallowed]
    assert ended[0].value is None


async def test_no_more_origins_are_kept_than_the_setting_says(web: Web, crawl: Crawl) -> None:
    sites = [web.site(NOTHING_PRIVATE) for _ in range(5)]
    outcome = await crawl([site.url("/a") for site in sites], {"REP_CACHE_SIZE": 2})
    outcome.middleware.policies.poll()  # as every half second of the crawl
    assert len(outcome.middleware.origins) == 2
    assert [site.paths for site in sites] == [["/robots.txt", "/a"]] * 5


# Proxies and download slots


async def test_robots_txt_goes_through_the_proxy_of_the_page(web: Web, crawl: Crawl) -> None:
    proxy = web.site(pages={"http://site.example/robots.txt": text(NOTHING_PRIVATE)})
    urls = ("http://site.example/a", "http://site.example/private")
    meta = {"proxy": f"http://user:secret@127.0.0.1:{proxy.port}"}
    outcome = await crawl([Request(url, meta=dict(meta)) for url in urls])
    assert proxy.paths == ["http://site.example/robots.txt", "http://site.example/a"]
    assert {r.headers["proxy-authorization"] for r in proxy.received} == {"Basic dXNlcjpzZWNyZXQ="}
    assert set(outcome.failures) == {urls[1]}


class SlotWatcher(Visitor):
    """Keeps the download slot of everything that reaches the downloader."""

    async def start(self) -> AsyncIterator[Any]:
        self.slots: dict[str, str] = {}
        self.crawler.signals.connect(self._reached, signal=signals.request_reached_downloader)
        async for request in super().start():
            yield request

    def _reached(self, request: Request, **_: Any) -> None:
        self.slots[request.url] = request.meta["download_slot"]


async def test_robots_txt_shares_the_slot_of_the_page_on_its_host(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(NOTHING_PRIVATE, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/robots.txt")))
    page = Request(site.url("/a"), meta={"download_slot": "mine"})
    outcome = await crawl([page], spider=SlotWatcher)
    assert outcome.crawler.spider.slots == {  # type: ignore[union-attr]
        site.url("/robots.txt"): "mine",
        elsewhere.url("/robots.txt"): "127.0.0.2",
        site.url("/a"): "mine",
    }
