"""Random crawls without I/O on a virtual clock, and the laws that each crawl must obey.

The engine, the scheduler, the downloader and this package are real. The network is simulated: a
download handler answers from a scenario. The clock is that of the event loop, which advances to
the next timer when nothing else is left to do. So an hour takes milliseconds, and every order of
events can be repeated. Hypothesis generates the scenarios.

The laws of every crawl:

1. every request ends once;
2. no page is requested that the newest known policy of its origin disallows, but for one of each
   download slot that has waited for a delay of the crawl's own since before that policy was known;
3. all counters are zero and all queues empty at its end;
4. requests of one origin and one priority are sent in their original order, if the queue is ours;
5. requests to a host keep the known Crawl-delay of its origins;
6. no robots.txt is requested more often than necessary;
7. the crawl ends within a limit;
8. no page is requested outside of the Visit-time of its site, nor while its host is held because it
   has asked for fewer requests, with the same exception;
9. whatever raises, wherever, a robots.txt is requested at most REP_RETRY_TIMES + 1 times in a row;
10. whenever something is sent, a queue and its next request get the same answer from the gate,
    unless the rules disallow the URL of that request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import selectors
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, dropwhile, product
from typing import Any
from unittest.mock import patch
from urllib.parse import urljoin

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as random_seed
from hypothesis import strategies as st
from scrapy import Request, Spider
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.crawler import AsyncCrawlerRunner, Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse
from scrapy.http.request import NO_CALLBACK
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import Settings
from twisted.python.failure import Failure

from scrapy_rep import Addon, Reason, RobotsTxt, RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.stores.sqlite import MemoryStore
from testing.counters import left_over
from testing.faults import ErrorFault

EPOCH = 1_800_000_000.0  # eight o'clock
TURN = 1e-6
"""Seconds that each turn of the loop takes, so that timers a little later become due."""

MOMENT = 1e-3
"""Seconds within which two events count as simultaneous."""

LONGEST = 50_000.0
"""The limit of a crawl, in seconds of its own clock."""

MOST_TURNS = 40_000
"""The limit of a crawl, in turns of its event loop. The longest crawls need some 10,000."""

PATHS = ("/a", "/b", "/private/a", "/private/b", "/a/../private/a", "/./private/b", "/a;", "/b/..")
RULES = {
    "allow": "User-agent: *\nDisallow:\n",
    "private": "User-agent: *\nDisallow: /private/\n",
    "nothing": "User-agent: *\nDisallow: /\n",
}


IN_A_ROW = 55.0
"""Seconds within which requests for one robots.txt are in a row. The first retry of an unreachable
one comes after 60 seconds."""

PLACES = (
    "scrapy_rep.fetch.fetches.Fetches._on_content",
    "scrapy_rep.fetch.fetches.Fetches._on_result",
    "scrapy_rep.fetch.policy_store.PolicyStore.entry",
    "scrapy_rep.fetch.policy_store.PolicyStore.load",
    "scrapy_rep.fetch.fetcher.Fetcher._send",
    "scrapy_rep.fetch.fetcher.Fetcher._event",
    "scrapy_rep.fetch.fetcher.Fetcher._request",
    "scrapy_rep.fetch.fetcher.refusal",
    "testing.simulation.After.process_robots",
    "testing.simulation.Before.process_robots",
    "testing.simulation.Handler.download_robots",
    "testing.simulation.SimulatedStore.claim",
    "testing.simulation.SimulatedStore.close",
    "testing.simulation.SimulatedStore.get",
    "testing.simulation.SimulatedStore.put",
    "testing.simulation.SimulatedStore.release",
    "testing.simulation.SimulatedStore.reserve_host",
)
"""Functions of a fetch and of a store, which may raise any error."""

ERRORS = (AttributeError, KeyError, OSError, ValueError, asyncio.CancelledError)


@dataclass(frozen=True)
class Answer:
    """The response of an origin to a request for its robots.txt."""

    rules: str = "allow"
    status: int = 200
    latency: float = 0.0
    delay: float = 0.0
    """The Crawl-delay."""
    visit: str = ""
    """The Visit-time; a crawl begins at eight o'clock."""
    retry_after: int = 0
    """The Retry-After of a failure, in seconds."""

    @property
    def body(self) -> bytes:
        line = f"Crawl-delay: {self.delay}\n" if self.delay else ""
        line += f"Visit-time: {self.visit}\n" if self.visit else ""
        return (RULES[self.rules] + line).encode()


@dataclass(frozen=True)
class Site:
    """One origin. Each fetch of its robots.txt gets the next answer. The last one is repeated."""

    host: int
    port: int
    answers: tuple[Answer, ...]
    page_latency: float

    @property
    def root(self) -> str:
        return f"http://host{self.host}.test:{self.port}"


FATES = ("page",) * 12 + (
    "fails",
    "redirected",
    "dropped before",
    "dropped after",
    "answered before",
    "cached",
    "replaced",
    "sent back before",
    "sent back after",
    "slow down",
    "slow down for long",
)
"""What the network does with a request, or a middleware before or after this package's."""


@dataclass(frozen=True)
class Ask:
    """A request of the spider."""

    at: float
    site: int
    path: str
    priority: int = 0
    exempt: bool = False
    called: bool = False
    """It is given to ``engine.download_async``."""
    fate: str = "page"


@dataclass(frozen=True)
class Scenario:
    """One crawl."""

    sites: tuple[Site, ...]
    asks: tuple[Ask, ...]
    settings: dict[str, Any]
    steps: tuple[tuple[float, float], ...] = ()
    """When the wall clock is set, and by how many seconds."""
    stop_at: float | None = None
    max_parsed: int = 5_000
    """How many robots.txt files are parsed. The others are packed."""
    max_idle_hosts: int = 10_000
    """How many idle hosts keep their delay in the frontier."""
    faults: tuple[ErrorFault, ...] = ()


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock advances only while the loop is idle."""

    def __init__(self) -> None:
        super().__init__(_NoSelector(self))
        self.now = 0.0

    def time(self) -> float:
        return self.now


class _NoSelector(selectors.SelectSelector):
    """Waits only for the next timer."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._turns = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        self._turns += 1
        if timeout is None:
            raise AssertionError("the crawl hangs: it waits for nothing")
        if self._turns > MOST_TURNS:
            raise AssertionError("the crawl does not end: it is busy for ever")
        self._loop.now += timeout + TURN
        if self._loop.now > LONGEST:
            raise AssertionError("the crawl does not end")
        return []


@dataclass
class Network:
    """Answers requests from a scenario, and records them."""

    scenario: Scenario
    loop: VirtualLoop
    sites: dict[str, Site] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    pages: list[tuple[float, Request]] = field(default_factory=list)
    robots: dict[str, list[tuple[float, Answer]]] = field(default_factory=lambda: defaultdict(list))
    """The answers of each origin, each with the time of its arrival."""
    spans: dict[int, list[tuple[float, float, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """The start, the end and the URL of each request to a host."""
    rows: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """When the requests for a robots.txt began that were the last ones in a row."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the last request for a robots.txt ended."""
    held: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Since when, and until when, each host has asked for no request."""
    late: Counter[tuple[str, tuple[object, ...]]] = field(default_factory=Counter)
    """How many requests of each download slot were against what was known since an event."""
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sites = {site.root: site for site in self.scenario.sites}

    async def answer(self, request: Request) -> Response:
        root, _, path = request.url.partition("test:")
        port, _, path = path.partition("/")
        site = self.sites[f"{root}test:{port}"]
        began = self.loop.now
        self._check_pace(site, request, began)
        self._check_held(site, request, began)
        try:
            if path == "robots.txt":
                return await self._robots(site, request)
            self._check_rules(site, request, "/" + path)
            self._check_visit(site, request, began)
            self.pages.append((began, request))
            await asyncio.sleep(site.page_latency)
            fate = request.meta.get("fate")
            if fate == "fails":
                raise ConnectionError("reset")
            if fate == "redirected" and "moved" not in path:
                where = f"{self.scenario.sites[0].root}/a?{request.url.rpartition('?')[2]}&moved"
                return Response(request.url, 302, headers={"Location": where})
            if str(fate).startswith("slow down"):
                seconds = 100 if "long" in str(fate) else 1
                until = self.loop.now + seconds
                since, last = self.held.get(site.host, (0, 0))
                since = since if self.loop.now < last else self.loop.now
                self.held[site.host] = since, max(last, until)
                headers = {"Retry-After": "100"} if seconds > 1 else {}
                return TextResponse(request.url, status=429, headers=headers, body=b"too many")
            return TextResponse(request.url, body=b"a page")
        finally:
            self.spans[site.host].append((began, self.loop.now, request.url))

    async def _robots(self, site: Site, request: Request) -> Response:
        number = self.asked[site.root]
        self.asked[site.root] += 1
        answer = site.answers[min(number, len(site.answers) - 1)]
        limit = float(request.meta["download_timeout"])
        self._check_row(site)
        try:
            await asyncio.sleep(min(answer.latency, limit))
        except asyncio.CancelledError:
            self.rows[site.root].clear()
            raise
        finally:
            self.ended[site.root] = self.loop.now
        if answer.latency > limit:
            raise TimeoutError("too late")
        self.robots[site.root].append((self.loop.now, answer))
        body = answer.body if answer.status == 200 else b""
        headers = {"Retry-After": str(answer.retry_after)} if answer.retry_after else {}
        return TextResponse(request.url, status=answer.status, headers=headers, body=body)

    def _check_row(self, site: Site) -> None:
        """Check how many requests for a robots.txt are in a row."""
        row = self.rows[site.root]
        pause = min(answer.retry_after or IN_A_ROW for answer in site.answers)
        if self.loop.now - self.ended.get(site.root, 0) >= min(pause, IN_A_ROW):
            row.clear()
        stop = self.scenario.stop_at
        if stop is not None and any(at < stop + 1 <= self.loop.now for at in row):
            row.clear()  # the stop has cancelled the fetch, and a caller needs the file
        row.append(self.loop.now)
        most = self.scenario.settings["REP_RETRY_TIMES"] + 1
        if any(at < row[0] - IN_A_ROW for at, _ in self.robots[site.root]):
            most *= 2  # a refresh before the end of its lifetime, and a fetch at the end
        is_kept = self.scenario.settings["REP_CACHE_SIZE"] >= len(self.scenario.sites)
        if is_kept and len(row) > most:
            self.problems.append(f"{site.root} was asked {len(row)} times in a row")

    def _known(self, site: Site, seconds: float = MOMENT) -> Answer | None:
        """The newest answer that the crawler has known for so many seconds."""
        known = [answer for at, answer in self.robots[site.root] if at < self.loop.now - seconds]
        return known[-1] if known else None

    def _check_rules(self, site: Site, request: Request, path: str) -> None:
        if request.meta.get("dont_obey_robotstxt"):
            return
        answers = self.robots[site.root]
        if not answers:
            self.problems.append(f"{request.url} was sent before its robots.txt was there")
        if self.scenario.faults:  # an answer may not be known because of an error
            if not any(self._allows([answer], path) for _, answer in answers):
                self.problems.append(f"{request.url} was sent, against all of {answers}")
            return
        # An answer of this very moment may be known already, or not yet.
        first = max(sum(at < self.loop.now - MOMENT for at, _ in answers), 1)
        if answers and not any(
            self._allows([answer for _, answer in answers[:known]], path)
            for known in range(first, len(answers) + 1)
        ):
            self._check_late(request, f"sent, against {answers}", site.root, len(answers))

    @staticmethod
    def _allows(answers: list[Answer], path: str) -> bool:
        """Whether a path may be requested after these answers."""
        while len(answers) > 1 and answers[-1].status >= 500:
            answers = answers[:-1]  # while an origin is unreachable, its last answer holds
        last = answers[-1]
        if last.status == 200:
            robots = RobotsTxt.parse(last.body)
            sent = (path, urljoin("http://site.test", path))  # some handlers resolve dot segments
            return all(robots.allowed(url, "testbot") for url in sent)
        return last.status < 500

    def _check_pace(self, site: Site, request: Request, began: float) -> None:
        """Check the delay, if it was known and has not changed since the last request."""
        if self.scenario.settings["REP_CACHE_SIZE"] < len(self.sites) or self.scenario.faults:
            return  # the cache evicts the delays of idle hosts
        delays = [
            answer.delay
            for other in self.scenario.sites
            if other.host == site.host and (answer := self._known(other)) is not None
            if answer.status == 200 and not self._changes(other)
        ]
        delay = max(delays, default=0.0)
        if not delay:
            return
        spans = sorted(self.spans[site.host])  # the first page need not wait after robots.txt files
        for _, ended, url in dropwhile(lambda span: span[2].endswith("/robots.txt"), spans):
            if began - ended < delay - MOMENT:
                self.problems.append(f"{request.url} {began - ended} s after {url}, not {delay}")

    def _check_visit(self, site: Site, request: Request, began: float) -> None:
        """Check the Visit-time, if only the policy delays requests and the clock is right."""
        answer = self._known(site)
        exempt = request.meta.get("dont_obey_robotstxt")
        if self.scenario.steps or self._changes(site) or exempt or not answer:
            return
        if self.scenario.faults:
            return
        if answer.visit:
            first, last = (
                int(time[:2]) * 3600 + int(time[2:]) * 60 for time in answer.visit.split("-")
            )
            if not first - MOMENT <= (EPOCH + began) % 86400 <= last + 60 + MOMENT:
                self._check_late(request, f"sent at {began}, not {answer.visit}", site.root)

    def _check_held(self, site: Site, request: Request, began: float) -> None:
        """Check that a host is not asked too early."""
        since, until = self.held.get(site.host, (0, 0))
        if since + 10 * TURN < began < until - MOMENT:  # else it was sent before the answer came
            self._check_late(request, f"sent at {began} to a host that is held", site.host, since)

    def _check_late(self, request: Request, problem: str, *event: object) -> None:
        """Check that at most one request of a slot with a delay is against what an event says."""
        slot, settings = request.meta["download_slot"], self.scenario.settings
        self.late[slot, event] += 1
        own = settings.get("DOWNLOAD_SLOTS", {}).get(slot, {})
        delay = own.get("delay", settings["DOWNLOAD_DELAY"])
        if self.late[slot, event] > (delay > 0):
            self.problems.append(f"{request.url} was {problem}")

    def check_gates(self, crawler: Crawler) -> None:
        """Check that each queue and its next request get the same answer."""
        middleware = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        assert middleware is not None
        policies = middleware.policies
        for queue in tuple(middleware.frontier.hosts.all_queues()):
            if (request := queue.peek()) is None:
                continue
            judge = partial(policies.verdict, url=request.url, tokens=policies.tokens(request))
            of_queue = policies.gate(queue.address, queue.host.delay).place
            place, *_, verdict = policies.gate(queue.address, queue.host.delay, judge)
            is_disallowed = verdict is not None and verdict.reason is Reason.RULES
            if place is not of_queue and not is_disallowed:
                self.problems.append(f"{request.url} has {place}, but its queue {of_queue}")

    @staticmethod
    def _changes(site: Site) -> bool:
        return len({answer.delay for answer in site.answers}) > 1 or any(
            answer.status != 200 for answer in site.answers
        )


class Handler(BaseDownloadHandler):
    """Passes requests to the network of the crawl."""

    async def download_request(self, request: Request) -> Response:
        if request.meta.get("is_robotstxt_request"):
            await self.download_robots()
        network: Network = self.crawler.spider.network  # type: ignore[union-attr]
        network.check_gates(self.crawler)
        return await network.answer(request)

    async def download_robots(self) -> None:
        """Called before a robots.txt is downloaded."""


class SimulatedStore(MemoryStore):
    """A store of the simulation, which only one crawl uses."""

    def __init__(self, ttl: float) -> None:
        super().__init__(ttl=ttl, now=asyncio.get_running_loop().time)

    # Methods of this class, so that a fault concerns no other store.

    async def get(self, *arguments: Any) -> Any:
        return await super().get(*arguments)

    async def put(self, *arguments: Any) -> Any:
        return await super().put(*arguments)

    async def claim(self, *arguments: Any) -> Any:
        return await super().claim(*arguments)

    async def release(self, *arguments: Any) -> Any:
        return await super().release(*arguments)

    async def reserve_host(self, *arguments: Any) -> Any:
        return await super().reserve_host(*arguments)

    async def close(self) -> None:
        database = self.databases.pop(self._name, None)
        if database is not None:
            database.close()


class SendsBack:
    """Returns the request itself in place of its first response."""

    fate: str

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if request.meta.get("fate") != self.fate:
            return response
        request.meta["fate"] = "page"
        request.dont_filter = True
        return request


class Before(SendsBack):
    """A downloader middleware before that of this package."""

    fate = "sent back before"

    def process_robots(self) -> None:
        """Called before a robots.txt is downloaded."""

    def process_request(self, request: Request) -> Request | Response | None:
        if request.meta.get("is_robotstxt_request"):
            self.process_robots()
        match request.meta.get("fate"):
            case "dropped before":
                raise IgnoreRequest("not wanted")
            case "answered before":
                return TextResponse(request.url, body=b"an answer")
            case "replaced":
                meta = {**request.meta, "fate": "page"}
                return request.replace(meta=meta, dont_filter=True)
        return None


class After(SendsBack):
    """A downloader middleware after that of this package."""

    fate = "sent back after"

    def process_robots(self) -> None:
        """Called after a robots.txt was downloaded."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        if request.meta.get("is_robotstxt_request"):
            self.process_robots()
        return super().process_response(request, response)

    def process_request(self, request: Request) -> Response | None:
        match request.meta.get("fate"):
            case "dropped after":
                raise IgnoreRequest("not wanted")
            case "cached":
                return TextResponse(request.url, body=b"from a cache", flags=["cached"])
        return None


class OwnQueue(ScrapyPriorityQueue):
    """A priority queue of the project's own: requests wait in the downloader."""


class Asker(Spider):
    """Sends the requests of the scenario, and records how each of them ended."""

    name = "asker"

    def __init__(self, network: Network, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.network = network
        self.ends: Counter[int] = Counter()
        self.calls: list[asyncio.Task[None]] = []

    async def start(self) -> AsyncIterator[Any]:
        for number, ask in enumerate(self.network.scenario.asks):
            await asyncio.sleep(max(ask.at - self.network.loop.now, 0))
            site = self.network.scenario.sites[ask.site]
            request = Request(
                f"{site.root}{ask.path}?{number}",
                callback=self.parse,
                errback=self.failed,
                priority=ask.priority,
                cb_kwargs={"number": number},
                meta={"fate": ask.fate, **({"dont_obey_robotstxt": True} if ask.exempt else {})},
            )
            if ask.called:
                call = self._call(request.replace(callback=NO_CALLBACK, errback=None), number)
                self.calls.append(asyncio.create_task(call))
            else:
                yield request
        if self.calls:
            await asyncio.wait(self.calls)

    def parse(self, _: Response, number: int) -> None:
        self.ends[number] += 1

    def failed(self, failure: Failure) -> None:
        self.ends[failure.request.cb_kwargs["number"]] += 1  # type: ignore[attr-defined]
        expected = failure.request.meta["fate"] not in ("page", "redirected")  # type: ignore[attr-defined]
        if not failure.check(RobotsTxtDisallowed) and not expected:
            self.network.problems.append(f"{failure.value!r}")

    async def _call(self, request: Request, number: int) -> None:
        engine = self.crawler.engine
        assert engine is not None
        with contextlib.suppress(IgnoreRequest, ConnectionError):
            await engine.download_async(request)
        self.ends[number] += 1


async def crawl(network: Network) -> Crawler:
    """Run one crawl to its end."""
    scenario = network.scenario
    values: dict[str, Any] = {
        "ADDONS": {Addon: 500},
        "DOWNLOAD_HANDLERS": {"http": Handler, "https": None, "ftp": None, "s3": None},
        "DOWNLOAD_DELAY_JITTER": 0,
        "DOWNLOADER_MIDDLEWARES": {Before: 50, After: 950},
        "LOG_ENABLED": False,
        "MEMUSAGE_ENABLED": False,
        "RETRY_ENABLED": False,
        "ROBOTSTXT_USER_AGENT": "testbot",
        "TELNETCONSOLE_ENABLED": False,
        "TWISTED_REACTOR_ENABLED": False,
        "EXTENSIONS": {
            "scrapy.extensions.logstats.LogStats": None,
            "scrapy.extensions.corestats.CoreStats": None,
        },
        **scenario.settings,
    }
    merged = Settings()
    merged.setdict(values, priority="project")
    crawler = AsyncCrawlerRunner(merged).create_crawler(Asker)
    if scenario.stop_at is not None:
        network.loop.call_later(scenario.stop_at, _stop, crawler)
    await crawler.crawl_async(network=network)
    for _ in range(100):  # clean-up calls that are still scheduled
        await asyncio.sleep(0)
    return crawler


def _stop(crawler: Crawler) -> None:
    engine = crawler.engine
    if engine is not None and engine.spider is not None and engine.running:
        task = asyncio.ensure_future(engine.close_spider_async(reason="enough"))
        task.add_done_callback(lambda done: done.exception())


def crawled(scenario: Scenario) -> tuple[Network, Crawler]:
    """Crawl a scenario. Return its network, which has recorded the requests, and the crawler."""
    loop = VirtualLoop()
    network = Network(scenario, loop)

    def now(_: object) -> float:
        return EPOCH + loop.now + sum(step for at, step in scenario.steps if at <= loop.now)

    clock = "scrapy_rep.clock.Clock"
    try:
        with (
            contextlib.ExitStack() as stack,
            patch(f"{clock}.time", now),
            patch(f"{clock}.monotonic", lambda _: loop.now),
            patch("scrapy.core.downloader.monotonic", loop.time),
            patch("scrapy_rep.policies.origins.MAX_PARSED", scenario.max_parsed),
            patch("scrapy_rep.frontier.hosts.MAX_IDLE_HOSTS", scenario.max_idle_hosts),
            patch("scrapy_rep.stores.fallback.FIRST_RETRY", 0),
        ):
            for fault in scenario.faults:
                stack.enter_context(fault.injected())
            crawler = loop.run_until_complete(crawl(network))
    finally:
        loop.close()
    return network, crawler


def run(scenario: Scenario) -> list[str]:
    """Crawl a scenario, and return what was wrong."""
    network, crawler = crawled(scenario)
    return network.problems + _problems(network, crawler)


def _problems(network: Network, crawler: Crawler) -> list[str]:
    problems = []
    scenario = network.scenario
    spider: Any = crawler.spider
    if scenario.stop_at is None:
        for number in range(len(scenario.asks)):
            if spider.ends[number] != 1:
                problems.append(f"request {number} ended {spider.ends[number]} times")
    elif any(count > 1 for count in spider.ends.values()):
        problems.append(f"a request ended more than once: {spider.ends}")
    # Scrapy does not wait for a call whose page redirects after the spider has stopped.
    is_cut_off = scenario.stop_at is not None and any(ask.called for ask in scenario.asks)
    problems += [] if is_cut_off else left_over(crawler)
    # In the downloader, a request may overtake another one, as with Scrapy's own middleware.
    waits_there = scenario.settings.get("SCHEDULER_PRIORITY_QUEUE") is OwnQueue
    if not waits_there and "Fifo" in str(scenario.settings):
        problems += _out_of_order(network)
    reasons = 2 * len(scenario.asks) * (1 + scenario.settings["REP_RETRY_TIMES"])
    reasons *= _attempts(scenario)
    problems += [
        f"{root} was asked {count} times for its robots.txt"
        for root, count in network.asked.items()
        if count > reasons + 1
    ]
    return problems


def _attempts(scenario: Scenario) -> int:
    """The number of attempts to fetch a robots.txt that a request may wait for."""
    if scenario.settings.get("REP_ON_UNREACHABLE") != "wait":
        return 1
    limit = scenario.settings.get("REP_TIMEOUT", 30)  # what comes later is not read
    answers = [answer for site in scenario.sites for answer in site.answers]
    pauses = [(answer.latency <= limit and answer.retry_after) or 60 for answer in answers]
    return 1 + int(scenario.settings["REP_MAX_WAIT"] // min(pauses))


def _out_of_order(network: Network) -> list[str]:
    last: dict[tuple[str, int, bool], int] = {}
    problems = []
    for _, request in network.pages:
        number = request.cb_kwargs.get("number")
        if number is None or network.scenario.asks[number].called:
            continue
        if network.scenario.asks[number].fate.startswith(("redirected", "replaced", "sent back")):
            continue
        exempt = bool(request.meta.get("dont_obey_robotstxt"))
        site = network.scenario.sites[network.scenario.asks[number].site]
        key = site.root, request.priority, exempt
        if number < last.get(key, -1):
            problems.append(f"{request.url} came after {last[key]}")
        last[key] = max(number, last.get(key, -1))
    return problems


# Scenarios

LATE = 350.0
"""Seconds after which the last requests come: the shorter lifetimes are over. The crawl looks at
its state twice a second, which takes most of the time of a simulation."""

latencies = st.sampled_from([0.0, 0.1, 1.0, 3.0, 40.0])
answers = st.builds(
    Answer,
    rules=st.sampled_from(sorted(RULES)),
    status=st.sampled_from([200, 200, 200, 404, 503]),
    latency=latencies,
    delay=st.sampled_from([0.0, 0.0, 0.5, 3.0, 60.0]),
    visit=st.sampled_from(["", "", "", "", "0600-0801", "0802-0900"]),
    retry_after=st.sampled_from([0, 0, 100, 500]),
)


@st.composite
def sites(draw: st.DrawFn) -> tuple[Site, ...]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        found.append(
            Site(
                host=draw(st.integers(0, number)),
                port=8000 + number,
                answers=tuple(draw(st.lists(answers, min_size=1, max_size=3))),
                page_latency=draw(st.sampled_from([0.0, 0.2, 5.0])),
            )
        )
    return tuple(found)


faults = st.builds(
    ErrorFault,
    place=st.sampled_from(PLACES),
    error=st.sampled_from(ERRORS),
    share=st.sampled_from([0.2, 0.7, 1.0]),
    seed=st.integers(0, 9),
)

settings_of_crawls = st.fixed_dictionaries(
    {
        "CONCURRENT_REQUESTS": st.integers(1, 5),
        "CONCURRENT_REQUESTS_PER_DOMAIN": st.sampled_from([1, 8]),
        "DOWNLOAD_DELAY": st.sampled_from([0, 0, 0.3]),
        "DOWNLOAD_SLOTS": st.sampled_from([{}, {}, {"host0.test": {"delay": 0.7}}]),
        "REP_CACHE_SIZE": st.sampled_from([1, 2, 1000]),
        "REP_CONCURRENT_ROBOTSTXT_REQUESTS": st.sampled_from([1, 2, 100]),
        "REP_RETRY_TIMES": st.sampled_from([0, 1]),
        "REP_STORE": st.sampled_from([None, None, None, SimulatedStore]),
        "REP_TIMEOUT": st.just(10),
        "REP_ON_UNREACHABLE": st.sampled_from(["disallow", "wait"]),
        "REP_MAX_WAIT": st.sampled_from([300, 20]),
        "REP_TTL_RANGE": st.tuples(st.sampled_from([2, 300]), st.sampled_from([300, 86400])),
        "SCHEDULER_PRIORITY_QUEUE": st.sampled_from(
            [
                "scrapy.pqueues.DownloaderAwarePriorityQueue",
                "scrapy.pqueues.ScrapyPriorityQueue",
                OwnQueue,
            ]
        ),
        "SCHEDULER_MEMORY_QUEUE": st.sampled_from(
            ["scrapy.squeues.FifoMemoryQueue", "scrapy.squeues.LifoMemoryQueue"]
        ),
        "SCHEDULER_START_MEMORY_QUEUE": st.just("scrapy.squeues.FifoMemoryQueue"),
    }
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    there = draw(sites())
    asks = draw(
        st.lists(
            st.builds(
                Ask,
                at=st.sampled_from([0.0, 0.0, 0.0, 0.1, 2.0, 200.0, LATE]),
                site=st.integers(0, len(there) - 1),
                path=st.sampled_from(PATHS),
                priority=st.sampled_from([0, 0, 0, 5, -2]),
                exempt=st.sampled_from([False, False, False, True]),
                called=st.sampled_from([False, False, False, True]),
                fate=st.sampled_from(FATES),
            ),
            min_size=1,
            max_size=25,
        )
    )
    return Scenario(
        sites=there,
        asks=tuple(sorted(asks, key=lambda ask: ask.at)),
        settings=draw(settings_of_crawls),
        steps=tuple(
            draw(
                st.lists(
                    st.tuples(
                        st.sampled_from([0.5, 5.0, 300.0]),
                        st.sampled_from([-1e6, -100.0, 100.0, 1e6]),
                    ),
                    max_size=2,
                )
            )
        ),
        stop_at=draw(st.sampled_from([None, None, None, 0.05, 1.0, 70.0])),
        max_parsed=draw(st.sampled_from([1, 5_000])),
        max_idle_hosts=draw(st.sampled_from([1, 10_000])),
        faults=tuple(draw(st.one_of(st.just([]), st.lists(faults, min_size=1, max_size=3)))),
    )


def error_scenarios() -> Iterator[Scenario]:
    """Yield crawls in which one function always raises: each function, with each error.

    Every other one waits for a robots.txt that is unreachable.
    """
    sites = (Site(0, 8000, (Answer("private", 503, latency=1.0), Answer("private")), 0.0),)
    asks = (Ask(0.0, 0, "/a"), Ask(0.0, 0, "/b", called=True), Ask(200.0, 0, "/a"))
    policies = cycle(("disallow", "wait"))
    for (place, error), unreachable in zip(product(PLACES, ERRORS), policies):
        values = {
            "REP_TTL_RANGE": (2, 86400),
            "REP_MAX_WAIT": 20,
            "REP_RETRY_TIMES": 1,
            "REP_STORE": SimulatedStore,
            "REP_ON_UNREACHABLE": unreachable,
        }
        yield Scenario(sites, asks, values, faults=(ErrorFault(place, error, 1.0, 0),))


def check_errors() -> None:
    """Run the crawls of :func:`error_scenarios`. Raises AssertionError if one breaks a law."""
    logging.disable(logging.CRITICAL)
    for scenario in error_scenarios():
        problems = run(scenario)
        assert not problems, (scenario, problems[:5])


def check(examples: int, seed: int | None, shrink: bool) -> None:
    """Look for a scenario that breaks a law: AssertionError has it. ``shrink`` finds the smallest.

    Without a ``seed``, the scenarios are those of every run.
    """
    logging.disable(logging.CRITICAL)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=seed is None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios())
    def laws_hold(scenario: Scenario) -> None:
        problems = run(scenario)
        assert not problems, problems[:5]

    if seed is not None:
        laws_hold = random_seed(seed)(laws_hold)
    laws_hold()
