"""The requests of a crawl in Redis, which workers share: what one worker tells Redis, and hears.

A worker makes one call at a time. It pushes what its spider has yielded, acknowledges the requests
that have ended, returns what it does not need, and leases the next requests. A call has a number,
and Redis keeps the answer: if a reply is lost, the same call is sent again, and changes nothing.

A host belongs to one worker at a time, for a turn. Requests stay in Redis until they are
acknowledged. If a worker dies, its lease ends, and another worker gives back what it had.

===========  ==========  =======================================================================
key          type        value
===========  ==========  =======================================================================
``hosts``    sorted set  hosts that no worker has and that have requests or a delay which runs,
                         by the time in milliseconds from which they may be leased
``new``      sorted set  such hosts whose robots.txt is not known
``paced``    hash        the delay of a host in milliseconds: one request of it is leased at once
``held``     hash        hosts that an operator holds: until when, a space, and why
``leases``   hash        the worker that has a host
``queue``    sorted set  waiting requests: their host, a newline and their name
``bodies``   hash        all requests that have not ended, serialized, by name
``seen``     set         fingerprints
``counts``   hash        ``epoch``; ``added``: the last number; ``called``, ``back``: the last
                         call, and when Redis last came back; ``resumed``: until when nothing is
                         leased, because it came back older
``workers``  sorted set  workers, by the end of their lease; 0 for those that have died
``tries``    hash        how often a request came back from a worker that died
``failed``   list        requests that came back too often
``w:NAME``   hash        what a worker has: the host of each request, by name; ``@HOST`` for each
                         host; ``#seq`` and ``#reply``: the last call
===========  ==========  =======================================================================

All keys begin with ``{KEY}:1:``, where KEY is SCHEDULER_QUEUE_KEY and 1 is the version. The braces
are a hash tag: all keys are in one slot of a cluster. The server tells the time, so that the clocks
of the workers need not agree.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable
from enum import Enum
from hashlib import sha1
from math import ceil
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple
from uuid import uuid4

from redis.exceptions import NoScriptError

from ..stores.base import LEASE

VERSION = 1
KEYS = (
    "hosts", "new", "paced", "held", "leases", "queue", "bodies", "seen", "counts", "workers",
    "tries", "failed",
)  # fmt: skip

MAX_PUSHED = 200
"""How many requests one call pushes: it keeps Redis busy for some 10 ms."""

MAX_PUSHED_BYTES = 2_000_000
"""After so many bytes, a call pushes no further request."""

MAX_RETURNED = 3
"""How often a request comes back from workers that died before it counts as the cause."""

MAX_REPEATED = 10_000
"""How many of its last requests a worker can push again to a Redis that has lost them."""

MAX_KEPT, MAX_KEPT_BYTES = 10_000, 50_000_000
"""How many requests, and how many bytes of them, wait for Redis before the spider has to wait."""

REPEATED_SECONDS = 10.0
"""For how many seconds it keeps them: a replica is behind by less."""

_SCRIPT = Path(__file__).with_name("redis.lua").read_text("utf-8")
_SHA = sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class Push(NamedTuple):
    """A request that Redis does not have yet."""

    fingerprint: bytes
    """Empty if it is not filtered."""
    host: str
    is_new: bool
    """Whether the robots.txt of the host is not known."""
    priority: int
    body: bytes

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of the script."""
        lowest = 0x8000 - min(max(self.priority, -0x7FFF), 0x8000)
        return self.fingerprint, self.host, int(self.is_new), f"{lowest:04x}", self.body


class Wanted(NamedTuple):
    """What a worker could start."""

    requests: int = 0
    new: int = 0
    """How many of them may be of new hosts, if there are no others."""
    least_new: int = 0
    """How many have to be."""
    more: dict[str, int] = {}  # noqa: RUF012 - never changed
    """How many more requests of the hosts that it has."""


class Sizes(NamedTuple):
    """What Redis has."""

    waiting: int = 0
    """Requests that no worker has."""
    all: int = 0
    """Requests that have not ended."""
    ready: int = 0
    """Hosts that may be leased now."""
    new: int = 0
    """Further hosts, whose robots.txt is not known."""
    hostless: int = 0
    """Waiting requests that belong to no host: each worker may lease them."""
    workers: int = 1


class State(Enum):
    """How Redis and this worker agree."""

    OK = b"ok"
    LOST = b"lost"
    """Redis has lost all requests: it has another epoch, or none."""
    EXPIRED = b"expired"
    """The lease of this worker has ended, and others have its requests."""
    BEHIND = b"behind"
    """Redis has lost the last calls of this worker."""


class Answer(NamedTuple):
    """The answer to a call."""

    state: State
    pushed: int = 0
    filtered: int = 0
    """How many of the requests that were pushed had been pushed before."""
    leased: dict[str, list[tuple[bytes, bytes]]] = {}  # noqa: RUF012 - never changed
    """The names and the bodies of the next requests, by host."""
    seconds: float = 0
    """The seconds until a further host may be leased."""
    dead: str = ""
    """A worker whose lease has ended."""
    lost_seconds: float = 0
    """If Redis has lost the last calls: how long ago the first of them was."""
    repeated: int = 0
    """How many requests of these calls are pushed again."""
    is_whole: bool = True
    """Whether that is all that they pushed."""


class SharedQueue:
    """The queue of one crawl, for one worker. All methods with a call raise ``RedisError``."""

    def __init__(self, client: Any, prefix: str, key: str, turn: int = 8) -> None:
        self.client = client
        self.key = prefix + key
        self._tag = f"{prefix}{{{key}}}"
        self.prefix = f"{self._tag}:{VERSION}:"
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"
        self.sizes = Sizes()
        self.held: frozenset[str] = frozenset()
        """The hosts that an operator holds."""
        self._leased_until = 0.0
        self.bytes_kept = 0
        """The bytes of the requests that Redis does not have yet."""
        self.turn = turn
        """How many requests of a host are leased at once."""
        self._epoch = uuid4().hex
        self._seq = 0
        self._call: tuple[list[Push], list[Any]] | None = None
        """The call that Redis has not answered: what it pushes, and all of its arguments."""
        self._outbox: deque[Push] = deque()
        self._pushed = 0
        """How many requests left the outbox."""
        self._ended: deque[tuple[bytes, int]] = deque()
        """Requests to acknowledge, each with how many must have left the outbox before."""
        self._given_back: list[bytes] = []
        self._released: list[tuple[str, float, float]] = []
        self._last: deque[tuple[int, float, list[Push]]] = deque()
        """The number, the time and the requests of the last calls."""
        self._last_forgotten = 0
        """The number of the last call whose requests are not kept any more."""

    # What the next call says.

    def push(self, request: Push) -> None:
        """Push a request with one of the next calls."""
        self._outbox.append(request)
        self.bytes_kept += len(request.body)

    def acknowledge(self, name: bytes) -> None:
        """Note that a request has ended, and that everything it yielded has been pushed."""
        self._ended.append((name, self._pushed + len(self._outbox)))

    def give_back(self, names: Iterable[bytes]) -> None:
        """Return leased requests, which have not started."""
        self._given_back += names

    def release(self, host: str, seconds: float, delay: float) -> None:
        """Return a host, which may be leased after so many seconds. ``delay`` is its delay."""
        self._released.append((host, seconds, delay))

    @property
    def is_leased(self) -> bool:
        """Whether this worker has what it has leased. It starts nothing before it has renewed."""
        return monotonic() < self._leased_until

    @property
    def kept(self) -> int:
        """How many requests Redis does not have yet."""
        return len(self._outbox)

    @property
    def is_due(self) -> bool:
        """Whether there is something to say."""
        changes = self._call or self._outbox or self._ended or self._given_back or self._released
        return bool(changes) or monotonic() > self._leased_until - LEASE / 2

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait for Redis that the spider has to wait."""
        return self.kept >= MAX_KEPT or self.bytes_kept >= MAX_KEPT_BYTES

    def has(self, wanted: Wanted) -> bool:
        """Whether Redis has what this worker wants, as far as is known."""
        ready = (wanted.requests and self.sizes.ready) or (wanted.new and self.sizes.new)
        return bool(ready or wanted.more)

    # Calls.

    async def open(self) -> None:
        """Register this worker."""
        epoch = await self.run("open", self._epoch, _milliseconds(LEASE))
        self._epoch, self._seq = epoch.decode(), 0

    async def call(self, wanted: Wanted) -> Answer:
        """Send the next call, or the last one again if Redis has not answered it."""
        if self._call is None:
            self._seq += 1
            self._call = self._next_call(wanted)
        began, (pushes, arguments) = monotonic(), self._call
        reply = await self.run("sync", self._epoch, _milliseconds(LEASE), self._seq, *arguments)
        self._call = None
        state = State(reply[0])
        if state is State.BEHIND:
            return self._repeat(pushes, int(reply[1]))
        if state is not State.OK:
            self._put_back(pushes)
            return Answer(state)
        self._leased_until = began + 0.9 * LEASE  # the clocks may run at different speeds
        _, is_new, leased, milliseconds, sizes, held, dead = reply
        self.sizes, self.held = Sizes(*sizes), frozenset(host.decode() for host in held)
        self._keep_last(pushes)
        return Answer(
            state,
            len(pushes),
            len(pushes) - sum(is_new),
            {host.decode(): [tuple(each) for each in found] for host, found in leased},
            milliseconds / 1000,
            dead.decode(),
        )

    def _next_call(self, wanted: Wanted) -> tuple[list[Push], list[Any]]:
        pushes: list[Push] = []
        size = 0
        while self._outbox and len(pushes) < MAX_PUSHED and size < MAX_PUSHED_BYTES:
            pushes.append(self._outbox.popleft())
            size += len(pushes[-1].body)
        self.bytes_kept -= size
        self._pushed += len(pushes)
        ended = []
        while self._ended and self._ended[0][1] <= self._pushed:
            ended.append(self._ended.popleft()[0])
        rows: list[list[Any]] = [
            [each.arguments for each in pushes],
            [(name,) for name in ended],
            [(name,) for name in self._given_back],
            [(host, *map(_milliseconds, seconds)) for host, *seconds in self._released],
            [*wanted.more.items()],
        ]
        self._given_back, self._released = [], []
        arguments: list[Any] = []
        for each in rows:
            arguments.append(len(each))
            arguments += (value for row in each for value in row)
        return pushes, [*arguments, *wanted[:3], self.turn]

    def _keep_last(self, pushes: list[Push]) -> None:
        """Keep what the last calls have pushed."""
        now, last = monotonic(), self._last
        if pushes:
            last.append((self._seq, now, pushes))
        while last and (
            last[0][1] < now - REPEATED_SECONDS or len(last) > MAX_REPEATED // MAX_PUSHED
        ):
            self._last_forgotten = last.popleft()[0]

    def _put_back(self, pushes: list[Push]) -> None:
        """Let the next calls push these requests, and forget what else they would have said."""
        self._outbox.extendleft(reversed(pushes))
        self.bytes_kept += sum(len(each.body) for each in pushes)
        self._pushed -= len(pushes)
        self._ended.clear()
        self._given_back, self._released = [], []

    def _repeat(self, pushes: list[Push], seq: int) -> Answer:
        """Let the next calls push what the calls after a number have pushed."""
        lost = [push for number, _, pushed in self._last if number > seq for push in pushed]
        began = next((at for number, at, _ in self._last if number > seq), monotonic())
        self._put_back([*lost, *pushes])
        self._last.clear()
        is_whole = self._last_forgotten <= seq
        self._last_forgotten = 0
        lost_seconds = monotonic() - began
        return Answer(
            State.BEHIND, lost_seconds=lost_seconds, repeated=len(lost), is_whole=is_whole
        )

    async def recover(self, worker: str = "") -> tuple[int, int]:
        """Give back what this worker has, or what another one had that has died.

        Returns how many requests were given back, and how many have failed too often.
        """
        is_own, returned, failed, has_more = int(not worker), 0, 0, 1
        while has_more:
            counts = await self.run("recover", MAX_RETURNED, is_own, worker=worker)
            returned, failed, has_more = returned + counts[0], failed + counts[1], counts[2]
        return returned, failed

    async def postpone(self, hosts: Iterable[tuple[str, float, float]]) -> None:
        """Let hosts wait, each for so many seconds. The last number is the delay of the host."""
        rows = [(host, *map(_milliseconds, seconds)) for host, *seconds in hosts]
        for start in range(0, len(rows), MAX_PUSHED):
            page = rows[start : start + MAX_PUSHED]
            await self.run("postpone", len(page), *(value for row in page for value in row))

    async def reserve(self, host: str) -> float:
        """Lease a host for another request. Returns the seconds until that is possible."""
        return float(await self.run("reserve", host)) / 1000

    async def close(self, *, persist: bool) -> None:
        """Give everything back. Unless ``persist``, the last worker deletes the queue."""
        await self.recover()
        if not persist and not await self.client.zcount(f"{self.prefix}workers", 1, "+inf"):
            await self.delete()

    async def delete(self) -> None:
        """Delete the queue, with all requests."""
        await self.client.delete(*(self.prefix + name for name in KEYS))

    async def foreign_requests(self) -> int:
        """Return how many requests scrapy-redis, or another version of this queue, has."""
        count = {b"zset": self.client.zcard, b"list": self.client.llen}
        kind = await self.client.type(self.key)
        found = await count[kind](self.key) if kind in count else 0
        for version in range(1, 10):
            if version != VERSION:
                found += await self.client.hlen(f"{self._tag}:{version}:bodies")
        return int(found)

    async def run(self, function: str, *arguments: object, worker: str = "") -> Any:
        """Call a function of the script, for this worker or for another one."""
        worker = worker or self.worker
        keys = [self.prefix + name for name in (*KEYS, f"w:{worker}")]
        arguments = (*keys, function, worker, *arguments)
        try:
            return await self.client.evalsha(_SHA, len(keys), *arguments)
        except NoScriptError:  # a new server, or one that was restarted
            return await self.client.eval(_SCRIPT, len(keys), *arguments)


def _milliseconds(seconds: float) -> int:
    return ceil(seconds * 1000)
