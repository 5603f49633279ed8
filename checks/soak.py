"""Crawls of many origins with all kinds of faults, and workers that share a store.

Each origin has an address on loopback. The crawls of :data:`checks._soak.VARIANTS` have one worker.
In those that have the name of a store, several workers share it. They are killed and started again.
Redis is killed, started again, suspended and filled up; SQLite is locked and filled up.
``REDIS_SERVER=path`` selects another server, such as Valkey.

Each request must end once. No server may receive a request for a disallowed page, or one before the
delay of its origin is over, or one after the lifetime of its robots.txt. Each robots.txt must be
fetched once in its lifetime, and not once by each worker, except when the store was out of order,
or a worker was killed before it could store the file. The counters of each worker must be zero at
its end, and its memory must not grow. A crawl stops by itself when its time is over.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from checks._soak import LARGE_MIX, VARIANTS, origins, poison, requests_to
from checks._soak_laws import (
    FETCH_SECONDS,
    Crawl,
    Kill,
    Outage,
    broken_laws,
    growth,
    late_origins,
)
from checks._soak_worker import ENDS, Memory
from checks._workers import STORES, ServerProcess, SharedStore, Worker, shared_store
from scrapy_rep.stores.fallback import RETRY_INTERVAL
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(600, 180)
PARAMETERS = {
    "crawls": Parameter(
        "", "everything, sqlite, redis", f"of {', '.join([*VARIANTS, *STORES])}; all if empty"
    ),
    "requests": Parameter(
        100_000, 10_000, "requests of the crawls with stores, 50 for each origin; a million are all"
    ),
    "origins": Parameter(500, 50, "origins of each other crawl"),
    "workers": Parameter(3, 3, "workers that share a store"),
    "minutes": Parameter(28, 10, "after which it stops, whether it is ready or not"),
    "seed": Parameter(1, 1, "chooses the faults, and the workers that are killed"),
    "loop": Parameter("asyncio", "asyncio", "asyncio, default (that of Twisted) or none"),
}
MILLION = 1_000_000
REQUESTS_OF_ORIGIN = 50
KILL = "kill of a worker"
KILLS = 30
"""How many workers are killed in a million requests."""

LONG = 50_000
"""The requests from which on unreachable origins and the growth of memory have a limit."""

LONGER = 500_000
"""The requests from which on each fault comes twice."""

STORE_TIMEOUT = 5.0
"""The seconds after which a call to a store fails."""

SHORT_RETRY = 5.0
"""Seconds after which a worker tries a store again that has failed. Those of the package would
leave little of a crawl in which the store is in order."""

MOST_LATE = 1.0
"""The percentage of origins in order that may be unreachable. A robots.txt that comes too late,
because the machine is busy, is unreachable."""

MOST_ERRORS = 0.1
"""The percentage of requests that may end in an error for the same reason."""

MOST_GROWTH = 1.3
MOST_GROWTH_OF_OBJECTS = 1.15
"""The memory of a worker in the last quarter of its crawl, as a ratio of that in the second one. A
process keeps most of the memory that it has needed, for instance during a fault of the store."""

STUCK = 120.0
"""Seconds without the end of a request after which the crawl stops."""

REPORT_INTERVAL = 20.0
"""Seconds between two lines about the progress."""


class Outcome(NamedTuple):
    """A crawl, and what it has cost."""

    crawl: Crawl
    memory: list[list[Memory]]
    errors: list[str]
    """The errors in which requests for pages in order have ended."""
    fault_names: list[str]
    seconds: float
    cpu: dict[str, float]


def run(options: Options) -> Result:
    """Count what breaks the laws in each crawl."""
    given = [name.strip() for name in options.text("crawls").split(",") if name.strip()]
    names = given or [*VARIANTS, *STORES]
    shares = sum(name in STORES for name in names)
    until = time.monotonic() + 60 * options.number("minutes")
    rows, details = [], []
    for number, name in enumerate(names):
        seconds = (until - time.monotonic()) / (len(names) - number)
        count, made = None, options.number("origins")
        if name in STORES:
            count = options.number("requests") // shares
            made = max(options.number("requests") // REQUESTS_OF_ORIGIN, 1)
        outcome = _Crawling(name, options, made, count, seconds).run()
        found, messages = _rows(outcome)
        rows += [Row(f"{name}: {row.name}", *row[1:]) for row in found]
        details += [f"{name}: {message}" for message in messages]
    return Result(rows, details)


class _Crawling:
    """One crawl, while it runs: that of a variant, or with a store that several workers share."""

    def __init__(
        self, name: str, options: Options, made: int, count: int | None, seconds: float
    ) -> None:
        self.name = name
        self.options = options
        self.made = made
        self.asked = count
        self.seconds = seconds
        self.seed = options.number("seed")
        self.retry = min(SHORT_RETRY, RETRY_INTERVAL)
        self.workers: list[Worker] = []
        self.kills: list[Kill] = []
        self.faults: list[Outage] = []
        self.fault_names: list[str] = []
        self.problems: list[str] = []
        self.began = time.monotonic()
        self.reported = self.began
        self.ended = (0, self.began)
        """How many requests have ended, and when the last of them has."""

    def run(self) -> Outcome:
        """Crawl, and return what was seen."""
        cpu = _cpu()
        variant = VARIANTS.get(self.name, VARIANTS["by slot"])
        step = self.options.number("workers") if self.name in STORES else 1
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            store: SharedStore | None = None
            if self.name in STORES or variant.has_store:
                kind = self.name if self.name in STORES else "sqlite"
                store = stack.enter_context(shared_store(kind, Path(folder)))
            servers = stack.enter_context(ServerProcess(self.made, self.seed))
            made = origins(self.made, self.seed, servers.port, LARGE_MIX)
            requests = requests_to(made, self.seed, self.asked)
            self.count = len(requests)
            urls = [made[at].root + path for at, path in requests]
            if variant.poisoned_store:
                roots = [origin.root for origin in made]
                poison(Path(folder, "robots.db"), roots, Random(self.seed))
            settings = {
                "CONCURRENT_ITEMS": 1,  # Scrapy starts a task for each, with every response
                "CONCURRENT_REQUESTS": 100,
                "DOWNLOAD_TIMEOUT": 8,
                "REP_TIMEOUT": 5,
                "REP_TTL_RANGE": (1, 86_400),
                "REP_STORE": store.url if store is not None else None,
            }
            if self.name in STORES:
                settings["REP_CACHE_SIZE"] = max(self.made // 4, 20)
            options = {
                "settings": settings,
                "store_retry_interval": self.retry if self.name in STORES else 0,
                "variant": self.name if self.name in VARIANTS else "by slot",
                "loop": self.options.text("loop"),
            }
            try:
                for each in range(step):
                    path = Path(folder, f"{each}.txt")
                    part = {number: urls[number] for number in range(each, len(urls), step)}
                    self.workers.append(Worker(path, str(each), part, options))
                del urls
                if store is not None and self.name in STORES:
                    self._disturb(store)
                while self._is_running():
                    time.sleep(0.1)
            finally:
                for worker in self.workers:
                    worker.process.kill()
            for worker in self.workers:
                worker.join()
            if store is not None and self.name in STORES:
                self.problems += store.damage()
            received = servers.close()
        crawl = Crawl(
            made,
            requests,
            {number: end for worker in self.workers for number, end in worker.ends.items()},
            received,
            {root: why for worker in self.workers for root, why in worker.unreachable.items()},
            [failure for worker in self.workers for failure in worker.failures],
            self.kills,
            self.faults,
            [*self.problems, *(each for worker in self.workers for each in worker.problems)],
            is_cached=not variant.evicts,
        )
        self._report("is over")
        spent = {name: after - cpu[name] for name, after in _cpu().items()}
        spent["servers"] = received["cpu"]
        memory = [worker.memory for worker in self.workers]
        errors = [error for worker in self.workers for error in worker.errors]
        return Outcome(
            crawl,
            memory,
            errors,
            self.fault_names,
            time.monotonic() - self.began,
            spent,
        )

    def _events(self, store: SharedStore) -> Iterator[tuple[float, str]]:
        """Yield the faults, and the part of the requests after which each of them comes."""
        chance = Random(self.seed)
        kinds = list(store.faults) * (2 if self.count >= LONGER // 2 else 1)
        for number, kind in enumerate(kinds):
            yield (number + 1) / (len(kinds) + 1), kind
        kills = max(KILLS * self.count // MILLION, 2)
        yield from ((chance.uniform(0.1, 0.9), KILL) for _ in range(kills))

    def _disturb(self, store: SharedStore) -> None:
        """Kill workers and disturb the store, each when a part of the requests has ended.

        The first worker is not killed: it shows whether memory grows.
        """
        chance = Random(self.seed)
        for part, event in sorted(self._events(store)):
            while self._ended() < part * self.count:
                if not self._is_running():
                    return
                time.sleep(0.1)
            began = time.monotonic()
            if event != KILL:
                self._report(f"the store is {event}")
                is_loss = store.faults[event](self.workers)
                # The workers try the store again later. What they fetch until then is not in it.
                late = STORE_TIMEOUT + self.retry + FETCH_SECONDS
                self.faults.append(Outage(began, time.monotonic() + late, is_loss))
                self.fault_names.append(event)
                continue
            worker = chance.choice(self.workers[1:])
            if worker.is_running:
                self._report(f"{event}: {worker.name}")
                worker.restart()
                self.kills.append(Kill(worker.killed_at, worker.name))

    def _ended(self) -> int:
        return sum(len(worker.ends) for worker in self.workers)

    def _is_running(self) -> bool:
        """Whether a worker runs, and may go on. Otherwise note why not."""
        now = time.monotonic()
        if now - self.reported >= REPORT_INTERVAL:
            self._report("goes on")
        if not any(worker.is_running for worker in self.workers):
            return False
        if self._ended() > self.ended[0]:
            self.ended = (self._ended(), now)
        if now - self.ended[1] > STUCK:
            self.problems.append(f"no request has ended for {STUCK:.0f} s: the crawl was stopped")
            return False
        if now - self.began > self.seconds:
            self.problems.append(f"the {self.seconds:.0f} s are over: the crawl was stopped")
            return False
        return True

    def _report(self, event: str) -> None:
        self.reported = time.monotonic()
        memory = " ".join(f"{each.memory[-1].kib >> 10}" for each in self.workers if each.memory)
        line = (
            f"{self.name}, {self.reported - self.began:4.0f} s: {self._ended():,} of "
            f"{self.count:,} requests, {len(self.kills)} kills, {len(self.faults)} faults, "
            f"workers {memory} MiB: {event}\n"
        )
        sys.stderr.write(line)


def _cpu() -> dict[str, float]:
    """Return the CPU time of this process, and of the others that have ended, in seconds."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {
        "judge": own.ru_utime + own.ru_stime,
        "others": others.ru_utime + others.ru_stime,
    }


def _rows(outcome: Outcome) -> tuple[list[Row], list[str]]:
    crawl = outcome.crawl
    laws, explained = broken_laws(crawl)
    counts = Counter(crawl.ends.values())
    total = len(crawl.requests)
    is_long = total >= LONG // 2  # else one late origin is too much
    most_late = _limit(MOST_LATE, len(crawl.origins), is_long)
    late, errors = late_origins(crawl), outcome.errors
    fetches = [len(times) for times in crawl.received["fetches"].values()]
    faults = Counter(outcome.fault_names)
    cpu = outcome.cpu["judge"] + outcome.cpu["others"]
    kib = [each.kib for each in outcome.memory[0]]
    blocks = [each.blocks for each in outcome.memory[0]]
    rows = [
        Row("requests", total, f"in {outcome.seconds:.0f} s"),
        *(Row(f"  {end}", counts[letter], "requests") for letter, end in ENDS.items()),
        Row("pages that servers received", crawl.received["pages"], "requests"),
        Row("workers killed", len(crawl.kills), "kills"),
        *(Row(f"the store was {name}", number, "times") for name, number in faults.items()),
        Row("origins whose robots.txt was requested", len(fetches), "origins"),
        Row("  requests for each", sum(fetches) / max(len(fetches), 1), "fetches"),
        *(Row(f"  again: {reason}", number, "fetches") for reason, number in explained.items()),
        Row("origins in order, unreachable", len(late), "origins", most_late),
        Row(
            "errors of pages in order", len(errors), "requests", _limit(MOST_ERRORS, total, is_long)
        ),
        Row("CPU for each request", 1000 * cpu / total, "ms"),
        Row("  of that, the servers", 1000 * outcome.cpu["servers"] / total, "ms"),
        Row("  of that, this judge", 1000 * outcome.cpu["judge"] / total, "ms"),
        Row("growth of memory", growth(kib), "ratio", MOST_GROWTH if is_long else None),
        Row(
            "growth of memory that objects use",
            growth(blocks),
            "ratio",
            MOST_GROWTH_OF_OBJECTS if is_long else None,
        ),
        *(Row(law, len(broken), "cases", 0) for law, broken in laws.items()),
    ]
    details = [f"{law}: {each}" for law, broken in laws.items() for each in broken[:5]]
    details += [f"unreachable: {each}" for each in late[:5]]
    details += [f"error: {each}" for each in errors[:5]]
    details += [f"memory of worker {n}: {_memory(m)}" for n, m in enumerate(outcome.memory)]
    return rows, details


def _limit(percent: float, count: int, is_long: bool) -> float | None:
    return percent / 100 * count if is_long else None


def _memory(memory: Sequence[Memory]) -> str:
    """Return the memory in each tenth of a crawl, since the last start of the worker."""
    size = max(len(memory) // 10, 1)
    tenths = [memory[at : at + size] for at in range(0, len(memory), size)]
    kib = [f"{median(each.kib for each in tenth) / 1024:.0f}" for tenth in tenths]
    blocks = [f"{median(each.blocks for each in tenth) / 1000:.0f}" for tenth in tenths]
    return f"{' '.join(kib)} MiB; {' '.join(blocks)} thousand blocks of objects"
