"""Random calls of a frontier in any order, and what holds after each of them."""

from __future__ import annotations

from math import inf
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from scrapy import Request

from scrapy_rep.frontier.hosts import Queue
from scrapy_rep.frontier.queue import OriginPriorityQueue, PriorityFirstQueue
from scrapy_rep.policies.gate import Place

from .doubles import FakeCrawl

ORIGINS = ["http://a.example", "https://a.example", "http://b.example", "http://c.example"]
PLACES = [*[Place.READY] * 2, Place.UNKNOWN, Place.FETCHING, Place.DROPS, Place.WAITING]


class Model(RuleBasedStateMachine):
    """A frontier, and the numbers of the requests that it got and gave."""

    started: Bundle[Request] = Bundle("started")

    @initialize(
        concurrency=st.integers(1, 4),
        per_domain=st.integers(1, 3),
        queue=st.sampled_from([OriginPriorityQueue, PriorityFirstQueue]),
    )
    def begin(self, concurrency: int, per_domain: int, queue: Any) -> None:
        names = "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN"
        self.crawl = FakeCrawl(
            dict(zip(names, (concurrency, per_domain), strict=True)), queue=queue
        )
        self.frontier = self.crawl.frontier
        self.number = 0
        self.pushed: set[int] = set()
        self.given: set[int] = set()

    def request(self, origin: str, priority: int = 0, **meta: Any) -> Request:
        self.number += 1
        meta = {name: value for name, value in meta.items() if value}
        return Request(
            f"{origin}/{self.number}", priority=priority, meta=meta, cb_kwargs={"n": self.number}
        )

    def note(self, request: Request) -> None:
        number = request.cb_kwargs["n"]
        assert number not in self.given
        self.given.add(number)

    # What happens

    @rule(
        origin=st.sampled_from(ORIGINS),
        priority=st.integers(-1, 1),
        exempt=st.booleans(),
        slot=st.sampled_from([None, None, None, "one", "a.example"]),
    )
    def push(self, origin: str, priority: int, exempt: bool, slot: str | None) -> None:
        request = self.request(origin, priority, dont_obey_robotstxt=exempt, download_slot=slot)
        self.crawl.queue.push(request)
        self.pushed.add(self.number)

    @rule(target=started)
    def pop(self) -> Any:
        request = self.crawl.pop()
        if request is None:
            return multiple()
        self.note(request)
        return request

    @rule(request=consumes(started), sent=st.booleans())
    def end(self, request: Request, sent: bool) -> None:
        self.crawl.end(request, sent=sent)

    @rule(request=consumes(started))
    def drop(self, request: Request) -> None:
        """Another middleware drops it: the frontier finds that later."""
        self.crawl.engine.active.discard(request)

    @rule()
    def collect(self) -> None:
        self.frontier.collect_ended()

    @rule(
        request=started,
        status=st.sampled_from([200, 429]),
        retry_after=st.sampled_from([None, 1.5, 20.0, 1e6]),
    )
    def answer(self, request: Request, status: int, retry_after: float | None) -> None:
        entry = self.frontier.in_progress.get(request)
        if entry is not None and entry.host is not self.frontier.dropped:
            self.frontier.note_answer(entry, status, retry_after)

    @rule(target=started, origin=st.sampled_from(ORIGINS), exempt=st.booleans())
    def call(self, origin: str, exempt: bool) -> Any:
        """A caller requests a page, and gives up if it cannot start."""
        request = self.request(origin, dont_obey_robotstxt=exempt)
        if self.crawl.try_start(request):
            return request
        self.crawl.engine.active.discard(request)
        return multiple()

    @rule(
        origin=st.sampled_from(ORIGINS),
        place=st.sampled_from(PLACES),
        seconds=st.sampled_from([1.0, 30.0]),
    )
    def change_policy(self, origin: str, place: Place, seconds: float) -> None:
        self.crawl.set(origin, place, seconds if place is Place.WAITING else inf)

    @rule(origin=st.sampled_from(ORIGINS), seconds=st.sampled_from([0, 0.5, 5]))
    def set_delay(self, origin: str, seconds: float) -> None:
        self.frontier.set_delay(origin.partition("://")[2], origin, seconds)

    @rule(seconds=st.sampled_from([0.1, 1.0, 6.0, 400.0]))
    def advance(self, seconds: float) -> None:
        self.crawl.clock.advance(seconds)

    # What holds

    @property
    def queues(self) -> set[Queue]:
        return set(self.frontier.hosts.all_queues())

    @invariant()
    def no_queue_that_may_start_is_overlooked(self) -> None:
        for queue in self.queues:
            gate, host, slot = self.frontier.gate(queue), queue.host, queue.slot
            if gate.place is Place.READY and queue.place is Place.WAITING:  # others come first
                keeper = host if host.is_paced else slot
                room = 1 if host.is_paced else slot.limit - slot.active
                assert len(keeper.ready) >= room
                assert queue.owner.is_capped
            else:
                assert queue.place is gate.place

    @invariant()
    def each_queue_is_in_one_place(self) -> None:
        owner = self.crawl.queue
        for place, ranked in owner.ranked.items():
            inside = list(ranked)
            assert len(inside) == ranked.size
            assert set(inside) == {each for each in self.queues if each.place is place}
        assert all(each.size for each in self.queues)
        assert len(owner) == sum(each.size for each in self.queues)
        assert len(owner) == len(self.pushed - self.given)

    @invariant()
    def the_counts_are_those_of_the_requests_in_progress(self) -> None:
        entries = self.frontier.in_progress.values()
        for host in [*self.frontier.hosts, self.frontier.dropped]:
            assert host.active == sum(host in {each.host, each.slot} for each in entries)

    @invariant()
    def a_time_that_a_queue_waits_for_has_an_alarm(self) -> None:
        now = self.crawl.clock.now
        alarms = [host for host in self.frontier.hosts if host.alarm_at < inf]
        assert len(self.crawl.clock.pending) == len(alarms)
        for host in self.frontier.hosts:
            if (first := host.first_blocked) is not None:
                gate = self.frontier.gate(first)
                is_due = first.waits_for(gate) is not host or gate.seconds == inf
                assert is_due or host.alarm_at <= now + gate.seconds + 1e-6
            for queue in host.timed:
                assert host.alarm_at <= now + self.frontier.gate(queue).seconds + 1e-6

    def teardown(self) -> None:
        """At the end, each request has been given once, and nothing is left."""
        for origin in ORIGINS:
            self.crawl.set(origin, Place.READY)
        for request in tuple(self.frontier.in_progress):
            self.crawl.end(request)
        for _ in range(3 * len(self.pushed) + 3):
            given = self.crawl.pop()
            if given is None:
                self.crawl.clock.advance(400)
            else:
                self.note(given)
                self.crawl.end(given)
        assert self.pushed <= self.given
        assert self.crawl.left_over() == {}


Model.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestModel = Model.TestCase
