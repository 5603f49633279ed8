"""The lifetime of policies, as the servers see it. The tests move the clock."""

from __future__ import annotations

from threading import Event
from typing import Any
from uuid import uuid4

import pytest
from scrapy import Request
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep import Reason
from scrapy_rep.clock import Clock
from testing.clock import FakeClock
from testing.counters import left_over
from testing.faults import RULES, answer_when
from testing.web import Misbehaviour, Page, Site, Web, redirect, text

from .conftest import (
    EXEMPT,
    FIFO,
    PRIVATE,
    Crawl,
    Disturber,
    Traveller,
    Visitor,
    in_turn,
    make_crawler,
    numbers,
    run_crawler,
    together,
    travel,
    until,
)

HOUR = 3600
DAY = 24 * HOUR
OTHER_RULES = "User-agent: *\nDisallow: /public\n"


async def fetches_late(
    spider: Traveller, site: Site, clock: FakeClock, page: Page | Misbehaviour
) -> bool:
    """Whether a page is let late in a robots.txt's life, with ``page`` in its place."""
    assert await spider.fetches(site.url("/public"))
    site.pages["/robots.txt"] = page
    clock.now += 0.95 * DAY
    return await spider.fetches(site.url("/public"))


@pytest.mark.rule("Freshness lifetime", "Minimum and maximum", "Headers after redirects and 304")
@pytest.mark.rule("Lifetime of errors")
@pytest.mark.parametrize(
    ("answer", "settings", "seconds"),
    [
        (text(RULES), {}, DAY),
        (text(RULES, Cache_Control="max-age=7200", Age="3600"), {}, HOUR),
        (text(RULES, Cache_Control="no-store"), {}, 300),
        (text(RULES, Cache_Control="max-age=7200"), {"REP_TTL_RANGE": [300, 600]}, 600),
        (text(RULES, Cache_Control="max-age=60"), {"REP_TTL_RANGE": [30, DAY]}, 60),
        (Page(status=404), {}, DAY),
        (Page(status=404, headers={"Cache-Control": "max-age=600"}), {}, 600),
        (Page(status=403), {}, HOUR),
        (redirect("/robots.txt"), {}, HOUR),
        # of two hops, the headers of the last one count
        (Page(b"", 302, {"Location": "/r", "Cache-Control": "max-age=600"}), {}, 2 * HOUR),
    ],
    ids=lambda value: "" if not isinstance(value, Page) else f"{value.status} {value.headers}",
)
async def test_rfc_the_headers_decide_how_long_it_is_fresh(
    web: Web, clock: FakeClock, answer: Page, settings: dict[str, Any], seconds: float
) -> None:
    site = web.site(answer, {"/r": text(RULES, Cache_Control="max-age=7200")})
    async with travel(settings) as spider:
        await spider.fetches(site.url("/a"))
        clock.now += 0.88 * seconds
        await spider.fetches(site.url("/a"))
        assert site.robots_fetches == 1
        clock.now += 0.13 * seconds
        await spider.fetches(site.url("/a"))
        assert site.robots_fetches == 2


# Conditional requests

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.rule("Conditional requests")
@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        pytest.param({"ETag": '"1"'}, {"if-none-match": '"1"'}, id="ETag"),
        pytest.param({"ETag": 'W/"1"'}, {"if-none-match": 'W/"1"'}, id="weak"),
        pytest.param({"Last-Modified": DATE}, {"if-modified-since": DATE}, id="Last-Modified"),
        pytest.param(
            {"ETag": '"1"', "Last-Modified": DATE},
            {"if-none-match": '"1"', "if-modified-since": DATE},
            id="both",
        ),
        pytest.param({"ETag": f'"{"1" * 300}"'}, {}, id="too long"),
        pytest.param({"ETag": '"\x01"', "Last-Modified": "\x7f"}, {}, id="controls"),
        pytest.param({}, {}, id="neither"),
    ],
)
async def test_rfc_validators_are_returned(
    web: Web, clock: FakeClock, headers: Any, sent: Any
) -> None:
    site = web.site(Page(RULES, headers=headers))
    async with travel() as spider:
        assert not await spider.fetches(site.url("/private"))
        if sent:
            site.pages["/robots.txt"] = Page(b"", 304)
        clock.now += DAY
        assert not await spider.fetches(site.url("/private"))
        assert await spider.fetches(site.url("/public"))
    first, second, *_ = site.received
    conditions = ("if-none-match", "if-modified-since")
    assert not {*conditions} & {*first.headers}
    assert {name: second.headers[name] for name in conditions if name in second.headers} == sent
    assert spider.outcome.middleware.origins[site.root].status == (304 if sent else 200)


@pytest.mark.rule("Conditional requests")
async def test_validators_go_only_to_where_they_are_from(web: Web, clock: FakeClock) -> None:
    tagged = Page(RULES, headers={"ETag": '"1"'})
    elsewhere = web.site(pages={"/r": tagged, "/s": tagged}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    async with travel() as spider:
        await spider.fetches(site.url("/public"))
        elsewhere.pages["/r"] = Page(b"", 304)
        clock.now += DAY
        assert not await spider.fetches(site.url("/private"))
        site.pages["/robots.txt"] = redirect(elsewhere.url("/s"))
        clock.now += DAY
        assert not await spider.fetches(site.url("/private"))
    tags = [received.headers.get("if-none-match") for received in elsewhere.received]
    assert elsewhere.paths == ["/r", "/r", "/s"]
    assert tags == [None, '"1"', None]
    assert not any("if-none-match" in received.headers for received in site.received)


@pytest.mark.rule("304 to a conditional request", "Headers after redirects and 304")
@pytest.mark.parametrize(
    ("not_modified", "seconds"),
    [({}, HOUR), ({"Cache-Control": "max-age=7200"}, 2 * HOUR)],
    ids=["silent", "with its own"],
)
async def test_rfc_a_304_makes_it_fresh_again(
    web: Web, clock: FakeClock, not_modified: dict[str, str], seconds: float
) -> None:
    """RFC 9111 §3.2: stored headers that a 304 does not repeat still apply."""
    site = web.site(Page(RULES, headers={"ETag": '"1"', "Cache-Control": f"max-age={HOUR}"}))
    async with travel() as spider:
        await spider.fetches(site.url("/public"))
        site.pages["/robots.txt"] = Page(b"", 304, not_modified)
        clock.now += HOUR
        await spider.fetches(site.url("/public"))
        assert site.robots_fetches == 2
        clock.now += 0.88 * seconds
        await spider.fetches(site.url("/public"))
        assert site.robots_fetches == 2
        clock.now += 0.13 * seconds
        assert not await spider.fetches(site.url("/private"))
        assert site.robots_fetches == 3


@pytest.mark.rule("Expired files")
async def test_all_requests_that_find_it_expired_share_one_fetch(
    web: Web, clock: FakeClock
) -> None:
    site = web.site(RULES)
    async with travel() as spider:
        assert await spider.fetches(site.url("/public"))
        site.pages["/robots.txt"] = Page(OTHER_RULES, delay=0.2)
        clock.now += DAY
        asked = [
            deferred_from_coro(spider.fetches(site.url(path)))
            for path in ("/public", "/private") * 5
        ]
        assert [await maybe_deferred_to_future(each) for each in asked] == [False, True] * 5
    assert site.robots_fetches == 2


# Refresh ahead


@pytest.mark.rule("Refresh in the background")
async def test_in_the_last_tenth_it_is_refreshed_and_nothing_waits(
    web: Web, clock: FakeClock
) -> None:
    site, released = web.site(RULES), Event()
    async with travel() as spider:
        answer = answer_when(released.is_set, Page(OTHER_RULES))
        assert await fetches_late(spider, site, clock, answer)
        origin = spider.outcome.middleware.origins[site.root]
        assert origin.in_flight, "the page came first"
        assert not await spider.fetches(site.url("/private")), "what holds, holds"
        released.set()
        await until(lambda: not origin.in_flight)
        assert site.robots_fetches == 2
        assert not await spider.fetches(site.url("/public"))
        clock.now += 0.85 * DAY
        assert await spider.fetches(site.url("/private"))
        assert site.robots_fetches == 2


async def test_all_but_one_that_wait_for_a_delay_obey_the_new_file(
    web: Web, clock: FakeClock
) -> None:
    site = web.site(RULES)
    settings = {"DOWNLOAD_DELAY": 0.3, "DOWNLOAD_DELAY_JITTER": 0}
    async with travel(settings) as spider:
        # The loops differ in which of the two comes first: this page or the new robots.txt.
        is_first = await fetches_late(spider, site, clock, text(OTHER_RULES))
        asked = [deferred_from_coro(spider.fetches(site.url("/public"))) for _ in range(4)]
        late = sum([await maybe_deferred_to_future(each) for each in asked])
        assert await spider.fetches(site.url("/private"))
    # One may have waited for DOWNLOAD_DELAY, after its robots.txt was looked at.
    assert late <= 1
    assert site.page_paths == ["/private", "/public", *["/public"] * (is_first + late)]


async def test_a_refresh_does_not_hold_a_crawl_open(web: Web, clock: FakeClock) -> None:
    site = web.site(RULES)
    async with travel({"REP_TIMEOUT": 10}) as spider:
        assert await fetches_late(spider, site, clock, Page(RULES, delay=60))
    assert site.robots_fetches == 2
    origin = spider.outcome.middleware.origins[site.root]
    assert (str(origin.state), origin.in_flight) == ("fresh", False)
    assert origin.failures == 0, "it was given up, before the time-out"
    assert spider.outcome.stats["finish_reason"] == "finished"


# Changes of the system clock. The next request comes before the crawl checks the clock.


@pytest.mark.parametrize("steps", [(40 * DAY, 0), (-40 * DAY, 40 * DAY)])
async def test_a_change_of_the_clock_does_not_change_a_lifetime(
    web: Web, clock: FakeClock, steps: tuple[float, float]
) -> None:
    site, other = web.site(RULES), web.site(RULES)
    async with travel() as spider:
        assert await spider.fetches(site.url("/public"))
        clock.set_forward = steps[0]
        assert await spider.fetches(other.url("/public"))
        assert await spider.fetches(site.url("/public"))
        clock.set_forward = steps[1]
        assert await spider.fetches(other.url("/public"))
        assert await spider.fetches(site.url("/public"))
        await Clock().sleep(0.6)  # within a day the crawl looks at the clock
        clock.now += 1.01 * DAY
        assert await spider.fetches(site.url("/public"))
        assert await spider.fetches(other.url("/public"))
    for each in (site, other):
        assert each.robots_fetches == 2


# While a robots.txt is unreachable


WAIT: dict[str, Any] = {"REP_ON_UNREACHABLE": "wait"}


def failing(times: int, retry_after: str = "1", page: Misbehaviour | None = None) -> Misbehaviour:
    """A robots.txt that answers 503 so many times, and then as ``page``, or with rules."""
    failure = Page(b"", 503, {"Retry-After": retry_after})
    return in_turn(*[failure] * times, then=page or text(PRIVATE))


async def test_waiting_requests_get_the_verdict_in_their_order(web: Web, crawl: Crawl) -> None:
    site = web.site(failing(1))
    urls = site.urls("/private/a", *numbers(20), "/private/b")
    settings = {**WAIT, **FIFO, "CONCURRENT_REQUESTS": 1}
    outcome = await crawl(urls, settings)
    assert site.paths == ["/robots.txt"] * 2 + numbers(20)
    assert outcome.reasons == dict.fromkeys(site.urls("/private/a", "/private/b"), Reason.RULES)
    assert outcome.stats["robotstxt/unreachable"] == 1
    assert "robotstxt/forbidden/unreachable" not in outcome.stats
    (warning,) = outcome.warnings
    assert "status 503. Requests to the site wait up to 300 s (REP_MAX_WAIT), " in warning
    assert warning.endswith("The next attempt is in 1 s.")
    assert left_over(outcome.crawler) == []


async def test_overdue_requests_do_not_fetch_with_a_full_cache(web: Web) -> None:
    """The policy of an origin stays in the cache until its requests are dropped."""
    down = web.site(failing(1000, "250"))
    settings = {**WAIT, "REP_CACHE_SIZE": 1, "REP_MAX_WAIT": 20, "REP_TIMEOUT": 10}
    crawler = make_crawler(Visitor, settings)

    def are_dropped() -> bool:
        return len(crawler.spider.outcome.failures) == 3  # type: ignore[union-attr]

    late = web.site(answer_when(are_dropped, text(PRIVATE)), host="127.0.0.2")
    await run_crawler(crawler, requests=[*late.urls("/a"), *down.urls(*numbers(3))])
    assert down.paths == ["/robots.txt"]
    assert late.paths == ["/robots.txt", "/a"]


async def test_rfc_robots_txt_itself_is_never_dropped(web: Web, crawl: Crawl) -> None:
    site = web.site(failing(10))
    settings = {**WAIT, "REP_MAX_WAIT": 0.5}
    outcome = await crawl(site.urls("/robots.txt", "/a"), settings)
    assert site.paths == ["/robots.txt"]
    assert outcome.stats["robotstxt/forbidden"] == 1


async def test_the_result_of_another_crawler_ends_the_wait(web: Web) -> None:
    """Two crawlers that share a store ask once for each attempt."""
    site = web.site(failing(1, "2"))
    settings = {**WAIT, "REP_STORE": f"memory://{uuid4()}"}
    crawlers = [make_crawler(Visitor, settings) for _ in range(2)]
    await together(*crawlers, requests=[site.urls("/a"), site.urls("/b")])
    assert site.robots_fetches == 2
    assert site.page_paths == ["/a", "/b"]


# What is sent in an outage


@pytest.mark.rule("5xx for every missing page")
@pytest.mark.each_loop
@pytest.mark.parametrize(
    ("robots", "next_paths", "received", "reason"),
    [
        (PRIVATE, ["/1", "/private"], ["/robots.txt", "/1", "/robots.txt"], Reason.RULES),
        (Page(status=503), ["/1"], ["/robots.txt"], Reason.UNREACHABLE),
    ],
    ids=["a good copy", "no copy"],
)
async def test_rfc_nothing_but_robots_txt_is_requested_while_it_is_unreachable(
    web: Web,
    crawl: Crawl,
    clock: FakeClock,
    robots: str | Page,
    next_paths: list[str],
    received: list[str],
    reason: Reason,
) -> None:
    """Before the last page is requested, the copy expires and the whole site fails."""
    site = web.site(robots, {"/first": Page()})

    def fail() -> None:
        clock.now += 2 * 86_400
        site.pages.update(dict.fromkeys(("/robots.txt", "*"), Page(status=503)))

    outcome = await crawl(
        [Request(site.url("/first"), meta=dict(EXEMPT))],
        spider=Disturber,
        then=[*[lambda: None] * (len(next_paths) - 1), fail],
        next_urls=site.urls(*next_paths),
    )
    assert site.paths == ["/first", *received]
    assert outcome.stats[f"robotstxt/forbidden/{reason}"] == 1
