"""Hosts, download slots, and the queues of their requests: what the frontier moves.

Nothing here does I/O or reads a clock. The origins of a host have a policy each, and share its
pace. Times are seconds on a monotonic clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.utils.asyncio import CallLaterResult

from ..clock import Clock
from ..policies.gate import READY, Address, Gate, Place, Wait
from ..settings import Settings

MAX_IDLE_HOSTS = 10_000
"""After so many new hosts, the idle ones are removed, each with about 600 bytes. The delay of such
a host applies again from its next request on, because the policy of its origin has it."""

SLOT_WAITS = frozenset({Wait.CONCURRENCY, Wait.UNSENT})
HOST_WAITS = frozenset({Wait.DELAY, Wait.BACKOFF, Wait.RESERVATION})

Rank = tuple[int, ...]
InTurn = OrderedDict["Queue", None]


@dataclass(slots=True, eq=False)
class Slot:
    """A download slot of Scrapy, whose requests share a concurrency."""

    name: str
    limit: float
    """How many requests may be in progress at once."""
    own_delay: float = 0
    """The seconds between two requests of the slot for which the crawl itself asks. 0: none."""
    active: int = 0
    """How many requests are in progress."""
    origins: dict[str | None, dict[Queue, None]] = field(default_factory=dict)
    """Its queues with requests, by their origin."""
    ready: dict[Queue, None] = field(default_factory=dict)
    """The queues that are ready: in most crawls, no more of them than may start now."""
    blocked: dict[int, InTurn] = field(default_factory=dict)
    """The queues that wait for this host or slot alone, by their order. They take turns, so only
    the first one may move."""
    timed: dict[Queue, None] = field(default_factory=dict)
    """The queues that wait for a time which their policy sets."""
    unsent: Request | None = None
    """The last request in progress, if it may still wait for the delay of the crawl itself."""
    alarm: CallLaterResult | None = None
    """What looks at its queues again, at ``alarm_at``."""
    alarm_at: float = inf
    is_paced: bool = False
    """Whether one request starts after the other: a host has a delay, or is held."""

    @property
    def queues(self) -> Iterator[Queue]:
        """Its queues with requests."""
        return chain.from_iterable(self.origins.values())

    @property
    def first_blocked(self) -> Queue | None:
        """The queue whose turn it is when this host or slot is free."""
        for order in sorted(self.blocked):
            if self.blocked[order]:
                return next(iter(self.blocked[order]))
        return None

    def set_alarm(self, clock: Clock, seconds: float, ring: Callable[[Slot], None]) -> None:
        """Call ``ring`` with this host or slot after so many seconds, or earlier."""
        at = clock.monotonic() + seconds
        if at < self.alarm_at:
            self.cancel_alarm()
            self.alarm_at, self.alarm = at, clock.call_later(seconds, ring, self)

    def cancel_alarm(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm_at = inf


@dataclass(slots=True, eq=False)
class Host(Slot):
    """A host: the download slot of its name, and the pace that it asks for."""

    delays: dict[str, float] = field(default_factory=dict)
    """The delays of its origins, in seconds between two requests."""
    delay: float = 0
    """The longest of these delays. 0: none."""
    last_end: float = -inf
    """When the last request to the host ended, but for the robots.txt that sets a delay."""
    backoffs: int = 0
    """How many answers in a row have asked for fewer requests. 0: the last one did not."""
    held_since: float = -inf
    """When the first of them arrived."""
    held_until: float = -inf
    """Until when no request starts because of such an answer."""
    failed_urls: set[str] = field(default_factory=set)
    """The URLs whose last answers were failures of the server, since an answer was none."""
    was_paced: bool = False
    """Whether it was paced when all its queues were looked at last."""

    def set_delay(self, key: str, seconds: float) -> None:
        """Set the delay of an origin; 0 removes it. The longest delay of the host applies."""
        if seconds:
            self.delays[key] = seconds
        else:
            self.delays.pop(key, None)
        self.delay = max(self.delays.values(), default=0.0)
        self.is_paced = self.delay > 0 or self.backoffs > 0

    def back_off(self, seconds: float, now: float) -> None:
        """Hold the host for so many seconds: it has asked for fewer requests once more."""
        if not self.backoffs:
            self.held_since = now
        self.backoffs += 1
        self.held_until = max(self.held_until, now + seconds)
        self.is_paced = True

    def end_backoff(self) -> None:
        """Note that an answer has not asked for fewer requests."""
        self.backoffs, self.held_until = 0, -inf
        self.is_paced = self.delay > 0

    @property
    def takes_turns(self) -> bool:
        """Whether its delay is that of the crawl itself, which is from start to start."""
        return self.own_delay > 0 and not self.is_paced

    @property
    def behind_others(self) -> Gate:
        """The gate of a request whose turn comes when others have ended."""
        return Gate(Place.WAITING, wait=Wait.DELAY if self.is_paced else Wait.CONCURRENCY)

    def gate(self, now: float, *, has_started: bool) -> Gate:
        """Return what the pace means for a request. See :meth:`seconds_left`."""
        seconds = self.seconds_left(now, has_started=has_started)
        if not seconds:
            return READY
        is_held = self.held_until > now or not self.delay
        return Gate(Place.WAITING, seconds, Wait.BACKOFF if is_held else Wait.DELAY)

    def seconds_left(self, now: float, *, has_started: bool = False) -> float:
        """Return the seconds until one more request may start, as far as the pace is concerned.

        With ``has_started``, until one may that is in progress. Infinity means: when the other
        requests in progress have ended.
        """
        if not self.is_paced:
            return 0
        if self.active > has_started:
            return inf
        return max(self.last_end + self.delay - now, self.held_until - now, 0)


class InProgress(NamedTuple):
    """A request that has started and has not ended."""

    host: Host
    slot: Slot
    """The host or download slot whose concurrency applies to it."""
    origin: str | None
    is_from_queue: bool
    """Whether Scrapy's scheduler gave it, from a queue of this package."""
    backoffs: int
    """The ``backoffs`` of the host when the request started."""


class Hosts:
    """The hosts and the named download slots of one crawl."""

    def __init__(self, settings: Settings, known_delay: Callable[[str | None], float]) -> None:
        self._settings = settings
        self._known_delay = known_delay
        """Returns the delay that an origin is known to set."""
        self.hosts: dict[str, Host] = {}
        """The hosts that have requests, or had some."""
        self.slots: dict[str, Slot] = {}
        """The download slots that requests name in their ``meta``."""
        self._most = MAX_IDLE_HOSTS
        """With more of them, the idle ones are removed."""

    def __iter__(self) -> Iterator[Slot]:
        return iter((*self.hosts.values(), *self.slots.values()))

    def host(self, name: str, origin: str | None = None) -> Host:
        """Return a host. A new one gets the delay that is known for its origin."""
        host = self.hosts.get(name)
        if host is None:
            host = self.hosts[name] = Host(name, *self._settings.limits_of(name))
            host.set_delay(origin or "", self._known_delay(origin))
        return host

    def of(self, address: Address) -> tuple[Host, Slot]:
        """Return the host whose pace applies, and the host or slot whose concurrency does."""
        host, name = self.host(address.host, address.origin), address.slot
        if name is None:
            return host, host
        if name not in self.slots:
            self.slots[name] = Slot(name, *self._settings.limits_of(name))
        return host, self.slots[name]

    def all_queues(self) -> Iterator[Queue]:
        """Return all queues with requests."""
        return chain.from_iterable(host.queues for host in self.hosts.values())

    def forget_idle(self, now: float) -> None:
        """Remove idle hosts and slots if there are many."""
        if len(self.hosts) + len(self.slots) <= self._most:
            return
        for name, host in tuple(self.hosts.items()):
            if not (host.origins or host.active or host.seconds_left(now)):
                del self.hosts[name]
        for name, slot in tuple(self.slots.items()):
            if not (slot.origins or slot.active):
                del self.slots[name]
        self._most = len(self.hosts) + len(self.slots) + MAX_IDLE_HOSTS


class Queue(ABC):
    """The requests of one address. Where they are stored is up to a subclass."""

    __slots__ = (
        "address", "group", "host", "keeper", "owner", "place", "rank", "since", "size", "slot",
        "wait",
    )  # fmt: skip

    order = 2
    """Of the queues of a host that becomes free, those with the lowest number come first."""

    def __init__(self, owner: Queues, address: Address, host: Host, slot: Slot) -> None:
        self.owner = owner
        self.address = address
        self.host = host
        """The host whose pace the requests keep."""
        self.slot = slot
        """The host or download slot whose concurrency applies."""
        self.place = Place.EMPTY
        self.rank: Rank = ()
        self.keeper: Slot = host
        self.group: dict[Queue, None] | None = None
        """Where the keeper, a host or slot, has it; None if nothing there can move it."""
        self.since = 0.0
        """When the queue came to its place."""
        self.size = 0
        self.wait: Wait | None = None
        """What had to change first when the queue came to its place."""

    @property
    def limiter(self) -> Slot:
        """The host or slot that says how many requests may start."""
        return self.host if self.host.is_paced else self.slot

    @property
    def is_next(self) -> bool:
        """Whether no more queues of its host are ready than may start, if this one is."""
        limiter = self.limiter
        room = 1 if limiter.is_paced else limiter.limit - limiter.active
        return len(limiter.ready) - (self in limiter.ready) < room

    def attach(self) -> None:
        """Add the queue to its host and slot: it has requests now."""
        for each in {self.host, self.slot}:
            each.origins.setdefault(self.address.origin, {})[self] = None

    def detach(self) -> None:
        """Remove the queue from its host and slot: it has no more requests."""
        for each in {self.host, self.slot}:
            own = each.origins[self.address.origin]
            del own[self]
            if not own:
                del each.origins[self.address.origin]
            if not each.origins:
                each.blocked.clear()
                each.cancel_alarm()

    def waits_for(self, gate: Gate) -> Slot | None:
        """Return the host or slot that has to become free; None if the policy makes it wait."""
        if gate.wait in SLOT_WAITS:
            return self.slot
        return self.host if gate.wait in HOST_WAITS else None

    def keep(self, gate: Gate) -> None:
        """Put the queue where its host or slot finds it again when something happens there."""
        self.wait = gate.wait
        keeper, group = self.waits_for(gate), None
        if gate.place is Place.READY and self.owner.ranked:
            keeper = self.limiter
            group = keeper.ready
        elif keeper is not None:
            group = keeper.blocked.setdefault(self.order, OrderedDict())
        elif gate.place is Place.WAITING:
            group = self.host.timed
        if group is not self.group:
            if self.group is not None:
                del self.group[self]
            if group is not None:
                group[self] = None
            self.keeper, self.group = keeper or self.host, group

    @property
    def priority(self) -> int:
        """The priority of the next request. As in Scrapy's queues, lower numbers come first."""
        return 0

    @abstractmethod
    def peek(self) -> Request | None:
        """Return the next request; None if it cannot be looked at."""

    @abstractmethod
    def pop(self) -> Request | None:
        """Remove the next request, and return it; None if it cannot be read."""


class Ranked:
    """Queues by rank. The lowest rank comes first, and queues of one rank take turns.

    So do those of paced hosts and all others: a host that is due does not wait for many live ones.
    """

    def __init__(self) -> None:
        self._ranks: dict[Rank, tuple[InTurn, InTurn]] = {}
        """For each rank, the queues of other hosts and those of paced ones."""
        self._heap: list[Rank] = []
        self._is_turn_of_paced = False
        self.size = 0
        """How many queues there are."""

    def add(self, queue: Queue) -> None:
        """Add a queue behind the others of its rank."""
        *rank, is_paced = queue.rank
        key = tuple(rank)
        queues = self._ranks.get(key)
        if queues is None:
            queues = self._ranks[key] = OrderedDict(), OrderedDict()
            heappush(self._heap, key)
        queues[is_paced][queue] = None
        self.size += 1

    def remove(self, queue: Queue) -> None:
        """Remove a queue."""
        *rank, is_paced = queue.rank
        del self._ranks[tuple(rank)][is_paced][queue]
        self._is_turn_of_paced = not is_paced
        self.size -= 1

    def first(self) -> Queue:
        """Return the queue whose turn it is. There must be one."""
        while not any(queues := self._ranks[self._heap[0]]):
            del self._ranks[heappop(self._heap)]
        return next(iter(queues[self._is_turn_of_paced] or queues[not self._is_turn_of_paced]))

    def __iter__(self) -> Iterator[Queue]:
        return chain.from_iterable(chain.from_iterable(self._ranks.values()))


class Queues(ABC):
    """All queues of one kind: in memory, on a disk, in Redis, or in the downloader."""

    by_priority = False
    """Whether a request of a higher priority comes first, whatever its host is."""
    is_capped = True
    """Whether no more queues of a host are ready than may start, and the others wait in turn."""
    is_scheduled = True
    """Whether the scheduler of the crawl has the requests, and keeps them when the spider closes.
    Otherwise the downloader has them, and each starts as soon as it may."""

    def __init__(self) -> None:
        self.ready, self.unknown, self.drops = Ranked(), Ranked(), Ranked()
        ranked = {Place.READY: self.ready, Place.UNKNOWN: self.unknown, Place.DROPS: self.drops}
        self.ranked = ranked if self.is_scheduled else {}
        """The places in which queues take turns."""

    @property
    def is_full(self) -> bool:
        """Whether the spider has to wait before it yields more requests."""
        return False

    def serve(self, queue: Any) -> None:  # noqa: B027 - most have nothing to do
        """Called when a queue has come to a place in which queues do not take turns."""

    def save(self) -> None:  # noqa: B027 - most have nothing to save
        """Called again and again: a crawl that is killed does not close its queues."""

    @abstractmethod
    def remove(self, queue: Any) -> None:
        """Forget a queue without requests."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of requests."""
