"""What a store costs: entries a second, octets of an origin, and how long the loop stands still.

    python -m benchmarks.stores FOLDER [STORE] [--origins 100000] [--others 0]

FOLDER holds real robots.txt files, which are used again and again. STORE is what REP_STORE may be:
a SQLite file in a temporary folder if it is left out; a Redis is emptied first. ``--others``: how
many processes write to the same store meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import redis

from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import Entry, FallbackStore, open_store

from .origins_memory import read_folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from scrapy_rep.stores import Store

RESTORE_BATCH = 32
TICK = 0.001


def entry(number: int, body: bytes) -> Entry:
    """As a crawl has it after a 200."""
    now = 1_800_000_000 + number / 7
    url = f"https://www.host{number}.example/robots.txt"
    return Entry(
        AccessResult.RULES,
        now,
        now + 77_760,
        now + 86_400,
        body,
        CopyInfo(url, etag=f'"{number:x}"'),
        status=200,
        url=url,
    )


def opened(url: str) -> Store:
    store = open_store(url, jobdir=None, ttl=1e9)
    assert isinstance(store, FallbackStore)
    return store


class Lateness:
    """How late a coroutine comes that wants to run every millisecond: the loop stood still."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def watch(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            self.seconds.append(time.perf_counter() - before - TICK)

    def __str__(self) -> str:
        ordered = sorted(self.seconds)
        return (
            f"the loop was late by {ordered[len(ordered) // 2] * 1000:.1f} ms (median), "
            f"{ordered[len(ordered) * 99 // 100] * 1000:.1f} ms (99 %), "
            f"{ordered[-1] * 1000:.1f} ms (most)"
        )


@contextmanager
def watched() -> Iterator[Lateness]:
    lateness = Lateness()
    watching = asyncio.ensure_future(lateness.watch())
    try:
        yield lateness
    finally:
        watching.cancel()


async def in_turn(acts: list[Callable[[], Awaitable[object]]]) -> float:
    """Seconds that they took, so many at once."""
    began = time.perf_counter()

    async def some() -> None:
        while acts:
            await acts.pop()()

    await asyncio.gather(*(some() for _ in range(RESTORE_BATCH)))
    return time.perf_counter() - began


async def measure(url: str, bodies: list[bytes], origins: int) -> None:
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
        print(f"{origins / seconds:8,.0f} {what} a second; {lateness}")
    lone = time.perf_counter()
    for number in order[:1000]:
        await store.get(names[number])
    print(f"{time.perf_counter() - lone:8.2f} ms for one get at a time")
    await store.close()


def write_for_ever(url: str, bodies: list[bytes], first: int) -> None:
    async def write() -> None:
        store = opened(url)
        for number in count(first):
            await store.put(f"https://other{number}.example", entry(number, bodies[number % 100]))

    asyncio.run(write())


def main() -> None:
    """Print what is measured."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("store", nargs="?")
    arguments.add_argument("--origins", type=int, default=100_000)
    arguments.add_argument("--others", type=int, default=0)
    options = arguments.parse_args()
    bodies = [body[:512_000] for body in read_folder(options.folder)]
    random.Random(1).shuffle(bodies)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "robots.db")
        url = options.store or f"sqlite:///{file}"
        if not url.startswith("sqlite"):
            client = redis.Redis.from_url(url)
            client.flushdb()
            empty = int(client.info("memory")["used_memory"])
        context = multiprocessing.get_context("spawn")
        others = [
            context.Process(target=write_for_ever, args=(url, bodies[:100], number * 10**6))
            for number in range(options.others)
        ]
        for other in others:
            other.start()
        try:
            asyncio.run(measure(url, bodies, options.origins))
        finally:
            for other in others:
                other.kill()
                other.join()
        if others:
            return
        if url.startswith("sqlite"):
            size = sum(each.stat().st_size for each in Path(folder).iterdir())
        else:
            size = int(client.info("memory")["used_memory"]) - empty
            client.flushdb()
        print(f"{size / 1e6:8,.1f} MB, {size / options.origins:,.0f} octets an origin")


if __name__ == "__main__":
    main()
