"""Workers that share a crawl in Redis, while workers and Redis fail, judged by what sites received.

Each event comes when a part of the pages has been received. ``--set events=kill,stop`` chooses
them, and ``--list`` shows their names. ``cost`` and ``delay`` are crawls without an event: what a
page costs, and how workers keep DOWNLOAD_DELAY together.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from checks._worker import CONCURRENT_REQUESTS, CONCURRENT_REQUESTS_PER_DOMAIN, NAME, VARIANTS
from checks._worker_site import KINDS, RETRY_AFTER, Kind, Proxy, Received, Sites
from testing.harness import ROOT, Duration, Options, Parameter, Result, Row
from testing.redis_server import RedisCluster, RedisSentinel, RedisServer, wait_until
from testing.web import Web, between

RDB = ("--save", "3600", "1")
AOF = ("--appendonly", "yes", "--appendfsync", "everysec")
AWAY = 8.0
"""Seconds for which Redis is away."""

STILL = 40.0
"""Seconds for which a worker stands still: longer than its lease."""

STUCK = 60.0
"""Seconds without a request after which a crawl is stopped: longer than the lease of a dead one."""

END = 15.0
"""Seconds for which a worker may go on after SIGTERM, before it is killed."""

LATE = 8.0
"""Seconds after which workers use a store again that was away as long as AWAY."""

UNDER_WAY = 0.5
"""Seconds for which requests may arrive that a worker sent before it had an answer."""

TOLERANCE = 0.005
_NOTED = r"\[(?!py.warnings)\S+\] (?:WARNING|ERROR|CRITICAL): .*|^Traceback|^[\w.]+Error\b.*"
FIRST_REPLIES = 3.0
"""Seconds for which Redis does not answer a worker that stood still."""


class Shared(Protocol):
    """A Redis, of whatever kind."""

    @property
    def url(self) -> str:
        """The URL for REDIS_URL and REP_STORE."""

    def close(self) -> None:
        """End it."""


class Worker:
    """A process of :mod:`checks._worker`."""

    def __init__(self, folder: Path, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.was_killed = False
        self.was_stopped = False
        """Whether it had to be stopped, because it did not end by itself."""
        self.reason, self.cpu = "", 0.0
        self._log = folder / f"{name}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "checks._worker", name, json.dumps(options)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def close(self, until: float) -> None:
        """Wait until the process has ended, and kill it if it has not at that time."""
        try:
            output, _ = self.process.communicate(timeout=max(until - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
        found = json.loads(output or "{}")
        self.reason, self.cpu = str(found.get("reason", "")), found.get("cpu", 0.0)

    @property
    def end(self) -> str:
        """Its exit status and finish reason, and whether it had to be stopped."""
        stopped = "stopped, " if self.was_stopped else ""
        return f"{stopped}status {self.process.returncode}, {self.reason or 'no reason'}"

    def log_lines(self) -> Counter[str]:
        """Return the warnings and errors without their numbers, and tracebacks."""
        lines = self._log.read_text(errors="replace").splitlines()
        known = (re.search(_NOTED, each) for each in lines)
        return Counter(re.sub(r"[0-9a-f]*\d[0-9a-f.:]*", "#", each[0]) for each in known if each)


class Plan(NamedTuple):
    """What is crawled, and how."""

    variant: str
    workers: int
    sites: int
    pages: int
    seconds: float
    kinds: Sequence[Kind] = KINDS
    settings: Mapping[str, Any] = {}


class Crawl:
    """A crawl while it runs."""

    def __init__(self, plan: Plan, event: Event, web: Web, folder: Path, shared: Shared) -> None:
        self.plan, self.event, self.shared = plan, event, shared
        self.sites = Sites(web, plan.sites, plan.pages, plan.kinds)
        self.expected = self.sites.expected()
        self.workers: list[Worker] = []
        self.proxies: list[Proxy] = []
        self.twice = 0
        """How many pages may be requested again."""
        self.reason = "finished"
        self.excused: list[tuple[float, float, str]] = []
        """A robots.txt that a worker (or any) requested between two times may be fetched again."""
        self.still: tuple[float, float, str] | None = None
        """When a worker that stood still went on, when Redis first answered it, and its name."""
        self.has_come = False
        self._web, self._folder = web, folder
        self._seen = (0, time.monotonic())

    @property
    def server(self) -> RedisServer:
        assert isinstance(self.shared, RedisServer)
        return self.shared

    def start(self, name: str) -> None:
        """Start a worker."""
        url = self.shared.url
        arguments = {}
        if isinstance(self.shared, RedisServer):
            spider = "shared"
        else:  # RedisSpider has no client for others
            spider, arguments = "started", {"urls": self.sites.seeds()}
        if self.event.is_proxied:
            self.proxies.append(Proxy(self._web, self.server.port))
            url = self.proxies[-1].url
        settings = {"REDIS_URL": url, "REP_STORE": url, **self.plan.settings}
        options = {"variant": self.plan.variant, "spider": spider, "arguments": arguments}
        self.workers.append(Worker(self._folder, name, {**options, "settings": settings}))

    def run(self) -> None:
        """Crawl until all workers have ended."""
        if isinstance(self.shared, RedisServer):
            with self.server.client as client:
                seeds = (json.dumps({"url": url}) for url in self.sites.seeds())
                client.rpush(f"{NAME}:start_urls", *seeds)
        until = time.monotonic() + self.plan.seconds
        try:
            for number in range(self.plan.workers):
                self.start(f"w{number}")
            while self._goes_on(until):
                if not self.has_come and self.sites.pages >= self.event.at * len(self.expected):
                    self.event.act(self)
                    self.has_come = True
                time.sleep(0.05)
        finally:
            self._close()

    def _goes_on(self, until: float) -> bool:
        now = time.monotonic()
        if len(self.sites.received) > self._seen[0]:
            self._seen = (len(self.sites.received), now)
        is_late = now > min(until, self._seen[1] + STUCK)
        return not is_late and any(worker.is_running for worker in self.workers)

    def _close(self) -> None:
        for worker in self.workers:
            if worker.is_running:
                worker.was_stopped = True
                worker.process.send_signal(signal.SIGCONT)
                worker.process.terminate()
        until = time.monotonic() + END
        for worker in self.workers:
            worker.close(until)


def _nothing(_: Crawl) -> None:
    """No event."""


def _kill(crawl: Crawl) -> None:
    worker = crawl.workers[1]
    worker.kill()
    now = time.monotonic()
    crawl.excused.append((now - LATE, now, worker.name))
    crawl.twice = 2 * CONCURRENT_REQUESTS


def _restart(crawl: Crawl) -> None:
    _kill(crawl)
    crawl.start("again")


def _stand_still(crawl: Crawl) -> None:
    """Stop a worker. Redis does not answer when it goes on: it must not start anything."""
    worker, proxy = crawl.workers[1], crawl.proxies[1]
    began = time.monotonic()
    worker.process.send_signal(signal.SIGSTOP)
    time.sleep(STILL)
    proxy.is_paused = True
    resumed = time.monotonic()
    worker.process.send_signal(signal.SIGCONT)
    time.sleep(FIRST_REPLIES)
    answered = time.monotonic()
    proxy.is_paused = False
    crawl.still = (resumed, answered, worker.name)
    crawl.excused.append((began - LATE, answered, worker.name))
    crawl.twice = 2 * CONCURRENT_REQUESTS


def _stop_redis(crawl: Crawl) -> None:
    _take_away(crawl, crawl.server.stop)


def _kill_redis(crawl: Crawl) -> None:
    _take_away(crawl, crawl.server.kill)


def _take_away(crawl: Crawl, end: Callable[[], None]) -> None:
    began = time.monotonic()
    end()
    time.sleep(AWAY)
    crawl.server.start()
    crawl.excused.append((began - LATE, time.monotonic() + LATE, ""))


def _flush(crawl: Crawl) -> None:
    with crawl.server.client as client:
        client.flushall()
    crawl.reason = "redis_lost"
    crawl.excused.append((0, time.monotonic() + LATE, ""))


def _roll_back(crawl: Crawl) -> None:
    with crawl.server.client as client:
        client.save()
    saved = time.monotonic()
    time.sleep(1)
    crawl.server.kill()
    crawl.server.start()
    _forgot(crawl, saved)


def _fail_over(crawl: Crawl) -> None:
    assert isinstance(crawl.shared, RedisSentinel)
    began = time.monotonic()
    crawl.shared.kill_primary()
    _forgot(crawl, began)


def _forgot(crawl: Crawl, since: float) -> None:
    """Redis has forgotten what came after a time."""
    now = time.monotonic()
    crawl.excused.append((since - LATE, now + LATE, ""))
    received = [*crawl.sites.received]
    crawl.twice = sum(each.end > since - 1 for each in received) + 2 * CONCURRENT_REQUESTS


def _lose_replies(crawl: Crawl) -> None:
    for proxy in crawl.proxies:
        proxy.lose_every = 20


def _slow_down(crawl: Crawl) -> None:
    for proxy in crawl.proxies:
        proxy.delay = 0.01


class Event(NamedTuple):
    """What happens during a crawl."""

    act: Callable[[Crawl], None] = _nothing
    at: float = 0.3
    """The part of the pages that have been received then."""
    arguments: Sequence[str] = ()
    """Those of the Redis server."""
    shared: Callable[[Path], Shared] | None = None
    """Another Redis than one server."""
    is_proxied: bool = False


EARLY = 0.05
"""The part of the pages after which all start URLs are read. RedisSpider may lose them."""

EVENTS = {
    "none": Event(),
    "kill": Event(_kill),
    "restart": Event(_restart),
    "stop": Event(_stand_still, is_proxied=True),
    "rdb": Event(_stop_redis, arguments=RDB),
    "aof": Event(_kill_redis, arguments=AOF),
    "flush": Event(_flush),
    "rollback": Event(_roll_back),
    "lossy": Event(_lose_replies, EARLY, is_proxied=True),
    "slow": Event(_slow_down, 0, is_proxied=True),
    "cluster": Event(shared=RedisCluster),
    "sentinel": Event(_fail_over, shared=RedisSentinel),
}

DURATION = Duration(4500, 150)
PARAMETERS = {
    "events": Parameter(
        f"{', '.join(EVENTS)}, delay, cost",
        "none, kill, rdb",
        f"of {', '.join(EVENTS)}, delay, cost",
    ),
    "workers": Parameter("3, 8", "3", "how many, of each crawl"),
    "sites": Parameter(300, 60, "sites"),
    "pages": Parameter(10_000, 1500, "pages of all sites, about"),
    "hosts": Parameter(30_000, 3000, "hosts with two waiting requests, for the memory of cost"),
    "seconds": Parameter(300, 120, "after which a crawl is stopped"),
    "variant": Parameter("ours", "ours", f"of {', '.join(VARIANTS)}"),
    "persist": Parameter(1, 1, "SCHEDULER_PERSIST"),
}


def run(options: Options) -> Result:
    """Judge each crawl."""
    rows: list[Row] = []
    details: list[str] = []
    base = Plan(
        options.text("variant"),
        0,
        options.number("sites"),
        options.number("pages"),
        options.number("seconds"),
        settings={"SCHEDULER_PERSIST": bool(options.number("persist"))},
    )
    for name in options.text("events").replace(",", " ").split():
        if name in SPECIAL:
            found = [(name, *SPECIAL[name](base, options))]
        else:
            counts = map(int, options.text("workers").replace(",", " ").split())
            found = [
                (f"{name}, {each}", *_judged(base._replace(workers=each), name)) for each in counts
            ]
        for title, some, notes in found:
            rows += [Row(f"{title}: {row.name}", *row[1:]) for row in some]
            details += [f"{title}: {note}" for note in notes]
    return Result(rows, details)


@contextmanager
def _crawled(plan: Plan, event: Event) -> Iterator[Crawl]:
    """Yield a crawl that has ended, while its Redis still runs."""
    with TemporaryDirectory() as name, closing(Web()) as web:
        folder = Path(name)
        make = event.shared or (lambda folder: RedisServer(folder, arguments=event.arguments))
        with closing(make(folder)) as shared:
            crawl = Crawl(plan, event, web, folder, shared)
            crawl.run()
            yield crawl


def _judged(plan: Plan, name: str) -> tuple[list[Row], list[str]]:
    began = time.monotonic()
    with _crawled(plan, EVENTS[name]) as crawl:
        rows = [*_pages(crawl), *_politeness(crawl), *_ends(crawl)]
        ends = [f"{worker.name}: {worker.end}" for worker in crawl.workers]
        logs = sum((worker.log_lines() for worker in crawl.workers), Counter[str]())
    seconds = time.monotonic() - began
    lines = [f"{times} x {line}" for line, times in logs.most_common(8)]
    tracebacks = sum(logs[line] for line in logs if line.startswith("Traceback"))
    rows += [
        Row("tracebacks", tracebacks, "tracebacks", 0),
        Row("warnings and errors", logs.total() - tracebacks, f"lines, {len(logs)} kinds"),
        Row("crawl", seconds, "s"),
    ]
    sys.stderr.write(f"{name}, {plan.workers} workers: {seconds:.0f} s\n")
    return rows, [*ends, *lines]


def _pages(crawl: Crawl) -> Iterator[Row]:
    got = Counter((each.host, each.path) for each in crawl.sites.received if each.is_page)
    is_lost = crawl.reason != "finished"
    yield Row("pages", len(crawl.expected), "pages")
    lost = len(crawl.expected - got.keys())
    yield Row("pages never requested", lost, "pages", None if is_lost else 0)
    yield Row("pages requested again", got.total() - len(got), "times", crawl.twice)
    private = sum(path.startswith("/private") for _, path in got)
    yield Row("disallowed pages requested", private, "pages", 0)
    if crawl.still:
        resumed, answered, name = crawl.still
        own = [each for each in crawl.sites.received if each.worker == name]
        sent = sum(resumed < each.start < answered for each in own)
        yield Row("requests before Redis answered", sent, "requests", CONCURRENT_REQUESTS)


def _politeness(crawl: Crawl) -> Iterator[Row]:
    by_host: defaultdict[str, list[Received]] = defaultdict(list)
    for each in sorted(crawl.sites.received, key=lambda each: each.start):
        if each.path != "/robots.txt":
            by_host[each.host].append(each)
    delays = {host: site.kind.delay for host, site in crawl.sites.by_host.items()}
    gaps = [
        (after.start - before.end, delays[host])
        for host, received in by_host.items()
        for before, after in pairwise(received)
        if delays[host]
    ]
    if gaps:
        short = sum(gap < delay - TOLERANCE for gap, delay in gaps)
        yield Row("gaps shorter than a Crawl-delay", short, "gaps", 0)
        yield Row("shortest gap", min(gap / delay for gap, delay in gaps), "of a delay")
    within = sum(
        busy.end + UNDER_WAY < each.start < busy.end + RETRY_AFTER - TOLERANCE
        for received in by_host.values()
        for busy in received
        if busy.status == 429
        for each in received
    )
    yield Row("requests within Retry-After", within, "requests", 0)
    most = max(map(_most_at_once, by_host.values()), default=0)
    limit = CONCURRENT_REQUESTS_PER_DOMAIN
    yield Row("most requests at once to a host", most, "requests", limit)
    yield Row("robots.txt requested again", _again(crawl), "fetches", 0)


def _most_at_once(received: Sequence[Received]) -> int:
    changes = sorted([(each.start, 1) for each in received] + [(each.end, -1) for each in received])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def _again(crawl: Crawl) -> int:
    """Return how many fetches of a robots.txt have no reason."""
    fetches: defaultdict[str, list[Received]] = defaultdict(list)
    for each in crawl.sites.received:
        if each.path == "/robots.txt":
            fetches[each.host].append(each)
    needed = {
        host: len(crawl.sites.by_host[host].kind.robots)
        + sum(
            any(
                since < each.start < until and name in ("", each.worker)
                for since, until, name in crawl.excused
            )
            for each in found
        )
        for host, found in fetches.items()
    }
    return sum(max(len(found) - needed[host], 0) for host, found in fetches.items())


def _ends(crawl: Crawl) -> Iterator[Row]:
    others = [worker for worker in crawl.workers if not worker.was_killed]
    wrong = sum(worker.was_stopped or worker.reason != crawl.reason for worker in others)
    yield Row(f"workers that did not end with {crawl.reason}", wrong, "workers", 0)
    idle = {each.worker for each in crawl.sites.received}
    yield Row(
        "workers without a request", len(others) - len({w.name for w in others} & idle), "workers"
    )
    yield Row("events that did not come", not crawl.has_come, "events", 0)


def _delay(base: Plan, options: Options) -> tuple[list[Row], list[str]]:
    settings = {**base.settings, "DOWNLOAD_DELAY": 1}
    pages = 15 if options.quick else 40  # and that of the start URL
    plan = base._replace(workers=4, sites=1, pages=pages, kinds=[Kind()], settings=settings)
    with _crawled(plan, Event()) as crawl:
        starts = [each.start for each in crawl.sites.received if each.is_page]
    gaps = sorted(between(starts)) or [0.0]
    return [
        Row("pages never requested", pages + 1 - len(starts), "pages", 0),
        Row("gaps below half of DOWNLOAD_DELAY = 1", sum(gap < 0.5 for gap in gaps), "gaps", 0),
        Row("a tenth of the gaps is below", gaps[len(gaps) // 10], "s"),
    ], [f"{worker.name}: {worker.end}" for worker in crawl.workers]


class Cost(NamedTuple):
    """What a crawl of one worker has cost."""

    rate: float
    """Pages a second, without the first and the last tenth."""
    calls: float
    """Scripts that Redis ran for each page."""
    redis: float
    """Milliseconds of CPU that Redis used for each page."""
    cpu: float
    """Seconds of CPU that the worker used."""


def _cost_of(plan: Plan, event: Event) -> Cost:
    with _crawled(plan, event) as crawl, crawl.server.client as client:
        starts = sorted(each.start for each in crawl.sites.received if each.is_page)
        count = len(starts)
        tenth = count // 10
        cpu = client.info("cpu")
        scripts = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
        used = 1000 * (cpu["used_cpu_user"] + cpu["used_cpu_sys"])
    rate = (count - 2 * tenth) / (starts[-tenth] - starts[tenth]) if tenth else 0
    pages = max(count, 1)
    return Cost(rate, scripts / pages, used / pages, crawl.workers[0].cpu)


def _cost(base: Plan, options: Options) -> tuple[list[Row], list[str]]:
    kinds = [Kind(robots=[404], latency=0.02)]
    settings = {**base.settings, "CONCURRENT_REQUESTS": 32}
    sites = 20 if options.quick else 60
    plan = base._replace(
        workers=1, sites=sites, pages=sites * 41, kinds=kinds, settings=settings, seconds=90
    )
    here, far = _cost_of(plan, EVENTS["none"]), _cost_of(plan, EVENTS["slow"])
    other = _cost_of(plan._replace(variant="scrapy-redis"), EVENTS["none"])
    number = options.number("hosts")
    return [
        Row("pages a second", here.rate, "pages/s"),
        Row("pages a second, 20 ms from Redis", far.rate, "pages/s"),
        Row("pages a second, scrapy-redis alone", other.rate, "pages/s"),
        Row("speed with 0 ms against 20 ms", here.rate / max(far.rate, 0.1), "times", 1.25),
        Row("speed of scrapy-redis alone", other.rate / max(here.rate, 0.1), "times", 1),
        Row("scripts of Redis for a page", here.calls, "calls", 1),
        Row("CPU of Redis for a page", here.redis, "ms", 0.15),
        Row("CPU of Redis for a page, scrapy-redis alone", other.redis, "ms"),
        Row("CPU of a worker", here.cpu, "s"),
        Row(
            "CPU of a worker, against scrapy-redis alone",
            here.cpu / max(other.cpu, 0.1),
            "times",
            1,
        ),
        Row("memory of Redis for a request", _memory(base.variant, number), "bytes", 700),
    ], []


def _memory(variant: str, hosts: int) -> float:
    """Return the bytes of Redis for each of the requests that one worker pushes."""
    with TemporaryDirectory() as name, closing(RedisServer(Path(name))) as server:
        options = {
            "variant": variant,
            "spider": "pushes",
            "arguments": {"hosts": hosts, "each": 2},
            "settings": {"REDIS_URL": server.url},
        }
        with server.client as client:
            used = [float(client.info("memory")["used_memory"])]
            worker = Worker(Path(name), "w0", options)
            until = time.monotonic() + 300
            try:
                wait_until(lambda: client.dbsize() > 0, "the worker")
                while len(used) < 5 or abs(used[-1] - used[-4]) > 20_000 < until - time.monotonic():
                    time.sleep(1)
                    used.append(float(client.info("memory")["used_memory"]))
            finally:
                worker.kill()
    return (used[-1] - used[0]) / (2 * hosts)


SPECIAL: dict[str, Callable[[Plan, Options], tuple[list[Row], list[str]]]] = {
    "delay": _delay,
    "cost": _cost,
}
