"""When requests may start, by the places of their queues."""

from __future__ import annotations

import logging
from math import inf
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.frontier import backoff
from scrapy_rep.frontier.frontier import MIN_WAIT
from scrapy_rep.frontier.hosts import MAX_IDLE_HOSTS
from scrapy_rep.frontier.look_ahead import LOOK_AHEAD, PAGES_IN_BETWEEN
from scrapy_rep.frontier.queue import PriorityFirstQueue
from scrapy_rep.frontier.queued import record_waits, waiting
from scrapy_rep.policies.gate import Gate, Place, Wait
from testing.clock import settle

from .doubles import FakeCrawl, begin

A, B, C = "http://a.example", "http://b.example", "http://c.example"
SECURE = "https://a.example"
"""Another origin on the host of A."""


def pages(origin: str, number: int) -> list[str]:
    return [f"{origin}/{each}" for each in range(number)]


def crawl_of(*origins: str, number: int = 3, **settings: Any) -> FakeCrawl:
    """Return a crawl with so many requests for origins that allow them."""
    crawl = FakeCrawl(settings)
    for origin in origins:
        crawl.set_ready(origin)
        crawl.push(*pages(origin, number))
    return crawl


# Places


def test_an_unknown_robots_txt_is_fetched_when_the_engine_asks_for_work() -> None:
    crawl = FakeCrawl()
    crawl.push(f"{A}/1", f"{A}/2")
    assert crawl.places() == {A: Place.UNKNOWN}
    assert crawl.policies.fetched == []
    assert crawl.pop() is None
    assert crawl.places() == {A: Place.FETCHING}
    assert (crawl.policies.fetched, crawl.policies.pages) == ([A], [f"{A}/1"])
    woken = crawl.engine.woken
    crawl.set_ready(A)
    assert crawl.engine.woken > woken
    assert crawl.pop_all() == [f"{A}/1", f"{A}/2"]
    assert crawl.places() == {}


# Turns


def test_the_host_with_the_fewest_requests_in_progress_comes_first() -> None:
    crawl = crawl_of(A, B)
    first, second = crawl.take(), crawl.take()
    assert crawl.pop_url() == f"{A}/1"
    crawl.end(first)  # one of A is in progress, and one of B
    crawl.end(second)
    assert crawl.pop_url() == f"{B}/1"


def test_a_policy_that_has_expired_gives_its_turn_to_the_next_queue_of_the_host() -> None:
    crawl = crawl_of(A, "https://a.example", CONCURRENT_REQUESTS_PER_DOMAIN=1)
    crawl.policies.gates[A] = Gate(Place.FETCHING)  # time alone has changed it
    assert crawl.take().url == "https://a.example/0"


def test_paced_hosts_that_are_due_and_all_others_take_turns() -> None:
    paced = [f"http://paced{number}.example" for number in range(30)]
    live = [f"http://live{number}.example" for number in range(30)]
    crawl = crawl_of(*paced, *live, number=9)
    for origin in paced:
        crawl.frontier.set_delay(origin.removeprefix("http://"), origin, 0.01)
    given = []
    for _ in range(400):
        request = crawl.take()
        given.append("paced" in request.url)
        crawl.end(request)
        crawl.clock.advance(0.01)
    assert given[1::2] == [not each for each in given[::2]]


def test_priorities_count_across_hosts_if_the_project_asks_for_that() -> None:
    crawl = FakeCrawl(queue=PriorityFirstQueue)
    crawl.set_ready(A, B)
    crawl.push(f"{A}/0", f"{A}/1")
    crawl.push(f"{B}/0", priority=1)
    crawl.push(f"{B}/1", priority=-1)
    crawl.push(f"{A}/2", priority=3)
    assert crawl.pop_all() == [f"{A}/2", f"{B}/0", f"{A}/0", f"{A}/1", f"{B}/1"]


# Drops


def test_one_request_is_dropped_for_many_pages() -> None:
    crawl = crawl_of(A, number=3 * PAGES_IN_BETWEEN, CONCURRENT_REQUESTS_PER_DOMAIN=1000)
    crawl.set(B, Place.DROPS)
    crawl.push(*pages(B, 2))
    urls = [crawl.pop_url() for _ in range(2 * (PAGES_IN_BETWEEN + 1))]
    dropped = [number for number, url in enumerate(urls) if url in pages(B, 2)]
    assert dropped == [PAGES_IN_BETWEEN, 2 * PAGES_IN_BETWEEN + 1]


def test_one_request_is_dropped_at_once_while_no_page_may_start() -> None:
    crawl = crawl_of(A, number=1)
    crawl.take()
    crawl.set(B, Place.DROPS)
    crawl.push(*pages(B, 3))
    dropped = crawl.take()
    assert crawl.pop_all() == []
    crawl.end(dropped)
    assert crawl.pop_all() == [f"{B}/1"]


# Fetches


def test_as_many_robots_txt_are_fetched_as_the_crawl_needs_soon() -> None:
    crawl = FakeCrawl({"CONCURRENT_REQUESTS": 2})
    origins = [f"http://{number}.example" for number in range(50)]
    crawl.push(*(f"{origin}/" for origin in origins))
    crawl.pop()
    assert crawl.policies.fetched == origins[: 2 * LOOK_AHEAD]
    crawl.policies.recent.clear()
    crawl.set_ready(origins[0])
    assert crawl.pop_url() == f"{origins[0]}/"
    assert len(crawl.policies.fetched) == 2 * LOOK_AHEAD + 2 * LOOK_AHEAD - 1


def test_new_sites_have_a_turn_though_others_are_ready() -> None:
    crawl = crawl_of(A, B, number=40, CONCURRENT_REQUESTS=2, CONCURRENT_REQUESTS_PER_DOMAIN=1000)
    crawl.push(*(f"http://{number}.example/" for number in range(9)))
    fetched = []
    for _ in range(2 * PAGES_IN_BETWEEN + 1):
        fetched.append(len(crawl.policies.fetched))
        crawl.pop()
    assert fetched[: PAGES_IN_BETWEEN + 1] == [0] * (PAGES_IN_BETWEEN + 1)
    assert len(crawl.policies.fetched) == 2


def test_a_robots_txt_that_has_expired_is_fetched_before_new_ones() -> None:
    crawl = FakeCrawl()
    crawl.push(f"{A}/1", f"{B}/1")
    crawl.policies.origins.add(C)
    crawl.push(f"{C}/1")
    crawl.policies.free = 1
    crawl.pop()
    assert crawl.policies.fetched == [C]


def test_a_request_that_cannot_be_read_does_not_prevent_the_fetch(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = FakeCrawl()
    crawl.push(f"{A}/1")
    monkeypatch.setattr("scrapy_rep.frontier.queue.OriginQueue.peek", lambda _: 1 / 0)
    crawl.pop()
    assert crawl.policies.pages == [f"{A}/"]
    assert f"The next request for {A} cannot be read" in caplog.text


# The pace of a host


def test_alarms_do_not_pile_up() -> None:
    crawl = crawl_of(A, number=50)
    crawl.set(SECURE, Place.WAITING, 30_000)
    crawl.push(f"{SECURE}/1")
    crawl.frontier.set_delay("a.example", A, 5)
    for _ in range(50):
        crawl.end(crawl.take())
        assert len(crawl.clock.pending) == 1, "one for the host, at the earlier time"
        crawl.clock.advance(5)
    crawl.set_ready(SECURE)
    crawl.end(crawl.take())
    assert crawl.left_over() == {}


def test_download_slots_have_a_limit_of_their_own_and_the_pace_of_the_host() -> None:
    crawl = FakeCrawl({"CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    crawl.set_ready(A)
    crawl.push(*pages(A, 2))
    for slot in ("one", "other"):
        crawl.push(*(f"{A}/{slot}/{number}" for number in range(2)), download_slot=slot)
    first = [crawl.take() for _ in range(3)]
    assert sorted(each.url for each in first) == [f"{A}/0", f"{A}/one/0", f"{A}/other/0"]
    assert crawl.pop() is None
    crawl.end(first[1])
    assert crawl.pop_url() == f"{A}/one/1"
    crawl.frontier.set_delay("a.example", A, 5)
    crawl.end(first[0])
    crawl.clock.advance(60)
    assert crawl.pop() is None, "others to the host are in progress"


def test_waits_are_counted_once_for_each_queue() -> None:
    crawl = FakeCrawl()
    crawl.push(*pages(A, 2))
    crawl.pop()
    crawl.clock.advance(3)
    crawl.frontier.set_delay("a.example", A, 5)
    crawl.set_ready(A)
    crawl.end(crawl.take())
    crawl.clock.advance(5)
    crawl.end(crawl.take())
    assert crawl.waits == [(A, "robots_txt", 3), (A, "pace", 5)]
    assert (crawl.stat("wait_seconds/pace"), crawl.stat("wait_count/robots_txt")) == (5, 1)
    crawl.push(f"{B}/1")
    crawl.clock.advance(MIN_WAIT * 0.9)
    crawl.set_ready(B)
    assert len(crawl.waits) == 2, "a turn of the event loop is no wait"


def test_an_idle_host_is_forgotten_when_its_delay_has_ended() -> None:
    crawl = crawl_of(A, B, number=1)
    crawl.frontier.set_delay("a.example", A, 5)
    for _ in "ab":
        crawl.end(crawl.take())
    hosts = crawl.frontier.hosts.hosts
    for number in range(MAX_IDLE_HOSTS - 1):
        crawl.frontier.hosts.host(f"{number}.example")
    crawl.frontier.collect_ended()
    assert {*hosts} == {"a.example"}
    crawl.clock.advance(5)
    for number in range(MAX_IDLE_HOSTS + 1):
        crawl.frontier.hosts.host(f"{number}.example")
    crawl.frontier.collect_ended()
    assert hosts == {}


# Hosts that ask for fewer requests


@pytest.mark.rule("Back-off", "Back-off without Retry-After")
@pytest.mark.parametrize(
    ("answers", "seconds"),
    [
        ((None,), 1),
        ((20,), 20),
        ((86_400,), 300),
        ((20, 30, None), 4),
        ((1.5,) * 2 + (None,), 4),
        ((30,) * 40 + (None,), 300),
    ],
)
def test_a_host_is_held_for_as_long_as_it_asks(answers: Any, seconds: float) -> None:
    crawl = crawl_of(A, number=50)
    for retry_after in answers:
        crawl.clock.advance(10_000)
        request = crawl.take()
        crawl.refuse(request, retry_after)
    assert crawl.places() == {A: Place.WAITING}
    crawl.clock.advance(seconds - 0.1)
    assert crawl.pop() is None
    woken = crawl.engine.woken
    crawl.clock.advance(0.1)
    assert crawl.engine.woken > woken
    assert crawl.pop() is not None
    assert crawl.pop() is None, "one at a time"


@pytest.mark.rule("Back-off")
@pytest.mark.parametrize(
    ("answers", "seconds"),
    [
        pytest.param(["/a 500 3"], 3, id="each 5xx with Retry-After"),
        pytest.param(["/a 511 3"], 3, id="also others"),
        pytest.param(["/a 501", "/b 505", "/c 511", "/d 507"], 0, id="others without it"),
        pytest.param(["/a 500", "/b 502"], 0, id="two URLs"),
        pytest.param(["/a 500", "/b 502", "/c 504"], 1, id="the third URL"),
        pytest.param(["/a 500", "/b 502", "/c 504", "/d 500"], 2, id="doubled"),
        pytest.param(["/a 500", "/a 500", "/a 500", "/b 500"], 0, id="retries of a URL"),
        pytest.param(["/a 500", "/b 500", "/c 500", "/c 500"], 0, id="also later"),
        pytest.param(["/a 500", "/b 500", "/c 404", "/d 500", "/e 500"], 0, id="a row has ended"),
        pytest.param(["/a 500", "/b 500", "/c 501", "/d 500"], 1, id="501 ends no row"),
        pytest.param(["/a 503", "/b 501", "/c 503"], 2, id="nor that of a back-off"),
        pytest.param(["/a 503", "/b 200", "/c 503"], 1, id="a page ends both"),
        pytest.param(["/a 500", "/b 500", "/c 500", "/late 200", "/d 500"], 2, id="no late one"),
    ],
)
def test_failures_of_a_server_hold_its_host(answers: list[str], seconds: float) -> None:
    crawl = crawl_of(A, number=50)
    for answer in answers:
        crawl.clock.advance(1000)
        path, status, *header = answer.split()
        request, retry_after = crawl.take(), float(header[0]) if header else None
        started = crawl.frontier.in_progress[request]
        if path == "/late":  # it started before the hold
            started = started._replace(backoffs=0)
        crawl.frontier.note_answer(started, int(status), retry_after, path)
        crawl.end(request)
    assert crawl.frontier.hosts.host("a.example").seconds_left(crawl.clock.now) == seconds


def test_no_answer_shortens_a_hold() -> None:
    crawl = crawl_of(A, number=30)
    request = crawl.take()
    crawl.refuse(request, 60)
    host = crawl.frontier.hosts.host("a.example")
    crawl.frontier.enter(request, crawl.policies.address(request))  # it was in its slot already
    crawl.frontier.note_answer(crawl.frontier.in_progress[request], 200, None)
    crawl.end(request)
    assert host.seconds_left(crawl.clock.now) == 60
    crawl.frontier.hold("a.example", A, 5, 503)
    assert host.seconds_left(crawl.clock.now) == 60


def test_the_failed_urls_of_a_host_are_bounded() -> None:
    crawl = crawl_of(A, number=1)
    started = crawl.frontier.in_progress[crawl.take()]
    for number in range(1000):
        crawl.frontier.note_answer(started, 500, None, f"/{number}")
    assert len(crawl.frontier.hosts.host("a.example").failed_urls) == backoff.MAX_FAILED_URLS


@pytest.mark.rule("Back-off without Retry-After")
def test_what_is_in_flight_neither_ends_nor_doubles_it() -> None:
    crawl = crawl_of(A, number=30)
    several = [crawl.take() for _ in range(5)]
    answers = (503, None), (429, None), (200, None), (503, 1.5), (404, None)
    for request, answer in zip(several, answers, strict=True):
        crawl.frontier.note_answer(crawl.frontier.in_progress[request], *answer)
        crawl.end(request)
    held = crawl.frontier.hosts.hosts["a.example"].seconds_left(crawl.clock.now)
    assert held == 1.5, "as long as an answer asks"
    assert crawl.stat("backoff_count") == 1


def test_a_crawl_that_continues_holds_the_hosts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = crawl_of(A)
    now = crawl.clock.now
    state: dict[Any, Any] = {"d.example": None, 7: now + 9, "e.example": "x"}  # damaged
    state |= {"a.example": now + 20, "b.example": now - 1, "c.example": now + 10**9}
    crawl.frontier.hold_again(state)
    assert crawl.frontier.hosts.hosts["a.example"].seconds_left(now) == 20
    assert state == {"a.example": now + 20, "c.example": now + 300}
    crawl.clock.advance(20)
    request = crawl.take()
    crawl.frontier.note_answer(crawl.frontier.in_progress[request], 200, None)
    assert list(state) == ["c.example"]
    monkeypatch.setattr(backoff, "MAX_IDLE_HOSTS", 1)
    crawl.frontier.note_answer(crawl.frontier.in_progress[request], 429, 5)
    assert list(state) == ["a.example"], "their number is bounded"


# Requests that end without a signal


def test_a_request_that_the_downloader_no_longer_has_is_ended() -> None:
    crawl = crawl_of(A, B, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    crawl.frontier.set_delay("a.example", A, 5)
    dropped, kept = crawl.take(), crawl.take()
    crawl.engine.active.discard(dropped)
    sent = crawl.take()
    assert sent.url == f"{A}/1", "it was not sent: no delay begins"
    assert kept in crawl.frontier.in_progress
    sent.meta["download_slot"] = "a.example"  # it has reached its slot
    crawl.engine.active.discard(sent)
    assert crawl.pop() is None
    crawl.clock.advance(5)
    assert crawl.pop_url() == f"{A}/2"


def test_only_a_request_in_place_of_one_that_was_not_sent_is_noted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "scrapy_rep")
    crawl = crawl_of(A, C, number=1)
    replaced, _ = crawl.take(), crawl.take()
    crawl.engine.active.discard(replaced)
    crawl.push(f"{B}/?url={C}", f"{A}/?url={A}", f"{B}/", f"{B}/{A}", redirect_urls=[A])
    crawl.push(f"{B}/?url={C}", f"{A}/?url={A}", f"{B}/")
    replaced.meta["download_slot"] = "a.example"
    crawl.push(f"{B}/?url={A}")
    assert caplog.messages == []
    del replaced.meta["download_slot"]
    crawl.push(f"{B}/?url={A}&key=secret", f"{B}/?url={A}")
    (message,) = caplog.messages
    assert message.startswith(
        f"A middleware has replaced <GET {A}/0> with a request to b.example. "
    )


# Requests that wait in the downloader


def test_a_request_that_left_before_the_delay_was_known_waits() -> None:
    crawl = crawl_of(A)
    first, second = crawl.take(), crawl.take()
    crawl.frontier.set_delay("a.example", A, 5)
    assert not crawl.try_start(second)
    assert crawl.try_start(first)
    crawl.end(first)
    crawl.clock.advance(5)
    assert crawl.try_start(second)


async def test_a_robots_txt_comes_first_then_the_callers_then_the_queue() -> None:
    crawl = crawl_of(A)
    crawl.frontier.set_delay("a.example", A, 5)
    last = crawl.take()
    caller, robots_txt, later = (Request(f"{A}/{path}") for path in ("b", "robots.txt", "a"))
    crawl.wait(caller, robots_txt, later)
    await settle()
    assert caller in crawl.frontier.waiters
    assert {*crawl.engine.extra} == {caller, robots_txt, later}
    for expected in (robots_txt, caller, later):
        crawl.end(last)
        await crawl.clock.run(5)
        assert set(crawl.frontier.in_progress) == {expected}
        assert crawl.pop() is None
        last = expected
    crawl.end(last)
    await crawl.clock.run(5)
    assert crawl.pop_url() == f"{A}/1"
    assert not crawl.engine.extra


async def test_many_requests_are_dropped_one_after_the_other() -> None:
    """On Twisted's loops, each resumes within the call that starts it."""
    crawl = FakeCrawl()
    crawl.frontier.set_delay("a.example", A, 5)
    dropped = []

    async def wait_and_drop(request: Request) -> None:
        assert await crawl.waiting.wait(request)
        dropped.append(request)
        crawl.end(request, sent=False)

    requests = [Request(f"{A}/{n}", meta={"download_slot": str(n)}) for n in range(300)]
    for request in requests:
        begin(wait_and_drop(request))
    await settle()
    crawl.set_ready(A)
    for _ in requests:
        await settle()
    assert dropped == requests
    assert crawl.left_over() == {}


async def test_nothing_waits_in_the_downloader_when_the_spider_closes() -> None:
    crawl = FakeCrawl()
    before = crawl.wait(Request(f"{A}/1"), Request(f"{B}/1"))
    await settle()
    crawl.frontier.close()
    after = crawl.wait(Request(f"{C}/1"))
    crawl.set_ready(A, B, C)
    await settle()
    assert [each.result for each in before + after] == [False] * 3
    assert crawl.left_over() == {}


# What waits, and why


def test_what_requests_wait_for() -> None:
    crawl = crawl_of(A, B, number=4, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    crawl.push(f"{C}/1", f"{SECURE}/1", "http://d.example/1")
    crawl.frontier.set_delay("a.example", A, 5)
    for request in (crawl.take(), crawl.take()):
        if request.url.startswith(B):
            crawl.refuse(request, 30)
        else:
            crawl.end(request)
    crawl.set("http://d.example", Place.WAITING, 60)
    crawl.clock.advance(1)
    found = waiting(crawl.crawler)
    named = {(each.host, each.reason): (each.requests, each.seconds) for each in found}
    assert named == {
        ("a.example", Wait.DELAY): (3, 4),
        ("a.example", Wait.ROBOTS_TXT): (1, inf),
        ("b.example", Wait.BACKOFF): (3, 29),
        ("c.example", Wait.ROBOTS_TXT): (1, inf),
        ("d.example", Wait.UNREACHABLE): (1, 60),
    }
    assert [each.requests for each in found] == [3, 3, 1, 1, 1]


def test_the_log_says_what_requests_wait_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "scrapy_rep")
    crawl = FakeCrawl()
    record_waits(crawl.frontier)
    assert (caplog.messages, crawl.stat("waiting/robots_txt")) == ([], None)
    crawl.push(*(f"{A}/{number}" for number in range(1205)), f"{B}/1", f"{B}/2", f"{SECURE}/1")
    crawl.set_ready(A)
    crawl.frontier.set_delay("a.example", A, 10)
    crawl.end(crawl.take())
    crawl.clock.advance(6)
    crawl.policies.attempts["b.example"] = 2
    record_waits(crawl.frontier)
    waiting = {name: crawl.stat(f"waiting/{name}") for name in ("delay", "robots_txt", "backoff")}
    assert waiting == {"delay": 1204, "robots_txt": 3, "backoff": None}
    for name in "cde":
        crawl.push(f"http://{name}.example/1")
    record_waits(crawl.frontier)
    for origin in (A, B, SECURE, *(f"http://{name}.example" for name in "cde")):
        crawl.set(origin, Place.DROPS)
    record_waits(crawl.frontier)
    assert (crawl.stat("waiting/delay"), crawl.stat("waiting/robots_txt")) == (0, 0)
    reasons = (
        "1,204 for the delay of a.example (10 s, next in 4 s), 2 for the robots.txt of b.example "
        "(attempt 2 of 3), 1 for the robots.txt of a.example"
    )
    assert caplog.messages == [
        f"Waiting: 1,207 requests of 2 sites: {reasons}",
        f"Waiting: 1,210 requests of 5 sites: {reasons}, and 3 more sites",
    ]


def test_a_host_that_is_paced_now_limits_the_queues_of_all_its_slots() -> None:
    """And their slots limit them again when the delay has gone."""
    crawl = FakeCrawl({"CONCURRENT_REQUESTS_PER_DOMAIN": 8})
    crawl.set_ready(A)
    for slot in "xyz":
        crawl.push(f"{A}/{slot}", download_slot=slot)
    crawl.frontier.set_delay("a.example", A, 5)
    assert [queue.place for queue in crawl.frontier.hosts.all_queues()].count(Place.READY) == 1
    crawl.frontier.set_delay("a.example", A, 0)
    assert [queue.place for queue in crawl.frontier.hosts.all_queues()].count(Place.READY) == 3
