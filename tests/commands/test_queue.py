"""The subcommand ``queue``: what waits in a queue in Redis, and holding and dropping hosts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, ParamSpec, TypeVar

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.commands import queue as queue_module
from scrapy_rep.frontier.shared_queue import Answer, Push, SharedQueue, Wanted
from scrapy_rep.stores.redis_url import RedisURL
from testing.faults import answer_when
from testing.redis_server import RedisCluster, RedisServer
from testing.web import Page, Web
from tests.crawl.conftest import Visitor, make_crawler, run_crawler, until

from .conftest import ROOT, Done, Run

T = TypeVar("T")
P = ParamSpec("P")
PAGE = ROOT / "docs" / "usage" / "commands" / "queue.md"
KEY = "news:requests"
PREFIX = f"{{{KEY}}}:1:"
NOTHING, ALL = Wanted(), Wanted(1000, 1000)


def push(shared: SharedQueue, host: str, count: int = 1, *, is_new: bool = False) -> None:
    """Let the next call push requests to a host, of decreasing priority."""
    for number in range(count):
        shared.push(Push(b"", host, is_new, -number, f"{host} {number}".encode()))


async def call(shared: SharedQueue, wanted: Wanted = NOTHING) -> Answer:
    """Make calls until all has been pushed, and return the last answer."""
    answer = await shared.call(wanted)
    while shared.kept:
        answer = await shared.call(wanted)
    return answer


def apart(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call a function that runs an event loop, in a thread: the test may run in another loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments, **named).result()


class Crawl:
    """A crawl in Redis, whose workers are played by a test."""

    def __init__(self, server: RedisServer, run: Run, key: str = KEY) -> None:
        self.server, self.key = server, key
        self._run = run

    def tool(self, *arguments: str) -> Done:
        return apart(self._run, "queue", *arguments, "-s", f"REDIS_URL={self.server.url}")

    def worker(self, work: Callable[[SharedQueue], Awaitable[T]], name: str = "web1:42:abc") -> T:
        """Let a worker do something with the queue, and stay alive."""

        async def run() -> T:
            client = RedisURL(self.server.url).client(asynchronous=True)
            shared = SharedQueue(client, "", self.key)
            shared.worker = name
            await shared.open()
            try:
                return await work(shared)
            finally:
                await client.aclose()

        return apart(asyncio.run, run())

    def fill(self, **hosts: int) -> None:
        """Push requests to hosts; an underscore in a name stands for a dot."""

        async def work(shared: SharedQueue) -> None:
            for host, count in hosts.items():
                push(shared, host.replace("_", "."), count)
            await call(shared)
            await shared.recover()

        self.worker(work, "filler:1:abc")

    def leased(self, name: str = "other:7:def") -> dict[str, int]:
        """Return what a new worker gets, and give it back."""

        async def work(shared: SharedQueue) -> dict[str, int]:
            answer = await call(shared, ALL)
            await shared.recover()
            return {host: len(found) for host, found in answer.leased.items()}

        return self.worker(work, name)

    def record(self, *arguments: str) -> dict[str, Any]:
        done = self.tool("--json", *arguments)
        assert (done.code, done.err) == (0, "")
        return done.record


@pytest.fixture
def crawl(redis_server: RedisServer, run: Run) -> Crawl:
    return Crawl(redis_server, run)


async def every_state(shared: SharedQueue) -> None:
    """Have a host in each state, and some requests."""
    push(shared, "leased.example", 3)
    await call(shared)
    await call(shared, Wanted(1))
    push(shared, "leased.example", 4)
    push(shared, "ready.example", 5)
    push(shared, "held.example", 2)
    push(shared, "new.example", 1, is_new=True)
    push(shared, "", 6)
    for host, delay in (("delay.example", 5), ("backoff.example", 0)):
        assert await shared.reserve(host) == 0
        push(shared, host, 2)
        shared.release(host, 500, delay)
    await call(shared)


STATES = {
    "leased.example": ("leased", 4, 3), "ready.example": ("ready", 5, 0),
    "held.example": ("held", 2, 0), "new.example": ("robots.txt", 1, 0), "": ("ready", 6, 0),
    "delay.example": ("delay", 2, 0), "backoff.example": ("backoff", 2, 0),
}  # fmt: skip


@pytest.fixture
def busy(crawl: Crawl) -> Crawl:
    """A crawl with a host in each state."""
    crawl.worker(every_state)
    done = crawl.tool(
        "hold", "https://Held.example/x", "--for", "1h", "--reason", "he\x1b[m called"
    )
    assert (done.code, done.err) == (0, "")
    assert done.out == "held.example is held for 1:00:00. Waiting: 2 requests\n"
    return crawl


def test_the_states_of_hosts(busy: Crawl) -> None:
    record = busy.record()
    hosts = {each["host"]: each for each in record["largest"]}
    assert [*hosts][:2] == ["leased.example", ""]
    found = {
        host: (each["state"], each["waiting"], each["in_progress"]) for host, each in hosts.items()
    }
    assert found == STATES
    assert {host for host, each in hosts.items() if each["seconds"]} == {
        *("held.example", "delay.example", "backoff.example")
    }
    assert hosts["leased.example"]["reason"] == "web1:42"
    assert hosts["held.example"]["reason"] == "he\x1b[m called"
    # 1 to 3 are leased
    assert (hosts["leased.example"]["oldest"], hosts["ready.example"]["oldest"]) == (4, 8)
    assert (record["key"], record["added"]) == (KEY, 25)
    assert record["requests"] == {
        "ready": 11, "leased": 4, "delay": 2, "backoff": 2, "robots.txt": 1, "held": 2,
        "in progress": 3, "failed": 0,
    }  # fmt: skip
    assert record["hosts"] == {
        "ready": 2, "leased": 1, "delay": 1, "backoff": 1, "robots.txt": 1, "held": 1,
    }  # fmt: skip
    (worker,) = record["workers"]
    assert worker.pop("seconds") > 0
    assert worker == {"machine": "web1", "pid": 42, "requests": 3, "hosts": 1}


def test_text(busy: Crawl) -> None:
    done = busy.tool()
    assert (done.code, done.err) == (0, "")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0] == f"{KEY}: 25 requests added".split()
    for row in (
        "ready 11 2",
        "in progress 3 0",
        "leased.example 4 3 4 leased: web1:42",
        "no host 6 0 16 ready",
        "web1:42 3 1 ends in",
    ):
        assert any(each[: len(row.split())] == row.split() for each in rows), row
    assert "held for 0:59:" in done.out or "held for 1:00:00" in done.out
    assert "he\\x1b[m" in done.out
    assert "failed" not in done.out
    assert "--all" not in done.out


def test_the_largest_hosts(crawl: Crawl) -> None:
    sizes = {f"h{number}_example": number for number in range(1, 56)}
    crawl.fill(**sizes)
    out = crawl.tool().out
    assert "h6.example" in out
    assert "h5.example" not in out
    assert "and 5 more: --all shows them" in out
    assert "h1.example" in crawl.tool("--all").out
    assert [each["waiting"] for each in crawl.record()["largest"]] == [*range(55, 5, -1)]
    assert len(crawl.record("--all")["largest"]) == 55


def test_prometheus(busy: Crawl) -> None:
    done = busy.tool("--prometheus")
    assert (done.code, done.err) == (0, "")
    assert ".example" not in done.out
    lines = done.out.splitlines()
    assert lines.count("# TYPE scrapy_rep_queue_requests gauge") == 1
    for line in (
        f'scrapy_rep_queue_requests{{queue="{KEY}",state="robots.txt"}} 1',
        f'scrapy_rep_queue_requests{{queue="{KEY}",state="in progress"}} 3',
        f'scrapy_rep_queue_requests{{queue="{KEY}",state="failed"}} 0',
        f'scrapy_rep_queue_hosts{{queue="{KEY}",state="held"}} 1',
        f'scrapy_rep_queue_workers{{queue="{KEY}",state="running"}} 1',
        f'scrapy_rep_queue_workers{{queue="{KEY}",state="ended"}} 0',
    ):
        assert line in lines


def test_a_worker_that_has_died(busy: Crawl) -> None:
    with busy.server.client as client:
        client.zadd(f"{PREFIX}workers", {"web1:42:abc": 5})
        client.rpush(f"{PREFIX}failed", b"x")
    record = busy.record()
    assert [each["seconds"] for each in record["workers"]] == [0]
    assert record["requests"]["failed"] == 1
    assert "has ended" in busy.tool().out


def test_many_requests_are_read_in_pages(crawl: Crawl) -> None:
    crawl.fill(a_example=2500, b_example=1)
    with crawl.server.client as client:
        client.config_resetstat()
        record = crawl.record()
        calls = client.info("commandstats")["cmdstat_zrangebylex"]["calls"]
    assert [each["waiting"] for each in record["largest"]] == [2500, 1]
    assert [each["oldest"] for each in record["largest"]] == [1, 2501]
    assert calls == 4  # the last one is empty


def test_the_page_shows_real_output(crawl: Crawl) -> None:
    crawl.worker(every_state)
    crawl.tool("hold", "held.example", "--for", "1h", "--reason", "the owner called")
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    outputs = [crawl.tool().out, crawl.tool("--prometheus").out]
    for given, real in zip(shown, outputs, strict=True):
        assert without_times(given) == without_times(real)


def without_times(text: str) -> str:
    return re.sub(r"\d:\d\d:\d\d|\d+ s$", "TIME", text, flags=re.MULTILINE)


# hold and release


def test_a_held_host_is_not_leased_until_it_is_released(crawl: Crawl) -> None:
    crawl.fill(a_example=2, b_example=1)
    for length in ("2d", "10m"):  # the shorter one replaces the longer one
        assert crawl.tool("hold", "a.example", "--for", length).code == 0
        assert crawl.leased() == {"b.example": 1}
    host, _ = crawl.record()["largest"]
    assert (host["state"], 0 < host["seconds"] <= 600) == ("held", True)
    done = crawl.tool("release", "a.example")
    assert (done.code, done.out) == (0, "a.example is not held. Waiting: 2 requests\n")
    assert crawl.leased() == {"a.example": 2, "b.example": 1}


def test_a_hold_does_not_end_another_state(busy: Crawl) -> None:
    names = ("backoff.example", "delay.example", "new.example")
    for name in names:
        assert busy.tool("hold", name, "--for", "30s").code == 0
    assert busy.leased().keys() == {"ready.example"}
    for name in names:
        assert busy.tool("release", name).code == 0
    states = {each["host"]: each["state"] for each in busy.record()["largest"]}
    assert [states[name] for name in names] == ["backoff", "delay", "robots.txt"]
    assert busy.leased().keys() == {"new.example", "ready.example"}


def test_workers_hear_of_a_hold(busy: Crawl) -> None:
    async def work(shared: SharedQueue) -> frozenset[str]:
        await call(shared)
        return shared.held

    assert busy.worker(work, "third:3:abc") == {"held.example"}


# drop


def test_a_drop_needs_yes(crawl: Crawl) -> None:
    crawl.fill(a_example=1234, b_example=1)
    done = crawl.tool("drop", "a.example")
    assert (done.code, done.out) == (2, "")
    assert "this drops 1,234 requests to a.example" in done.err
    assert crawl.leased() == {"a.example": 8, "b.example": 1}
    done = crawl.tool("drop", "a.example", "--yes")
    assert (done.code, done.out) == (0, "dropped: 1,234 requests to a.example\n")
    assert crawl.leased() == {"b.example": 1}
    with crawl.server.client as client:
        assert client.hlen(f"{PREFIX}bodies") == 1
        assert client.hlen(f"{PREFIX}held") == 0


def test_a_host_that_is_held_stays_held(crawl: Crawl) -> None:
    crawl.fill(a_example=2)
    crawl.tool("hold", "a.example", "--for", "1h", "--reason", "x")
    assert crawl.tool("drop", "a.example", "--yes").code == 0
    (host,) = crawl.record()["largest"]
    assert (host["state"], host["reason"], host["waiting"]) == ("held", "x", 0)


def test_a_drop_waits_for_what_a_worker_gives_back(crawl: Crawl) -> None:
    """The worker has three requests. One has started."""

    async def work(shared: SharedQueue) -> Done:
        push(shared, "a.example", 5)
        await call(shared)
        (leased,) = (await call(shared, Wanted(3)))[3].values()
        names = [name for name, _ in leased]
        drop = asyncio.create_task(asyncio.to_thread(crawl.tool, "drop", "a.example", "--yes"))
        while not shared.held:
            await call(shared)
            await asyncio.wait([drop], timeout=0.01)
        shared.give_back(names[1:])
        shared.release("a.example", 0, 0)
        await call(shared)
        done = await drop
        shared.acknowledge(names[0])
        await call(shared)
        return done

    done = crawl.worker(work)
    assert done.out == "dropped: 4 requests to a.example\n"
    with crawl.server.client as client:
        assert client.hlen(f"{PREFIX}bodies") == 0


def test_a_drop_does_not_wait_for_ever(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "GIVEN_BACK", 1)
    crawl.worker(every_state)
    assert "this drops 7 requests to leased.example" in crawl.tool("drop", "leased.example").err
    done = crawl.tool("drop", "leased.example", "--yes")
    assert (done.code, done.out) == (0, "dropped: 4 requests to leased.example\n")
    assert crawl.record()["requests"]["in progress"] == 3


# Which queue, and what can be wrong


@pytest.mark.parametrize("action", ["hold", "release", "drop"])
def test_an_unknown_host(crawl: Crawl, action: str) -> None:
    crawl.fill(a_example=1)
    options = {"hold": ["--for", "1h"], "drop": ["--yes"]}.get(action, [])
    done = crawl.tool(action, "b.example", *options)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"scrapy-rep: the queue {KEY} has no requests to b.example")


def test_several_queues(crawl: Crawl, run: Run) -> None:
    crawl.fill(a_example=1)
    Crawl(crawl.server, run, "shop:requests").fill(b_example=1)
    done = crawl.tool()
    assert (done.code, done.out) == (2, "")
    assert f"name one of these queues with --key: {KEY}, shop:requests" in done.err
    assert "b.example" in crawl.tool("--key", "shop:requests").out
    assert "b.example" in crawl.tool("-s", "SCHEDULER_QUEUE_KEY=shop:requests").out
    assert "a.example" in crawl.tool("-s", "SCHEDULER_QUEUE_KEY=shop:requests", "--key", KEY).out
    done = crawl.tool("-s", "SCHEDULER_QUEUE_KEY=%(spider)s:requests")
    assert done.code == 2
    done = crawl.tool("--key", "nothing")
    assert (done.code, done.out) == (2, "")
    assert "Redis has no queue with the key nothing" in done.err


def test_a_prefix_and_the_url_of_the_store(crawl: Crawl, run: Run) -> None:
    assert crawl.tool().code == 2  # no queue at all

    async def fill() -> None:
        client = RedisURL(crawl.server.url).client(asynchronous=True)
        shared = SharedQueue(client, "one:", KEY)
        await shared.open()
        push(shared, "a.example")
        await call(shared)
        await client.aclose()

    apart(asyncio.run, fill())
    assert crawl.tool().code == 2
    done = apart(run, "queue", "-s", f"REP_STORE={crawl.server.url}?prefix=one:")
    assert (done.code, done.err) == (0, "")
    assert "a.example" in done.out


def test_the_documented_user(crawl: Crawl, run: Run) -> None:
    crawl.fill(a_example=2)
    scaling = PAGE.parents[1].joinpath("scaling.md").read_text("utf-8")
    setup = scaling.partition("ACL SETUSER crawler ")[2].partition("```")[0]
    assert "`+exists` and `+zscan`" in PAGE.read_text("utf-8")
    commands = [*re.findall(r"\+[a-z]+", setup), "+exists", "+zscan"]
    url = crawl.server.url.replace("//", "//tool:secret@")
    with crawl.server.client as client:
        client.execute_command("ACL", "SETUSER", "tool", "on", ">secret", f"~{PREFIX}*", *commands)
        try:
            for words in ([], ["hold", "a.example", "--for", "1h"], ["drop", "a.example", "--yes"]):
                done = apart(run, "queue", *words, "--key", KEY, "-s", f"REDIS_URL={url}")
                assert (done.code, done.err) == (0, "")
            done = apart(run, "queue", "-s", f"REDIS_URL={url}")
            assert (done.code, done.out) == (3, "")
        finally:
            client.execute_command("ACL", "DELUSER", "tool")


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("redis://user:secret@127.0.0.1:1/0", 3, "Redis does not answer: "),
        ("redis+cluster://user:secret@127.0.0.1:1", 3, "Redis does not answer: "),
        ("redis://user:secret@127.0.0.1:x/0", 2, "REDIS_URL: its URL is invalid"),
        ("sqlite://:secret@x", 2, "needs the URL of a Redis in REDIS_URL"),
    ],
)
def test_no_password_is_shown(run: Run, url: str, code: int, message: str) -> None:
    done = apart(run, "queue", "-s", f"REDIS_URL={url}")
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert "secret" not in done.err


def test_a_cluster(run: Run, tmp_path: Any) -> None:
    cluster = RedisCluster(tmp_path)
    try:
        crawl = Crawl(cluster, run)  # type: ignore[arg-type] # it has a URL
        crawl.fill(a_example=3)
        assert crawl.tool("hold", "a.example", "--for", "1h").code == 0
        assert crawl.record()["requests"]["held"] == 3
        assert crawl.tool("drop", "a.example", "--yes").out.startswith("dropped: 3 requests")
    finally:
        cluster.close()


async def test_a_worker_stops_at_a_held_host_and_goes_on_when_it_is_released(
    web: Web, crawl: Crawl
) -> None:
    """It has requests of both hosts in progress all the time, and has leased more."""
    paths, page, is_held = [f"/{number}" for number in range(40)], Page("", delay=0.05), Event()
    late = answer_when(is_held.is_set, page)
    held = web.site("", dict.fromkeys(paths, late), host="127.0.4.1")
    other = web.site("", dict.fromkeys(paths, page), host="127.0.4.2")
    settings = {
        "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
        "SCHEDULER": "scrapy_rep.frontier.redis.Scheduler",
        "REDIS_URL": crawl.server.url,
    }
    urls = [url for path in paths for url in (held.url(path), other.url(path))]
    crawled = deferred_from_coro(run_crawler(make_crawler(Visitor, settings), requests=urls))
    await until(lambda: held.page_paths)
    done = await asyncio.to_thread(crawl.tool, "hold", "127.0.4.1", "--for", "1h")
    assert done.err == ""
    is_held.set()
    with crawl.server.client as client:
        await until(lambda: not client.hexists("{visitor:requests}:1:leases", "127.0.4.1"))
    before, others = len(held.page_paths), len(other.page_paths)
    assert before < 40
    await until(lambda: len(other.page_paths) > min(others + 10, 39))
    assert len(held.page_paths) == before
    assert (await asyncio.to_thread(crawl.tool, "release", "127.0.4.1")).err == ""
    await maybe_deferred_to_future(crawled)
    assert sorted(held.page_paths) == sorted(other.page_paths) == sorted(paths)
