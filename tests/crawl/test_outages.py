"""Unreachable sites: their requests wait within bounds, and nothing else is sent to them."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from scrapy import Request

from scrapy_rep import Reason
from testing.counters import left_over
from testing.faults import answer_when
from testing.web import Misbehaviour, Page, Web, text

from .conftest import (
    EXEMPT,
    FIFO,
    PRIVATE,
    Crawl,
    Disturber,
    Visitor,
    in_turn,
    make_crawler,
    numbers,
    run_crawler,
    together,
)

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


async def test_a_site_that_answers_is_not_delayed(web: Web, crawl: Crawl) -> None:
    """The others answer again only when it is complete."""
    live = web.site(PRIVATE)
    late = answer_when(lambda: len(live.page_paths) == 20, text(PRIVATE))
    down = [web.site(failing(1, page=late), host=f"127.0.0.{number}") for number in range(11, 15)]
    urls = [url for site in down for url in site.urls(*numbers(10))]
    outcome = await crawl(urls + live.urls(*numbers(20)), {**WAIT, "CONCURRENT_REQUESTS": 2})
    assert not outcome.failures
    assert [site.page_paths for site in down] == [sorted(numbers(10))] * 4
    assert [site.robots_fetches for site in down] == [2] * 4
    assert live.page_paths == sorted(numbers(20))


@pytest.mark.parametrize("retry_after", ["30", "3600"])
async def test_a_late_attempt_drops_requests(web: Web, crawl: Crawl, retry_after: str) -> None:
    site = web.site(failing(10, retry_after))
    outcome = await crawl(site.urls(*numbers(12)), {**WAIT, "REP_MAX_WAIT": 2})
    assert site.paths == ["/robots.txt"]
    assert outcome.reasons == dict.fromkeys(site.urls(*numbers(12)), Reason.UNREACHABLE)


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
    clock: Any,
    robots: str | Page,
    next_paths: list[str],
    received: list[str],
    reason: Reason,
) -> None:
    """Before the last page is requested, the copy expires and the whole site fails."""
    site = web.site(robots, {"/first": Page()})

    def fail() -> None:
        clock.ahead = 2 * 86_400
        site.pages.update(dict.fromkeys(("/robots.txt", "*"), Page(status=503)))

    outcome = await crawl(
        [Request(site.url("/first"), meta=dict(EXEMPT))],
        spider=Disturber,
        then=[*[lambda: None] * (len(next_paths) - 1), fail],
        next_urls=site.urls(*next_paths),
    )
    assert site.paths == ["/first", *received]
    assert outcome.stats[f"robotstxt/forbidden/{reason}"] == 1
