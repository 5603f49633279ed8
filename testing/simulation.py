"""Random crawls without I/O on a virtual clock, and the laws that each crawl must obey.

The engine, the scheduler, the downloader and this package are real. The network is simulated: a
download handler answers from a scenario. The clock is that of the event loop, which advances to
the next timer when nothing else is left to do. So an hour takes milliseconds, and every order of
events can be repeated. Hypothesis generates the scenarios.

The laws of every crawl:

1. every request ends once;
2. no page is requested that a local rule or the newest known policy of its origin disallows, but
   for one of each download slot that has waited for a delay of the crawl's own since before that
   policy was known;
3. all counters are zero and all queues empty at its end;
4. requests of one origin and one priority are sent in their original order, if the queue is ours;
5. requests to a host keep the known Crawl-delay of its origins;
6. no robots.txt is requested more often than necessary;
7. the crawl ends within a limit;
8. no page is requested outside of the Visit-time of its site, nor while its host is held because it
   has asked for fewer requests, with the same exception;
9. whatever raises, wherever, a robots.txt is requested at most REP_RETRY_TIMES + 1 times in a row;
10. whenever something is sent, a queue and its next request get the same answer from the gate,
    unless the rules disallow the URL of that request;
11. nothing waits longer than it has to: before time passes, each request that may start has
    started, or starts within a delay of the crawl's own, unless CONCURRENT_REQUESTS are in
    progress.

Each problem begins with the number of its law.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import selectors
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, dropwhile, product
from pathlib import Path
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
from scrapy_rep.policies.gate import Place
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

MOST_TURNS = 200_000
"""The limit of a crawl, in turns of its event loop. Most crawls need less than 10,000, and the
longest some 120,000: a download handler that always fails holds the only permit for minutes."""

PATHS = ("/a", "/b", "/private/a", "/private/b", "/a/../private/a", "/./private/b", "/a;", "/b/..")
RULES = {
    "allow": "User-agent: *\nDisallow:\n",
    "private": "User-agent: *\nDisallow: /private/\n",
    "nothing": "User-agent: *\nDisallow: /\n",
}
LOCAL_RULES = {
    "disallow": 'site = "*.test"\nrules = "Disallow: /b"\nreason = "a"\ngiven_by = "b"\n',
    "exception": 'site = "*.test"\nrules = "Allow: /private/a"\nreason = "a"\ngiven_by = "b"\n'
    "until = 2030-01-01\n",
}
"""The table of REP_LOCAL_RULES of each kind."""

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
    max_age: int = 0
    """The lifetime that Cache-Control states, in seconds; 0: none."""
    moved: bool = False
    """The file is at the next site: a redirect leads there."""

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
    local: str = ""
    """The kind of its local rule."""
    on_disk: bool = False
    """The queues are in a JOBDIR."""
    crawlers: int = 1
    """How many crawlers share the requests, and a store if they are several."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock advances only while the loop is idle."""

    def __init__(self) -> None:
        super().__init__(_NoSelector(self))
        self.now = 0.0
        self.before_waiting: Callable[[], None] = lambda: None

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
            raise AssertionError("law 7: the crawl hangs: it waits for nothing")
        if self._turns > MOST_TURNS:
            raise AssertionError("law 7: the crawl does not end: it is busy for ever")
        if timeout > 0:
            self._loop.before_waiting()
        self._loop.now += timeout + TURN
        if self._loop.now > LONGEST:
            raise AssertionError("law 7: the crawl does not end")
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
    crawlers: list[Crawler] = field(default_factory=list)
    """The crawlers whose spider has begun."""
    ready: dict[Any, float] = field(default_factory=dict)
    """The queues whose next request may start, and since when."""

    def __post_init__(self) -> None:
        self.sites = {site.root: site for site in self.scenario.sites}
        self.loop.before_waiting = self.check_waits

    def broken(self, law: int, problem: str) -> None:
        """Note that a crawl has broken a law."""
        self.problems.append(f"law {law}: {problem}")

    async def answer(self, request: Request) -> Response:
        root, _, path = request.url.partition("test:")
        port, _, path = path.partition("/")
        site = self.sites[f"{root}test:{port}"]
        began = self.loop.now
        self._check_pace(site, request, began)
        self._check_held(site, request, began)
        try:
            if path == "robots.txt":
                self.asked[site.root] += 1
                return await self._robots(site, request)
            if path.endswith("/robots.txt"):  # that of another site
                moved = next(each for each in self.sites.values() if str(each.port) in path)
                return await self._robots(moved, request)
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
        answer = site.answers[min(self.asked[site.root], len(site.answers)) - 1]
        limit = float(request.meta["download_timeout"])
        is_moved = request.url != f"{site.root}/robots.txt"
        if not is_moved:
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
        if answer.moved and not is_moved:
            roots = [*self.sites]
            target = roots[(roots.index(site.root) + 1) % len(roots)]
            where = {"Location": f"{target}/{site.port}/robots.txt"}
            return Response(request.url, 302, headers=where)
        if answer.status < 500 and not self.scenario.faults:
            self.rows[site.root].clear()
        self.robots[site.root].append((self.loop.now, answer))
        body = answer.body if answer.status == 200 else b""
        headers = {"Retry-After": str(answer.retry_after)} if answer.retry_after else {}
        if answer.max_age:
            headers["Cache-Control"] = f"max-age={answer.max_age}"
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
        # With a store that fails, each crawler fetches the file.
        most = (self.scenario.settings["REP_RETRY_TIMES"] + 1) * self.scenario.crawlers
        if any(at < row[0] - IN_A_ROW for at, _ in self.robots[site.root]):
            most *= 2  # a refresh before the end of its lifetime, and a fetch at the end
        is_kept = self.scenario.settings["REP_CACHE_SIZE"] >= len(self.scenario.sites)
        if is_kept and len(row) > most:
            self.broken(9, f"{site.root} was asked {len(row)} times in a row")

    def _known(self, site: Site) -> Answer | None:
        """The newest answer that the crawler has known for a moment."""
        known = [answer for at, answer in self.robots[site.root] if at < self.loop.now - MOMENT]
        return known[-1] if known else None

    def _check_rules(self, site: Site, request: Request, path: str) -> None:
        if self.scenario.local == "disallow" and path.startswith("/b"):
            self.broken(2, f"{request.url} was sent, against a local rule")
        is_excepted = self.scenario.local == "exception" and "/private/a" in path
        if request.meta.get("dont_obey_robotstxt") or is_excepted:
            return
        answers = self.robots[site.root]
        if not answers:
            self.broken(2, f"{request.url} was sent before its robots.txt was there")
        if self.scenario.faults:  # an answer may not be known because of an error
            if not any(self._allows([answer], path) for _, answer in answers):
                self.broken(2, f"{request.url} was sent, against all of {answers}")
            return
        # An answer of this very moment may be known already, or not yet.
        first = max(sum(at < self.loop.now - MOMENT for at, _ in answers), 1)
        if answers and not any(
            self._allows([answer for _, answer in answers[:known]], path)
            for known in range(first, len(answers) + 1)
        ):
            self._check_late(2, request, f"sent, against {answers}", site.root, len(answers))

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
                self.broken(5, f"{request.url} {began - ended} s after {url}, not {delay}")

    def _check_visit(self, site: Site, request: Request, began: float) -> None:
        """Check the Visit-time, if only the policy delays requests and the clock is right."""
        answer = self._known(site)
        exempt, scenario = request.meta.get("dont_obey_robotstxt"), self.scenario
        if scenario.steps or scenario.faults or self._changes(site) or exempt or not answer:
            return
        if answer.visit:
            times = answer.visit.split("-")
            first, last = (int(time[:2]) * 3600 + int(time[2:]) * 60 for time in times)
            if not first - MOMENT <= (EPOCH + began) % 86400 <= last + 60 + MOMENT:
                self._check_late(8, request, f"sent at {began}, not {answer.visit}", site.root)

    def _check_held(self, site: Site, request: Request, began: float) -> None:
        """Check that a host is not asked too early."""
        since, until = self.held.get(site.host, (0, 0))
        if self.scenario.crawlers > 1:
            return  # each crawler backs off by itself
        if since + 10 * TURN < began < until - MOMENT:  # else it was sent before the answer came
            problem = f"sent at {began} to a host that is held"
            self._check_late(8, request, problem, site.host, since)

    def _check_late(self, law: int, request: Request, problem: str, *event: object) -> None:
        """Check that at most one request of a slot with a delay is against what an event says."""
        slot, settings = request.meta["download_slot"], self.scenario.settings
        self.late[slot, event] += 1
        own = settings.get("DOWNLOAD_SLOTS", {}).get(slot, {})
        delay = own.get("delay", settings["DOWNLOAD_DELAY"])
        if self.late[slot, event] > (delay > 0):
            self.broken(law, f"{request.url} was {problem}")

    def check_gates(self, crawler: Crawler) -> None:
        """Check that each queue and its next request get the same answer."""
        middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
        policies = middleware.policies
        for queue in tuple(middleware.frontier.hosts.all_queues()):
            if (request := queue.peek()) is None:
                continue
            judge = partial(policies.verdict, url=request.url, tokens=policies.tokens(request))
            of_queue = policies.gate(queue.address, queue.host.delay).place
            place, *_, verdict = policies.gate(queue.address, queue.host.delay, judge)
            is_disallowed = verdict is not None and verdict.reason is Reason.RULES
            if place is not of_queue and not is_disallowed:
                self.broken(10, f"{request.url} has {place}, but its queue {of_queue}")

    def check_waits(self) -> None:
        """Check that no request waits that may start. Time is about to pass."""
        ready, now = dict[Any, float](), self.loop.now
        for crawler in () if self.scenario.faults else self.crawlers:
            middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
            engine: Any = crawler.engine
            frontier = middleware.frontier
            if engine.spider is None or frontier.closing.has_begun or engine.needs_backout():
                continue
            for queue in frontier.hosts.all_queues():
                if frontier.gate(queue).place is Place.READY:
                    since = ready[queue] = self.ready.get(queue, now)
                    # It would only wait for the rest of that delay in the download slot.
                    if now - since >= queue.slot.own_delay:
                        self.broken(11, f"{queue.peek()} waits at {now} though it may start")
        self.ready = ready

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
    """A store of the simulation, which the crawlers of one scenario share."""

    def __init__(self, ttl: float) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(f"simulation {id(loop)}", ttl=ttl, now=loop.time)


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
    """Sends its part of the requests of the scenario, and records how each of them ended."""

    name = "asker"

    def __init__(self, network: Network, part: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.network = network
        self.part = part
        self.ends: Counter[int] = Counter()
        self.calls: list[asyncio.Task[None]] = []

    async def start(self) -> AsyncIterator[Any]:
        self.network.crawlers.append(self.crawler)
        scenario = self.network.scenario
        for number, ask in [*enumerate(scenario.asks)][self.part :: scenario.crawlers]:
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
            self.network.broken(1, f"{failure.request} failed: {failure.value!r}")  # type: ignore[attr-defined]

    async def _call(self, request: Request, number: int) -> None:
        engine: Any = self.crawler.engine
        with contextlib.suppress(IgnoreRequest, ConnectionError):
            await engine.download_async(request)
        self.ends[number] += 1


async def crawl(network: Network, part: int, folder: Path) -> None:
    """Run one crawler to its end. Its files are in a folder."""
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
    if scenario.local:
        values["REP_LOCAL_RULES"] = folder / "rules.toml"
        text = f"[[{scenario.local}]]\n{LOCAL_RULES[scenario.local]}"
        values["REP_LOCAL_RULES"].write_text(text, "utf-8")
    if scenario.on_disk:
        values["JOBDIR"] = str(folder / str(part))
    if scenario.crawlers > 1:
        values["REP_STORE"] = SimulatedStore
    merged = Settings()
    merged.setdict(values, priority="project")
    crawler = AsyncCrawlerRunner(merged).create_crawler(Asker)
    if scenario.stop_at is not None:
        network.loop.call_later(scenario.stop_at, _stop, crawler)
    await crawler.crawl_async(network=network, part=part)
    for _ in range(100):  # clean-up calls that are still scheduled
        await asyncio.sleep(0)


async def crawl_all(network: Network) -> None:
    """Run all crawlers of a scenario to their end."""
    with tempfile.TemporaryDirectory() as folder:
        parts = range(network.scenario.crawlers)
        await asyncio.gather(*(crawl(network, part, Path(folder)) for part in parts))


def _stop(crawler: Crawler) -> None:
    engine = crawler.engine
    if engine is not None and engine.spider is not None and engine.running:
        task = asyncio.ensure_future(engine.close_spider_async(reason="enough"))
        task.add_done_callback(lambda done: done.exception())


def crawled(scenario: Scenario) -> Network:
    """Crawl a scenario. Return its network, which has recorded the requests."""
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
            loop.run_until_complete(crawl_all(network))
    except AssertionError as error:  # it hangs, or does not end
        network.problems.append(str(error))
    finally:
        loop.close()
        SimulatedStore.databases.pop(f"simulation {id(loop)}", None)
    return network


def run(scenario: Scenario) -> list[str]:
    """Crawl a scenario, and return what was wrong."""
    network = crawled(scenario)
    _check_ends(network)
    # In the downloader, a request may overtake another one, as with Scrapy's own middleware.
    waits_there = scenario.settings.get("SCHEDULER_PRIORITY_QUEUE") is OwnQueue
    if not waits_there and "Fifo" in str(scenario.settings):
        _check_order(network)
    for site in scenario.sites:
        count, most = network.asked[site.root], _most_fetches(network, site)
        if count > most:
            network.broken(6, f"{site.root} was asked {count} times for its robots.txt, not {most}")
    return network.problems


def _check_ends(network: Network) -> None:
    """Check how often each request has ended, and that nothing is left of the crawls."""
    scenario, ends = network.scenario, Counter[int]()
    for crawler in network.crawlers:
        spider: Any = crawler.spider
        ends += spider.ends
    for number in range(len(scenario.asks)):
        if ends[number] > 1 or (ends[number] < 1 and scenario.stop_at is None):
            network.broken(1, f"request {number} ended {ends[number]} times")
    # Scrapy does not wait for a call whose page redirects after the spider has stopped.
    if scenario.stop_at is None or not any(ask.called for ask in scenario.asks):
        for crawler in network.crawlers:
            for problem in left_over(crawler):
                network.broken(3, problem)


def _most_fetches(network: Network, site: Site) -> int:
    """Return how often the crawls may have requested a robots.txt."""
    scenario, settings = network.scenario, network.scenario.settings
    reasons: int = 2 * len(scenario.asks) * (1 + settings["REP_RETRY_TIMES"])
    most = 1 + reasons * _attempts(scenario)
    answer, *others = site.answers
    is_kept = settings.get("REP_CACHE_SIZE", 10**6) >= len(scenario.sites) or scenario.crawlers > 1
    is_plain = answer.status == 200 and answer.latency < 10 and not (others or answer.moved)
    if is_plain and is_kept and not scenario.faults and scenario.stop_at is None:
        least, longest = settings.get("REP_TTL_RANGE", (300, 86400))
        lifetime = min(max(answer.max_age or 86400, least), longest)
        return min(most, 1 + int(network.loop.now / (0.9 * lifetime)))
    return most


def _attempts(scenario: Scenario) -> int:
    """The number of attempts to fetch a robots.txt that a request may wait for."""
    if scenario.settings.get("REP_ON_UNREACHABLE") != "wait":
        return 1
    limit = scenario.settings.get("REP_TIMEOUT", 30)  # what comes later is not read
    answers = [answer for site in scenario.sites for answer in site.answers]
    pauses = [(answer.latency <= limit and answer.retry_after) or 60 for answer in answers]
    return 1 + int(scenario.settings["REP_MAX_WAIT"] // min(pauses))


def _check_order(network: Network) -> None:
    """Check the order of the requests of each origin, priority and crawler."""
    last: dict[tuple[object, ...], int] = {}
    for _, request in network.pages:
        number = request.cb_kwargs.get("number")
        if number is None or network.scenario.asks[number].called:
            continue
        if network.scenario.asks[number].fate.startswith(("redirected", "replaced", "sent back")):
            continue
        exempt = bool(request.meta.get("dont_obey_robotstxt"))
        site = network.scenario.sites[network.scenario.asks[number].site]
        key = site.root, request.priority, exempt, number % network.scenario.crawlers
        if number < last.get(key, -1):
            network.broken(4, f"{request.url} came after {last[key]}")
        last[key] = max(number, last.get(key, -1))


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
    max_age=st.sampled_from([0, 0, 1, 20]),
    moved=st.sampled_from([False, False, False, True]),
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
    crawlers = draw(st.sampled_from([1, 1, 1, 1, 2]))
    if crawlers > 1:  # what one crawler knows, the other may not know yet: a file never changes
        there = tuple(replace(site, answers=site.answers[:1]) for site in there)
    asks = draw(
        st.lists(
            st.builds(
                Ask,
                at=st.sampled_from([0.0, 0.0, 0.0, 0.1, 2.0, 200.0, LATE]),
                site=st.integers(0, len(there) - 1),
                path=st.sampled_from(PATHS),
                priority=st.sampled_from([0, 0, 0, 5, -2]),
                exempt=st.sampled_from([False, False, False, crawlers == 1]),
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
        local=draw(st.sampled_from(["", "", "", *LOCAL_RULES])),
        on_disk=draw(st.sampled_from([False, False, False, True])),
        crawlers=crawlers,
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
