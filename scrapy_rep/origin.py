"""The state of one origin, driven by events and the time that the caller passes. No I/O.

This module has two rules. The state changes only by :data:`TRANSITIONS`. No function here reads a
clock. RFC 9309 §2.3.1 and §2.4 say what each state allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Any, ClassVar, NamedTuple

from .protocol.access import (
    REASONS,
    AccessResult,
    Cancelled,
    CopyInfo,
    FetchResult,
    NotModified,
    Rules,
    Unavailable,
    Unreachable,
    retry_interval,
)
from .protocol.pacing import Pacing
from .protocol.paths import ROBOTS_TXT, host_of, path_of, verdict_as_sent
from .protocol.robotstxt import RobotsTxt
from .protocol.tdmrep import TdmRep
from .protocol.verdict import Reason, TextEnum, Verdict
from .stores.entry import Entry

REFRESH_AHEAD = 0.1
"""The last part of a file's lifetime. A file that is used in it is refreshed in the background."""
DAY = 86_400
MAX_PACINGS = 16
"""For how many crawlers an origin keeps the pace. Most crawls have one User-Agent."""
MAX_GAP = 300.0
"""Seconds. If nothing has asked for an origin for so long after requests could start, none waited.
It is longer than most fetches take."""


class State(TextEnum):
    """What is known of a file of an origin."""

    UNKNOWN = "unknown"
    FETCHING = "fetching"
    FRESH = "fresh"
    STALE = "stale"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"


class FetchStarted:
    """The crawl started a fetch of the file."""


class Expired:
    """The freshness lifetime of the last response has passed."""


Event = FetchStarted | FetchResult | Expired

_ANSWERS: dict[type[Event], State] = {
    Rules: State.FRESH,  # §2.3.1.1: MUST follow the parseable rules
    NotModified: State.FRESH,
    Unavailable: State.UNAVAILABLE,  # §2.3.1.3: MAY access any resource
}
# §2.3.1.4: MUST assume complete disallow
_RESULTS: dict[type[Event], State] = {**_ANSWERS, Unreachable: State.UNREACHABLE}


def _in_use(state: State) -> dict[type[Event], State]:
    """Return the transitions of a state whose policy stays in use until a refresh succeeds."""
    unchanged = dict.fromkeys((FetchStarted, Unreachable, Cancelled), state)
    # §2.4: SHOULD NOT use the cached version for more than 24 hours
    return {**_ANSWERS, **unchanged, Expired: State.STALE}


TRANSITIONS: dict[State, dict[type[Event], State]] = {
    State.UNKNOWN: {FetchStarted: State.FETCHING},
    State.FETCHING: {**_RESULTS, Cancelled: State.UNKNOWN},
    State.FRESH: _in_use(State.FRESH),
    State.UNAVAILABLE: _in_use(State.UNAVAILABLE),
    # A result in this state is that of a refresh which took longer than the file was fresh.
    State.STALE: {**_RESULTS, FetchStarted: State.FETCHING, Cancelled: State.STALE},
    State.UNREACHABLE: {FetchStarted: State.FETCHING},  # the next attempt
}

_UNKNOWN = State.UNKNOWN
"""For the hot path: to get a member of an Enum takes longer than the rest of a comparison."""

_RESTORED: dict[AccessResult, type[Event]] = {
    AccessResult.SUCCESSFUL: Rules,
    **dict.fromkeys(REASONS, Unavailable),
    AccessResult.UNREACHABLE: Unreachable,
}
"""For the result in a stored entry, the event that leads to the same state."""


class Action(Enum):
    """What a caller must do before an origin can give a verdict."""

    NONE = "use the verdict"
    REFRESH = "use the verdict, and start a fetch in the background"
    FETCH = "start a fetch, and wait for it"
    WAIT = "wait for the fetch in progress"


class UnreachablePolicy(NamedTuple):
    """What applies while an origin is unreachable and there is no good copy (RFC 9309 §2.3.1.4)."""

    allow: bool = False
    """Allow everything, which breaks the RFC."""
    days: float = 30
    """Days after the first failure from which on everything is allowed."""


@dataclass(slots=True)
class Notes:
    """What one crawl notes about a file of an origin. No store keeps it.

    Times are seconds on the monotonic clock.
    """

    answered_at: float = -inf
    """When the last fetch of this crawl ended."""
    is_unused: bool = False
    """Whether no request has used the last answer yet."""
    waits_since: float = inf
    """Since when requests have to wait, however often the answer has changed. inf if the last
    answer lets them start, or if a request has started since."""
    waits_until: float = inf
    """Until when requests have to wait because of the last answer; inf: until the next one."""
    logged_error: bool = False
    """Whether an error in a fetch that nobody foresaw was logged."""
    attempt: int = 0
    """The attempt of the last fetch; 0 before the first."""
    logged_failure: bool = False
    """Whether a failed attempt was logged that another one follows."""
    logged_pace: str | None = None
    logged_unavailable: str = ""
    """Why there were no rules, if that was logged."""

    def answer(self, at: float, seconds: float) -> None:
        """Note that a fetch has ended, because of which requests have to wait for ``seconds``.

        Infinity: until the next answer.
        """
        self.waits_since = at - self.waited(at) if seconds else inf
        self.answered_at, self.is_unused, self.waits_until = at, True, at + seconds

    def use(self) -> None:
        """Note that a request starts because of the last answer."""
        self.is_unused, self.waits_since = False, inf

    def waited(self, now: float) -> float:
        """Return for how many seconds requests have had to wait.

        Returns 0 if a request could start since, or if nothing has waited.
        """
        return max(now - self.waits_since, 0) if now < self.waits_until + MAX_GAP else 0


@dataclass(slots=True, eq=False, repr=False)
class OriginFile:
    """A file of one origin (scheme, host, port), as far as a fetch has to know it."""

    name: ClassVar[str]
    """What logs call it."""
    path: ClassVar[str]
    stats: ClassVar[str]
    """The beginning of the names of its stats."""
    parse: ClassVar[Callable[..., Any]]
    """Parses a body, with the URL it came from as ``url``. It raises for no body."""

    key: str
    """The origin in normal form: ``scheme://host[:port]``."""
    host: str = field(init=False)
    copy: CopyInfo | None = None
    """Where the last good copy came from."""
    redirects: tuple[str, ...] = ()
    """The URLs that redirected in the last attempt of this crawl, in order. No store keeps them."""
    is_cancelled: bool = False
    """Whether the latest fetch was cancelled. A failure of it has no meaning."""
    notes: Notes = field(default_factory=Notes)

    def __post_init__(self) -> None:
        self.host = host_of(self.key)

    def __repr__(self) -> str:
        return f"<{self.name} of {self.key}>"

    @property
    def file_url(self) -> str:
        """The URL of the file, before redirects."""
        return self.key + self.path


class Tdm(NamedTuple):
    """What is known of the TDM file of an origin."""

    content: TdmRep | None = None
    """The last good copy; None if there is none."""
    size: int = 0
    """The bytes of the good copy as it was received."""
    expires_at: float = 0
    """When the next fetch is due."""
    failures: int = 0
    """The number of failed fetches in a row."""


@dataclass(slots=True, eq=False, repr=False)
class Origin(OriginFile):
    """One origin (scheme, host, port), and what is known of its robots.txt.

    Only events change it. A store keeps most of it: :class:`.Entry` says more of these fields.
    Before ``refresh_at``, :meth:`verdict` can be called at once: this is the hot path. Times are
    seconds since 1970.
    """

    name, path, stats = "robots.txt", ROBOTS_TXT, "robotstxt"
    parse = RobotsTxt.parse

    state: State = State.UNKNOWN
    content: RobotsTxt | None = None
    """The last good copy: the body of a 2xx response, parsed. A later 4xx removes it."""
    size: int = 0
    """The bytes of the good copy as it was received."""
    status: int | None = None
    url: str | None = None
    failure: str | None = None
    refresh_at: float = 0
    """When a fetch is due next, in the background or not."""
    expires_at: float = 0
    unreachable_since: float | None = None
    failures: int = 0
    unavailable: AccessResult = AccessResult.UNAVAILABLE
    """Why the last response had no rules, in the state UNAVAILABLE."""
    fetched_at: float = 0
    """When the last fetch ended that was not cancelled, by this crawler or another."""
    source: str = "site"
    """Where the last response came from: ``site``, ``http-cache``, or ``store`` if another crawl,
    or an earlier one, got it."""
    in_flight: bool = False
    tdm: Tdm | None = None
    """What is known of the TDM file; None before its first fetch has ended."""
    has_pacing: bool = False
    """Whether the good copy has a Crawl-delay, a Request-rate or a Visit-time."""
    _pacings: dict[tuple[str, ...], Pacing | None] = field(default_factory=dict)
    """The results of :meth:`pacing` for the good copy. The last one was asked for last."""

    @property
    def total_size(self) -> int:
        """The bytes of the good copies of all files of the origin."""
        return self.size + (self.tdm.size if self.tdm is not None else 0)

    @property
    def result(self) -> AccessResult:
        """What the last response means. A file that is not known is unreachable."""
        if self.state is State.UNAVAILABLE:
            return self.unavailable
        return AccessResult.SUCCESSFUL if self.state is State.FRESH else AccessResult.UNREACHABLE

    def next_action(self, now: float) -> Action:
        """Return what must be done before the file can answer a request at ``now``."""
        if now < self.refresh_at:
            return Action.NONE
        if self.state in (State.FRESH, State.UNAVAILABLE) and now < self.expires_at:
            return Action.NONE if self.in_flight else Action.REFRESH
        return Action.WAIT if self.in_flight else Action.FETCH

    def start_fetch(self, now: float) -> None:
        self._expire(now)
        self._change_state(FetchStarted)
        self.in_flight, self.is_cancelled, self.redirects = True, False, ()

    def apply(self, event: FetchResult | Entry, now: float) -> None:
        """Take the result of a fetch, or the entry that replaces one."""
        if isinstance(event, Entry):
            self._apply_entry(event)
            return
        self._expire(now)
        self._change_state(type(event))
        self.in_flight = False
        if isinstance(event, Cancelled):
            return
        if isinstance(event, Unreachable):
            self._apply_failure(event, now)
        else:
            self._apply_answer(event)
            self.refresh_at = self.expires_at - REFRESH_AHEAD * max(self.expires_at - now, 0)
        is_cached = isinstance(event, (Rules, Unavailable)) and event.from_cache
        self.source = "http-cache" if is_cached else "site"
        self.fetched_at = round(now, 3)  # as a store keeps it, so that the two can be compared

    def _apply_answer(self, event: Rules | NotModified | Unavailable) -> None:
        match event:
            case Rules():
                self.set_copy(event.content, event.copy, len(event.body))
                self.status, self.url = event.status, event.copy.url
            case NotModified():
                self.status, self.url = 304, None if self.copy is None else self.copy.url
            case _:  # Unavailable: mypy checks it, as Python 3.10 has no assert_never
                self.set_copy(None, None)
                self.status, self.url, self.unavailable = event.status, event.url, event.result
        self.failure = self.unreachable_since = None
        self.failures, self.expires_at = 0, event.expires_at

    def _apply_failure(self, event: Unreachable, now: float) -> None:
        self.failures += 1
        self.refresh_at = now + (event.retry_after or retry_interval(self.failures))
        if self.state is State.UNREACHABLE:
            self.status, self.url, self.failure = event.status, event.url, event.failure
            if self.unreachable_since is None:
                self.unreachable_since = now
        else:  # a refresh failed: the known policy stays in use
            self.refresh_at = min(self.refresh_at, self.expires_at)

    def set_copy(self, content: RobotsTxt | None, copy: CopyInfo | None, size: int = 0) -> None:
        """Replace the good copy, or remove it. The state says whether it is in use."""
        self.content, self.copy, self.size = content, copy, size
        self._pacings.clear()
        self.has_pacing = content is not None and content.has_pacing

    def forget_validators(self) -> None:
        """Make the next fetch unconditional, so that it gets the file itself."""
        if self.copy is not None:
            self.copy = self.copy._replace(etag=None, last_modified=None)

    def mark_superseded(self, now: float) -> None:
        """Note that another crawler has an answer of a later fetch than the last one of this crawl.

        The next request gets it from the store, whatever the clocks say.
        """
        self.refresh_at = min(self.refresh_at, now)
        self.fetched_at = 0

    def to_entry(self, body: bytes | None) -> Entry:
        """Return what a store keeps of this file after a fetch. ``body`` is the good copy."""
        names = (name for name in Entry._fields if name != "body")
        return Entry(**{name: getattr(self, name) for name in names}, body=body)

    def restore(self, entry: Entry, now: float) -> bool:
        """Take what is known from a stored entry, of an earlier crawl or of another crawler.

        Returns whether the entry replaces the fetch in progress, and so is its result. Otherwise
        that fetch continues, with the good copy and the earlier failures of the entry.
        """
        if entry.fetched_at <= self.fetched_at:
            return False
        self._expire(now)
        is_refresh = self.state in (State.FRESH, State.UNAVAILABLE)
        if is_refresh and entry.result is AccessResult.UNREACHABLE:  # the policy stays in use
            self.refresh_at = min(entry.refresh_at, self.expires_at)
            return now < self.refresh_at
        self.fetched_at = entry.fetched_at
        if entry.body is not None:
            url = None if entry.copy is None else entry.copy.url
            self.set_copy(RobotsTxt.parse(entry.body, url=url), entry.copy, len(entry.body))
        elif entry.result.is_unavailable:
            self.set_copy(None, None)
        self.unreachable_since, self.failures = entry.unreachable_since, entry.failures
        # An entry that is due for a refresh answers a request, but does not replace a refresh.
        is_usable = not is_refresh and entry.result is not AccessResult.UNREACHABLE
        return now < (entry.expires_at if is_usable else entry.refresh_at)

    def _apply_entry(self, entry: Entry) -> None:
        self.in_flight, self.source = False, "store"
        if entry.fetched_at != self.fetched_at:  # a failed refresh: the policy stays in use
            return
        self._change_state(_RESTORED[entry.result])
        self.status, self.url, self.failure = entry.status, entry.url, entry.failure
        if entry.result.is_unavailable:
            self.unavailable = entry.result
        self.refresh_at, self.expires_at = entry.refresh_at, entry.expires_at

    def _expire(self, now: float) -> None:
        if self.state in (State.FRESH, State.UNAVAILABLE) and now >= self.expires_at:
            self._change_state(Expired)

    def _change_state(self, event: type[Event]) -> None:
        self.state = TRANSITIONS[self.state][event]

    def verdict(
        self, url: str, agents: tuple[str, ...], now: float, unreachable: UnreachablePolicy
    ) -> Verdict:
        """Return whether a crawler with these product tokens may fetch ``url``, and why.

        All paths that a handler may send for the URL have to be allowed.

        The verdict is valid if :meth:`next_action` returns NONE or REFRESH, or right after a fetch,
        or if :meth:`next_attempt` does not return None.
        """
        return verdict_as_sent(self.verdict_on, url, agents, now, unreachable)

    def verdict_on(
        self, url: str, agents: tuple[str, ...], now: float, unreachable: UnreachablePolicy
    ) -> Verdict:
        """Return the verdict on a URL or a path alone, as if every handler sent it as it is."""
        if self.content is not None and self.state is not _UNKNOWN:
            return self.content.verdict(url, agents)
        detail = self.failure
        if self.state is State.UNAVAILABLE:
            is_allowed = self.unavailable is not AccessResult.DISALLOWED
            reason, if_exempt = REASONS[self.unavailable], Reason.UNAVAILABLE
            detail = f"status {self.status}" if self.status else "too many redirects"
        else:
            is_allowed = self._may_be_crawled(unreachable, now)
            reason = if_exempt = Reason.UNREACHABLE
        if not is_allowed and path_of(url) == ROBOTS_TXT:
            is_allowed, reason = True, if_exempt
        return Verdict(is_allowed, reason, None, None, detail)

    def disallows_all(self, now: float, unreachable: UnreachablePolicy) -> bool:
        """Whether :meth:`verdict` disallows each URL but that of the robots.txt, for each crawler.

        Returns False for a robots.txt with rules, whatever they are.
        """
        if self.content is not None:
            return False
        if self.state is State.UNAVAILABLE:
            return self.unavailable is AccessResult.DISALLOWED
        return self.state is State.UNREACHABLE and not self._may_be_crawled(unreachable, now)

    def next_attempt(self, now: float, unreachable: UnreachablePolicy) -> float | None:
        """Return the seconds until the next attempt at an origin that is disallowed as unreachable.

        Returns 0 if it is due or in progress, and None for any other origin.
        """
        is_retried = self.state is State.FETCHING and self.unreachable_since is not None
        has_no_rules = self.content is None and (is_retried or self.state is State.UNREACHABLE)
        if not has_no_rules or self._may_be_crawled(unreachable, now):
            return None
        return max(self.refresh_at - now, 0)

    def pacing(self, agents: tuple[str, ...]) -> Pacing | None:
        """Return the pace that the good copy, which has to be there, states for these tokens."""
        assert self.content is not None
        if agents in self._pacings:
            pacing = self._pacings.pop(agents)
        else:
            pacing = Pacing.of(self.content, agents)
            if len(self._pacings) == MAX_PACINGS:
                self._pacings.clear()
        self._pacings[agents] = pacing
        return pacing

    @property
    def last_pacing(self) -> Pacing | None:
        """The pace that the good copy states for the crawler that asked last."""
        return next(reversed(self._pacings.values()), None)

    def _may_be_crawled(self, unreachable: UnreachablePolicy, now: float) -> bool:
        """Whether the site may be crawled although its robots.txt is unreachable."""
        since = self.unreachable_since
        return unreachable.allow or (since is not None and now - since >= unreachable.days * DAY)
