"""The policies of a crawl: the robots.txt of each origin, and what it means for its requests.

:class:`Policies` gives the verdicts on URLs, and says what an origin means for the queue of its
requests. It has no engine and no timer, and does no I/O. Local rules are a part of each policy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import Response

from ..clock import Clock
from ..origin import Action, Origin, State, UnreachablePolicy
from ..protocol.agents import parse_user_agent
from ..protocol.pacing import Pacing
from ..protocol.paths import host_of, is_robots_txt, lacks_host, origin_of
from ..protocol.robotstxt import RobotsTxt
from ..protocol.tdmrep import TdmRule
from ..protocol.verdict import Reason, Verdict
from ..recorder import Recorder
from ..settings import DONT_OBEY, IS_ROBOTSTXT_REQUEST, Settings
from .gate import (
    DROPS,
    READY,
    UNKNOWN,
    Address,
    Gate,
    Kind,
    Now,
    Terms,
    next_action,
    pacing_of,
    policy_gate,
)
from .origins import OriginTable

if TYPE_CHECKING:
    from .local_rules import LocalRules  # most crawls need neither TOML nor lint

MAX_CACHED_AGENTS = 256
"""How many User-Agent headers are cached with their tokens. Crawls that rotate them use fewer."""


@lru_cache(maxsize=10_000)
def _address(origin: str) -> Address:
    return Address(host_of(origin), origin)


class Policies:
    """The policies of one crawl, by origin."""

    def __init__(
        self, settings: Settings, clock: Clock, recorder: Recorder, rules: LocalRules | None
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._recorder = recorder
        self.rules = rules
        """The local rules of the crawl. None without REP_LOCAL_RULES."""
        self.now = clock.steady
        """Returns the time on the clock that the times of all origins refer to."""
        self.origins = OriginTable(settings.cache_size)
        self._parsed = self.origins.parsed
        self.origin_for: WeakKeyDictionary[Request, Origin] = WeakKeyDictionary()
        """The origins of requests in progress that may state something about their responses.
        REP_CACHE_SIZE may remove an origin from memory before the last response arrives."""
        self.states_usage = settings.tdmrep
        """Whether a robots.txt or a TDM file of this crawl may state a usage of its pages."""
        self.stopped: set[str] = set()
        """The origins whose next request a local rule has disallowed since it was queued."""
        self._unreachable = UnreachablePolicy(
            settings.on_unreachable == "allow", settings.unreachable_days
        )
        self._terms = Terms(
            self._unreachable,
            settings.on_unreachable == "wait",
            settings.max_wait,
            settings.obey_rate_limits,
        )
        self._tokens = lru_cache(MAX_CACHED_AGENTS)(self._parse_agent)
        self._crawl_tokens = parse_user_agent(settings.user_agent(None)).tokens
        """The product tokens for requests without a User-Agent header of their own."""

    def fresh(self, key: str) -> Origin | None:
        """Return an origin whose file is parsed and fresh, else None. This is the hot path."""
        origin = self._parsed.get(key)
        if origin is None or self.now() >= origin.refresh_at:
            return None
        self._parsed.move_to_end(key)
        return origin

    # Requests.

    def tokens(self, request: Request) -> tuple[str, ...]:
        """Return the product tokens of the crawler for a request, in order of preference."""
        headers = request.headers
        # Names have this form in `Headers`. Its own `in` brings a name to this form first, which
        # takes five times as long.
        is_set = b"User-Agent" in headers.keys()  # noqa: SIM118
        return self._tokens(headers[b"User-Agent"] if is_set else None)

    def _parse_agent(self, header: bytes | None) -> tuple[str, ...]:
        """Return the product tokens for a User-Agent header. Record an unclear one."""
        user_agent = self._settings.user_agent(header)
        parsed = parse_user_agent(user_agent)
        problem = parsed.problem(user_agent)
        if problem is not None:
            self._recorder.unclear_agent(problem)
        return parsed.tokens

    def address(self, request: Request) -> Address:
        """Return which queue a request belongs to."""
        meta, url = request.meta, request.url
        key = origin_of(url)
        if key is None:
            return Address("", None, Kind.EXEMPT)
        tokens = None
        if b"User-Agent" in request.headers.keys():  # noqa: SIM118 - see tokens()
            own = self.tokens(request)
            tokens = None if own == self._crawl_tokens else own
        is_file = is_robots_txt(url)
        is_usual = not (DONT_OBEY in meta or "download_slot" in meta or is_file)
        if is_usual and self.rules is None and tokens is None:
            return _address(key)
        host, slot = host_of(key), meta.get("download_slot")
        if slot == host:  # Scrapy notes it in requests that were sent
            slot = None
        return Address(host, key, self._kind(request, key, is_file), slot, tokens)

    def _kind(self, request: Request, key: str, is_file: bool) -> Kind:
        is_exempt = request.meta.get(DONT_OBEY)
        if is_exempt and request.meta.get(IS_ROBOTSTXT_REQUEST):
            return Kind.ROBOTS_TXT
        if self.local_disallow(key, request.url) is not None:
            return Kind.DISALLOWED
        if is_exempt:
            return Kind.EXEMPT
        rules = self.rules
        if is_file or (rules and rules.excepts(key, request.url, self._clock.time())):
            return Kind.EXCEPTED
        return Kind.OBEY

    # What policies say.

    def verdict(self, origin: Origin, url: str, tokens: tuple[str, ...]) -> Verdict:
        """Return the verdict of an origin on a URL for a crawler with these product tokens."""
        now, policy, rules = self.now(), self._unreachable, self.rules
        if rules is not None:
            decide = partial(origin.verdict_on, agents=tokens, now=now, unreachable=policy)
            return rules.verdict(origin.key, url, self._clock.time(), decide)
        return origin.verdict(url, tokens, now, policy)

    def verdict_without_origin(self, url: str) -> Verdict | None:
        """Return the verdict on a URL for which no robots.txt is needed; None if there is none."""
        key = origin_of(url)
        if key is not None:
            return self.local_disallow(key, url)
        return Verdict(False, Reason.INVALID_HOST) if lacks_host(url) else None

    def known_site_verdict(self, request: Request) -> Verdict | None:
        """Return what robots.txt says about a request, without local rules. None if unknown."""
        origin = self.origins.get(origin_of(request.url) or "")
        no_rules = State.UNAVAILABLE, State.UNREACHABLE
        if origin is None or (origin.content is None and origin.state not in no_rules):
            return None
        return origin.verdict(request.url, self.tokens(request), self.now(), self._unreachable)

    def local_disallow(self, key: str, url: str) -> Verdict | None:
        """Return the verdict of a local rule that disallows a URL of an origin, or None."""
        rules = self.rules
        return rules.disallowed(key, url, self._clock.time()) if rules is not None else None

    def gate(
        self, address: Address, delay: float, judge: Callable[[Origin], Verdict] | None = None
    ) -> Gate:
        """Return what the policy of an origin means for a queue. ``delay`` is that of its host.

        With ``judge``, which returns the verdict on its URL, the answer is for a request.
        """
        key, kind = address.origin, address.kind
        if key is None or kind is Kind.EXEMPT or kind is Kind.ROBOTS_TXT:
            return READY
        if kind is Kind.DISALLOWED:
            return DROPS
        origin = self._parsed.get(key) or self.origins.get(key)
        tokens = self._crawl_tokens if address.tokens is None else address.tokens
        gate = policy_gate(origin, kind, tokens, delay, self._moment(), self._terms, judge)
        return DROPS if gate is UNKNOWN and judge is None and key in self.stopped else gate

    def next_action(self, origin: Origin, delay: float) -> Action:
        """Return what must be done before an origin can answer a request now."""
        return next_action(origin, False, delay, self._moment(), self._terms)

    def _moment(self) -> Now:
        return Now(self.now(), self._clock.monotonic(), self._clock.time())

    def seconds_after(self, origin: Origin, tokens: tuple[str, ...]) -> float:
        """Return how long requests wait after the last answer. Infinity: until the next one."""
        if origin.state is State.UNREACHABLE and origin.content is None:
            return float("inf") if self._terms.waits_for_outages else 0
        pacing = pacing_of(origin, tokens, self._terms)
        return pacing.seconds_until_visit_time(self._clock.time()) if pacing is not None else 0

    # The pace of hosts.

    def delay(self, origin: Origin, tokens: tuple[str, ...]) -> float | None:
        """Return the delay that an origin sets for these tokens, in seconds; 0 if it sets none.

        Returns None if the origin is unreachable: the last known delay still applies.
        """
        if origin.content is None and origin.state is State.UNREACHABLE:
            return None
        return self._seconds_between(pacing_of(origin, tokens, self._terms))

    def last_delay(self, key: str | None) -> float:
        """Return the delay that is already known for an origin, in seconds; 0 if there is none."""
        origin = self.origins.get(key or "")
        return self._seconds_between(origin.last_pacing) if origin is not None else 0

    def _seconds_between(self, pacing: Pacing | None) -> float:
        if pacing is None or not self._terms.obeys_pace:
            return 0
        return min(pacing.seconds_between(self._clock.time()), self._settings.max_crawl_delay)

    # What origins state about the use of their pages.

    def note_content(self, content: RobotsTxt) -> None:
        """Note that a robots.txt has arrived, which may state a usage."""
        self.states_usage |= content.has_usage

    def note_use(self, request: Request, origin: Origin) -> None:
        """Keep an origin that may state a usage of the response to a request, until that ends."""
        if origin.content is not None and origin.content.has_usage:
            self.origin_for[request] = origin

    def stated_usage(self, response: Response) -> tuple[RobotsTxt | None, TdmRule | None]:
        """Return the robots.txt that states a usage of a page, and the rule of its TDM file.

        They are those that the request of the page knew, or else those in memory.
        """
        if not self.states_usage:  # the usual case
            return None, None
        key, request = origin_of(response.url), response.request
        origin = None if request is None else self.origin_for.get(request)
        if origin is None or origin.key != key:
            origin = self.origins.get(key or "")
        if origin is None:
            return None, None
        robots, tdm = origin.content, origin.tdm.content if origin.tdm is not None else None
        has_usage = robots is not None and robots.has_usage
        return robots if has_usage else None, None if tdm is None else tdm.rule(response.url)
