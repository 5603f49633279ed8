"""The lifetime of policies, as the servers see it. The tests move the clock."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.clock import Clock as MachineClock
from testing.faults import RULES, answer_when
from testing.web import Misbehaviour, Page, Site, Web, redirect, text

from .conftest import Clock, Traveller, travel, until

HOUR = 3600
DAY = 24 * HOUR
OTHER_RULES = "User-agent: *\nDisallow: /public\n"


async def fetches_late(
    spider: Traveller, site: Site, clock: Clock, page: Page | Misbehaviour
) -> bool:
    """Whether a page is let late in a robots.txt's life, with ``page`` in its place."""
    assert await spider.fetches(site.url("/public"))
    site.pages["/robots.txt"] = page
    clock.ahead += 0.95 * DAY
    return await spider.fetches(site.url("/public"))


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
    web: Web, clock: Clock, answer: Page, settings: dict[str, Any], seconds: float
) -> None:
    site = web.site(answer, {"/r": text(RULES, Cache_Control="max-age=7200")})
    async with travel(settings) as spider:
        await spider.fetches(site.url("/a"))
        clock.ahead += 0.88 * seconds
        await spider.fetches(site.url("/a"))
        assert site.robots_fetches == 1
        clock.ahead += 0.13 * seconds
        await spider.fetches(site.url("/a"))
        assert site.robots_fetches == 2


# Conditional requests

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


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
async def test_rfc_validators_are_returned(web: Web, clock: Clock, headers: Any, sent: Any) -> None:
    site = web.site(Page(RULES, headers=headers))
    async with travel() as spider:
        assert not await spider.fetches(site.url("/private"))
        if sent:
            site.pages["/robots.txt"] = Page(b"", 304)
        clock.ahead += DAY
        assert not await spider.fetches(site.url("/private"))
        assert await spider.fetches(site.url("/public"))
    first, second, *_ = site.received
    conditions = ("if-none-match", "if-modified-since")
    assert not {*conditions} & {*first.headers}
    assert {name: second.headers[name] for name in conditions if name in second.headers} == sent
    assert spider.outcome.middleware.origins[site.root].status == (304 if sent else 200)


async def test_validators_go_only_to_where_they_are_from(web: Web, clock: Clock) -> None:
    tagged = Page(RULES, headers={"ETag": '"1"'})
    elsewhere = web.site(pages={"/r": tagged, "/s": tagged}, host="127.0.0.2")
    site = web.site(redirect(elsewhere.url("/r")))
    async with travel() as spider:
        await spider.fetches(site.url("/public"))
        elsewhere.pages["/r"] = Page(b"", 304)
        clock.ahead += DAY
        assert not await spider.fetches(site.url("/private"))
        site.pages["/robots.txt"] = redirect(elsewhere.url("/s"))
        clock.ahead += DAY
        assert not await spider.fetches(site.url("/private"))
    tags = [received.headers.get("if-none-match") for received in elsewhere.received]
    assert elsewhere.paths == ["/r", "/r", "/s"]
    assert tags == [None, '"1"', None]
    assert not any("if-none-match" in received.headers for received in site.received)


@pytest.mark.parametrize(
    ("not_modified", "seconds"),
    [({}, HOUR), ({"Cache-Control": "max-age=7200"}, 2 * HOUR)],
    ids=["silent", "with its own"],
)
async def test_rfc_a_304_makes_it_fresh_again(
    web: Web, clock: Clock, not_modified: dict[str, str], seconds: float
) -> None:
    """RFC 9111 §3.2: stored headers that a 304 does not repeat still apply."""
    site = web.site(Page(RULES, headers={"ETag": '"1"', "Cache-Control": f"max-age={HOUR}"}))
    async with travel() as spider:
        await spider.fetches(site.url("/public"))
        site.pages["/robots.txt"] = Page(b"", 304, not_modified)
        clock.ahead += HOUR
        await spider.fetches(site.url("/public"))
        assert site.robots_fetches == 2
        clock.ahead += 0.88 * seconds
        await spider.fetches(site.url("/public"))
        assert site.robots_fetches == 2
        clock.ahead += 0.13 * seconds
        assert not await spider.fetches(site.url("/private"))
        assert site.robots_fetches == 3


async def test_all_requests_that_find_it_expired_share_one_fetch(web: Web, clock: Clock) -> None:
    site = web.site(RULES)
    async with travel() as spider:
        assert await spider.fetches(site.url("/public"))
        site.pages["/robots.txt"] = Page(OTHER_RULES, delay=0.2)
        clock.ahead += DAY
        asked = [
            deferred_from_coro(spider.fetches(site.url(path)))
            for path in ("/public", "/private") * 5
        ]
        assert [await maybe_deferred_to_future(each) for each in asked] == [False, True] * 5
    assert site.robots_fetches == 2


# Refresh ahead


async def test_in_the_last_tenth_it_is_refreshed_and_nothing_waits(web: Web, clock: Clock) -> None:
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
        clock.ahead += 0.85 * DAY
        assert await spider.fetches(site.url("/private"))
        assert site.robots_fetches == 2


async def test_all_but_one_that_wait_for_a_delay_obey_the_new_file(web: Web, clock: Clock) -> None:
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


async def test_a_refresh_does_not_hold_a_crawl_open(web: Web, clock: Clock) -> None:
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
    web: Web, clock: Clock, steps: tuple[float, float]
) -> None:
    site, other = web.site(RULES), web.site(RULES)
    async with travel() as spider:
        assert await spider.fetches(site.url("/public"))
        clock.step = steps[0]
        assert await spider.fetches(other.url("/public"))
        assert await spider.fetches(site.url("/public"))
        clock.step = steps[1]
        assert await spider.fetches(other.url("/public"))
        assert await spider.fetches(site.url("/public"))
        await MachineClock().sleep(0.6)  # within a day the crawl looks at the clock
        clock.ahead += 1.01 * DAY
        assert await spider.fetches(site.url("/public"))
        assert await spider.fetches(other.url("/public"))
    for each in (site, other):
        assert each.robots_fetches == 2
