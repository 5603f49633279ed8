"""REP_FILTER_LINKS: disallowed requests of a spider that never reach the scheduler."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from scrapy_rep import Reason
from scrapy_rep.reports.reading import read_reports
from testing.web import Page, text

from .conftest import Visitor, make_crawler, our_warnings, run_crawler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from scrapy.http import Response
    from twisted.python.failure import Failure

    from testing.web import Web

    from .conftest import Clock, Crawl, Outcome

PRIVATE = "User-agent: *\nDisallow: /private\n"
FILTER: dict[str, Any] = {"REP_FILTER_LINKS": True}


class Follower(Visitor):
    """Requests ``links`` when it has its first page."""

    def __init__(self, links: Sequence[str | Request], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.links = links
        self.scheduled: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        self.crawler.signals.connect(self._scheduled, signal=signals.request_scheduled)
        async for request in super().start():
            yield request

    def _scheduled(self, request: Request) -> None:
        self.scheduled.append(request.url)

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        links, self.links = self.links, ()
        yield from (each if isinstance(each, Request) else Request(each) for each in links)


class AsyncFollower(Follower):
    """Its callback is an async generator."""

    async def parse(self, response: Response, **_: Any) -> Any:
        for request in super().parse(response):
            yield request


def scheduled(outcome: Outcome) -> list[str]:
    """The links that were scheduled."""
    spider: Any = outcome.crawler.spider
    return sorted(url for url in spider.scheduled if url not in spider.asked)


def filtered(outcome: Outcome) -> int:
    """The number of requests that were dropped before the scheduler."""
    return int(outcome.stats.get("robotstxt/filtered_count", 0))


@pytest.mark.parametrize("spider", [Follower, AsyncFollower])
async def test_a_disallowed_link_of_a_known_origin_is_not_scheduled(
    web: Web,
    crawl: Crawl,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    spider: type[Follower],
) -> None:
    site, unknown = web.site(PRIVATE), web.site(PRIVATE, host="127.0.0.2")
    private = Request(site.url("/private/1"))
    links = [*site.urls("/a", "/private/2"), private, unknown.url("/private/3")]
    settings = {**FILTER, "REP_REPORT": str(tmp_path / "report.json")}
    outcome = await crawl(site.urls("/"), settings, spider=spider, links=links)
    assert scheduled(outcome) == sorted([site.url("/a"), unknown.url("/private/3")])
    assert site.page_paths == ["/", "/a"]
    assert unknown.paths == ["/robots.txt"]
    # The drops before the scheduler and the one after it count as one kind.
    assert outcome.stats["robotstxt/forbidden"] == 3
    assert outcome.stats["robotstxt/forbidden/rules"] == 3
    assert filtered(outcome) == 2
    sentence = "line 2, Disallow: /private, for *"
    for url in links[1:]:
        shown = url.url if isinstance(url, Request) else url
        assert f"Forbidden by robots.txt: <GET {shown}> ({sentence})" in caplog.text
    assert private.meta["robotstxt"].reason is Reason.RULES
    report = read_reports([tmp_path / "report.json"])
    assert report.totals.dropped_for == {"rules": 3}
    (origin,) = (each for each in report.origins if each.origin == site.root)
    rows = [(row.rule.line, row.dropped) for row in origin.deciding if row.rule is not None]
    assert rows == [(2, 2)]


async def test_what_is_checked_is_what_the_downloader_middleware_checks(
    web: Web, crawl: Crawl
) -> None:
    robots = "User-agent: other\nDisallow: /\n\nUser-agent: testbot\nDisallow: /private\n"
    site, splash = web.site(robots), web.site(host="127.0.0.2")
    other = {"User-Agent": "other/1.0"}

    def rendered(path: str) -> Request:
        url = splash.url(f"/render.html?url={site.url(path)}")
        meta = {"_splash_processed": True, "splash": {"args": {"url": site.url(path)}}}
        return Request(url, meta=meta)

    passing = [
        Request(site.url("/private/exempt"), meta={"dont_obey_robotstxt": True}),
        Request(site.url("/private/errback"), errback=lambda _: None),
        Request(site.url("/robots.txt")),
        rendered("/b"),
        Request("data:,"),
    ]
    dropped = [
        Request(site.url("/a"), headers=other),
        Request(site.url("/private"), dont_filter=True),
        rendered("/private"),
    ]
    outcome = await crawl(
        site.urls("/"),
        {**FILTER, "SPLASH_URL": splash.root},
        spider=Follower,
        links=passing + dropped,
    )
    assert scheduled(outcome) == sorted(request.url for request in passing)
    assert filtered(outcome) == 3
    assert sorted(site.paths) == ["/", "/private/exempt", "/robots.txt", "/robots.txt"]
    assert len(splash.received) == 1


@pytest.mark.parametrize(
    "number", [0, None, "x", 9], ids=["rule", "no number", "text", "too large"]
)
async def test_the_errback_of_a_crawl_spider_is_that_of_the_rule(
    web: Web, crawl: Crawl, number: object
) -> None:
    class Ruled(CrawlSpider):
        name = "ruled"
        rules = (
            Rule(LinkExtractor("/private/1"), process_request="changed"),
            Rule(LinkExtractor("/private/2"), errback="failed"),
        )

        async def start(self) -> AsyncIterator[Any]:
            self.failures: list[str] = []
            yield Request(site.url("/"))

        def changed(self, request: Request, _: Response) -> Request:
            request.meta["rule"] = number
            return request

        def failed(self, failure: Failure) -> None:
            self.failures.append(failure.request.url)  # type: ignore[attr-defined]

    page = "".join(f"<a href=/private/{number}>a link</a>" for number in (1, 2))
    site = web.site(PRIVATE, {"/": Page(page)})
    crawler = make_crawler(Ruled, FILTER)
    await run_crawler(crawler)
    assert crawler.stats is not None
    assert site.page_paths == ["/"]
    assert crawler.stats.get_value("robotstxt/filtered_count", 0) == (number == 0)
    assert crawler.stats.get_value("robotstxt/forbidden") == 2
    assert crawler.spider.failures == site.urls("/private/2")  # type: ignore[union-attr]


async def test_a_request_to_an_unreachable_origin_is_scheduled(web: Web, crawl: Crawl) -> None:
    """It waits there for the next attempt, which succeeds."""
    failure = Page(b"", 503, {"Retry-After": "1"})
    site, down = web.site(pages={"/": Page(delay=0.3)}), web.site(failure, host="127.0.0.2")
    links = down.urls("/a", "/private")

    class Mender(Follower):
        def parse(self, response: Response, **kwargs: Any) -> Any:
            down.pages["/robots.txt"] = text(PRIVATE)
            return super().parse(response, **kwargs)

    settings = {**FILTER, "REP_UNREACHABLE": "wait"}
    asked = [site.url("/"), down.url("/first")]
    outcome = await crawl(asked, settings, spider=Mender, links=links)
    assert scheduled(outcome) == links
    assert down.page_paths == ["/a", "/first"]
    assert down.robots_fetches == 2


@pytest.mark.parametrize("ahead", [0.95, 1.5], ids=["due for a refresh", "expired"])
async def test_a_policy_that_is_not_fresh_decides_nothing(
    web: Web, crawl: Crawl, clock: Clock, ahead: float
) -> None:
    site = web.site(text(PRIVATE, Cache_Control="max-age=1000"))

    class Waiter(Follower):
        def parse(self, response: Response, **kwargs: Any) -> Any:
            clock.ahead = ahead * 1000
            return super().parse(response, **kwargs)

    links = site.urls("/private/1")
    outcome = await crawl(site.urls("/"), FILTER, spider=Waiter, links=links)
    assert scheduled(outcome) == links
    assert site.robots_fetches == 2
    assert outcome.stats["robotstxt/forbidden"] == 1


async def test_local_rules_apply(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site, other, closed = web.site(PRIVATE), web.site(host="127.0.0.2"), web.site(host="127.0.0.3")
    until = (datetime.now(timezone.utc) + timedelta(days=1)).date()
    who = 'reason = "as agreed"\ngiven_by = "owner@example.com"\n'
    rules = tmp_path / "rules.toml"
    rules.write_text(
        f'[[exception]]\nsite = "127.0.0.1"\nrules = "Allow: /private/open"\nuntil = {until}\n{who}'
        f'[[disallow]]\nsite = "127.0.0.1"\nrules = "Disallow: /ours"\n{who}'
        f'[[disallow]]\nsite = "127.0.0.3"\nrules = "Disallow: /"\n{who}'
    )
    links = [*site.urls("/private", "/private/open", "/ours"), other.url("/ours"), closed.url("/a")]
    settings = {**FILTER, "REP_LOCAL_RULES": str(rules)}
    outcome = await crawl(site.urls("/"), settings, spider=Follower, links=links)
    assert scheduled(outcome) == sorted([site.url("/private/open"), other.url("/ours")])
    assert site.page_paths == ["/", "/private/open"]
    assert filtered(outcome) == 3
    assert outcome.stats["robotstxt/local/disallowed"] == 2
    assert outcome.stats["robotstxt/local/allowed"] == 1
    assert closed.received == []


async def test_a_page_that_says_nofollow_is_the_reason_of_its_drops(web: Web, crawl: Crawl) -> None:
    site = web.site(PRIVATE, {"/": Page(headers={"X-Robots-Tag": "nofollow"})})
    settings = {**FILTER, "REP_NOFOLLOW": "drop"}
    outcome = await crawl(site.urls("/"), settings, spider=Follower, links=site.urls("/private"))
    assert outcome.stats["robotstxt/nofollow/dropped"] == 1
    assert "robotstxt/forbidden" not in outcome.stats


async def test_without_robotstxt_obey_warnings_name_the_settings_without_effect(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(PRIVATE)
    settings = {**FILTER, "REP_TDMREP": True, "ROBOTSTXT_OBEY": False}
    await crawl(site.urls("/"), settings, spider=Follower, links=site.urls("/private"))
    assert site.paths == ["/", "/private"], "neither robots.txt nor tdmrep.json"
    (about_all, *about_settings) = our_warnings(caplog)
    assert about_all.startswith("ROBOTSTXT_OBEY is off, although scrapy-rep is enabled")
    assert sorted(about_settings) == [
        f"{name} has no effect, because scrapy_rep.RobotsTxtMiddleware is not enabled: "
        "ROBOTSTXT_OBEY is off, or DOWNLOADER_MIDDLEWARES does not have it."
        for name in ("REP_FILTER_LINKS", "REP_TDMREP")
    ]
