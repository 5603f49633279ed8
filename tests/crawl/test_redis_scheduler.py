"""Workers of one crawl, whose requests are in Redis (:mod:`scrapy_rep.frontier.redis`).

The tests check what the sites received. No worker waits for a time that a test measures.
"""

from __future__ import annotations

import inspect
import re
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import DontCloseSpider
from scrapy.http import HtmlResponse, Response
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed

from scrapy_rep.clock import Clock
from scrapy_rep.exceptions import SettingError
from scrapy_rep.frontier import redis, shared_queue
from testing.faults import answer_when, silence
from testing.redis_server import RedisCluster, RedisServer, wait_until
from testing.web import Page, Web, between, gaps
from tests.stores.worker import ROOT, TIMEOUT, workers

from .conftest import (
    PRIVATE,
    Crawl,
    InTurn,
    Visitor,
    in_turn,
    make_crawler,
    numbers,
    together,
)

DELAY = 0.4
PACED = f"{PRIVATE}Crawl-delay: {DELAY}\n"
LEASE = 3
"""Seconds that a lease lasts in these tests."""


@pytest.fixture(autouse=True)
def needs_asyncio(request: pytest.FixtureRequest) -> None:
    """Skip crawls in this process on another event loop. ``workers`` have one of their own."""
    is_here = inspect.iscoroutinefunction(request.function)
    if is_here and is_reactor_installed() and not is_asyncio_reactor_installed():
        pytest.skip("the scheduler needs asyncio, as test_the_scheduler_needs_asyncio says")


def settings(redis_url: str) -> dict[str, Any]:
    return {
        "SCHEDULER": "scrapy_rep.frontier.redis.Scheduler",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": redis_url,
    }


def arguments(server: RedisServer, **others: object) -> list[str]:
    """The arguments of a worker, but for its URLs."""
    worker = f"{QueueWorker.__module__}.{QueueWorker.__name__}"
    # Few requests at once, so that each worker gets a part of the queue.
    values = {"SPIDER": worker, "CONCURRENT_REQUESTS": 4, "LEASE": LEASE, **others}
    return [server.url, *(f"{name}={value}" for name, value in values.items())]


def test_killed_and_stopped_workers_are_replaced(web: Web, redis_server: RedisServer) -> None:
    """Both have a page in progress then, which another worker requests again."""
    pages = numbers(5)
    released = threading.Event()
    late = answer_when(released.is_set, Page())
    killed = web.site(PACED, {"/0": in_turn(silence)}, host="127.0.3.1")
    stopped = web.site(PACED, {"/0": in_turn(late)}, host="127.0.3.2")
    free = web.site(PRIVATE, host="127.0.3.3")
    one = arguments(redis_server, CONCURRENT_REQUESTS=1, DOWNLOAD_TIMEOUT=600)
    with workers([*one, *killed.urls(*pages, "/private")]) as (first,):
        wait_until(lambda: killed.page_paths, "the first worker", TIMEOUT)
        urls = stopped.urls(*pages, "/private")
        with workers([*one, *urls]) as (second,):
            wait_until(lambda: stopped.page_paths, "the second worker", TIMEOUT)
            urls = free.urls(*pages, "/private")
            with workers([*one, *urls]) as (third,):
                wait_until(lambda: free.received, "the third worker")
                first.kill()
                second.send_signal(signal.SIGSTOP)
                count, log = result_of(third)
                assert count == 5 + 5 + 5
                assert log.count("does not answer. ") == log.count("WARNING")
            second.send_signal(signal.SIGCONT)
            released.set()
            count, own = result_of(second)
            assert count == 1
            assert "This worker stood still for so long" in own
            # On a busy machine, the second worker may have replaced the first one before the kill.
            assert len({*re.findall(r"The worker (\S+) does not answer\. ", log + own)}) == 2
    assert killed.page_paths == stopped.page_paths == ["/0", *pages]
    assert free.page_paths == pages
    assert min(gaps(killed)) > DELAY - 0.001
    assert min(gaps(stopped)) > DELAY - 0.001


def links(*paths: str) -> Page:
    return Page("".join(f'<a href="{path}">{path}</a>' for path in paths))


def result_of(process: Any) -> tuple[int, str]:
    """Return how many pages a worker has scraped, when it has ended, and its warnings."""
    output, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, errors
    return int(output), "\n".join(
        line for line in errors.splitlines() if "] WARNING: " in line or "] ERROR: " in line
    )


def pages_of(process: Any) -> int:
    """Return how many pages a worker has scraped, without a warning."""
    count, warnings = result_of(process)
    assert warnings == ""
    return count


def test_two_workers_crawl_like_one(web: Web, redis_server: RedisServer) -> None:
    """Both follow links. Each page is requested once, and each delay is kept."""
    late = Page(PRIVATE, delay=0.2)
    alike = {"/": links("/", "/a", "/b", "/private/a")}
    sites = [web.site(late, alike, host=f"127.0.3.{number}") for number in range(1, 9)]
    numbered = [f"/{number}" for number in range(1, 7)]
    paced = web.site(PACED, {"/": links("/", *numbered, "/private/a")}, host="127.0.3.30")
    other = web.site(PACED, {"/": links("/", "/1", "/2")}, host="127.0.3.30")  # of the same host
    asked = arguments(redis_server, LEASE=30, LONGEST_IDLE=3)
    asked += [site.url("/") for site in (*sites, paced, other)]
    with workers(*[asked] * 2) as running:
        done = [pages_of(process) for process in running]
    assert sum(done) == 8 * 3 + 7 + 3
    assert all(site.page_paths == ["/", "/a", "/b"] for site in sites)
    assert paced.page_paths == ["/", *numbered]
    assert other.page_paths == ["/", "/1", "/2"]
    assert [site.robots_fetches for site in (*sites, paced, other)] == [1] * 10
    received = [*paced.received, *other.received]
    assert min(between(each.at for each in received if each.path != "/robots.txt")) > DELAY - 0.001
    with redis_server.client as client:
        assert client.hlen("{visitor:requests}:1:bodies") == 0


async def test_a_crawl_that_stops_leaves_its_requests_to_the_next_one(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    paced = web.site(PACED)
    late = web.site(Page(PRIVATE, delay=1), host="127.0.0.2")
    paths = numbers(8)
    asked = [Request(url) for site in (paced, late) for url in site.urls(*paths, "/private")]
    for _ in range(3):
        await crawl(asked, {**settings(redis_server.url), "CLOSESPIDER_PAGECOUNT": 1})
        assert len(paced.page_paths) + len(late.page_paths) < 16
        asked = asked[:3]  # which are known
    outcome = await crawl([], settings(redis_server.url))
    assert paced.page_paths == late.page_paths == paths
    assert min(gaps(paced)) > DELAY - 0.001
    assert outcome.stats["finish_reason"] == "finished"
    assert outcome.warnings == []
    assert redis_server.client.hlen("{visitor:requests}:1:bodies") == 0


@pytest.mark.filterwarnings("ignore:.*cluster_error_retry_attempts:DeprecationWarning")
async def test_all_keys_are_in_one_cluster_slot(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    sites = [web.site(PRIVATE, host=f"127.0.3.{number}") for number in range(1, 5)]
    paced = web.site(PACED)
    asked = [Request(url) for site in (*sites, paced) for url in site.urls("/1", "/2", "/private")]
    cluster = RedisCluster(tmp_path)
    try:
        values = {**settings(cluster.url), "SCHEDULER_PERSIST": False}
        await crawl(asked, values)
        assert cluster.key_names() == set()
    finally:
        cluster.close()
    assert all(site.page_paths == ["/1", "/2"] for site in (*sites, paced))
    assert min(gaps(paced)) > DELAY - 0.001


class Disturbed(InTurn):
    """Calls a function when it gets the first page."""

    disturb: Callable[[], object]

    def parse(self, response: Any, **_: Any) -> Any:
        if not self.outcome.responses:
            self.disturb()
        yield from super().parse(response)


async def test_requests_are_kept_while_redis_is_away(
    web: Web, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spider yields more than may be kept, and waits."""
    monkeypatch.setattr(shared_queue, "MAX_KEPT", 20)
    server = RedisServer(tmp_path, arguments=["--appendonly", "yes"])
    site, other = web.site(PRIVATE), web.site(PRIVATE, host="127.0.0.2")
    links = [Request(url) for url in site.urls(*numbers(60), "/private")]

    def kill() -> None:
        server.kill()
        threading.Timer(1.5, server.start).start()

    try:
        outcome = await crawl(
            [site.url("/start"), other.url("/start")],
            {**settings(server.url), "CONCURRENT_ITEMS": 10, "CONCURRENT_REQUESTS": 1},
            spider=Disturbed,
            disturb=kill,
            then={site.url("/start"): links, other.url("/start"): links},
        )
    finally:
        wait_until(lambda: server.client.ping(), "the server")
        server.kill()
    assert sorted(site.page_paths) == sorted([*numbers(60), "/start"])
    assert outcome.stats["finish_reason"] == "finished"
    assert len(outcome.warnings) == 1
    assert outcome.warnings[0].startswith("Redis does not answer: ")
    assert outcome.log.text.count("Redis answers again. It gets what was kept: ") == 1
    assert outcome.errors == []


class Slow(Visitor):
    """Has a callback that takes time, and notes how many requests have not ended meanwhile."""

    left: Callable[[], int]
    seen: tuple[int, ...] = ()

    async def parse(self, response: Response, **_: Any) -> Any:
        await Clock().sleep(0.3)
        self.seen += (self.left(),)
        if "link" not in response.url:
            yield response.follow("/link", callback=self.parse)
        await Clock().sleep(0.3)
        self.seen += (self.left(),)


async def test_a_request_ends_with_its_callback(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    site = web.site(PRIVATE)
    outcome = await crawl(
        [site.url("/page")],
        {**settings(redis_server.url), "CONCURRENT_REQUESTS": 1},
        spider=Slow,
        left=lambda: redis_server.client.hlen("{visitor:requests}:1:bodies"),
    )
    seen = outcome.crawler.spider.seen  # type: ignore[union-attr]
    assert (*seen[:2], seen[-1]) == (1, 2, 1)
    assert redis_server.client.hlen("{visitor:requests}:1:bodies") == 0


async def test_the_own_delay_of_a_crawl_holds_for_all_workers(
    web: Web, redis_server: RedisServer
) -> None:
    site = web.site(PRIVATE)
    values = {
        **settings(redis_server.url),
        "DOWNLOAD_DELAY": DELAY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "REP_STORE": redis_server.url,
    }
    asked = [Request(url) for url in site.urls(*numbers(6))]
    await together(*(make_crawler(Visitor, values) for _ in range(2)), requests=[asked] * 2)
    assert site.page_paths == numbers(6)
    assert min(gaps(site)) > DELAY / 2 - 0.01  # Scrapy varies it by a half


async def test_a_redis_that_forgets_ends_the_crawl(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    site = web.site(PRIVATE, {"*": Page(delay=0.1)})
    outcome = await crawl(
        [Request(url) for url in site.urls(*numbers(50))],
        {**settings(redis_server.url), "CONCURRENT_REQUESTS": 1},
        spider=Disturbed,
        disturb=redis_server.client.flushall,
        then={},
    )
    assert outcome.stats["finish_reason"] == "redis_lost"
    assert len(site.page_paths) < 50
    (error,) = outcome.errors
    assert error.getMessage().startswith("Redis has lost the requests of this crawl")


async def test_an_older_redis_gets_its_requests_again(
    web: Web, crawl: Crawl, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like one that comes back with the data of a second ago."""
    monkeypatch.setattr(shared_queue, "REPEATED_SECONDS", 1000)  # a busy machine stands still
    site = web.site(PRIVATE, {"*": Page(delay=0.05)})

    def roll_back() -> None:
        with redis_server.client as client:
            (own,) = client.keys("{visitor:requests}:1:w:*")
            client.hset(own, "#seq", 0)

    outcome = await crawl(
        [Request(url) for url in site.urls(*numbers(20))],
        settings(redis_server.url),
        spider=Disturbed,
        disturb=roll_back,
        then={},
    )
    assert {*site.page_paths} == {*numbers(20)}
    (error,) = outcome.errors
    assert error.getMessage().startswith("Redis has lost what this worker wrote in the last ")
    assert "Older requests are lost" not in error.getMessage()


async def test_requests_that_redis_cannot_store(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    """They stay in memory, and keep the pace of their host."""
    site, paced = web.site(PRIVATE), web.site(PACED, host="127.0.0.2")
    asked = [site.url("/1"), *paced.urls("/1", "/2", "/3")]
    unstorable = [Request(url, meta={"lock": threading.Lock()}) for url in asked]
    outcome = await crawl([*unstorable, *paced.urls("/4")], settings(redis_server.url))
    assert outcome.stats["scheduler/unserializable"] == 4
    assert len(outcome.warnings) == 4
    assert (site.page_paths, sorted(paced.page_paths)) == (["/1"], ["/1", "/2", "/3", "/4"])
    assert min(gaps(paced)) > DELAY - 0.001


async def test_a_request_that_cannot_be_read_is_skipped(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    site = web.site(PRIVATE)
    asked = [Request(url) for url in site.urls(*numbers(20))]
    stopped = {"CLOSESPIDER_PAGECOUNT": 1, "CONCURRENT_REQUESTS": 1}
    await crawl(asked, {**settings(redis_server.url), **stopped})
    with redis_server.client as client:
        left = client.hkeys("{visitor:requests}:1:bodies")
        client.hset("{visitor:requests}:1:bodies", left[0], "damaged")
    outcome = await crawl([], settings(redis_server.url))
    assert len(set(site.page_paths)) == len(site.page_paths) == 19
    assert [each.getMessage()[:33] for each in outcome.errors] == [
        "A request in Redis cannot be read"
    ]
    assert redis_server.client.hlen("{visitor:requests}:1:bodies") == 0


async def test_without_robots_txt_the_queue_is_by_priority(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    sites = [web.site(PRIVATE, host=f"127.0.3.{number}") for number in (1, 2)]
    values = {**settings(redis_server.url), "ROBOTSTXT_OBEY": False, "CONCURRENT_REQUESTS": 1}
    asked = [
        Request(site.url(f"/{number}"), priority=number) for site in sites for number in range(40)
    ]
    lock = Request(sites[0].url("/kept"), meta={"lock": threading.Lock()})
    outcome = await crawl([*asked, lock], values)
    assert len(outcome.responses) == 81
    assert "the requests in Redis start in the order of their priority" in outcome.log.text
    for site in sites:
        order = [int(path[1:]) for path in site.paths if path[1:].isdigit()]
        # All but those that were leased before the others came.
        assert order[20:] == sorted(order[20:], reverse=True)


async def test_without_robots_txt_the_requests_of_hosts_are_crawled_as_well(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    """The crawl began with robots.txt."""
    site = web.site(PRIVATE)
    values = {**settings(redis_server.url), "CONCURRENT_REQUESTS": 1}
    asked = [Request(url) for url in site.urls(*numbers(30))]
    await crawl(asked, {**values, "CLOSESPIDER_PAGECOUNT": 1})
    await crawl([], {**values, "ROBOTSTXT_OBEY": False})
    assert sorted(site.page_paths) == sorted(numbers(30))


async def test_requests_may_be_json(web: Web, crawl: Crawl, redis_server: RedisServer) -> None:
    site = web.site(PRIVATE)
    values = {"SCHEDULER_SERIALIZER": "scrapy_rep.frontier.json_requests"}
    asked = [Request(site.url("/1")), Request(site.url("/2"), meta={"raw": b"bytes"})]
    outcome = await crawl(asked, {**settings(redis_server.url), **values})
    assert site.page_paths == ["/1", "/2"]
    (warning,) = outcome.warnings
    assert warning.startswith("A request cannot be stored in Redis, and is kept in memory")


async def test_the_documented_user_of_redis_can_run_the_queue(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    text = (ROOT / "docs/usage/scaling.md").read_text("utf-8")
    (command,) = re.findall(r"^ACL SETUSER (.*(?:\n  .*)*)", text, re.MULTILINE)
    user, *rules = command.replace("myspider", "visitor").split()
    site, paced = web.site(PRIVATE), web.site(PACED, host="127.0.0.2")
    asked = [Request(url) for each in (site, paced) for url in each.urls("/1", "/2", "/private")]
    with redis_server.client as client:
        client.execute_command("ACL", "SETUSER", user, "reset", *rules)
        try:
            url = redis_server.url.replace("//", f"//{user}:password@")
            outcome = await crawl(asked, {**settings(url), "SCHEDULER_FLUSH_ON_START": True})
        finally:
            client.execute_command("ACL", "DELUSER", user)
    assert outcome.errors == []
    assert site.page_paths == paced.page_paths == ["/1", "/2"]


async def test_a_project_without_the_spider_middleware_is_warned(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    middlewares = {"SPIDER_MIDDLEWARES": {"scrapy_rep.PageDirectivesMiddleware": None}}
    outcome = await crawl(
        [web.site(PRIVATE).url("/")], {**settings(redis_server.url), **middlewares}
    )
    (warning,) = outcome.warnings
    assert warning.startswith(
        "The spider middleware scrapy_rep.PageDirectivesMiddleware is missing"
    )


async def test_requests_of_scrapy_redis_are_announced(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    redis_server.client.zadd("visitor:requests", {"a request": 0})
    outcome = await crawl([web.site(PRIVATE).url("/")], settings(redis_server.url))
    (warning,) = outcome.warnings
    assert warning.startswith("Another scheduler or another version of scrapy-rep has")


async def test_a_crawl_may_begin_with_an_empty_queue(
    web: Web, crawl: Crawl, redis_server: RedisServer
) -> None:
    site = web.site(PRIVATE)
    values = settings(redis_server.url)
    await crawl(site.urls("/1"), values)
    asked = [Request(site.url("/1"))]
    await crawl(asked, values)
    await crawl(asked, values)
    assert site.page_paths == ["/1", "/1"]
    await crawl(asked, {**values, "SCHEDULER_FLUSH_ON_START": True, "SCHEDULER_PERSIST": False})
    assert site.page_paths == ["/1", "/1", "/1"]
    assert redis_server.client.keys() == []


async def test_the_scheduler_needs_asyncio(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.settings.is_asyncio_available", lambda: False)
    with pytest.raises(SettingError, match="which needs asyncio"):
        await crawl(web.site(PRIVATE).urls("/"), settings("redis://127.0.0.1"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"REDIS_URL": None}, "REDIS_URL, such as 'redis://localhost:6379'"),
        ({"REDIS_URL": "redis://:secret@127.0.0.1:port"}, "REDIS_URL: its URL is invalid"),
        ({"SCHEDULER_SERIALIZER": "no_module"}, "SCHEDULER_SERIALIZER is 'no_module'"),
        ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, "Remove DUPEFILTER_CLASS"),
        ({"REDIS_URL": "redis://:secret@127.0.0.1:1"}, "REDIS_URL: Redis does not answer: "),
    ],
)
async def test_what_stops_a_crawl_at_its_start(
    web: Web,
    crawl: Crawl,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    text: str,
) -> None:
    monkeypatch.setattr("scrapy_rep.frontier.redis.TIMEOUT", 0)
    site = web.site(PRIVATE)
    with pytest.raises(SettingError, match=re.escape(text)):
        await crawl(site.urls("/"), {**settings("redis://127.0.0.1"), **change})
    assert site.received == []
    assert text in caplog.text
    assert "secret" not in caplog.text


# Worker processes


class QueueWorker(Visitor):
    """All workers yield the same URLs. The duplicate filter gives each URL to one of them.

    It follows links. At its end it prints how many pages it has fetched. The queue and the
    duplicate filter are those of scrapy-redis.
    """

    pages = 0
    last_page = 0.0

    @classmethod
    def update_settings(cls, values: Any) -> None:
        super().update_settings(values)
        values.setdict(settings(values["REP_STORE"]), "spider")
        vars(shared_queue)["LEASE"] = lease = values.getfloat("LEASE")
        vars(redis)["LONGEST_PAUSE"] = min(lease / 4, redis.LONGEST_PAUSE)

    async def start(self) -> AsyncIterator[Request]:
        self.crawler.signals.connect(self.idle, signals.spider_idle)
        self.last_page = time.monotonic()
        async for request in super().start():
            yield request.replace(callback=self.parse, errback=None, dont_filter=False)

    def parse(self, response: Response, **_: Any) -> Iterator[Request]:
        self.pages += 1
        self.last_page = time.monotonic()
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a", callback=self.parse)

    def idle(self) -> None:
        # Another worker may still find pages.
        if time.monotonic() - self.last_page < self.settings.getfloat("LONGEST_IDLE"):
            raise DontCloseSpider

    def closed(self, reason: str) -> None:
        sys.stdout.write(str(self.pages))
