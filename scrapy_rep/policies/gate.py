"""When a request may start: the one answer for queues, and for requests in the downloader.

Nothing here reads a clock, starts something, or changes what it looks at. A gate has two parts,
which are asked in this order: :func:`policy_gate` says what the policy of an origin means, and
:meth:`.Host.gate` what the pace of its host does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from ..origin import Action, Origin, UnreachablePolicy
from ..protocol.pacing import Pacing
from ..protocol.verdict import Reason, TextEnum, Verdict

if TYPE_CHECKING:
    from typing_extensions import Self

MIN_USE = 1.0
"""Seconds for which requests that waited for a fetch use its result, even if it expires earlier."""


class Place(Enum):
    """Where a queue is. The value says what its requests wait for."""

    EMPTY = "no requests"
    UNKNOWN = "its robots.txt has to be fetched"
    FETCHING = "its robots.txt is being fetched"
    WAITING = "a time, or the end of another request"
    READY = "the engine"
    DROPS = "the engine, which will drop them"


class Wait(TextEnum):
    """What has to change before a queue can leave its place."""

    ROBOTS_TXT = "robots.txt"
    """Its robots.txt has to arrive."""
    UNREACHABLE = "unreachable"
    """The crawl has to try again to fetch its robots.txt, which is unreachable."""
    VISIT_TIME = "visit time"
    """The Visit-time of its robots.txt has to begin."""
    DELAY = "delay"
    """The request in progress has to end, and then the delay of its host has to pass."""
    BACKOFF = "backoff"
    """Its host asked for fewer requests. The time for which it is held has to pass."""
    RESERVATION = "reservation"
    """The crawl has to reserve its host in the store. Another crawler may have it."""
    CONCURRENCY = "concurrency"
    """Another request of its host or download slot has to end."""
    UNSENT = "unsent"
    """The last request has to leave the download slot, which has a delay of its own."""


class Kind(TextEnum):
    """How robots.txt applies to the requests of a queue."""

    OBEY = "obey"
    EXEMPT = "exempt"
    """It does not. Only the pace of the host applies."""
    ROBOTS_TXT = "robots.txt"
    """They are for one."""
    EXCEPTED = "excepted"
    """They are allowed whatever it says, and do not wait for an unreachable site."""
    DISALLOWED = "disallowed"
    """A local rule disallows them."""


class Address(NamedTuple):
    """What the requests of one queue have in common."""

    host: str
    """The host whose pace they keep; empty for URLs without one, such as data: URLs."""
    origin: str | None
    """The origin whose robots.txt applies to them; None if none does."""
    kind: Kind = Kind.OBEY
    slot: str | None = None
    """The download slot that they name, if it is not that of the host."""
    tokens: tuple[str, ...] | None = None
    """Their product tokens, if these are not the crawl's: another Visit-time may apply."""

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Return the address that was written as JSON."""
        host, origin, kind, slot, tokens = json.loads(text)
        return cls(host, origin, Kind(kind), slot, None if tokens is None else tuple(tokens))


class Gate(NamedTuple):
    """Where a queue or a request has to be, and why."""

    place: Place
    seconds: float = inf
    """For WAITING: the seconds until the place may change by itself."""
    wait: Wait | None = None
    """What has to change first."""
    verdict: Verdict | None = None
    """For DROPS: the verdict, if a request was asked for."""


EMPTY, READY, DROPS = Gate(Place.EMPTY), Gate(Place.READY), Gate(Place.DROPS)
UNKNOWN = Gate(Place.UNKNOWN, wait=Wait.ROBOTS_TXT)
FETCHING = Gate(Place.FETCHING, wait=Wait.ROBOTS_TXT)


class Terms(NamedTuple):
    """What the settings of a crawl say about waiting."""

    unreachable: UnreachablePolicy
    waits_for_outages: bool
    """REP_ON_UNREACHABLE is "wait"."""
    max_wait: float
    """REP_MAX_WAIT, in seconds."""
    obeys_pace: bool
    """REP_OBEY_RATE_LIMITS."""


class Now(NamedTuple):
    """One moment on three clocks."""

    steady: float
    """The one of all origins, see :meth:`.clock.Clock.steady`."""
    monotonic: float
    wall: float


def policy_gate(
    origin: Origin | None,
    kind: Kind,
    tokens: tuple[str, ...],
    delay: float,
    now: Now,
    terms: Terms,
    judge: Callable[[Origin], Verdict] | None = None,
) -> Gate:
    """Return what the policy of an origin means for requests of a kind.

    ``tokens`` are those of their crawler, and ``delay`` is that of their host. ``judge`` returns
    the verdict on the URL of a request. Without it, the answer is for a queue, whose URLs are not
    known.
    """
    is_excepted = kind is Kind.EXCEPTED
    action = Action.FETCH if origin is None else next_action(origin, is_excepted, delay, now, terms)
    if origin is None or action is Action.FETCH:
        return UNKNOWN
    if action is Action.WAIT:
        return FETCHING
    if not is_excepted:
        seconds = _seconds_to_attempt(origin, now, terms)
        if seconds is not None:
            return Gate(Place.WAITING, seconds, Wait.UNREACHABLE)
    verdict = judge(origin) if judge is not None else None
    if verdict is not None and not verdict.allowed:
        return Gate(Place.DROPS, verdict=verdict)
    if verdict is None and not is_excepted and origin.disallows_all(now.steady, terms.unreachable):
        return DROPS
    return _visit_gate(origin, tokens, now, terms, verdict)


def _visit_gate(
    origin: Origin, tokens: tuple[str, ...], now: Now, terms: Terms, verdict: Verdict | None
) -> Gate:
    """Return what the Visit-time of an origin means for requests that are allowed."""
    pacing = pacing_of(origin, tokens, terms)
    seconds = pacing.seconds_until_visit_time(now.wall) if pacing is not None else 0
    if pacing is None or not seconds:
        return READY
    if _within_max_wait(origin, seconds, now, terms):
        return Gate(Place.WAITING, seconds, Wait.VISIT_TIME)
    if verdict is not None:
        hours = str(pacing.hours)
        verdict = verdict._replace(allowed=False, reason=Reason.VISIT_TIME, rule=None, detail=hours)
    return Gate(Place.DROPS, verdict=verdict)


def next_action(origin: Origin, is_excepted: bool, delay: float, now: Now, terms: Terms) -> Action:
    """Return what must be done before an origin can answer a request now.

    A request that a local rule allows needs no new attempt at an unreachable origin. The last
    answer is used once even if it has expired: otherwise no page would be fetched from a site whose
    delay is longer than the lifetime of its file.
    """
    if now.steady < origin.refresh_at:  # the usual case
        return Action.NONE
    if is_excepted and origin.next_attempt(now.steady, terms.unreachable) is not None:
        return Action.NONE
    is_new = origin.notes.is_unused and origin.content is not None and not origin.in_flight
    if is_new and now.monotonic < origin.notes.answered_at + max(2 * delay, MIN_USE):
        return Action.NONE
    return origin.next_action(now.steady)


def pacing_of(origin: Origin, tokens: tuple[str, ...], terms: Terms) -> Pacing | None:
    """Return the pace that an origin sets for these tokens; None if it sets none."""
    return origin.pacing(tokens) if origin.has_pacing and terms.obeys_pace else None


def _seconds_to_attempt(origin: Origin, now: Now, terms: Terms) -> float | None:
    """Return the seconds that requests wait for the next attempt at an unreachable origin.

    None if they do not wait: only REP_ON_UNREACHABLE="wait" makes them, and not for more than
    REP_MAX_WAIT in all.
    """
    if not terms.waits_for_outages:
        return None
    seconds = origin.next_attempt(now.steady, terms.unreachable)
    may_wait = seconds is not None and _within_max_wait(origin, seconds, now, terms)
    return seconds if may_wait else None


def _within_max_wait(origin: Origin, seconds: float, now: Now, terms: Terms) -> bool:
    """Whether requests wait for at most REP_MAX_WAIT in all if they wait for ``seconds`` more.

    A site whose file changes again and again must not keep a crawl open.
    """
    return origin.notes.waited(now.monotonic) + seconds <= terms.max_wait
