"""SQLite and Redis with 100,000 origins: speed, size, late loops.

The default is a SQLite file and a Redis server, both temporary. ``--set store=`` names another
store by a URL, as REP_STORE does. A Redis server is emptied first. The files are repeated.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path

import redis

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry, Store
from scrapy_rep.stores.fallback import FallbackStore
from scrapy_rep.stores.registry import open_store
from testing.corpus import load
from testing.harness import Duration, Options, Parameter, Result, Row
from testing.redis_server import RedisServer

DURATION = Duration(240, 15)
PARAMETERS = {
    "store": Parameter("", "", "a URL as in REP_STORE; SQLite and Redis if empty"),
    "files": Parameter(2000, 500, "generated files"),
    "origins": Parameter(100_000, 2000, "origins"),
    "others": Parameter(0, 0, "processes that write to the same store meanwhile"),
}
AT_ONCE = 32
SMALL = 10_000
"""How many claims, reservations and other small keys are measured."""
TICK = 0.001


def entry(number: int, body: bytes) -> Entry:
    """Return the entry of an origin after a 200."""
    now = 1_800_000_000 + number / 7
    url = f"https://www.host{number}.example/robots.txt"
    return Entry(
        AccessResult.SUCCESSFUL,
        now,
        now + 77_760,
        now + 86_400,
        body,
        CopyInfo(url, etag=f'"{number:x}"', sha256=sha256(body).hexdigest()),
        status=200,
        url=url,
    )


def opened(url: str) -> Store:
    store = open_store(url, jobdir=None, ttl=1e9)
    assert isinstance(store, FallbackStore)
    return store


class Lateness:
    """Record how late a coroutine runs that sleeps for a millisecond: the loop was blocked."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            self.seconds.append(time.perf_counter() - before - TICK)

    def rows(self) -> list[Row]:
        """Return the median, the 99th percentile and the maximum."""
        ordered = sorted(self.seconds)
        return [
            Row("  loop late by, median", ordered[len(ordered) // 2] * 1000, "ms"),
            Row("  loop late by, 99 %", ordered[len(ordered) * 99 // 100] * 1000, "ms"),
            Row("  loop late by, most", ordered[-1] * 1000, "ms"),
        ]


@contextmanager
def watched() -> Iterator[Lateness]:
    lateness = Lateness()
    watching = asyncio.ensure_future(lateness.watch())
    try:
        yield lateness
    finally:
        watching.cancel()


async def in_turn(acts: list[Callable[[], Awaitable[object]]]) -> float:
    """Return the seconds of all calls, with a limit of calls at a time."""
    began = time.perf_counter()

    async def some() -> None:
        while acts:
            await acts.pop()()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return time.perf_counter() - began


async def measure(url: str, bodies: list[bytes], origins: int) -> list[Row]:
    rows = []
    store = opened(url)
    names = [f"https://www.host{number}.example" for number in range(origins)]
    order = list(range(origins))
    random.Random(1).shuffle(order)

    def put(number: int) -> Callable[[], Awaitable[object]]:
        return lambda: store.put(names[number], entry(number, bodies[number % len(bodies)]))

    def get(number: int) -> Callable[[], Awaitable[object]]:
        return lambda: store.get(names[number])

    def reserve(number: int) -> Callable[[], Awaitable[object]]:
        return lambda: store.reserve_host(f"www.host{number}.example", 60)

    def release(number: int) -> Callable[[], Awaitable[object]]:
        return lambda: store.release_host(f"www.host{number}.example", 1)

    acts = {"puts": put, "gets": get, "reservations": reserve, "releases": release}
    for what, act in acts.items():
        with watched() as lateness:
            seconds = await in_turn([act(number) for number in order])
        rows += [Row(what, origins / seconds, "a second"), *lateness.rows()]
    lone = time.perf_counter()
    for number in order[:1000]:
        await store.get(names[number])
    alone = (time.perf_counter() - lone) / len(order[:1000])
    rows.append(Row("one get at a time", alone * 1000, "ms"))
    await store.close()
    return rows


def write_for_ever(url: str, bodies: list[bytes], first: int) -> None:
    async def write() -> None:
        store = opened(url)
        for number in count(first):
            await store.put(f"https://other{number}.example", entry(number, bodies[number % 100]))

    asyncio.run(write())


def run(options: Options) -> Result:
    """Return the figures of each store."""
    bodies = [body[:512_000] for body in load(options.folder, files=options.number("files")).bodies]
    random.Random(1).shuffle(bodies)
    given = options.text("store")
    if given:
        rows = measure_store(given, bodies, options)
        return Result(rows, [given.rpartition("@")[2]])
    with tempfile.TemporaryDirectory() as folder:
        rows = [Row("SQLite", options.number("origins"), "origins")]
        rows += measure_store(f"sqlite:///{Path(folder, 'robots.db')}", bodies, options)
        server = RedisServer(Path(folder))
        try:
            rows.append(Row("Redis", options.number("origins"), "origins"))
            rows += measure_store(server.url, bodies, options)
        finally:
            server.kill()
    return Result(rows)


async def sizes(url: str, client: redis.Redis, number: int) -> list[Row]:
    """Return the memory of a Redis server for what is not the entry of a robots.txt."""
    store = opened(url)

    def put(name: str) -> Awaitable[object]:
        now, url = 1_800_000_000 + len(name) / 7, f"https://{name}/robots.txt"
        missing = Entry(
            AccessResult.UNAVAILABLE, now, now + 77_760, now + 86_400, status=404, url=url
        )
        return store.put(f"https://{name}", missing)

    async def delay(name: str) -> None:
        await store.reserve_host(name, 60)
        await store.release_host(name, 60)

    acts: dict[str, Callable[[str], Awaitable[object]]] = {
        "an origin without a robots.txt": put,
        "a claim": lambda name: store.claim(f"https://{name}", 60),
        "a reservation": lambda name: store.reserve_host(name, 60),
        "a delay": delay,
    }
    rows = []
    for what, act in acts.items():
        client.flushdb()
        empty = used(client)
        for position in range(number):
            await act(f"www.host{position}.example")
        rows.append(Row(f"size of {what}", (used(client) - empty) / number, "octets"))
    await store.close()
    return rows


def used(client: redis.Redis) -> int:
    """Return the memory of a Redis server in octets."""
    return int(client.info("memory")["used_memory"])


def measure_store(url: str, bodies: list[bytes], options: Options) -> list[Row]:
    """Return the figures of one store, and its size if no other process writes to it."""
    origins = options.number("origins")
    client = None if url.startswith("sqlite") else redis.Redis.from_url(url)
    empty = 0
    if client:
        client.flushdb()
        empty = used(client)
    context = multiprocessing.get_context("spawn")
    others = [
        context.Process(target=write_for_ever, args=(url, bodies[:100], number * 10**6))
        for number in range(options.number("others"))
    ]
    for other in others:
        other.start()
    try:
        rows = asyncio.run(measure(url, bodies, origins))
    finally:
        for other in others:
            other.kill()
            other.join()
    if not others:
        if client:
            size = used(client) - empty
        else:
            file = Path(url.removeprefix("sqlite:///"))
            size = sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))
        rows.append(Row("size of an origin", size / origins, "octets"))
        if client:
            rows += asyncio.run(sizes(url, client, min(origins, SMALL)))
    if client:
        client.flushdb()
        client.close()
    return rows
