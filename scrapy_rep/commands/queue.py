"""``queue``: what waits in the queue of a crawl in Redis, and for what. Holds and drops hosts."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct

from ..logs import plural
from ..policies.gate import Wait
from ..protocol.paths import host_of
from ..protocol.printable import printable
from ..settings import read_queue_url
from ..stores.base import StoreError
from .context import (
    CommandError,
    Context,
    ExitCode,
    NoAnswerError,
    naming_settings,
    need,
    refuse_if,
    tool,
)
from .sources import target_of
from .texts import MAX_CELL, Renderables, table

if TYPE_CHECKING:
    from ..frontier.shared_queue import SharedQueue

T = TypeVar("T")

PAGE = 1000
"""Members of a key that are read at once: meanwhile Redis does nothing else."""

MAX_DROPPED = 500
"""Requests that are dropped at once."""

MAX_HOSTS = 50
"""Hosts that are shown without --all."""

GIVEN_BACK = 10
"""Seconds after which a worker has heard that a host is held, and has given it back."""

READY, LEASED, HELD = "ready", "leased", "held"
STATES = (READY, LEASED, *map(str, (Wait.DELAY, Wait.BACKOFF, Wait.ROBOTS_TXT)), HELD)
ACTION = click.Choice(("hold", "release", "drop", ""))
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class QueueHost(Struct):
    """A host with requests, or that is held. Requests without a host have "" as theirs.

    ``reason``: why it is held, or which worker has leased it. ``seconds``: until its state can
    change by itself. ``oldest``: the number of the oldest request that waits.
    """

    host: str
    state: str
    reason: str
    seconds: int
    waiting: int
    in_progress: int
    oldest: int | None


class QueueWorker(Struct):
    """A worker. ``seconds``: how long its lease lasts; 0 if it has ended."""

    machine: str
    pid: int
    seconds: int
    requests: int
    hosts: int


class Queue(Struct, tag_field="type", tag="queue"):
    """The queue of a crawl in Redis.

    ``added``: the number of the last request. ``requests``: how many wait, by the state of their
    host, how many are in progress, and how many failed because each worker that had them died.
    ``hosts``: their number, by state. ``largest``: those with most requests.
    """

    key: str
    added: int
    requests: dict[str, int]
    hosts: dict[str, int]
    largest: list[QueueHost]
    workers: list[QueueWorker]
    version: int = 1


class UnknownHostError(CommandError):
    """The queue does not have a host."""

    exit_code = ExitCode.FOUND


def _milliseconds(value: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,3})([smhd])", value)
    if match is None:
        raise click.BadParameter(f"{value!r} is not a time such as 30s, 10m, 1h or 2d")
    return int(match[1]) * SECONDS[match[2]] * 1000


@tool(
    "Show what waits in the queue of a crawl whose workers share it in Redis, and for what. 'hold' "
    "keeps all workers from starting requests to a host, 'release' ends that, and 'drop' removes "
    "its requests that have not started. The Redis is that of REDIS_URL or REP_STORE.",
    ("queue", "hosts, by state and reason, and workers"),
    ("queue --prometheus", "figures for a monitor"),
    ("queue hold example.com --for 1h --reason 'its owner called'", "no requests for an hour"),
    ("queue release example.com", "requests start again"),
    ("queue drop example.com --yes", "its requests are removed"),
    found="the queue does not have the host",
    unknown="Redis does not answer",
    records=(Queue,),
)
@click.argument("action", default="", type=ACTION, metavar="[hold|release|drop")
@click.argument("host", default="", metavar="HOST]")
@click.option("--key", help="SCHEDULER_QUEUE_KEY of the crawl. Default: the only queue there is.")
@click.option("--all", is_flag=True, help=f"Show all hosts, not only the {MAX_HOSTS} largest.")
@click.option("--prometheus", is_flag=True, help="Gauges in the text format of Prometheus.")
@click.option("--for", type=_milliseconds, metavar="TIME", help="30s, 10m, 1h or 2d.")
@click.option("--reason", metavar="TEXT", default="", help="Why the host is held.")
@click.option("--yes", is_flag=True, help="Drop requests. Without it: only say how many.")
def queue_tool(context: Context, action: str, host: str, key: str | None, **options: Any) -> int:
    refuse_if(action and not host, f"{action} needs a host")
    is_hold = action == "hold"
    refuse_if(
        is_hold != bool(options["for"]),
        "hold needs a time, such as --for 1h; no other action has one",
    )
    if action:
        host = host_of(target_of(host).origin or "") or host
        change = partial(_drop if action == "drop" else _hold, host=host, options=options)
        context.write(_run(context, key, change) + "\n")
        return ExitCode.OK
    queue = _run(context, key, _read)
    if options["prometheus"]:
        context.write("".join(_gauges(queue)))
        return ExitCode.OK
    if not options["all"]:
        del queue.largest[MAX_HOSTS:]
    context.show(queue, _listing)
    return ExitCode.OK


# What is in Redis


def _run(context: Context, key: str | None, work: Callable[[SharedQueue], Awaitable[T]]) -> T:
    """Connect to Redis, and return what ``work`` returns for the queue."""
    need("queue needs", "redis")
    from redis.exceptions import RedisClusterException, RedisError

    from ..stores.redis_url import RedisURL, clients

    with naming_settings():
        name, url = read_queue_url(context.scrapy_settings)
    wanted = key or context.scrapy_settings.get("SCHEDULER_QUEUE_KEY") or "*"

    async def run() -> T:
        client = redis.client(asynchronous=True)
        try:
            return await work(await _find(client, redis.prefix, wanted.replace("%(spider)s", "*")))
        finally:
            for each in clients(client):
                await each.aclose()

    try:
        redis = RedisURL(url)
        return asyncio.run(run())
    except StoreError as error:
        raise CommandError(f"{name}: {error}") from None
    except (RedisError, RedisClusterException) as error:
        raise NoAnswerError(f"Redis does not answer: {redis.message(error)}") from None


async def _find(client: Any, prefix: str, key: str) -> SharedQueue:
    """Return the only queue whose key matches."""
    from ..frontier.shared_queue import SharedQueue

    name = SharedQueue(client, prefix, key).prefix + "counts"
    if "*" in key:
        found = [each.decode() async for each in client.scan_iter(match=name, count=PAGE)]
    else:
        found = [name] * await client.exists(name)
    keys = sorted({each[len(prefix) + 1 :].rpartition("}")[0] for each in found})
    refuse_if(not keys, f"Redis has no queue with the key {key}")
    refuse_if(len(keys) > 1, f"name one of these queues with --key: {', '.join(keys)}")
    return SharedQueue(client, prefix, keys[0])


async def _read(shared: SharedQueue) -> Queue:
    """Return what the queue has. Workers change it meanwhile."""
    client, prefix = shared.client, shared.prefix
    now = int(await client.eval(_NOW, 1, f"{prefix}counts"))
    states = await _states(shared, now)
    waiting, oldest = await _waiting(shared)
    in_progress, workers = Counter[str](), list[QueueWorker]()
    for worker, end in sorted((await _items(shared, "workers")).items()):
        has = await _items(shared, f"w:{worker}")
        own = [_text(host) for name, host in has.items() if name[0] not in "#@"]
        in_progress.update(own)
        (machine, pid, _), seconds = worker.rsplit(":", 2), max(ceil((end - now) / 1000), 0)
        leased = sum(name[0] == "@" for name in has)
        workers.append(QueueWorker(machine, int(pid), seconds, len(own), leased))
    hosts = []
    for host in {*waiting, *in_progress, *(each for each in states if states[each][0] == HELD)}:
        state, reason, end = states.get(host, (READY, "", now))
        sizes = waiting[host], in_progress[host], oldest.get(host)
        hosts.append(QueueHost(host, state, reason, ceil((end - now) / 1000), *sizes))
    hosts.sort(key=lambda each: (-each.waiting - each.in_progress, each.host))
    requests = {name: sum(each.waiting for each in hosts if each.state == name) for name in STATES}
    requests |= {"in progress": in_progress.total(), "failed": await client.llen(f"{prefix}failed")}
    counts = {name: sum(each.state == name for each in hosts) for name in STATES}
    added = int(await client.hget(f"{prefix}counts", "added") or 0)
    return Queue(shared.key, added, requests, counts, hosts, workers)


_NOW = "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)"


async def _states(shared: SharedQueue, now: int) -> dict[str, tuple[str, str, float]]:
    """Return the states of hosts, with their reasons and the times until which they last."""
    paced, states = await _items(shared, "paced"), dict[str, tuple[str, str, float]]()
    for host, end in (await _items(shared, "hosts")).items():
        if end > now:
            states[host] = str(Wait.DELAY if host in paced else Wait.BACKOFF), "", end
    for host in await _items(shared, "new"):
        states[host] = str(Wait.ROBOTS_TXT), "", now
    for host, worker in (await _items(shared, "leases")).items():
        states[host] = LEASED, _text(worker).rpartition(":")[0], now
    for host, value in (await _items(shared, "held")).items():
        end, _, reason = _text(value).partition(" ")
        if int(end) > now:
            states[host] = HELD, reason, int(end)
    return states


async def _waiting(shared: SharedQueue) -> tuple[Counter[str], dict[str, int]]:
    """Return how many requests of each host wait, and the number of the oldest one."""
    sizes, oldest, start = Counter[str](), dict[str, int](), b"-"
    while page := await shared.client.zrangebylex(f"{shared.prefix}queue", start, "+", 0, PAGE):
        for member in page:
            host, _, name = _text(member).rpartition("\n")
            number = int(name[5:])
            sizes[host] += 1
            oldest[host] = min(number, oldest.get(host, number))
        start = b"(" + page[-1]
    return sizes, oldest


async def _items(shared: SharedQueue, name: str) -> dict[str, Any]:
    """Return what a hash or a sorted set has. It is read in pages."""
    is_sorted = name in ("hosts", "new", "workers")
    scan = shared.client.zscan_iter if is_sorted else shared.client.hscan_iter
    return {_text(key): value async for key, value in scan(shared.prefix + name, count=PAGE)}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


# What is shown


def _gauges(queue: Queue) -> Iterator[str]:
    running = sum(each.seconds > 0 for each in queue.workers)
    workers = {"running": running, "ended": len(queue.workers) - running}
    label = json.dumps(queue.key, ensure_ascii=False)
    gauges = {"requests": queue.requests, "hosts": queue.hosts, "workers": workers}
    for name, numbers in gauges.items():
        yield f"# TYPE scrapy_rep_queue_{name} gauge\n"
        for state, number in numbers.items():
            yield f'scrapy_rep_queue_{name}{{queue={label},state="{state}"}} {number}\n'


def _listing(queue: Queue) -> Renderables:
    yield f"{printable(queue.key)}: {plural(queue.added, 'request')} added\n"
    made = table("State", "Requests", "Hosts", right=(1, 2))
    for state, number in queue.requests.items():
        if number or queue.hosts.get(state):
            made.add_row(state, f"{number:,}", f"{queue.hosts.get(state, 0):,}")
    yield made
    yield ""
    made = table("Host", "Waiting", "In progress", "Oldest", "State", right=(1, 2, 3))
    for host in queue.largest:
        oldest = f"{host.oldest:,}" if host.oldest else ""
        length = f" for {timedelta(seconds=host.seconds)}" if host.seconds else ""
        state = host.state + length + (f": {host.reason}" if host.reason else "")
        name = printable(host.host or "no host", MAX_CELL)
        sizes = f"{host.waiting:,}", f"{host.in_progress:,}"
        made.add_row(name, *sizes, oldest, printable(state, MAX_CELL))
    yield made
    if left_out := sum(queue.hosts.values()) - len(queue.largest):
        yield f"and {left_out:,} more: --all shows them"
    yield ""
    made = table("Worker", "Requests", "Hosts", "Lease", right=(1, 2))
    for each in queue.workers:
        lease = f"ends in {each.seconds} s" if each.seconds else "has ended"
        name = f"{printable(each.machine)}:{each.pid}"
        made.add_row(name, f"{each.requests:,}", f"{each.hosts:,}", lease)
    yield made


# What is done with a host


async def _size(shared: SharedQueue, host: str) -> int:
    """Return how many requests of a host wait. Raises an error if the queue does not have it."""
    client, prefix = shared.client, shared.prefix
    size = await client.zlexcount(f"{prefix}queue", f"[{host}\n", f"({host}\x0b")
    known = [await client.hexists(prefix + name, host) for name in ("leases", "held")]
    if not any([size, *known]):
        raise UnknownHostError(f"the queue {shared.key} has no requests to {host}")
    return int(size)


async def _hold(shared: SharedQueue, host: str, options: dict[str, Any]) -> str:
    """Hold a host, or end that if there is no time."""
    size, length = await _size(shared, host), options["for"] or 0
    await shared.run("hold", host, length, options["reason"])
    state = f"held for {timedelta(milliseconds=length)}" if length else "not held"
    return f"{host} is {state}. Waiting: {plural(size, 'request')}"


async def _drop(shared: SharedQueue, host: str, options: dict[str, Any]) -> str:
    """Drop requests. The host is held meanwhile, so that its worker gives back what it has."""
    client, leases, dropped = shared.client, f"{shared.prefix}leases", 0
    size = await _size(shared, host)
    if worker := await client.hget(leases, host):
        has = await _items(shared, f"w:{_text(worker)}")
        size += sum(name == host.encode() for name in has.values())
    text = f"this drops {plural(size, 'request')} to {host}, except those that have started"
    refuse_if(not options["yes"], f"{text}: repeat it with --yes")
    is_held = await client.hexists(f"{shared.prefix}held", host)
    if not is_held:
        await shared.run("hold", host, 60_000, "its requests are dropped")
    try:
        for _second in range(GIVEN_BACK):
            if await client.hexists(leases, host):
                await asyncio.sleep(1)
        while found := await shared.run("drop", host, MAX_DROPPED):
            dropped += found
    finally:
        if not is_held:
            await shared.run("hold", host, 0, "")
    return f"dropped: {plural(dropped, 'request')} to {host}"
