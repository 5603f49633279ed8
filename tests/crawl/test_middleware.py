"""The downloader middleware: requests, origins, verdicts, stats and log messages."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import Reason, RepRobotParser, RobotsTxtDisallowed, RobotsTxtMiddleware, Verdict
from testing.counters import left_over
from testing.web import Page, Web, redirect

from .conftest import EXEMPT, PRIVATE, Crawl, Visitor, travel, until

pytestmark = pytest.mark.each_loop


@pytest.mark.rule("Expired files")
async def test_a_late_robots_txt_applies_to_all_waiting_requests(web: Web, crawl: Crawl) -> None:
    """Eight disallowed and two allowed pages at once of each of four sites, half a second early."""
    late = Page(PRIVATE, delay=0.5)
    sites = [web.site(late, host=f"127.0.0.{number}") for number in (1, 2, 3, 4)]
    private = [f"/private/{number}" for number in range(8)]
    urls = [url for site in sites for url in site.urls(*private, "/a", "/b")]
    outcome = await crawl(urls, {"CONCURRENT_REQUESTS": 64})
    assert [site.page_paths for site in sites] == [["/a", "/b"]] * 4
    assert [site.robots_fetches for site in sites] == [1] * 4
    assert len(outcome.reasons) == 32


async def test_the_first_waiting_request_may_be_cancelled(web: Web) -> None:
    """The others wait for the robots.txt meanwhile."""
    site = web.site(Page(PRIVATE, delay=0.2))
    cancelled: list[Any] = []

    def cancel(request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            first.addErrback(cancelled.append)
            first.cancel()

    async with travel(on={signals.headers_received: cancel}) as spider:
        first = deferred_from_coro(spider.fetches(site.url("/first")))
        urls = site.urls("/private/1", "/second")
        for url in urls:
            request = Request(url, callback=spider.parse, errback=spider.failed)
            spider.engine.crawl(request)
        await until(lambda: spider.outcome.responses and spider.outcome.failures)
    assert len(cancelled) == 1
    assert left_over(spider.crawler) == []
    assert site.paths == ["/robots.txt", "/second"]
    assert spider.outcome.reasons == {urls[0]: Reason.RULES}


async def test_a_copied_verdict_is_removed_from_a_download(web: Web) -> None:
    site = web.site(PRIVATE)
    copies = []
    async with travel() as spider:
        page = await spider.engine.download_async(Request(site.url("/public")))
        for url in ("data:,x", site.url("/other")):
            copy = Request(url, meta=dict(page.meta))
            copies.append((await spider.engine.download_async(copy)).meta)
    data, other = copies
    assert "robotstxt" not in data
    assert other["robotstxt"].rule is None, "it has a verdict of its own"


@pytest.mark.rule("Other schemes")
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


FOR_ALPHA, FOR_BETA = ["/not-for-beta"], ["/not-for-alpha"]
HEADER = "Mozilla/5.0 (compatible; beta/1.0; +https://b.example)"
IN_PLATFORM = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; beta/1.0) AppleWebKit/537.36 Safari/537.36"
BY_DEFAULT = {"DEFAULT_REQUEST_HEADERS": {"user-agent": "beta/2"}, "USER_AGENT": "alpha/2"}


@pytest.mark.parametrize(
    ("settings", "sent", "fetched"),
    [
        pytest.param({"ROBOTSTXT_USER_AGENT": "Alpha"}, None, FOR_ALPHA, id="token"),
        pytest.param({"ROBOTSTXT_USER_AGENT": "gamma"}, None, [], id="token without a group"),
        pytest.param({"ROBOTSTXT_USER_AGENT": ["g", "beta", "alpha"]}, None, FOR_BETA, id="list"),
        pytest.param({"ROBOTSTXT_USER_AGENT": "gamma,beta"}, None, FOR_BETA, id="a command line's"),
        pytest.param({"ROBOTSTXT_USER_AGENT": HEADER}, None, FOR_BETA, id="header"),
        pytest.param({"USER_AGENT": IN_PLATFORM}, None, FOR_BETA, id="comment on the platform"),
        pytest.param({"ROBOTSTXT_USER_AGENT": "alpha"}, "beta/1", FOR_ALPHA, id="wins"),
        pytest.param({}, "beta/1", FOR_BETA, id="the request's own"),
        pytest.param({"USER_AGENT": "alpha/2 (+x)"}, None, FOR_ALPHA, id="USER_AGENT"),
        pytest.param(BY_DEFAULT, None, FOR_BETA, id="DEFAULT_REQUEST_HEADERS will be sent"),
    ],
)
async def test_the_user_agent_that_rules_apply_to(
    web: Web, crawl: Crawl, settings: dict[str, Any], sent: str | None, fetched: list[str]
) -> None:
    site = web.site(BY_AGENT)
    headers = {"User-Agent": sent} if sent else {}
    requests = [Request(site.url(path), headers=headers) for path in PATHS]
    outcome = await crawl(requests, settings)
    assert site.page_paths == fetched
    names = {received.headers["user-agent"] for received in site.received if fetched}
    assert len(names) <= 1, "robots.txt is asked for under the name of the page"
    assert len(outcome.responses) == len(fetched)


# Verdicts, stats and log


async def test_the_verdict_is_on_the_request_and_in_the_exception(web: Web, crawl: Crawl) -> None:
    site = web.site("User-agent: testbot\n\nDisallow: /private*.html$\nAllow: /\n")
    outcome = await crawl(site.urls("/a", "/private/1.html"))
    passed = outcome.responses[site.url("/a")].meta["robotstxt"]
    assert (passed.allowed, passed.reason, passed.agent) == (True, Reason.RULES, "testbot")
    assert passed.rule == (True, "/", 4)
    error: Any = outcome.failures[site.url("/private/1.html")]
    assert error.verdict.rule == (False, "/private*.html$", 3)
    assert error.verdict == outcome.requests[error.url].meta["robotstxt"]
    assert str(error) == ("Forbidden by robots.txt: line 3, Disallow: /private*.html$, for testbot")
    again = pickle.loads(pickle.dumps(error))
    assert (again.url, again.verdict, str(again)) == (error.url, error.verdict, str(error))


async def test_origins_and_their_states_are_public(web: Web, crawl: Crawl) -> None:
    rules = web.site(PRIVATE)
    missing = web.site()
    broken = web.site(Page(status=503), host="127.0.0.3")
    outcome = await crawl([rules.url("/a"), missing.url("/b"), broken.url("/c")])
    origins = outcome.middleware.origins
    assert {
        key: (str(origin.state), origin.status, str(origin.result), origin.failure)
        for key, origin in origins.items()
    } == {
        rules.root: ("fresh", 200, "rules", None),
        missing.root: ("unavailable", 404, "unavailable", None),
        broken.root: ("unreachable", 503, "unreachable", "status 503"),
    }
    with pytest.raises(TypeError):
        origins["http://elsewhere.example"] = origins[rules.root]  # type: ignore[index]


async def test_stats_have_the_names_of_scrapy(web: Web, crawl: Crawl) -> None:
    rules = web.site(PRIVATE)
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
REDIRECTS = "REP_ON_TOO_MANY_REDIRECTS"


@pytest.mark.parametrize(
    ("robots", "settings", "cause", "remedy"),
    [
        (Page(status=503), {}, "status 503", "REP_5XX_AS_404_HOSTS = ['127.0.0.1'] or "),
        (Page(status=429), {}, "status 429", ""),
        (
            redirect("/robots.txt"),
            {REDIRECTS: "unreachable"},
            "too many redirects",
            f"{REDIRECTS} = 'unavailable' or ",
        ),
        (Page(status=206), {}, "status 206", ""),
    ],
)
async def test_an_unreachable_origin_is_reported_once(
    web: Web, crawl: Crawl, robots: Page, settings: dict[str, Any], cause: str, remedy: str
) -> None:
    site = web.site(robots)
    outcome = await crawl(site.urls("/a", "/b", "/c"), settings)
    assert set(site.paths) == {"/robots.txt"}
    report = f"{cause}. {UNREACHABLE} {remedy}REP_ON_UNREACHABLE = 'allow'."
    assert outcome.warnings == [f"The robots.txt of {site.root} is unreachable: {report}"]


async def test_a_crawl_explains_what_it_dropped(web: Web, crawl: Crawl) -> None:
    closed, private = web.site("User-agent: *\nDisallow: /\n"), web.site(PRIVATE)
    down = web.site(Page(status=503))
    exempt = Request(closed.url("/exempt"), meta=dict(EXEMPT))
    urls = [*closed.urls("/a", "/b", "/c"), exempt, *private.urls("/d"), *down.urls("/e")]
    outcome = await crawl(urls)
    assert (closed.page_paths, private.page_paths, down.page_paths) == (["/exempt"], ["/d"], [])
    records = [each for each in outcome.log.records if each.getMessage().startswith("Dropped ")]
    ((level, line),) = [(each.levelname, each.getMessage()) for each in records]
    assert level == "INFO"
    assert line.startswith(
        f"Dropped 4 of 6 requests (rules: 3, unreachable: 1). Such as {closed.root}/"
    )
    assert line.endswith(
        f" (line 2, Disallow: /, for *); {down.url('/e')} (unreachable: status 503). "
        "LOG_LEVEL = 'DEBUG' logs each of them, and scrapy-rep check URL explains one."
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
    site = web.site(PRIVATE)
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


async def test_a_known_origin_awaits_nothing(web: Web) -> None:
    site = web.site(PRIVATE)
    async with travel() as spider:
        await spider.fetches(site.url("/a"))
        for path, ended in (("/b", StopIteration), ("/private", RobotsTxtDisallowed)):
            with pytest.raises(ended):
                spider.outcome.middleware.process_request(Request(site.url(path))).send(None)


async def test_no_more_origins_are_kept_than_the_setting_says(web: Web, crawl: Crawl) -> None:
    sites = [web.site(PRIVATE) for _ in range(5)]
    outcome = await crawl([site.url("/a") for site in sites], {"REP_CACHE_SIZE": 2})
    outcome.middleware.crawl.poll()  # as every half second of the crawl
    assert len(outcome.middleware.origins) == 2
    assert [site.paths for site in sites] == [["/robots.txt", "/a"]] * 5


# Download slots


async def test_robots_txt_shares_the_slot_of_the_page_on_its_host(web: Web, crawl: Crawl) -> None:
    elsewhere = web.site(PRIVATE, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/robots.txt")))
    page = Request(site.url("/a"), meta={"download_slot": "mine"})
    slots: dict[str, str] = {}

    def note(request: Request) -> None:
        slots[request.url] = request.meta["download_slot"]

    await crawl([page], on={signals.request_reached_downloader: note})
    assert slots == {
        site.url("/robots.txt"): "mine",
        elsewhere.url("/robots.txt"): "127.0.0.2",
        site.url("/a"): "mine",
    }


class Deciding(RobotsTxtMiddleware):
    """Allows what robots.txt disallows below /ours, and disallows /other."""

    def decide(self, request: Request, verdict: Verdict) -> Verdict:
        if "/ours" in request.url:
            return verdict._replace(allowed=True)
        return verdict._replace(allowed=verdict.allowed and "/other" not in request.url)


async def test_a_subclass_may_decide(web: Web, crawl: Crawl) -> None:
    closed = "User-agent: *\nDisallow: /\nAllow: /page\nAllow: /other\n"
    sites = [web.site(closed), web.site(Page(status=503), host="127.0.0.2")]
    paths = ["/ours", "/other", "/page", "/private"]
    urls = [url for site in sites for url in site.urls(*paths)]
    middlewares = {RobotsTxtMiddleware: None, Deciding: 100}
    outcome = await crawl(urls, {"DOWNLOADER_MIDDLEWARES": middlewares})
    assert [site.page_paths for site in sites] == [["/ours", "/page"], ["/ours"]]
    assert len(outcome.reasons) == 5
    assert all(response.meta["robotstxt"] for response in outcome.responses.values())
    assert outcome.stats["robotstxt/forbidden"] == 5
