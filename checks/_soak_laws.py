"""The laws of a crawl by workers that share a store, and the requests that break them.

Everything here is a pure function of what was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from checks._soak import Origin
from checks._soak_worker import StoreFailure
from testing.faults import DISALLOWED

FETCH_SECONDS = 15.0
"""The time from a request for a robots.txt to the end of its claim, at most."""

FIRST_RETRY = 55.0
"""Seconds within which an unreachable robots.txt is not fetched again. The first retry comes after
60 seconds."""

REFRESH_AHEAD = 0.1
"""The part of its lifetime that a robots.txt may have left when it is fetched again."""

DROPPED = "duc"
"""The ends of requests that :class:`checks._soak_worker.SoakWorker` did not send."""


class Outage(NamedTuple):
    """When a store was out of order, on the monotonic clock, which all processes share."""

    began: float
    ended: float
    """When each worker had time to use the store again."""
    is_loss: bool
    """Whether the store was empty after it."""

    def has(self, at: float, seconds: float = 0) -> bool:
        """Whether the store was out of order at a time, or at most so many seconds after it."""
        return self.began - seconds <= at <= self.ended


class Kill(NamedTuple):
    """When a worker was killed, on the monotonic clock."""

    at: float
    worker: str


class Crawl(NamedTuple):
    """What was seen of a crawl."""

    origins: Sequence[Origin]
    requests: Sequence[tuple[int, str]]
    """The number of the origin and the path of each request."""
    ends: Mapping[int, str]
    """How each request has ended, by its number."""
    received: Mapping[str, Any]
    """What :class:`checks._soak_server.Records` has."""
    unreachable: Mapping[str, str] = {}
    """The origins whose robots.txt was unreachable for a worker, and why."""
    failures: Sequence[StoreFailure] = ()
    kills: Sequence[Kill] = ()
    faults: Sequence[Outage] = ()
    problems: Sequence[str] = ()
    """What the workers reported: errors in the log, counters, requests that ended again."""
    is_cached: bool = True
    """Whether a robots.txt stays in the memory of a worker, or in the store."""

    def url(self, number: int) -> str:
        """Return the URL of a request."""
        origin, path = self.requests[number]
        return self.origins[origin].root + path


Broken = dict[str, list[str]]
"""The requests or events that break a law, by the name of the law."""


def broken_laws(crawl: Crawl) -> tuple[Broken, Counter[str]]:
    """Return what breaks each law, and how many repeated fetches each reason explains."""
    repeated, explained = _repeated(crawl)
    received = crawl.received
    return {
        "requests that have not ended": [
            crawl.url(number) for number in range(len(crawl.requests)) if number not in crawl.ends
        ],
        "disallowed requests that ended otherwise": [*_disobeyed(crawl)],
        "allowed requests dropped without reason": [*_dropped(crawl)],
        "disallowed pages that servers received": received["disallowed"],
        "pages received before a robots.txt was": received["unasked"],
        "headers that a store has made up": received["injected"],
        "pages received after it had expired": [*_expired(crawl)],
        "pages received too early for the delay": [*_hurried(crawl)],
        "robots.txt fetched again without reason": repeated if crawl.is_cached else [],
        "store failures outside of a fault": [*_failures(crawl)],
        "problems of workers and of the store": [*crawl.problems],
    }, explained


def late_origins(crawl: Crawl) -> list[str]:
    """Return the origins that were unreachable although their robots.txt is in order, and why."""
    silent = {origin.root for origin in crawl.origins if DISALLOWED in origin.kind.meaning}
    late = crawl.unreachable.items()
    return sorted(f"{root}: {failure}" for root, failure in late if root not in silent)


def growth(memory: Sequence[int]) -> float:
    """Return the memory in the last quarter of a crawl, as a ratio of that in the second one."""
    quarter = len(memory) // 4
    if not quarter:
        return 1.0
    return median(memory[-quarter:]) / median(memory[quarter : 2 * quarter])


def _disobeyed(crawl: Crawl) -> Iterator[str]:
    for number, end in crawl.ends.items():
        origin, path = crawl.requests[number]
        if end not in DROPPED and not crawl.origins[origin].kind.allows(path):
            yield f"{crawl.url(number)} ended in {end}"


def _dropped(crawl: Crawl) -> Iterator[str]:
    for number, end in crawl.ends.items():
        origin, path = crawl.requests[number]
        at = crawl.origins[origin]
        if end not in DROPPED or not at.kind.allows(path):
            continue
        # A redirect to another origin may end in its rules. A hostile rule may match its path.
        if path in ("/faulty", "/moved", *at.kind.paths):
            continue
        may_be_unreachable = DISALLOWED in at.kind.meaning or at.root in crawl.unreachable
        if end != "u" or not may_be_unreachable:
            yield f"{crawl.url(number)[:100]} ended in {end}: its origin {at.name}"


def _expired(crawl: Crawl) -> Iterator[str]:
    for root, path in crawl.received["expired"]:
        if root not in crawl.unreachable:  # else its last good copy is used (RFC 9309 §2.3.1.4)
            yield root + path


def _hurried(crawl: Crawl) -> Iterator[str]:
    for url, earlier, later in crawl.received["hurried"]:
        if not _was_out_of_order(crawl, earlier, later):
            yield f"{url} was received {later - earlier:.3f} s after another page"


def _failures(crawl: Crawl) -> Iterator[str]:
    for at, message in crawl.failures:
        if not any(fault.began <= at <= fault.ended for fault in crawl.faults):
            yield f"{message}, {_since(crawl, at)}"


def _repeated(crawl: Crawl) -> tuple[list[str], Counter[str]]:
    """Return the repeated fetches without a reason as messages, and count the others by reason."""
    origins = {origin.root: origin for origin in crawl.origins}
    explained: Counter[str] = Counter()
    unexplained = []
    for root, fetches in crawl.received["fetches"].items():
        for (earlier, worker), (later, _) in pairwise(fetches):
            reason = _reason(crawl, origins[root], earlier, worker, later)
            if reason:
                explained[reason] += 1
            else:
                unexplained.append(
                    f"{root}, which {origins[root].name}, was fetched again after "
                    f"{later - earlier:.1f} s, {_since(crawl, earlier)}"
                )
    return unexplained, explained


def _reason(crawl: Crawl, origin: Origin, earlier: float, worker: str, later: float) -> str:
    """Return why a robots.txt was fetched again, or an empty text."""
    passed = later - earlier
    lifetime = origin.kind.lifetime
    if lifetime and passed >= lifetime * (1 - REFRESH_AHEAD):
        return "its lifetime was over"
    was_unreachable = DISALLOWED in origin.kind.meaning or origin.root in crawl.unreachable
    if was_unreachable and passed >= FIRST_RETRY:
        return "it was unreachable"
    if any(
        earlier <= kill.at <= earlier + FETCH_SECONDS and kill.worker == worker
        for kill in crawl.kills
    ):
        return "the worker was killed"
    is_explained = _was_out_of_order(crawl, earlier, later, FETCH_SECONDS)
    return "the store was out of order" if is_explained else ""


def _was_out_of_order(crawl: Crawl, earlier: float, later: float, seconds: float = 0) -> bool:
    """Whether the store could not have what a worker put into it within ``seconds`` of a time."""
    return any(
        fault.has(earlier, seconds)
        or fault.has(later)
        or (fault.is_loss and earlier < fault.began < later)
        for fault in crawl.faults
    )


def _since(crawl: Crawl, at: float) -> str:
    """Return how long before ``at`` the events were, to find out what happened."""
    events = [*(kill.at for kill in crawl.kills), *(fault.began for fault in crawl.faults)]
    before = [at - event for event in events if event < at]
    return f"{min(before):.1f} s after the last kill or fault" if before else "before all faults"
