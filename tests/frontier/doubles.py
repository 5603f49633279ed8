"""A frontier on an engine, policies and the clock of :mod:`testing.clock`, all set by the test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Coroutine
from math import inf
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.squeues import FifoMemoryQueue
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred

from scrapy_rep.closing import Closing
from scrapy_rep.frontier import queued
from scrapy_rep.frontier.frontier import Frontier
from scrapy_rep.frontier.queue import OriginPriorityQueue
from scrapy_rep.frontier.waiting import Waiting
from scrapy_rep.policies.gate import FETCHING, READY, UNKNOWN, Address, Gate, Kind, Place, Wait
from scrapy_rep.protocol.paths import host_of, origin_of
from scrapy_rep.recorder import Events, Recorder
from scrapy_rep.scrapy_internals import Engine
from scrapy_rep.settings import read_settings
from testing.clock import FakeClock
from testing.counters import left_in_frontier

BEGUN: list[Deferred[Any]] = []
MADE: list[FakeCrawl] = []


def begin(coroutine: Coroutine[Any, Any, Any]) -> Deferred[Any]:
    """Begin to run a coroutine, which is canceled at the end of the test."""
    deferred: Deferred[Any] = deferred_from_coro(coroutine)
    BEGUN.append(deferred)
    return deferred


class FakeScrapyEngine:
    """What this package uses of an engine of Scrapy. A test sets what its downloader has."""

    def __init__(self) -> None:
        self.woken = 0
        self.downloader: Any = SimpleNamespace(active=set(), slots={}, total_concurrency=16)
        nextcall = SimpleNamespace(schedule=self._wake)
        self._slot = SimpleNamespace(nextcall=nextcall, closing=None, inprogress=set())

    def _wake(self) -> None:
        self.woken += 1


class FakeEngine(Engine):
    """Our view of :class:`FakeScrapyEngine`. A test says what its download slots do."""

    def __init__(self) -> None:
        self.scrapy = FakeScrapyEngine()
        crawler: Any = SimpleNamespace(engine=self.scrapy, spider=None)
        super().__init__(crawler)
        self.open()
        self.unsent = 0.0
        """The seconds until the next look at a request in its download slot; 0 if it was sent."""
        self.delays: defaultdict[str, float] = defaultdict(float)
        """The rest of the delay of each download slot."""

    @property
    def active(self) -> set[Request]:
        """The requests in the downloader."""
        active: set[Request] = self.scrapy.downloader.active
        return active

    @property
    def woken(self) -> int:
        return self.scrapy.woken

    def seconds_unsent(self, _: Request) -> float:
        return self.unsent

    def own_delay_left(self, slot: str) -> float:
        return self.delays[slot]


class FakePolicies:
    """Policies that a test sets. An origin without one is unknown, and a fetch of it has begun."""

    def __init__(self) -> None:
        self.gates: defaultdict[str, Gate] = defaultdict(lambda: UNKNOWN)
        self.fetched: list[str] = []
        """The origins whose robots.txt was fetched, in their order."""
        self.pages: list[str] = []
        """The URLs of the pages for which they were fetched."""
        self.origins: set[str] = set()
        """The origins that are known, and have expired."""
        self.free = 10**6
        """How many more fetches may begin."""
        self.recent: set[str] = set()
        self.attempts: dict[str, int] = {}
        """The attempts of the fetches in progress, by host."""

    def attempt(self, host: str) -> int:
        return self.attempts.get(host, 0)

    def address(self, request: Request) -> Address:
        origin = origin_of(request.url)
        if origin is None:
            return Address("", None, Kind.EXEMPT)
        kind = Kind.EXEMPT if request.meta.get("dont_obey_robotstxt") else Kind.OBEY
        if request.url.endswith("/robots.txt"):
            kind = Kind.ROBOTS_TXT
        return Address(host_of(origin), origin, kind, request.meta.get("download_slot"))

    def gate(self, address: Address, delay: float) -> Gate:
        if address.origin is None or address.kind in (Kind.EXEMPT, Kind.ROBOTS_TXT):
            return READY
        return self.gates[address.origin]

    @property
    def limit(self) -> FakePolicies:
        return self

    def can_begin(self) -> bool:
        return self.free > 0

    def end_oldest(self) -> None:
        """End no fetch."""

    def begin(self, origin: str, request: Request) -> None:
        self.free -= 1
        self.recent.add(origin)
        self.fetched.append(origin)
        self.pages.append(request.url)
        self.gates[origin] = FETCHING

    def last_delay(self, key: str | None) -> float:
        return 0


class FakeCrawl:
    """A frontier on a fake clock, engine and policies, and its queue in memory."""

    def __init__(
        self, settings: dict[str, Any] | None = None, *, queue: Any = None, reservations: Any = None
    ) -> None:
        self.clock = FakeClock()
        self.engine = FakeEngine()
        self.policies = FakePolicies()
        self.waits: list[tuple[str, str, float]] = []
        self.crawler = get_crawler(settings_dict=settings)
        policies: Any = self.policies
        log: Any = Events()
        log.waited = lambda *wait: self.waits.append(wait)
        read = read_settings(self.crawler)
        recorder = Recorder(self.crawler, read, self.clock, log)
        closing = Closing(self.clock)
        self.frontier = Frontier(
            *(read, self.engine, self.clock, closing, policies, recorder),
            *(lambda _: policies, reservations),
        )
        MADE.append(self)
        self.waiting = Waiting(self.frontier)
        owner = queued.FrontierOwner()
        owner.frontier = self.frontier
        scrapy_engine: Any = self.engine.scrapy
        scrapy_engine.downloader.middleware = SimpleNamespace(middlewares=[owner])
        self.crawler.engine = scrapy_engine
        self.queue: OriginPriorityQueue = (queue or OriginPriorityQueue).from_crawler(
            self.crawler, FifoMemoryQueue, "", start_queue_cls=FifoMemoryQueue
        )

    def push(self, *urls: str, priority: int = 0, **meta: Any) -> None:
        for url in urls:
            self.queue.push(Request(url, priority=priority, meta=meta))

    def pop(self) -> Request | None:
        """Remove a request, which the downloader then has."""
        request = self.queue.pop()
        if request is not None:
            self.engine.active.add(request)
        return request

    def take(self) -> Request:
        """Remove a request. There is one that may start."""
        request = self.pop()
        assert request is not None
        return request

    def stat(self, name: str) -> Any:
        assert self.crawler.stats is not None
        return self.crawler.stats.get_value(f"robotstxt/{name}")

    def pop_url(self) -> str | None:
        request = self.pop()
        return None if request is None else request.url

    def pop_all(self) -> list[str]:
        """Remove all requests that may start. Return their URLs."""
        return [request.url for request in iter(self.pop, None)]

    def end(self, request: Request, *, sent: bool = True) -> None:
        """End a request."""
        self.engine.active.discard(request)
        self.frontier.end(request, sent=sent)

    def refuse(self, request: Request, seconds: float | None = None, status: int = 429) -> None:
        """End a request whose answer asks for fewer requests, for so many seconds if it says so."""
        self.frontier.note_answer(self.frontier.in_progress[request], status, seconds)
        self.end(request)

    def try_start(self, request: Request) -> bool:
        """Let a request arrive in the downloader. Return whether it starts at once."""
        self.engine.active.add(request)
        address = self.policies.address(request)
        is_open = self.frontier.pace_of(request, address).place is Place.READY
        if is_open:
            self.frontier.enter(request, address)
        else:
            self.frontier.end(request, sent=False)  # as if it began to wait
        return is_open

    def wait(self, *requests: Request) -> list[Deferred[bool]]:
        """Let requests wait in the downloader."""
        self.engine.active.update(requests)
        return [begin(self.waiting.wait(each)) for each in requests]

    def set(self, origin: str, place: Place, seconds: float = inf) -> None:
        """Set what the policy of an origin means."""
        wait = Wait.UNREACHABLE if place is Place.WAITING else None
        self.policies.gates[origin] = Gate(place, seconds, wait)
        self.frontier.update_origin(host_of(origin), origin)

    def set_ready(self, *origins: str) -> None:
        for origin in origins:
            self.set(origin, Place.READY)

    def places(self) -> dict[str, Place]:
        """The place of each queue, by its origin."""
        return {
            str(queue.address.origin): queue.place for queue in self.frontier.hosts.all_queues()
        }

    def left_over(self) -> dict[str, int]:
        """What is left of a crawl."""
        return {name: number for name, number in left_in_frontier(self.frontier).items() if number}
