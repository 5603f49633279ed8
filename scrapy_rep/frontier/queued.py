"""What a crawl tells about its requests that wait: its log, spiders, extensions and exporters."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from math import inf
from typing import NamedTuple

from scrapy import signals
from scrapy.crawler import Crawler

from ..logs import plural
from ..policies.gate import Wait
from .frontier import Frontier
from .hosts import SLOT_WAITS

MAX_NAMED = 3
"""How many reasons a line of the log names."""

_NAMES = {Wait.UNREACHABLE: "next attempt at the robots.txt", Wait.UNSENT: "DOWNLOAD_DELAY"}
"""The names of reasons that are not those of their values."""


class FrontierOwner:
    """The downloader middleware of a crawl, by which other components find the frontier."""

    frontier: Frontier


class AnswerObserver:
    """A downloader middleware that calls :meth:`.Frontier.note_response` for each response."""


class OutputObserver:
    """A spider middleware that waits before it passes more requests to a queue that is full."""


class Queued(NamedTuple):
    """How many requests are in the queue of a crawl."""

    all: int
    ready: int
    """Those that may start now, as far as their sites are concerned."""
    waiting: int
    """Those that wait for their robots.txt or for their host."""


class Waits(NamedTuple):
    """Requests that wait for the same thing."""

    host: str
    """The host, or the download slot that requests name; empty for URLs without a host."""
    reason: Wait
    requests: int
    seconds: float
    """The seconds until the next of them may start. inf: that depends on a response."""


def find_frontier(crawler: Crawler) -> Frontier | None:
    """Return the frontier of a crawl; None without an engine, or if it does not obey robots.txt."""
    owner = None
    with suppress(RuntimeError):  # the crawl has no engine yet, and so no middlewares
        owner = crawler.get_downloader_middleware(FrontierOwner)
    return owner.frontier if owner is not None else None


def queued(crawler: Crawler) -> Queued:
    """Return how many requests are in the queue of a crawl.

    Requests in progress are not in the queue. Raises RuntimeError if the crawl does not use the
    queue of scrapy-rep, for example because ROBOTSTXT_OBEY is off.
    """
    frontier = find_frontier(crawler)
    if frontier is None or not frontier.queues:
        raise RuntimeError("the scheduler of this crawl does not use the queue of scrapy-rep")
    ready = sum(queue.size for each in frontier.queues for queue in (*each.ready, *each.drops))
    size = frontier.queue_size
    return Queued(size, ready, size - ready)


def waiting(crawler: Crawler) -> list[Waits]:
    """Return what the requests of a crawl wait for, those with most requests first.

    This includes requests that wait in the downloader. Requests that may start now, and those in
    progress, do not wait. Returns an empty list if the crawl does not obey robots.txt:

        for host, reason, requests, seconds in scrapy_rep.waiting(crawler):
            print(f"{requests} requests to {host} wait: {reason}")
    """
    frontier = find_frontier(crawler)
    if frontier is None:
        return []
    return [_waits(frontier, *each) for each in _sizes(frontier).most_common()]


def _sizes(frontier: Frontier) -> Counter[tuple[str, Wait]]:
    """Return how many requests wait, by host or download slot, and by what they wait for.

    No policy is looked at: if there are many, most of them would have to be parsed first.
    """
    sizes: Counter[tuple[str, Wait]] = Counter()
    for queue in frontier.hosts.all_queues():
        wait = queue.wait
        if wait is not None and queue.group is not None and queue.group is not queue.host.timed:
            wait = frontier.pace_gate(queue.host, queue.slot).wait  # it may have changed since
        if wait is not None:
            sizes[(queue.slot if wait in SLOT_WAITS else queue.host).name, wait] += queue.size
    return sizes


def _waits(frontier: Frontier, key: tuple[str, Wait], size: int) -> Waits:
    name, reason = key
    slot = frontier.hosts.slots.get(name) or frontier.hosts.hosts[name]
    gates = map(frontier.gate, slot.queues)
    seconds = min((gate.seconds for gate in gates if gate.wait is reason), default=inf)
    return Waits(name, reason, size, seconds)


def record_waits(frontier: Frontier) -> None:
    """Record how many requests wait, and for what."""
    sizes, requests = _sizes(frontier), Counter[Wait]()
    for (_, reason), size in sizes.items():
        requests[reason] += size
    named = [_waits(frontier, *each) for each in sizes.most_common(MAX_NAMED)]
    texts = [_text(frontier, each) for each in named]
    sites = {host for host, _ in sizes}
    if more := len(sites.difference(each.host for each in named)):
        texts.append(f"and {plural(more, 'more site')}")
    by_name = {reason.name.lower(): size for reason, size in requests.items()}
    frontier.recorder.waiting(by_name, len(sites), ", ".join(texts))


def _text(frontier: Frontier, waits: Waits) -> str:
    host, reason, requests, seconds = waits
    attempt = frontier.fetches.attempt(host) if reason is Wait.ROBOTS_TXT else 0
    details = {
        f"attempt {attempt} of {frontier.settings.retry_times + 1}": attempt,
        f"{frontier.delay_of(host):g} s": reason is Wait.DELAY,
        f"next in {seconds:.0f} s": seconds < inf,
    }
    shown = ", ".join(text for text, holds in details.items() if holds)
    name = f"the {_NAMES.get(reason, reason)} of {host}"
    return f"{requests:,} for {name} ({shown})" if shown else f"{requests:,} for {name}"


async def until_queued_below(crawler: Crawler, n: int) -> None:
    """Return when fewer than ``n`` requests are in the queue of a crawl.

    This is for a ``start()`` that reads many requests from elsewhere, so that they do not all wait
    in memory:

        for url in urls:
            await scrapy_rep.until_queued_below(self.crawler, 1000)
            yield Request(url)

    If the crawl does not use the queue of scrapy-rep, this waits until the downloader has room.
    Raises asyncio.CancelledError while the spider closes, which ends ``start()``, and ValueError if
    ``n`` is less than 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}: it must be 1 or more")
    frontier = find_frontier(crawler)
    if frontier is not None and frontier.queues:
        await frontier.readers.wait(n)
    elif crawler.engine is not None and crawler.engine.needs_backout():
        await crawler.signals.wait_for(signals.scheduler_empty)
