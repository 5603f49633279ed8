"""Workers that share a crawl in Redis, while workers and Redis fail, judged by what sites received.

Each event comes when a part of the pages has been received. ``delay`` and ``cost`` are crawls
without one: how workers keep a DOWNLOAD_DELAY together, and what a page costs.
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
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from checks._worker_site import KINDS, RETRY_AFTER, Kind, Proxy, Received, Sites
from testing.harness import ROOT, Duration, Options, Parameter, Result, Row
from testing.redis_server import RedisCluster, RedisSentinel, RedisServer, wait_until
from testing.web import Web, between

START_URLS = "start_urls"
_SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
}
_ADDON = {"ADDONS": {"scrapy_rep.Addon": 500}}
VARIANTS: dict[str, dict[str, Any]] = {
    "ours": {**_ADDON, "SCHEDULER": "scrapy_rep.frontier.redis.Scheduler"},
    "scrapy-redis": {**_SCRAPY_REDIS, "ROBOTSTXT_OBEY": False},
}
"""Settings of a crawl, by the name of the variant."""

CONCURRENT_REQUESTS = 16
CONCURRENT_REQUESTS_PER_DOMAIN = 8
SETTINGS = {
    "CONCURRENT_ITEMS": 10,  # as docs/usage/scaling.md recommends
    "CONCURRENT_REQUESTS": CONCURRENT_REQUESTS,
    "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENT_REQUESTS_PER_DOMAIN,
    "COOKIES_ENABLED": False,
    "LOG_LEVEL": "WARNING",
    "MAX_IDLE_TIME_BEFORE_CLOSE": 8,
    "RETRY_TIMES": 5,
    "REDIS_START_URLS_KEY": START_URLS,
    "TELNETCONSOLE_ENABLED": False,
}

# All of these are in seconds.
AWAY = 8.0  # how long Redis is away
LATE = 8.0  # after that, until all workers use their store again
STILL = 40.0  # how long a worker stands still: longer than its lease
SILENT = 3.0  # how long Redis does not answer it then
STUCK = 60.0  # without a request until a crawl is stopped: longer than the lease of a dead worker
END = 15.0  # how long a worker may go on after SIGTERM
UNDER_WAY = 2.0  # until a worker on a busy machine has seen the answer 429
TOLERANCE = 0.005

_NOTED = r"\[(?!py.warnings)\S+\] (?:WARNING|ERROR|CRITICAL): .*|^Traceback|^[\w.]+Error\b.*"

Shared: TypeAlias = "RedisServer | RedisCluster | Watched"
Judged: TypeAlias = "tuple[list[Row], list[str]]"


class Watched:
    """A primary and a replica, which Sentinel watches."""

    def __init__(self, folder: Path) -> None:
        self._primary = RedisServer(folder)
        primary = ["--replicaof", "127.0.0.1", str(self._primary.port)]
        self._replica = RedisServer(folder, arguments=primary)
        self._sentinel = RedisSentinel(folder, self._primary)
        self.url = f"redis+sentinel://127.0.0.1:{self._sentinel.port}/main"

    def fail_over(self) -> None:
        """Kill the primary, and make the replica the new one."""
        self._primary.kill()
        with self._sentinel.client as client:
            call = partial(client.execute_command, "SENTINEL")
            wait_until(lambda: call("FAILOVER", "main"), "a replica")
            port = str(self._replica.port).encode()
            address = partial(call, "GET-MASTER-ADDR-BY-NAME", "main")
            wait_until(lambda: address()[1] == port, "the new primary")

    def close(self) -> None:
        for server in (self._sentinel, self._replica, self._primary):
            server.kill()


class Worker:
    """A process of :mod:`checks._worker`."""

    def __init__(self, folder: Path, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.was_killed = False
        self.was_stopped = False  # because it did not end by itself
        self.reason, self.cpu = "", 0.0
        self._log = folder / f"{name}.log"
        command = [sys.executable, "-m", "checks._worker", name, json.dumps(options)]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )

    def kill(self) -> None:
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the process in order, if it runs."""
        self.was_stopped = self.process.poll() is None
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()

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
    def end(self) -> tuple[int, str]:
        """The exit status and the finish reason."""
        return self.process.returncode, self.reason

    def __str__(self) -> str:
        return f"{self.name}: {'had to be stopped, ' * self.was_stopped}{self.end}"

    def log_lines(self) -> list[str]:
        """Return the warnings and errors without their numbers, and the ends of tracebacks."""
        lines = self._log.read_text(errors="replace").splitlines()
        found = (re.search(_NOTED, line) for line in lines)
        return [re.sub(r"[0-9a-f]*\d[0-9a-f.:]*", "#", each[0]) for each in found if each]


class Plan(NamedTuple):
    """What is crawled, and how."""

    variant: str
    workers: int
    sites: int
    pages: int
    seconds: float
    settings: Mapping[str, Any]
    kinds: Sequence[Kind] = KINDS

    def all_settings(self) -> dict[str, Any]:
        """Return the settings of a worker, without the URL of Redis."""
        return {**SETTINGS, **VARIANTS[self.variant], **self.settings}


class Crawl:
    """A crawl while it runs, and what it may do after its event."""

    def __init__(self, plan: Plan, event: Event, web: Web, folder: Path, shared: Shared) -> None:
        self.plan, self.event, self.shared = plan, event, shared
        self.sites = Sites(web, plan.sites, plan.pages, plan.kinds)
        self.expected = self.sites.expected()
        self.workers: list[Worker] = []
        self.proxies: list[Proxy] = []
        self.has_come = False
        self.reason = "finished"
        self.twice = 0
        """How many pages may be requested again."""
        self.excused: list[tuple[float, float, str]] = []
        """When a fetch of a robots.txt by a worker, or by any, may come to nothing."""
        self.silent: tuple[float, float, str] | None = None
        """When Redis did not answer a worker that had stood still."""
        self._web, self._folder = web, folder

    @property
    def server(self) -> RedisServer:
        assert isinstance(self.shared, RedisServer)
        return self.shared

    def start(self, name: str) -> None:
        """Start a worker."""
        url = self.shared.url
        if self.event.is_proxied:
            self.proxies.append(Proxy(self._web, self.server.port))
            url = self.proxies[-1].url
        is_one = isinstance(self.shared, RedisServer)  # RedisSpider has no client for others
        options = {
            "spider": "shared" if is_one else "started",
            "arguments": {} if is_one else {"urls": self.sites.seeds()},
            "settings": {**self.plan.all_settings(), "REDIS_URL": url, "REP_STORE": url},
        }
        self.workers.append(Worker(self._folder, name, options))

    def run(self) -> None:
        """Crawl until all workers have ended."""
        if isinstance(self.shared, RedisServer):
            with self.server.client as client:
                seeds = (json.dumps({"url": url}) for url in self.sites.seeds())
                client.rpush(START_URLS, *seeds)
        try:
            for number in range(self.plan.workers):
                self.start(f"w{number}")
            self._watch()
        finally:
            for worker in self.workers:
                worker.stop()
            until = time.monotonic() + END
            for worker in self.workers:
                worker.close(until)

    def _watch(self) -> None:
        now = progress = time.monotonic()
        until, seen = now + self.plan.seconds, 0
        while any(worker.process.poll() is None for worker in self.workers):
            if not self.has_come and self.sites.pages >= self.event.at * len(self.expected):
                self.has_come = True
                self.event.act(self)
            time.sleep(0.05)
            now, before, seen = time.monotonic(), seen, len(self.sites.received)
            progress = now if seen > before else progress
            if now > min(until, progress + STUCK):
                return

    def excuse(self, began: float, ended: float, worker: str = "") -> None:
        self.excused.append((began - LATE, ended + LATE, worker))


# What happens during a crawl.


def _nothing(_: Crawl) -> None:
    """No event."""


def _kill(crawl: Crawl, successor: str = "") -> None:
    now, worker = time.monotonic(), crawl.workers[1]
    worker.kill()
    crawl.excuse(now, now, worker.name)
    crawl.twice = 2 * CONCURRENT_REQUESTS
    if successor:
        crawl.start(successor)


def _stand_still(crawl: Crawl) -> None:
    """Let a worker stand still. Redis does not answer it at first: it must not start anything."""
    began, worker, proxy = time.monotonic(), crawl.workers[1], crawl.proxies[1]
    worker.process.send_signal(signal.SIGSTOP)
    time.sleep(STILL)
    proxy.is_paused = True
    resumed = time.monotonic()
    worker.process.send_signal(signal.SIGCONT)
    time.sleep(SILENT)
    crawl.silent = (resumed, time.monotonic(), worker.name)
    proxy.is_paused = False
    crawl.excuse(began, time.monotonic(), worker.name)
    crawl.twice = 2 * CONCURRENT_REQUESTS


def _take_away(crawl: Crawl, end: Callable[[RedisServer], None]) -> None:
    began = time.monotonic()
    end(crawl.server)
    time.sleep(AWAY)
    crawl.server.start()
    crawl.excuse(began, time.monotonic())


def _flush(crawl: Crawl) -> None:
    with crawl.server.client as client:
        client.flushall()
    crawl.reason = "redis_lost"
    crawl.excuse(0, time.monotonic())


def _roll_back(crawl: Crawl) -> None:
    with crawl.server.client as client:
        client.save()
    saved = time.monotonic()
    time.sleep(1)
    crawl.server.kill()
    crawl.server.start()
    _forget(crawl, saved)


def _fail_over(crawl: Crawl) -> None:
    assert isinstance(crawl.shared, Watched)
    began = time.monotonic()
    crawl.shared.fail_over()
    _forget(crawl, began)


def _forget(crawl: Crawl, since: float) -> None:
    """Redis does not know what came since a time. Acknowledgements are up to a second late."""
    crawl.excuse(since, time.monotonic())
    crawl.twice = sum(each.end > since - 1 for each in [*crawl.sites.received])
    crawl.twice += CONCURRENT_REQUESTS * len(crawl.workers)


def _disturb(crawl: Crawl, **values: float) -> None:
    for proxy in crawl.proxies:
        vars(proxy).update(values)


class Event(NamedTuple):
    """What happens during a crawl."""

    act: Callable[[Crawl], None] = _nothing
    at: float = 0.3
    """The part of the pages that have been received then."""
    shared: Callable[[Path], Shared] = RedisServer
    is_proxied: bool = False


AOF = ("--appendonly", "yes", "--appendfsync", "everysec")
EVENTS = {
    "none": Event(),
    "kill": Event(_kill),
    "restart": Event(partial(_kill, successor="again")),
    "stop": Event(_stand_still, is_proxied=True),
    "rdb": Event(
        partial(_take_away, end=RedisServer.stop),
        shared=partial(RedisServer, arguments=("--save", "3600", "1")),
    ),
    "aof": Event(
        partial(_take_away, end=RedisServer.kill), shared=partial(RedisServer, arguments=AOF)
    ),
    "flush": Event(_flush),
    "rollback": Event(_roll_back),
    # Not before all start URLs are read: RedisSpider may lose them.
    "lossy": Event(partial(_disturb, lose_every=20), 0.05, is_proxied=True),
    "slow": Event(partial(_disturb, delay=0.01), 0, is_proxied=True),
    "cluster": Event(shared=RedisCluster),
    "sentinel": Event(_fail_over, shared=Watched),
}
NAMES = f"{', '.join(EVENTS)}, delay, cost"
DURATION = Duration(3600, 150)
PARAMETERS = {
    "events": Parameter(NAMES, "none, kill, rdb", "some of all"),
    "workers": Parameter("3, 8", "3", "how many share a crawl"),
    "sites": Parameter(300, 60, "sites"),
    "pages": Parameter(10_000, 1500, "pages of all sites, about"),
    "hosts": Parameter(30_000, 3000, "hosts with two requests each, whose memory is measured"),
    "seconds": Parameter(300, 120, "after which a crawl is stopped"),
    "variant": Parameter("ours", "ours", f"of {', '.join(VARIANTS)}"),
    "persist": Parameter(1, 1, "SCHEDULER_PERSIST"),
}


def run(options: Options) -> Result:
    """Judge each crawl."""
    number, variant = options.number, options.text("variant")
    settings = {"SCHEDULER_PERSIST": bool(number("persist"))}
    plan = Plan(variant, 4, number("sites"), number("pages"), number("seconds"), settings)
    crawls: dict[str, Callable[[], Judged]] = {}
    for name in options.text("events").replace(",", " ").split():
        if name in EVENTS:
            for workers in map(int, options.text("workers").replace(",", " ").split()):
                own = plan._replace(workers=workers)
                crawls[f"{name}, {workers}"] = partial(_judge, own, EVENTS[name])
        else:
            special = {"delay": _delay, "cost": _cost}[name]
            crawls[name] = partial(special, plan, number("hosts"))
    rows: list[Row] = []
    details: list[str] = []
    for title, judge in crawls.items():
        began = time.monotonic()
        try:
            found, notes = judge()
        except Exception as error:  # the figures of the others are kept
            found, notes = [Row("failed", 1, "crawls", 0)], [repr(error)]
        sys.stderr.write(f"{title}: {time.monotonic() - began:.0f} s\n")
        rows += [Row(f"{title}: {row.name}", *row[1:]) for row in found]
        details += [f"{title}: {note}" for note in notes]
    return Result(rows, details)


@contextmanager
def _crawled(plan: Plan, event: Event) -> Iterator[Crawl]:
    """Yield a crawl that has ended, while its Redis still runs."""
    with TemporaryDirectory() as name, closing(Web()) as web:
        folder = Path(name)
        with closing(event.shared(folder)) as shared:
            crawl = Crawl(plan, event, web, folder, shared)
            crawl.run()
            yield crawl


def _judge(plan: Plan, event: Event) -> Judged:
    with _crawled(plan, event) as crawl:
        rows = [*_pages(crawl), *_politeness(crawl), *_ends(crawl)]
        logs = Counter(line for worker in crawl.workers for line in worker.log_lines())
    tracebacks = sum(times for line, times in logs.items() if line.startswith("Traceback"))
    rows += [Row("tracebacks", tracebacks, "", 0), Row("lines in logs", logs.total(), "lines")]
    lines = [f"{times} x {line}" for line, times in logs.most_common(8)]
    return rows, [*map(str, crawl.workers), *lines]


def _pages(crawl: Crawl) -> Iterator[Row]:
    received = crawl.sites.received
    got = Counter((each.host, each.path) for each in received if each.is_page)
    lost = len(crawl.expected - got.keys())
    private = sum(path.startswith("/private") for _, path in got)
    yield Row("pages", len(crawl.expected), "pages")
    yield Row("never requested", lost, "pages", 0 if crawl.reason == "finished" else None)
    yield Row("requested again", got.total() - len(got), "pages", crawl.twice)
    yield Row("disallowed and requested", private, "pages", 0)
    if crawl.silent:
        sent = sum(_was_waiting(crawl, each) for each in received)
        yield Row("requested before it had renewed", sent, "pages", CONCURRENT_REQUESTS)


def _politeness(crawl: Crawl) -> Iterator[Row]:
    pages = (each for each in crawl.sites.received if each.path != "/robots.txt")
    by_host = _by_host(each for each in pages if not _was_waiting(crawl, each))
    delays = {host: site.kind.delay for host, site in crawl.sites.by_host.items()}
    gaps = [
        (after.start - before.end + TOLERANCE) / delays[host]
        for host, received in by_host.items()
        for before, after in pairwise(received)
        if delays[host]
    ]
    if gaps:
        yield Row("below their Crawl-delay", sum(gap < 1 for gap in gaps), "gaps", 0)
        yield Row("the shortest, of a Crawl-delay", 100 * min(gaps), "percent")
    within = sum(
        busy.end + UNDER_WAY < each.start < busy.end + RETRY_AFTER - TOLERANCE
        for received in by_host.values()
        for busy in received
        if busy.status == 429
        for each in received
    )
    yield Row("within a Retry-After", within, "requests", 0)
    most = max(map(_most_at_once, by_host.values()), default=0)
    yield Row("at once to a host", most, "requests", CONCURRENT_REQUESTS_PER_DOMAIN)
    fetches = _by_host(each for each in crawl.sites.received if each.path == "/robots.txt")
    again = 0
    for host, found in fetches.items():
        needed = len(crawl.sites.by_host[host].kind.robots)
        again += max(sum(not _is_excused(crawl, each) for each in found[:-1]) + 1 - needed, 0)
    yield Row("robots.txt requested again", again, "fetches", 0)


def _was_waiting(crawl: Crawl, each: Received) -> bool:
    """Whether a request was in the downloader of a worker while that stood still."""
    since, until, name = crawl.silent or (0, 0, "")
    return since < each.start < until and each.worker == name


def _by_host(received: Iterator[Received]) -> dict[str, list[Received]]:
    """Return the requests to each host in their order."""
    found: defaultdict[str, list[Received]] = defaultdict(list)
    for each in sorted(received, key=lambda each: each.start):
        found[each.host].append(each)
    return found


def _most_at_once(received: Sequence[Received]) -> int:
    changes = sorted([(each.start, 1) for each in received] + [(each.end, -1) for each in received])
    return max(accumulate(change for _, change in changes))


def _is_excused(crawl: Crawl, fetch: Received) -> bool:
    return any(
        since < fetch.start < until and name in ("", fetch.worker)
        for since, until, name in crawl.excused
    )


def _ends(crawl: Crawl) -> Iterator[Row]:
    others = [worker for worker in crawl.workers if not worker.was_killed]
    wrong = sum(each.was_stopped or each.end != (0, crawl.reason) for each in others)
    used = {each.worker for each in crawl.sites.received}
    yield Row(f"did not end with {crawl.reason}", wrong, "workers", 0)
    yield Row("had no request", sum(each.name not in used for each in others), "workers")
    yield Row("did not come", not crawl.has_come, "events", 0)


class Cost(NamedTuple):
    """What a crawl has cost."""

    rate: float  # pages a second, without the first and the last tenth
    gaps: list[float]  # from the start of a page to that of the next one of its host, in order
    calls: float  # scripts that Redis ran for each page
    redis: float  # milliseconds of CPU that Redis used for each page
    cpu: float  # seconds of CPU that the first worker used
    lost: int
    ends: list[str]


def _cost_of(plan: Plan, event: str = "none") -> Cost:
    with _crawled(plan, EVENTS[event]) as crawl, crawl.server.client as client:
        scripts = client.info("commandstats").get("cmdstat_evalsha", {"calls": 0})["calls"]
        used = client.info("cpu")
    pages = _by_host(each for each in crawl.sites.received if each.is_page)
    times = [[each.start for each in received] for received in pages.values()]
    starts = sorted(chain(*times)) or [0.0]
    gaps = sorted(chain(*map(between, times))) or [0.0]
    count, workers = len(starts), crawl.workers
    rate = 0.8 * count / max(starts[9 * count // 10] - starts[count // 10], 0.1)
    redis = 1000 * (used["used_cpu_user"] + used["used_cpu_sys"]) / count
    lost, ends = len(crawl.expected) - count, [*map(str, workers)]
    return Cost(rate, gaps, scripts / count, redis, workers[0].cpu, lost, ends)


def _delay(plan: Plan, _: int) -> Judged:
    kinds = [Kind(wide=True, latency=0.3)]
    plan = plan._replace(kinds=kinds, settings={**plan.settings, "DOWNLOAD_DELAY": 1})
    # So few requests at once that one worker cannot have all sites.
    few = {**plan.settings, "CONCURRENT_REQUESTS": 4}
    four = _cost_of(plan._replace(sites=20, pages=400, settings=few))
    one = _cost_of(plan._replace(sites=1, pages=40, workers=1))
    return [
        Row("never requested", four.lost + one.lost, "pages", 0),
        Row("below half of DOWNLOAD_DELAY", sum(gap < 0.5 for gap in four.gaps), "gaps", 0),
        Row("a tenth, of DOWNLOAD_DELAY", 100 * four.gaps[len(four.gaps) // 10], "percent"),
        Row("scripts of Redis for a page, one a second", one.calls, "calls", 2),
    ], [*four.ends, *one.ends]


def _cost(plan: Plan, hosts: int) -> Judged:
    kinds = [Kind(robots=[404], latency=0.02)]
    settings = {**plan.settings, "CONCURRENT_REQUESTS": 32}
    plan = plan._replace(workers=1, sites=60, pages=60 * 41, kinds=kinds, settings=settings)
    own, far = _cost_of(plan), _cost_of(plan, "slow")
    other = _cost_of(plan._replace(variant="scrapy-redis"))
    share = 100 * own.cpu / max(other.cpu, 0.1)
    return [
        Row("pages a second", own.rate, "pages/s"),
        Row("20 ms from Redis", far.rate, "pages/s"),
        Row("scrapy-redis", other.rate, "pages/s"),
        Row("speed with 0 ms, of that with 20", 100 * own.rate / far.rate, "percent", 125),
        Row("speed of scrapy-redis, of ours", 100 * other.rate / own.rate, "percent", 100),
        Row("scripts of Redis for a page", own.calls, "calls", 1),
        Row("CPU of Redis for a page", own.redis, "ms", 0.15),
        Row("CPU of a worker", own.cpu, "s"),
        Row("CPU of a worker, of scrapy-redis", share, "percent", 100),
        Row("memory of Redis for a request", _memory(plan, hosts), "bytes", 700),
        Row("never requested", own.lost + far.lost, "pages", 0),
    ], [*own.ends, *far.ends, *other.ends]


def _memory(plan: Plan, hosts: int) -> float:
    """Return the bytes of Redis for each of the requests that one worker pushes."""
    options = {"spider": "pushes", "arguments": {"hosts": hosts, "each": 2}}
    with TemporaryDirectory() as name, closing(RedisServer(Path(name))) as server:
        client = server.client
        used = [int(client.info("memory")["used_memory"])]
        settings = {**plan.all_settings(), "REDIS_URL": server.url}
        worker = Worker(Path(name), "w0", {**options, "settings": settings})
        try:
            wait_until(lambda: client.dbsize() > 0, "the worker")
            while len(used) < 5 or used[-1] - used[-4] > 50_000:
                time.sleep(1)
                used.append(int(client.info("memory")["used_memory"]))
        finally:
            worker.kill()
            client.close()
    return (used[-1] - used[0]) / (2 * hosts)
