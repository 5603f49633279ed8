"""One origin's state, driven by events and the time it is told. It does no I/O.

The two rules of this module: the state changes only by :data:`TRANSITIONS`, and nothing here asks
what time it is. RFC 9309, sections 2.3.1 and 2.4, say what each state allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from typing_extensions import assert_never

from .protocol.access import Cancelled, NotModified, Rules, Unavailable, Unreachable, retry_interval
from .protocol.pacing import Pacing
from .protocol.paths import host_of, path_of
from .protocol.robotstxt import Reason, RobotsTxt, Verdict
from .stores.entry import Entry, Outcome

if TYPE_CHECKING:
    from .protocol.access import Event

REFRESH_AHEAD = 0.1
"""The last part of a file's life in which it is fetched anew while it still holds."""
DAY = 86_400

ROBOTS_TXT = "/robots.txt"
"""§2.2.2: "The /robots.txt URI is implicitly allowed"."""


class State(str, Enum):
    """What is known of an origin's robots.txt."""

    UNKNOWN = "unknown"
    FETCHING = "fetching"
    FRESH = "fresh"
    STALE = "stale"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"

    def __str__(self) -> str:
        return self.value


class Happening(Enum):
    """What can happen to an origin."""

    FETCH_BEGAN = "a request needs to know, and a fetch was begun"
    RULES_CAME = "a 2xx, or a 304 for the copy that we have"
    FOUND_UNAVAILABLE = "a 4xx, or too many redirects"
    FOUND_UNREACHABLE = "a 5xx, or no answer at all"
    GIVEN_UP = "the fetch was cancelled by us"
    EXPIRED = "what is known is too old to be believed"


_S, _H = State, Happening

TRANSITIONS = {
    (_S.UNKNOWN, _H.FETCH_BEGAN): _S.FETCHING,
    (_S.STALE, _H.FETCH_BEGAN): _S.FETCHING,
    (_S.UNREACHABLE, _H.FETCH_BEGAN): _S.FETCHING,  # a retry that is due
    (_S.FETCHING, _H.RULES_CAME): _S.FRESH,  # §2.3.1.1: MUST follow the parseable rules
    (_S.FETCHING, _H.FOUND_UNAVAILABLE): _S.UNAVAILABLE,  # §2.3.1.3: MAY access any resource
    (_S.FETCHING, _H.FOUND_UNREACHABLE): _S.UNREACHABLE,  # §2.3.1.4: MUST assume disallow
    (_S.FETCHING, _H.GIVEN_UP): _S.UNKNOWN,
    # §2.4: SHOULD NOT use the cached version for more than 24 hours
    (_S.FRESH, _H.EXPIRED): _S.STALE,
    (_S.UNAVAILABLE, _H.EXPIRED): _S.STALE,
    # Asked ahead of time: what holds goes on holding until there is news.
    (_S.FRESH, _H.FETCH_BEGAN): _S.FRESH,
    (_S.FRESH, _H.RULES_CAME): _S.FRESH,
    (_S.FRESH, _H.FOUND_UNAVAILABLE): _S.UNAVAILABLE,
    (_S.FRESH, _H.FOUND_UNREACHABLE): _S.FRESH,
    (_S.FRESH, _H.GIVEN_UP): _S.FRESH,
    (_S.UNAVAILABLE, _H.FETCH_BEGAN): _S.UNAVAILABLE,
    (_S.UNAVAILABLE, _H.RULES_CAME): _S.FRESH,
    (_S.UNAVAILABLE, _H.FOUND_UNAVAILABLE): _S.UNAVAILABLE,
    (_S.UNAVAILABLE, _H.FOUND_UNREACHABLE): _S.UNAVAILABLE,
    (_S.UNAVAILABLE, _H.GIVEN_UP): _S.UNAVAILABLE,
    # Asked ahead of time, and expired before the answer came.
    (_S.STALE, _H.RULES_CAME): _S.FRESH,
    (_S.STALE, _H.FOUND_UNAVAILABLE): _S.UNAVAILABLE,
    (_S.STALE, _H.FOUND_UNREACHABLE): _S.UNREACHABLE,
    (_S.STALE, _H.GIVEN_UP): _S.STALE,
}


_KINDS = {
    _S.FRESH: Outcome.RULES,
    _S.UNAVAILABLE: Outcome.UNAVAILABLE,
    _S.UNREACHABLE: Outcome.UNREACHABLE,
}
_RECALLED = {
    Outcome.RULES: _H.RULES_CAME,
    Outcome.UNAVAILABLE: _H.FOUND_UNAVAILABLE,
    Outcome.UNREACHABLE: _H.FOUND_UNREACHABLE,
}


class Need(Enum):
    """What has to be done before an origin can be asked for a verdict."""

    NOTHING = "ask"
    REFRESH = "ask, and fetch the file anew meanwhile"
    FETCH = "fetch the file, and wait for it"
    JOIN = "wait for the fetch that is under way"


class UnreachablePolicy(NamedTuple):
    """What holds while an origin is unreachable and there is no copy (§2.3.1.4)."""

    allow: bool = False
    days: float = 30


@dataclass(slots=True, eq=False)
class Origin:
    """One origin (scheme, host, port) and what is known of its robots.txt.

    ``refresh_at`` is the hot path: before that time :meth:`verdict` may be asked straight away.
    Times are seconds on whatever clock the caller keeps.
    """

    key: str
    host: str = field(init=False, repr=False)
    state: State = State.UNKNOWN
    robots: RobotsTxt | None = None
    """The last good copy: a 2xx body. A 4xx since then has done away with it."""
    status: int | None = None
    """The status of the last answer; None where there was no HTTP answer."""
    url: str | None = None
    """Where the last answer came from, after redirects."""
    failure: str | None = None
    """Why the origin is unreachable, in words."""
    refresh_at: float = field(default=0, repr=False)
    expires_at: float = field(default=0, repr=False)
    unreachable_since: float | None = field(default=None, repr=False)
    failures: int = field(default=0, repr=False)
    disallow_all: bool = field(default=False, repr=False)
    """A 4xx that a setting takes for a refusal."""
    copy_url: str | None = field(default=None, repr=False)
    """Where the good copy came from: its validators are for this URL alone."""
    etag: str | None = field(default=None, repr=False)
    last_modified: str | None = field(default=None, repr=False)
    lifetime: float | None = field(default=None, repr=False)
    """The seconds that the good copy says it holds."""
    fetched_at: float = field(default=0, repr=False)
    """When the last fetch of it ended that came to anything, here or elsewhere."""
    last_request: float | None = field(default=None, repr=False)
    """When the last request for its robots.txt ended, by whatever crawler, on the caller's
    monotonic clock; None where a cache answered."""
    answered_at: float = field(default=-inf, repr=False)
    """When the last fetch of this crawl ended, on the caller's monotonic clock."""
    from_cache: bool = field(default=False, repr=False)
    """An HTTP cache has given the last answer: the host was not asked."""
    in_flight: bool = field(default=False, repr=False)
    reported_pace: tuple[RobotsTxt, str] | None = field(default=None, repr=False)
    """The copy whose pace the log has told of last, and the words."""
    _paced: tuple[tuple[str, ...], Pacing | None] | None = field(default=None, repr=False)
    """The last answer of :meth:`pacing`, and who asked."""

    def __post_init__(self) -> None:
        self.host = host_of(self.key)

    def need(self, now: float) -> Need:
        """What has to be done before :meth:`verdict` can answer a request that comes ``now``."""
        if now < self.refresh_at:
            return Need.NOTHING
        if self.state in (State.FRESH, State.UNAVAILABLE):
            if now < self.expires_at:
                return Need.NOTHING if self.in_flight else Need.REFRESH
            self._happen(Happening.EXPIRED)
        return Need.JOIN if self.in_flight else Need.FETCH

    def start_fetch(self) -> None:
        """A fetch was begun."""
        self._happen(Happening.FETCH_BEGAN)
        self.in_flight = True

    def apply(self, event: Event, now: float) -> None:
        """The fetch came to ``event``."""
        self.in_flight = False
        self.from_cache = isinstance(event, (Rules, Unavailable)) and event.from_cache
        match event:
            case Rules():
                self._happen(Happening.RULES_CAME)
                self.set_copy(event)
                self.url = event.url
                self._answered(event.status, event.expires_at, now)
            case NotModified():
                self._happen(Happening.RULES_CAME)
                self.url = self.copy_url
                self._answered(304, event.expires_at, now)
            case Unavailable():
                self._happen(Happening.FOUND_UNAVAILABLE)
                self._forget_copy()
                self.url = event.url
                self._answered(event.status, event.expires_at, now)
                self.disallow_all = event.disallow
            case Unreachable():
                self._happen(Happening.FOUND_UNREACHABLE)
                self._failed(event, now)
            case Cancelled():
                self._happen(Happening.GIVEN_UP)
            case _:
                assert_never(event)
        if not isinstance(event, Cancelled):
            self.fetched_at = round(now, 3)  # as it is kept, so that the two can be compared

    def set_copy(self, rules: Rules) -> None:
        """Take a good copy, of whatever age: what it means depends on the state."""
        self.robots, self._paced = rules.robots, None
        self.copy_url, self.lifetime = rules.url, rules.lifetime
        self.etag, self.last_modified = rules.etag, rules.last_modified

    def to_entry(self, body: bytes | None) -> Entry:
        """What is known, to be kept; ``body``: the good copy as it came. To be asked after an
        event.
        """
        return Entry(
            _KINDS[self.state],
            self.fetched_at,
            self.refresh_at,
            self.expires_at,
            body,
            self.copy_url,
            self.etag,
            self.last_modified,
            self.lifetime,
            self.status,
            self.url,
            self.failure,
            self.unreachable_since,
            self.failures,
            self.disallow_all,
        )

    def restore(self, entry: Entry, robots: RobotsTxt | None, now: float) -> bool:
        """Take over what was kept, by an earlier crawl or another crawler, in place of a fetch.

        ``robots`` is the good copy of the entry. Whether that settles what the fetch was begun for;
        where it does not, it is the history of the fetch.
        """
        if entry.fetched_at <= self.fetched_at:
            return False
        ahead = self.state in (State.FRESH, State.UNAVAILABLE)
        if ahead and entry.kind is Outcome.UNREACHABLE:  # what is held still holds
            self.refresh_at = min(entry.refresh_at, self.expires_at)
            self.in_flight = now >= self.refresh_at
            return not self.in_flight
        self.fetched_at = entry.fetched_at
        if robots is not None:
            self.robots, self._paced = robots, None
            self.copy_url, self.lifetime = entry.copy_url, entry.lifetime
            self.etag, self.last_modified = entry.etag, entry.last_modified
        elif entry.kind is Outcome.UNAVAILABLE:
            self._forget_copy()
        self.unreachable_since, self.failures = entry.unreachable_since, entry.failures
        # A copy that holds is good enough to go on with, but no reason not to fetch it anew.
        holds = not ahead and entry.kind is not Outcome.UNREACHABLE
        if now >= (entry.expires_at if holds else entry.refresh_at):
            return False
        self.in_flight = False
        self._happen(_RECALLED[entry.kind])
        self.status, self.url, self.failure = entry.status, entry.url, entry.failure
        self.disallow_all = entry.disallow_all
        self.refresh_at, self.expires_at = entry.refresh_at, entry.expires_at
        return True

    def verdict(
        self, url: str, agents: tuple[str, ...], now: float, patience: UnreachablePolicy
    ) -> Verdict:
        """Whether ``url`` may be fetched by a crawler of these product tokens, and why.

        To be asked when :meth:`need` says that nothing is needed, or after an event.
        """
        if self.robots is not None and self.state is not State.UNKNOWN:
            return self.robots.verdict(url, agents)
        if self.state is State.UNAVAILABLE:
            allowed = not self.disallow_all or path_of(url) == ROBOTS_TXT
            reason = Reason.UNAVAILABLE if allowed else Reason.DISALLOWED_STATUS
            return Verdict(allowed, reason, None, None, self._unavailable_for)
        cancelled = patience.allow or self._is_given_up(now, patience)
        allowed = cancelled or path_of(url) == ROBOTS_TXT
        return Verdict(allowed, Reason.UNREACHABLE, None, None, self.failure)

    @property
    def has_pacing(self) -> bool:
        """Whether the copy in use asks anybody for a pace."""
        return self.robots is not None and self.robots.has_pacing

    def pacing(self, agents: tuple[str, ...]) -> Pacing | None:
        """The pace that the copy in use asks of a crawler of these product tokens."""
        if self.robots is None:
            return None
        if self._paced is None or self._paced[0] != agents:
            self._paced = agents, Pacing.of(self.robots, agents)
        return self._paced[1]

    def shift_clock(self, seconds: float) -> None:
        """Keep all times as far off as they are, when somebody has set the clock."""
        self.refresh_at += seconds
        self.expires_at += seconds
        self.fetched_at += seconds
        if self.unreachable_since is not None:
            self.unreachable_since += seconds

    def summary(self) -> str:
        """What the robots.txt meant, in a line for people."""
        if self.state is State.UNAVAILABLE:
            means = "everything is disallowed" if self.disallow_all else "no rules"
            return f"{self._unavailable_for}: {means}"
        if self.robots is None:
            return f"unreachable: {self.failure}" if self.failure else str(self.state)
        held = "rules" if self.failure is None else f"rules of the last copy, for {self.failure}"
        here = self.copy_url is None or self.copy_url.startswith(self.key + "/")
        return held if here else f"{held}, from {self.copy_url}"

    @property
    def _unavailable_for(self) -> str:
        return f"status {self.status}" if self.status else "redirects without an end"

    def _happen(self, happening: Happening) -> None:
        self.state = TRANSITIONS[self.state, happening]

    def _forget_copy(self) -> None:
        self.robots = self.copy_url = self.etag = self.last_modified = self.lifetime = None

    def _answered(self, status: int | None, expires_at: float, now: float) -> None:
        self.status = status
        self.failure = self.unreachable_since = None
        self.failures = 0
        self.disallow_all = False
        self.expires_at = expires_at
        self.refresh_at = expires_at - REFRESH_AHEAD * (expires_at - now)

    def _failed(self, event: Unreachable, now: float) -> None:
        self.failures += 1
        again_at = now + (event.retry_after or retry_interval(self.failures))
        if self.state is State.UNREACHABLE:
            self.status, self.url, self.failure = event.status, event.url, event.failure
            if self.unreachable_since is None:
                self.unreachable_since = now
            self.refresh_at = again_at
        else:  # a refresh ahead of time: what is held still holds
            self.refresh_at = min(again_at, self.expires_at)

    def _is_given_up(self, now: float, patience: UnreachablePolicy) -> bool:
        since = self.unreachable_since
        return since is not None and now - since >= patience.days * DAY
