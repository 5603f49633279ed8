"""A million requests by workers that share a store.

There are 20,000 origins, with every fault of :mod:`testing.soak`. Each store gets half of the
requests. Workers are killed and started again, and the store is killed, suspended and filled up.
Each request must end once. No server may receive a request for a disallowed page. Each robots.txt
must be fetched once in its lifetime, and not once by each worker, except when the store was out of
order, or a worker was killed before it could store the file. The counters of each worker must be
zero at its end, and its memory must not grow.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy_rep.stores.fallback import RETRY_INTERVAL
from testing.harness import Duration, Parameter, Result, Row
from testing.many_origins import ManyOrigins, is_allowed, workload
from testing.soak import GOOD
from testing.soak_cluster import STORES, Outage, Worker, shared_store
from testing.soak_worker import ENDS

if TYPE_CHECKING:
    from testing.harness import Options
    from testing.soak import Soak
    from testing.soak_cluster import SharedStore

DURATION = Duration(400, 60)
PARAMETERS = {
    "requests": Parameter(100_000, 10_000, "requests, 50 for each origin; a million are the soak"),
    "workers": Parameter(3, 3, "workers that share a store"),
    "stores": Parameter("sqlite, redis", "sqlite, redis", f"of {', '.join(STORES)}"),
    "seed": Parameter(1, 1, "chooses the faults, and the workers that are killed"),
}
MILLION = 1_000_000
REQUESTS_OF_ORIGIN = 50
KILLS = 20
"""How many workers are killed in a million requests."""

LONG = 50_000
"""The requests from which on dropped requests and the growth of memory have a limit."""

FETCH_SECONDS = 15.0
"""The time from a request for a robots.txt to the end of its claim, at most."""

STORE_TIMEOUT = 5.0
"""The seconds after which a call to a store fails."""

FIRST_RETRY = 55.0
"""Seconds within which an unreachable robots.txt is not fetched again. The first retry comes after
60 seconds."""

MOST_DROPPED = 2.0
"""The percentage of allowed requests that may be dropped. A robots.txt that comes too late, because
the machine is busy, is unreachable."""

MOST_GROWTH = 1.15
"""The memory of a worker in the last quarter of its crawl, as a ratio of that in the second one."""


class Crawl(NamedTuple):
    """What has happened in the crawl with one store."""

    soak: Soak
    requested: list[tuple[int, str]]
    workers: list[Worker]
    received: dict[str, Any]
    kills: list[float]
    faults: list[Outage]
    seconds: float


def run(options: Options) -> Result:
    """Count the problems of the crawl with each store."""
    names = [name.strip() for name in options.text("stores").split(",")]
    rows, details = [], []
    for name in names:
        crawl = _crawl(name, options, len(names))
        found, problems = _rows(crawl, is_long=options.number("requests") >= LONG)
        rows += [Row(f"{name}: {row.name}", *row[1:]) for row in found]
        details += [f"{name}: {problem}" for problem in problems]
    return Result(rows, details)


def _crawl(name: str, options: Options, share: int) -> Crawl:
    requests, seed = options.number("requests") // share, options.number("seed")
    origins = max(requests // REQUESTS_OF_ORIGIN, 1)
    retry = min(max(RETRY_INTERVAL * requests * share / MILLION, 2.0), RETRY_INTERVAL)
    began = time.monotonic()
    with (
        TemporaryDirectory() as folder,
        shared_store(name, Path(folder)) as store,
        ManyOrigins(origins, seed) as servers,
    ):
        soak, requested = workload(origins, seed, servers.port, requests)
        settings = {
            "CONCURRENT_ITEMS": 1,  # Scrapy starts a task for each, with every response
            "CONCURRENT_REQUESTS": 100,
            "DOWNLOAD_TIMEOUT": 6,
            "REP_TIMEOUT": 4,
            "REP_CACHE_SIZE": max(origins // 4, 20),
            "REP_STORE": store.url,
            "store_retry_interval": retry,
        }
        count = options.number("workers")
        workers = []
        for each in range(count):
            urls = {
                number: soak.sites[requested[number][0]][0].url(requested[number][1])
                for number in range(each, len(requested), count)
            }
            workers.append(Worker(Path(folder, f"{each}.txt"), urls, settings))
        kills = max(KILLS * requests // MILLION, 1)
        try:
            killed, faults = _disturb(workers, store, len(requested), kills, Random(seed), retry)
            for worker in workers:
                worker.join()
        finally:
            for worker in workers:
                worker.process.kill()
        received = servers.close()
    return Crawl(soak, requested, workers, received, killed, faults, time.monotonic() - began)


def _disturb(
    workers: list[Worker],
    store: SharedStore,
    requests: int,
    kills: int,
    chance: Random,
    retry: float,
) -> tuple[list[float], list[Outage]]:
    """Kill workers and disturb the store, each when a part of the requests has ended.

    The first worker is not killed: it shows whether memory grows. Returns when workers were killed,
    and when the store was out of use.
    """
    kinds = list(store.faults)
    events = [(chance.uniform(0.1, 0.9), "kill") for _ in range(kills)]
    events += [((number + 1) / (len(kinds) + 1), kind) for number, kind in enumerate(kinds)]
    killed: list[float] = []
    faults: list[Outage] = []
    for part, event in sorted(events):
        while sum(len(worker.ends) for worker in workers) < part * requests:
            if all(worker.process.poll() is not None for worker in workers):
                return killed, faults
            time.sleep(0.1)
        began = time.monotonic()
        if event != "kill":
            is_loss = store.faults[event](workers)
            # The workers try the store again later. What they fetch until then is not in it.
            late = STORE_TIMEOUT + retry + FETCH_SECONDS
            faults.append(Outage(began, time.monotonic() + late, is_loss))
            continue
        worker = chance.choice(workers[1:])
        if worker.process.poll() is None:
            worker.restart()
            killed.append(began)
    return killed, faults


def _rows(crawl: Crawl, *, is_long: bool) -> tuple[list[Row], list[str]]:
    ends = {number: end for worker in crawl.workers for number, end in worker.ends.items()}
    problems = [problem for worker in crawl.workers for problem in worker.problems]
    problems += [f"received {url}" for url in crawl.received["disallowed"]]
    problems += [
        f"{_url(crawl, number)} has not ended"
        for number in range(len(crawl.requested))
        if number not in ends
    ]
    dropped = 0
    allowed = 0
    for number, end in ends.items():
        origin, path = crawl.requested[number]
        _, name, kind = crawl.soak.sites[origin]
        if not is_allowed(kind, path):
            if end != "d":
                problems.append(f"{_url(crawl, number)}, which is disallowed, ended in {ENDS[end]}")
        elif name == GOOD and path.startswith("/public"):
            allowed += 1
            dropped += end == "d"
    explained, unexplained = _repeated(crawl)
    problems += unexplained
    counts = Counter(ends.values())
    fetched = sum(len(times) for times in crawl.received["fetches"].values())
    growth = _growth(crawl.workers[0].memory)
    most_dropped = MOST_DROPPED if is_long else None  # else one late origin is too much
    rows = [
        Row("requests", len(crawl.requested), f"in {crawl.seconds:.0f} s"),
        *(Row(f"  {end}", counts[letter], "requests") for letter, end in ENDS.items()),
        Row("  of good origins, dropped", 100 * dropped / max(allowed, 1), "%", most_dropped),
        Row("pages that servers received", crawl.received["pages"], "requests"),
        Row("workers killed", len(crawl.kills), "kills"),
        Row("faults of the store", len(crawl.faults), "faults"),
        Row("robots.txt of each origin", fetched / len(crawl.soak.sites), "fetches"),
        Row("  repeated after a kill or a fault", explained, "fetches"),
        Row("growth of memory", growth, "ratio", MOST_GROWTH if is_long else None),
        Row("problems", len(problems), "problems", 0),
    ]
    return rows, problems


def _url(crawl: Crawl, number: int) -> str:
    origin, path = crawl.requested[number]
    return crawl.soak.sites[origin][0].url(path)


def _repeated(crawl: Crawl) -> tuple[int, list[str]]:
    """Count the repeated fetches that a kill or a fault explains. Return the others as messages."""
    kinds = {site.root: (name, kind) for site, name, kind in crawl.soak.sites}
    explained = 0
    unexplained = []
    for root, times in crawl.received["fetches"].items():
        for earlier, later in pairwise(times):
            name, _ = kinds[root]
            if later - earlier >= FIRST_RETRY:  # it was unreachable, for some reason
                continue
            if _is_explained(crawl, earlier, later):
                explained += 1
            else:
                events = [*crawl.kills, *(fault.ended for fault in crawl.faults)]
                since = [f"{earlier - at:.1f}" for at in events]
                unexplained.append(
                    f"{root}, which {name}, was fetched again after {later - earlier:.1f} s; the "
                    f"first time was {', '.join(since)} s after each kill and each fault"
                )
    return explained, unexplained


def _is_explained(crawl: Crawl, earlier: float, later: float) -> bool:
    """Whether the store could not have a file that was fetched earlier."""
    was_killed = any(earlier <= at <= earlier + FETCH_SECONDS for at in crawl.kills)
    return was_killed or any(
        fault.has(earlier) or fault.has(later) or (fault.is_loss and earlier < fault.began < later)
        for fault in crawl.faults
    )


def _growth(memory: list[int]) -> float:
    quarter = len(memory) // 4
    if not quarter:
        return 1.0
    return median(memory[-quarter:]) / median(memory[quarter : 2 * quarter])
