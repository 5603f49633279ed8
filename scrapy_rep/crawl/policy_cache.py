"""The policies of a crawl: the robots.txt of each origin, and what it means for its requests.

:class:`PolicyCache` gives the verdicts on URLs. It tells the frontier which requests may start, and
sets the delays of hosts. A policy is in memory, or comes from the store or from a fetch, which all
requests to an origin share. Local rules (REP_LOCAL_RULES) are a part of each policy.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import failure_to_exc_info
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from ..fetch.fetch_limit import FetchLimit
from ..fetch.fetcher import TOO_MANY_REDIRECTS, Fetcher
from ..frontier.clock import Clock, fire
from ..frontier.engine import WATCH_INTERVAL, Engine
from ..frontier.frontier import READY, Address, Condition, Frontier, Kind, Place
from ..frontier.reservation import Reservations
from ..logs import get_logger
from ..origin import Action, Origin, OriginFile, State, UnreachablePolicy
from ..protocol.access import (
    NO_ROBOTS_TXT,
    AccessResult,
    Cancelled,
    FetchResult,
    Rules,
    Unavailable,
    Unreachable,
)
from ..protocol.agents import parse_user_agent
from ..protocol.paths import ROBOTS_TXT, host_of, origin_of, path_of
from ..protocol.records import Pacing, describe
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Verdict
from ..robotparser import RepRobotParser
from ..settings import DONT_OBEY, IS_ROBOTSTXT_REQUEST, Settings
from ..stores.claims import Lookup
from .file_table import FileTable
from .policy_store import open_policy_store
from .tdm_files import TdmFiles

if TYPE_CHECKING:  # what most crawls do not import
    from ..reports.archive import Archive
    from ..reports.event_log import CrawlLog
    from .local_rules import LocalRulesFile

logger = get_logger(__name__)

RECENT = 0.25
"""Seconds for which a fetch is a recent one. Most files arrive within this time."""

MIN_USE = 1.0
"""Seconds for which requests that waited for a fetch use its result, even if it expires earlier."""

REFRESH_WAIT = 2.0
"""Seconds that a crawl which is otherwise over waits for robots.txt files that no request waits
for. Most files arrive within half a second."""

MAX_CACHED_AGENTS = 256
"""How many User-Agent headers are cached with their tokens. A crawl that rotates its headers uses
fewer."""

AMBIGUOUS_STAT = "robotstxt/ambiguous_user_agent_count"

policy_changed = object()
"""The signal that a fetch for a ``host`` has ended which has requests in progress."""

# Scrapy has this signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


@lru_cache(maxsize=10_000)
def _address(origin: str) -> Address:
    """Return the address of ordinary requests to an origin."""
    return Address(host_of(origin), origin)


class Fetch(NamedTuple):
    """A fetch in progress."""

    file: OriginFile
    ended: Deferred[Any]
    began: float
    """On the monotonic clock."""


class PolicyCache:
    """The policies of one crawl, by origin. It tells :attr:`frontier` which requests may start."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        clock: Clock,
        events: CrawlLog | None,
        archive: Archive | None,
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings
        self._engine = engine
        self._clock = clock
        self.now = clock.steady
        """Returns the time on the clock that the times of all origins refer to."""
        self.files = FileTable(settings.cache_size)
        """The origins in memory, by their normal form."""
        self._parsed = self.files.parsed
        self._fetches: dict[str, Fetch] = {}
        """The fetches in progress: of a robots.txt by origin, of another file by its URL."""
        self._waiting_responses: Counter[str] = Counter()
        """How many responses wait for a file of an origin, which is that of their final URL."""
        self.origin_for: WeakKeyDictionary[Request, Origin] = WeakKeyDictionary()
        """The origins of requests in progress that may state something about their responses.
        REP_CACHE_SIZE may remove an origin from memory before the last response arrives."""
        self.bodies: dict[str, bytes] | None = None
        """The good copies by origin, as they were received; None if they are not kept."""
        self.local_rules: LocalRulesFile | None = None
        """The local rules of the crawl. None without REP_LOCAL_RULES."""
        if settings.local_rules is not None:
            from .local_rules import LocalRulesFile  # most crawls need neither TOML nor lint

            self.local_rules = LocalRulesFile(settings.local_rules)
        self._stopped: set[str] = set()
        """The origins whose next request a local rule has disallowed since it was queued."""
        is_allowed = settings.on_unreachable == "allow"
        self._unreachable_policy = UnreachablePolicy(is_allowed, settings.unreachable_days)
        self._tokens = lru_cache(MAX_CACHED_AGENTS)(self._parse_agent)
        self._has_warned_of_agent = False
        self._events = events
        self.frontier = Frontier(crawler, settings, engine, clock, self, events)
        self.store = open_policy_store(settings, crawler.stats, clock)
        """The store; None if the crawl has none."""
        if self.store is not None:
            crawler.signals.connect(self.store.claims.close, signal=signals.spider_closed)
        shared = self.store.store if self.store is not None and self.store.store.shared else None
        if shared is not None:
            self.frontier.reservations = Reservations(shared, self.frontier)
        self._fetch_limit = FetchLimit(
            settings.concurrent_robotstxt_requests, clock, engine, settings.connections
        )
        self.fetcher = Fetcher(
            crawler,
            settings,
            engine,
            self.frontier,
            self._fetch_limit,
            clock,
            shared=shared is not None,
            record=archive.record if archive is not None else None,
        )
        self.tdm_files = TdmFiles(crawler, self) if settings.tdmrep else None
        """The TDM files of the crawl. None without REP_TDMREP."""
        self.states_usage = False
        """Whether a robots.txt of this crawl may state a usage of its pages."""
        self._idle_polls = 0
        """How many polls in a row have found that the crawl is over but for robots.txt files."""

    # Policies in memory.

    def get_fresh(self, key: str) -> Origin | None:
        """Return an origin whose file is parsed and fresh, else None. This is the hot path."""
        origin = self._parsed.get(key)
        if origin is None or self.now() >= origin.refresh_at:
            return None
        self._parsed.move_to_end(key)
        return origin

    def known_origin(self, response: Response) -> Origin | None:
        """Return the origin of a response as its request knew it, else as it is in memory."""
        key, request = origin_of(response.url), response.request
        origin = None if request is None else self.origin_for.get(request)
        return origin if origin and origin.key == key else self.files.get(key or "")

    def get_or_fetch(
        self, key: str, request: Request, *, is_excepted: bool = False
    ) -> Origin | None:
        """Return an origin whose policy can be used, else start a fetch and return None.

        Also returns None if a fetch is due and the spider is closing.
        """
        origin = self.files.find_or_add(key)
        action = self._next_action(origin, is_excepted=is_excepted)
        if action in (Action.REFRESH, Action.FETCH) and not self.frontier.is_closing:
            origin.start_fetch(self.now())
            self._fetch(origin, request)
            # Twisted runs a coroutine at once, so the fetch may have ended already.
            action = origin.next_action(self.now())
        return origin if action in (Action.NONE, Action.REFRESH) else None

    async def wait_for(
        self, key: str, request: Request, response: Response | None = None
    ) -> Origin | None:
        """Return an origin when its policy can be used; None if the spider closes first.

        This waits for the fetch only, not for the queue of the origin or the delay of its host.
        ``response`` is the response to the request, if that is what waits.
        """
        started_at = self._clock.monotonic()
        with self.waiting(key, request, response):
            while (origin := self.get_or_fetch(key, request)) is None:
                if key not in self._fetches:
                    break
                await self.fetch_ended(key)
                origin = self.files.get(key)
                if origin is not None and origin.answered_at >= started_at:
                    break  # even if it has expired since
            return origin

    @contextmanager
    def waiting(self, key: str, request: Request, response: Response | None) -> Iterator[None]:
        """Note that a request, or the response to it, waits for a file of an origin."""
        self._waiting_responses[key] += 1
        if response is not None:
            self._engine.exclude(request, response)
        try:
            yield
        finally:
            if response is not None:
                self._engine.include(request)
            self._waiting_responses[key] -= 1
            if not self._waiting_responses[key]:
                del self._waiting_responses[key]

    def is_wanted(self, key: str) -> bool:
        """Whether a request or a response waits for a file of an origin."""
        return key in self._waiting_responses or bool(self.frontier.places(host_of(key), key))

    def evict(self) -> None:
        """Keep the memory of the origins within its limits. See :meth:`FileTable.evict`."""
        self.files.evict(self._is_in_use)

    def _is_in_use(self, key: str) -> bool:
        """Whether an origin has to be kept in memory."""
        is_awaited = key in self._fetches or key in self._waiting_responses
        is_queued = bool(self.frontier.places(host_of(key), key) - {Place.UNKNOWN})
        in_progress = self.frontier.in_progress.values()
        return is_awaited or is_queued or any(entry.origin == key for entry in in_progress)

    # Verdicts.

    def tokens(self, request: Request) -> tuple[str, ...]:
        """Return the product tokens of the crawler for a request, in order of preference."""
        headers = request.headers
        # Names have this form in `Headers`. Its own `in` brings a name to this form first, which
        # takes five times as long.
        is_set = b"User-Agent" in headers.keys()  # noqa: SIM118
        return self._tokens(headers[b"User-Agent"] if is_set else None)

    def verdict(self, origin: Origin, url: str, tokens: tuple[str, ...]) -> Verdict:
        """Return the verdict of an origin on a URL for a crawler with these product tokens."""
        now, policy, rules = self.now(), self._unreachable_policy, self.local_rules
        if rules is not None:
            decide = partial(origin.verdict_on, agents=tokens, now=now, unreachable=policy)
            return rules.verdict(origin.key, url, self._clock.time(), decide)
        return origin.verdict(url, tokens, now, policy)

    def known_site_verdict(self, url: str, tokens: tuple[str, ...]) -> Verdict | None:
        """Return what the robots.txt of a URL says, whatever local rules say. None if unknown."""
        origin = self.files.get(origin_of(url) or "")
        is_answered = origin is not None and origin.state in (State.UNAVAILABLE, State.UNREACHABLE)
        if origin is None or not (is_answered or origin.content is not None):
            return None
        return origin.verdict(url, tokens, self.now(), self._unreachable_policy)

    def local_disallow(self, key: str, url: str) -> Verdict | None:
        """Return the verdict of a local rule that disallows a URL of an origin, or None."""
        rules = self.local_rules
        return rules.disallowed(key, url, self._clock.time()) if rules is not None else None

    def _parse_agent(self, header: bytes | None) -> tuple[str, ...]:
        """Return the product tokens for a User-Agent header. Warn of an unclear one, once."""
        user_agent = self._settings.user_agent(header)
        parsed = parse_user_agent(user_agent)
        problem = parsed.problem(user_agent)
        if problem is None:
            return parsed.tokens
        self._stats.inc_value(AMBIGUOUS_STAT)
        if not self._has_warned_of_agent:
            self._has_warned_of_agent = True
            logger.warning(
                "The product token for robots.txt is unclear: %(problem)s. Set "
                "ROBOTSTXT_USER_AGENT to the product token of your crawler. The stat %(stat)s "
                "counts other user agents like this one.",
                {"problem": problem, "stat": AMBIGUOUS_STAT},
                extra={"spider": self._crawler.spider},
            )
        return parsed.tokens

    # What the frontier asks.

    def address(self, request: Request) -> Address:
        """Return which queue a request belongs to."""
        meta = request.meta
        url = request.url
        key = origin_of(url)
        if key is None:
            return Address("", None, Kind.EXEMPT)
        if not (
            DONT_OBEY in meta
            or "download_slot" in meta
            or self.local_rules is not None
            or url.endswith(ROBOTS_TXT)
        ):
            return _address(key)  # the usual case
        host, slot = host_of(key), meta.get("download_slot")
        if slot == host:  # Scrapy notes it in requests that were sent
            slot = None
        kind = Kind.OBEY
        if meta.get(DONT_OBEY):
            kind = Kind.ROBOTS_TXT if meta.get(IS_ROBOTSTXT_REQUEST) else Kind.EXEMPT
        elif self.local_disallow(key, url) is not None:
            kind = Kind.EXEMPT
        elif self._excepts(key, url):
            kind = Kind.EXCEPTED
        return Address(host, key, kind, slot)

    def condition(self, address: Address) -> Condition:
        """Return whether the policy of an origin lets its requests start now. Starts nothing."""
        key = address.origin
        if key is None or address.kind in (Kind.EXEMPT, Kind.ROBOTS_TXT):
            return READY
        origin = self._parsed.get(key) or self.files.get(key)
        if origin is None:
            return self._before_fetch(key)
        if self.now() < origin.refresh_at and origin.content is not None and not origin.has_pacing:
            return READY  # the usual case
        is_excepted = address.kind == Kind.EXCEPTED
        action = self._next_action(origin, is_excepted=is_excepted)
        if action is Action.WAIT:
            return Condition(Place.FETCHING)
        if action is Action.FETCH:
            return self._before_fetch(key)
        if origin.content is None:
            if is_excepted or not origin.disallows_all(self.now(), self._unreachable_policy):
                return READY
            seconds = self._seconds_to_attempt(origin)
            return Condition(Place.DROPS) if seconds is None else Condition(Place.WAITING, seconds)
        pacing = origin.last_pacing
        if pacing is not None:
            seconds = pacing.seconds_until_visit_time(self._clock.time())
            if seconds > self._settings.max_wait:
                return Condition(Place.DROPS)
            if seconds:
                return Condition(Place.WAITING, seconds)
        return READY

    def _before_fetch(self, origin: str) -> Condition:
        return Condition(Place.DROPS if origin in self._stopped else Place.UNKNOWN)

    def can_fetch(self) -> bool:
        """Whether one more fetch may begin now (REP_CONCURRENT_ROBOTSTXT_REQUESTS)."""
        return not self.frontier.is_closing and self._fetch_limit.can_begin()

    def fetch(self, origin: str, request: Request) -> None:
        """Begin to fetch the robots.txt of an origin for a request, unless that is disallowed."""
        if self.local_disallow(origin, request.url) is not None:
            self._stopped.add(origin)
            return
        self.get_or_fetch(origin, request)

    def recent_fetches(self) -> int:
        """Return how many fetches began a short time ago, and have not ended."""
        latest = self._clock.monotonic() - RECENT
        fetches = reversed(self._fetches.values())
        return sum(1 for _ in takewhile(lambda fetch: fetch.began > latest, fetches))

    def _seconds_to_attempt(self, origin: Origin) -> float | None:
        """Return the seconds that requests wait for the next attempt at an unreachable origin.

        None if they do not wait: only REP_ON_UNREACHABLE="wait" makes them, and a site that has
        been unreachable for long would make them wait for more than REP_MAX_WAIT in all.
        """
        seconds = origin.next_attempt(self.now(), self._unreachable_policy)
        if seconds is None or self._settings.on_unreachable != "wait":
            return None
        waited = self._clock.monotonic() - origin.outage_began
        return seconds if waited + seconds <= self._settings.max_wait else None

    def _next_action(self, origin: Origin, *, is_excepted: bool) -> Action:
        """Return what must be done before an origin can answer a request now.

        A request that a local rule allows needs no new attempt at an unreachable origin. The last
        answer is used once even if it has expired: otherwise no page would be fetched from a site
        whose delay is longer than the lifetime of its file.
        """
        now = self.now()
        if now < origin.refresh_at:  # the usual case
            return Action.NONE
        if is_excepted and origin.next_attempt(now, self._unreachable_policy) is not None:
            return Action.NONE
        if origin.is_unused and origin.content is not None and not origin.in_flight:
            usable_for = max(2 * self.frontier.known_host(origin.host).delay, MIN_USE)
            if self._clock.monotonic() < origin.answered_at + usable_for:
                return Action.NONE
        return origin.next_action(now)

    def delay(self, key: str | None) -> float:
        """Return the delay that is already known for an origin, in seconds; 0 if there is none."""
        origin = self.files.get(key or "")
        return self.seconds_between(origin.last_pacing) if origin is not None else 0

    # The pace of hosts.

    def apply_pace(self, origin: Origin, request: Request) -> Pacing | None:
        """Set the delay of the host of an origin, as it holds for the crawler of a request.

        Returns the pace that the robots.txt sets; None if it sets none, or if it is unknown.
        """
        if origin.content is None and origin.state is State.UNREACHABLE:
            return None  # the last known delay still applies
        pacing = None
        if origin.has_pacing and self._settings.obey_rate_limits:
            pacing = origin.pacing(self.tokens(request))
        self.frontier.set_delay(origin.host, origin.key, self.seconds_between(pacing))
        return pacing

    def seconds_between(self, pacing: Pacing | None) -> float:
        """Return the delay that a robots.txt sets, in seconds; 0 if it sets none."""
        if pacing is None or not self._settings.obey_rate_limits:
            return 0
        return min(pacing.seconds_between(self._clock.time()), self._settings.max_crawl_delay)

    # Policies in use.

    def get_usable(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy lets a request start now, else None. May start a fetch."""
        is_excepted = self._excepts(key, request.url)
        origin = self.get_or_fetch(key, request, is_excepted=is_excepted)
        has_to_wait = origin is not None and self._seconds_to_attempt(origin) is not None
        return None if has_to_wait and not is_excepted else origin

    def _excepts(self, key: str, url: str) -> bool:
        """Whether a URL is allowed, whatever the robots.txt says."""
        if url.endswith(ROBOTS_TXT) and path_of(url) == ROBOTS_TXT:
            return True
        rules = self.local_rules
        return rules is not None and rules.excepts(key, url, self._clock.time())

    def note_page(self, key: str | None) -> None:
        """Note that a page of an origin has answered with a 2xx or 3xx."""
        if key is not None:
            (self._parsed.get(key) or self.files.find_or_add(key)).has_pages = True

    def reload_local_rules(self) -> bool:
        """Read local rules that have changed again. Returns whether other rules apply now."""
        is_new = self.local_rules is not None and self.local_rules.reload(self._crawler.spider)
        if is_new:
            self._stats.inc_value("robotstxt/local_rules_reloads")
            self._stopped.clear()
        return is_new

    def poll(self) -> None:
        """Do the work that no request causes. Called twice a second."""
        self._fetch_limit.update()
        self.files.measure()
        self.evict()
        if self._engine.is_closing:
            if self.frontier.is_closing:  # a response that has just arrived had its time
                self._cancel(self._fetches.values())
            self.frontier.close()
        else:
            self.frontier.collect_ended()
            active = self._engine.active
            is_over = bool(active) and all(each.meta.get(IS_ROBOTSTXT_REQUEST) for each in active)
            is_over = is_over and not any(map(len, self.frontier.queues))
            self._idle_polls = self._idle_polls + 1 if is_over else 0
            if self._idle_polls * WATCH_INTERVAL > REFRESH_WAIT:
                # Those for which no request waits would keep the crawl open.
                self._cancel(
                    fetch for fetch in self._fetches.values() if not self.is_wanted(fetch.file.key)
                )

    def close(self) -> None:
        """End all fetches and all waiting in the downloader: the spider closes."""
        self.frontier.close()
        self._cancel(self._fetches.values())

    def may_state_usage(self, origin: Origin) -> bool:
        """Whether the robots.txt of an origin may state a usage of its pages."""
        content = origin.content
        return content is not None and content.has_usage

    # Fetches.

    def run(
        self,
        key: str,
        file: OriginFile,
        fetch: Callable[[], Awaitable[FetchResult]],
        finish: Callable[[FetchResult], None],
    ) -> None:
        """Fetch a file in a task of its own, unless it is being fetched or the spider is closing.

        The task continues if a request that waits for it is cancelled. ``finish`` is called at its
        end, whatever happens.
        """
        if self.frontier.is_closing or key in self._fetches:
            return

        def end(result: FetchResult | Failure) -> None:
            self._fetches.pop(key, None)
            if isinstance(result, Failure):
                assert result.value is not None
                result = self.fetcher.unexpected(file, result.value)
            finish(result)

        ended = deferred_from_coro(fetch())
        self._fetches[key] = Fetch(file, ended, self._clock.monotonic())
        ended.addBoth(end).addErrback(self._log_failure, file)

    async def fetch_ended(self, key: str) -> None:
        """Return when the fetch in progress has ended, if there is one."""
        fetch = self._fetches.get(key)
        if fetch is not None:
            waiter: Deferred[None] = Deferred()
            fetch.ended.addBoth(lambda _: fire(waiter, None))
            await maybe_deferred_to_future(waiter)

    def _cancel(self, fetches: Iterable[Fetch]) -> None:
        # The others end already.
        cancelled = [fetch for fetch in fetches if not fetch.file.is_cancelled]
        for fetch in cancelled:
            fetch.file.is_cancelled = True
        for fetch in cancelled:
            fetch.ended.cancel()

    def _fetch(self, origin: Origin, page: Request) -> None:
        """Load or fetch the robots.txt of an origin."""
        found = Lookup()

        def finish(event: FetchResult) -> None:
            try:
                self._finish(origin, page, None if found.entry is not None else event, found)
            finally:
                self._stopped.discard(origin.key)
                host = self.frontier.known_host(origin.host)
                self.frontier.update_host(host)
                if host.active:
                    self._crawler.signals.send_catch_log(policy_changed, host=origin.host)
                self.evict()

        self.run(origin.key, origin, partial(self._load_or_fetch, origin, page, found), finish)

    async def _load_or_fetch(self, origin: Origin, page: Request, found: Lookup) -> FetchResult:
        """Return the result of a fetch. It has no meaning if the file came from the store."""
        event: FetchResult = Cancelled()
        if self.store is not None:
            await self.store.load(origin, found)
        content = origin.content
        if found.entry is None:
            fetch = self.fetcher.fetch(origin, page, self.is_wanted, may_probe=self._may_probe)
            event = await fetch
            content = event.content if isinstance(event, Rules) else None
        if content is not None:
            await self._on_content(content, page)
        return event

    def _may_probe(self, key: str, url: str) -> bool:
        """Whether pages of an origin have answered, so that a 5xx may stand for a missing file."""
        origin = self.files.get(key)
        if origin is None or not origin.has_pages or origin.is_probed:
            return False
        origin.is_probed = self.local_disallow(key, url) is None
        return origin.is_probed

    def _finish(
        self, origin: Origin, page: Request, event: FetchResult | None, found: Lookup
    ) -> None:
        """Note the result of a fetch. ``event`` is None if the file came from the store."""
        is_cancelled = isinstance(event, Cancelled)
        origin.in_flight = False
        if event is not None:
            origin.apply(event, self.now())
        elif found.entry is not None:
            origin.apply_entry(found.entry)
        if not is_cancelled:
            origin.record_answer(self._clock.monotonic())
        if event is not None and self.store is not None:
            entry = None
            try:
                if not is_cancelled:
                    entry = self.store.entry(origin, event, found)
            finally:  # the claim is released, whatever happens
                save = deferred_from_coro(self.store.save(origin, entry, found))
                save.addErrback(self._log_failure, origin)
        if is_cancelled:
            return
        body = event.body if isinstance(event, Rules) else found.body
        if self.bodies is not None and body is not None:
            self.bodies[origin.key] = body
        self.count_result(origin, event)
        self._on_result(origin, page, event, body)

    def count_result(self, file: OriginFile, event: FetchResult | None) -> None:
        """Count a fetch after which there are no rules."""
        if isinstance(event, (Unavailable, Unreachable)):
            kind = "unavailable" if isinstance(event, Unavailable) else "unreachable"
            self._stats.inc_value(f"{file.stats}/{kind}")
            if isinstance(event, Unavailable) and event.result is not AccessResult.UNAVAILABLE:
                self._stats.inc_value(f"{file.stats}/unavailable/{event.result}")

    def _log_failure(self, failure: Failure, file: OriginFile) -> None:
        is_cancelled = isinstance(failure.value, (asyncio.CancelledError, CancelledError))
        if not is_cancelled and not file.is_error_reported:
            file.is_error_reported = True
            logger.error(
                "Error in scrapy-rep while it handled the %(file)s of %(origin)s. Please report "
                "this bug.",
                {"file": file.name, "origin": file.key},
                exc_info=failure_to_exc_info(failure),
                extra={"spider": self._crawler.spider},
            )

    async def _on_content(self, content: RobotsTxt, page: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RepRobotParser(content), request=page
            )

    def _on_result(
        self, file: Origin, page: Request, event: FetchResult | None, body: bytes | None
    ) -> None:
        if isinstance(event, Unreachable) and file.state is State.UNREACHABLE and file.failures < 2:
            self._warn_of_outage(file, event)
        if self._events is not None:
            self._events.fetched(file, event, body)
        if file.state is State.UNAVAILABLE and file.unavailable != file.reported_unavailable:
            file.reported_unavailable = file.unavailable.value
            self._log_unavailable(file)
        self.states_usage = self.states_usage or self.may_state_usage(file)
        pacing, tokens = self.apply_pace(file, page), self.tokens(page)
        records = describe(file.content, tokens) if pacing and file.content else None
        if records is not None and records != file.reported_pace:
            file.reported_pace, seconds = records, self.seconds_between(pacing)
            logger.info(
                "The robots.txt of %(origin)s sets %(records)s. Requests to its host are at least "
                "%(seconds)s s apart now.",
                {"origin": file.key, "records": records, "seconds": f"{seconds:g}"},
                extra={"spider": self._crawler.spider},
            )
        if self._events is not None:
            self._events.paced(file, tokens, self.frontier.known_host(file.host).delay)

    def _log_unavailable(self, file: Origin) -> None:
        """Log that a site answers with something else than a robots.txt or a 404."""
        values = {"origin": file.key, "status": file.status, "url": file.url}
        extra = {"spider": self._crawler.spider}
        if file.unavailable is AccessResult.NOT_ROBOTS_TXT:
            logger.warning(
                "The robots.txt of %(origin)s is not a robots.txt, but a page without rules, such "
                "as that of a login or an error (status %(status)s, %(url)s). All requests to the "
                "site are allowed. To change that, set REP_NOT_ROBOTS = 'unreachable'.",
                values,
                extra=extra,
            )
        elif file.unavailable is AccessResult.CHALLENGE:
            logger.warning(
                "%(origin)s has a challenge for browsers instead of its robots.txt (status "
                "%(status)s, %(url)s). All requests to the site are allowed, but probably get the "
                "same challenge. Ask the owner of the site to let your crawler read robots.txt.",
                values,
                extra=extra,
            )
        elif file.unavailable is AccessResult.REFUSED:
            logger.info(
                "%(origin)s refuses access to its robots.txt (status %(status)s, %(url)s). All "
                "requests to the site are allowed (RFC 9309 §2.3.1.3). To change that, set "
                "REP_DISALLOW_STATUSES.",
                values,
                extra=extra,
            )

    def _warn_of_outage(self, file: Origin, event: Unreachable) -> None:
        if file.content is not None:
            effect = "Its last good copy is used"
        elif self._settings.on_unreachable == "allow":
            effect = "All requests to the site are allowed, because REP_ON_UNREACHABLE is 'allow'"
        elif self._settings.on_unreachable == "wait":
            seconds = file.refresh_at - self.now()
            effect = (
                f"Requests to the site wait up to {self._settings.max_wait:g} s (REP_MAX_WAIT), "
                f"then they are dropped. The next attempt is in {seconds:.0f} s"
            )
        else:
            status, remedy = event.status or 0, "REP_ON_UNREACHABLE = 'allow'"
            if event.failure == TOO_MANY_REDIRECTS:
                remedy = f"REP_ON_TOO_MANY_REDIRECTS = 'unavailable' or {remedy}"
            elif 200 <= status <= 299 and event.failure.endswith(NO_ROBOTS_TXT):
                remedy = f"REP_NOT_ROBOTS = 'unavailable' or {remedy}"
            elif 500 <= status <= 599:
                remedy = f"REP_5XX_AS_404_HOSTS = [{file.host!r}] or {remedy}"
            effect = (
                "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch "
                f"succeeds, for {self._settings.unreachable_days:g} days at most "
                f"(REP_UNREACHABLE_DAYS): then they are allowed. To allow them now, set {remedy}"
            )
        logger.warning(
            "The robots.txt of %(origin)s is unreachable: %(failure)s. %(effect)s.",
            {"origin": file.key, "failure": event.failure.rstrip("."), "effect": effect},
            extra={"spider": self._crawler.spider},
        )
