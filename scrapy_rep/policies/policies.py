"""The policies of a crawl: the robots.txt of each origin, and what it means for its requests.

:class:`PolicyCache` gives the verdicts on URLs. It tells the frontier which requests may start, and
sets the delays of hosts. A policy is in memory, or comes from the store or from a fetch, which all
requests to an origin share. Local rules (REP_LOCAL_RULES) are a part of each policy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from math import inf
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from ..clock import Clock
from ..fetch.fetcher import Fetcher
from ..fetch.outcome_log import log_outcome
from ..fetch.policy_store import open_policy_store
from ..fetch.tdm_files import TdmFiles
from ..frontier.frontier import Frontier
from ..frontier.reservation import Reservations
from ..logs import get_logger
from ..origin import Action, Origin, State, UnreachablePolicy
from ..protocol.access import Cancelled, FetchResult, Rules
from ..protocol.agents import parse_user_agent
from ..protocol.paths import ROBOTS_TXT, host_of, lacks_host, origin_of, path_of
from ..protocol.records import Pacing, describe
from ..protocol.robotstxt import RobotsTxt
from ..protocol.tdmrep import TdmRule
from ..protocol.verdict import Reason, Verdict
from ..robotparser import RepRobotParser
from ..scrapy_internals import WATCH_INTERVAL, Engine
from ..settings import DONT_OBEY, IS_ROBOTSTXT_REQUEST, Settings
from ..stores.claims import Lookup
from .gate import (
    DROPS,
    READY,
    UNKNOWN,
    Address,
    Gate,
    Kind,
    Now,
    Place,
    Terms,
    next_action,
    pacing_of,
    policy_gate,
)
from .origins import FileTable

if TYPE_CHECKING:  # what most crawls do not import
    from ..reports.archive import Archive
    from ..reports.event_log import CrawlLog
    from .local_rules import LocalRulesFile

logger = get_logger(__name__)

MAX_CACHED_AGENTS = 256
"""How many User-Agent headers are cached with their tokens. A crawl that rotates its headers uses
fewer."""

# Scrapy has this signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


@lru_cache(maxsize=10_000)
def _address(origin: str) -> Address:
    """Return the address of ordinary requests to an origin."""
    return Address(host_of(origin), origin)


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
        self.evict = partial(self.files.evict, self._is_in_use)
        """Keeps the memory of the origins within its limits."""
        self.origin_for: WeakKeyDictionary[Request, Origin] = WeakKeyDictionary()
        """The origins of requests in progress that may state something about their responses.
        REP_CACHE_SIZE may remove an origin from memory before the last response arrives."""
        self.states_usage = False
        """Whether a robots.txt of this crawl may state a usage of its pages."""
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
        self._terms = Terms(
            self._unreachable_policy,
            settings.on_unreachable == "wait",
            settings.max_wait,
            settings.obey_rate_limits,
        )
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
        self.fetcher = Fetcher(
            crawler,
            settings,
            self.frontier,
            shared=shared is not None,
            record=archive.record if archive is not None else None,
        )
        self.can_fetch = self.fetcher.limit.can_begin
        """Returns whether one more fetch may begin now (REP_CONCURRENT_ROBOTSTXT_REQUESTS)."""
        self.recent_fetches = self.fetcher.recent
        self.tdm_files = TdmFiles(crawler, self) if settings.tdmrep else None
        """The TDM files of the crawl. None without REP_TDMREP."""
        self._looping = create_looping_call(self.poll)

    # Policies in memory.

    def get_fresh(self, key: str) -> Origin | None:
        """Return an origin whose file is parsed and fresh, else None. This is the hot path."""
        origin = self._parsed.get(key)
        if origin is None or self.now() >= origin.refresh_at:
            return None
        self._parsed.move_to_end(key)
        return origin

    def get_or_fetch(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy can be used, else start a fetch and return None.

        Also returns None if a fetch is due and the spider is closing, unless a caller waits for it.
        """
        origin = self.files.find_or_add(key)
        action = self._next_action(origin)
        if action in (Action.REFRESH, Action.FETCH) and self.frontier.may_wait(request):
            origin.start_fetch(self.now())
            found = Lookup()
            fetch = partial(self._load_or_fetch, origin, request, found)
            self.fetcher.start(origin, fetch, partial(self._finish, origin, request, found))
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
        with self.fetcher.waiting(key, request, response):
            while (origin := self.get_or_fetch(key, request)) is None:
                if not await self.fetcher.ended(key + ROBOTS_TXT):
                    break
                origin = self.files.get(key)
                if origin is not None and origin.answered_at >= started_at:
                    break  # even if it has expired since
            return origin

    async def verdict_on(
        self, url: str, request: Request, response: Response | None = None
    ) -> Verdict | None:
        """Return the verdict on a URL for the crawler of a request, when its robots.txt is known.

        Returns None for a scheme without robots.txt. See :meth:`wait_for`.
        """
        key = origin_of(url)
        if key is None:
            return Verdict(False, Reason.INVALID_HOST) if lacks_host(url) else None
        local = self.local_disallow(key, url)
        if local is not None:  # its robots.txt is not fetched
            return local
        origin = await self.wait_for(key, request, response)
        if origin is None:
            detail = "the spider closed before its robots.txt was known"
            return Verdict(False, Reason.UNREACHABLE, detail=detail)
        return self.verdict(origin, url, self.tokens(request))

    def _is_in_use(self, key: str) -> bool:
        """Whether an origin has to be kept in memory."""
        is_queued = bool(self.frontier.places(host_of(key), key) - {Place.UNKNOWN})
        is_needed = is_queued or any(key == each for each, _ in self.fetcher.awaited)
        return is_needed or any(each.origin == key for each in self.frontier.in_progress.values())

    # Verdicts.

    def tokens(self, request: Request) -> tuple[str, ...]:
        """Return the product tokens of the crawler for a request, in order of preference."""
        headers = request.headers
        # Names have this form in `Headers`. Its own `in` brings a name to this form first, which
        # takes five times as long.
        is_set = b"User-Agent" in headers.keys()  # noqa: SIM118
        return self._tokens(headers[b"User-Agent"] if is_set else None)

    @cached_property
    def _crawl_tokens(self) -> tuple[str, ...]:
        """The product tokens for requests without a User-Agent header of their own."""
        return parse_user_agent(self._settings.user_agent(None)).tokens

    def verdict(self, origin: Origin, url: str, tokens: tuple[str, ...]) -> Verdict:
        """Return the verdict of an origin on a URL for a crawler with these product tokens."""
        now, policy, rules = self.now(), self._unreachable_policy, self.local_rules
        if rules is not None:
            decide = partial(origin.verdict_on, agents=tokens, now=now, unreachable=policy)
            return rules.verdict(origin.key, url, self._clock.time(), decide)
        return origin.verdict(url, tokens, now, policy)

    def known_site_verdict(self, request: Request) -> Verdict | None:
        """Return what robots.txt says about a request, without local rules. None if unknown."""
        origin = self.files.get(origin_of(request.url) or "")
        no_rules = State.UNAVAILABLE, State.UNREACHABLE
        if origin is None or (origin.content is None and origin.state not in no_rules):
            return None
        tokens = self.tokens(request)
        return origin.verdict(request.url, tokens, self.now(), self._unreachable_policy)

    def local_disallow(self, key: str, url: str) -> Verdict | None:
        """Return the verdict of a local rule that disallows a URL of an origin, or None."""
        rules = self.local_rules
        return rules.disallowed(key, url, self._clock.time()) if rules is not None else None

    def _parse_agent(self, header: bytes | None) -> tuple[str, ...]:
        """Return the product tokens for a User-Agent header. Warn of an unclear one, once."""
        user_agent = self._settings.user_agent(header)
        parsed = parse_user_agent(user_agent)
        problem = parsed.problem(user_agent)
        if problem is not None:
            self._stats.inc_value("robotstxt/ambiguous_user_agent_count")
        if problem is not None and not self._has_warned_of_agent:
            self._has_warned_of_agent = True
            logger.warning(
                "The product token for robots.txt is unclear: %(problem)s. Set "
                "ROBOTSTXT_USER_AGENT to the product token of your crawler. The stat "
                "robotstxt/ambiguous_user_agent_count counts other user agents like this one.",
                {"problem": problem},
                extra={"spider": self._crawler.spider},
            )
        return parsed.tokens

    # What the frontier asks.

    def address(self, request: Request) -> Address:
        """Return which queue a request belongs to."""
        meta, url = request.meta, request.url
        key = origin_of(url)
        if key is None:
            return Address("", None, Kind.EXEMPT)
        rules = self.local_rules
        is_robots_txt = url.endswith(ROBOTS_TXT) and path_of(url) == ROBOTS_TXT
        tokens = None
        if b"User-Agent" in request.headers.keys():  # noqa: SIM118 - see tokens()
            own = self.tokens(request)
            tokens = None if own == self._crawl_tokens else own
        is_usual = not (DONT_OBEY in meta or "download_slot" in meta or is_robots_txt)
        if is_usual and rules is None and tokens is None:
            return _address(key)
        host, slot = host_of(key), meta.get("download_slot")
        if slot == host:  # Scrapy notes it in requests that were sent
            slot = None
        kind = Kind.OBEY
        if meta.get(DONT_OBEY) and meta.get(IS_ROBOTSTXT_REQUEST):
            kind = Kind.ROBOTS_TXT
        elif self.local_disallow(key, url) is not None:
            kind = Kind.DISALLOWED
        elif meta.get(DONT_OBEY):
            kind = Kind.EXEMPT
        elif is_robots_txt or (rules and rules.excepts(key, url, self._clock.time())):
            kind = Kind.EXCEPTED
        return Address(host, key, kind, slot, tokens)

    def gate(self, address: Address, judge: Callable[[Origin], Verdict] | None = None) -> Gate:
        """Return what the policy of an origin means for a queue. Starts nothing.

        With ``judge``, which returns the verdict on its URL, the answer is for a request.
        """
        key, kind = address.origin, address.kind
        if key is None or kind is Kind.EXEMPT or kind is Kind.ROBOTS_TXT:
            return READY
        if kind is Kind.DISALLOWED:
            return DROPS
        origin = self._parsed.get(key) or self.files.get(key)
        tokens = self._crawl_tokens if address.tokens is None else address.tokens
        has_rules = origin is not None and origin.content is not None
        if judge is None and origin is not None and has_rules and self.now() < origin.refresh_at:
            pacing = pacing_of(origin, tokens, self._terms) if origin.has_pacing else None
            if pacing is None or pacing.hours is None:
                return READY  # the usual case
        delay = self.frontier.known_host(address.host).delay
        gate = policy_gate(origin, kind, tokens, delay, self._moment(), self._terms, judge)
        return DROPS if gate is UNKNOWN and judge is None and key in self._stopped else gate

    def _moment(self) -> Now:
        return Now(self.now(), self._clock.monotonic(), self._clock.time())

    def _next_action(self, origin: Origin) -> Action:
        """Return what must be done before an origin can answer a request now."""
        delay = self.frontier.known_host(origin.host).delay
        return next_action(origin, False, delay, self._moment(), self._terms)

    def fetch(self, origin: str, request: Request) -> None:
        """Begin to fetch the robots.txt of an origin for a request, unless that is disallowed."""
        if self.local_disallow(origin, request.url) is not None:
            self._stopped.add(origin)
            return
        self.get_or_fetch(origin, request)

    def refresh(self, origin: Origin, request: Request) -> None:
        """Begin to fetch a robots.txt that is usable, if it is due for a refresh."""
        if self.now() >= origin.refresh_at and self._next_action(origin) is Action.REFRESH:
            self.get_or_fetch(origin.key, request)

    def delay(self, key: str | None) -> float:
        """Return the delay that is already known for an origin, in seconds; 0 if there is none."""
        origin = self.files.get(key or "")
        return self.seconds_between(origin.last_pacing) if origin is not None else 0

    # What origins state about the use of their pages.

    def note_use(self, request: Request, origin: Origin) -> None:
        """Keep an origin that may state a usage of the response to a request, until that ends."""
        if origin.content is not None and origin.content.has_usage:
            self.origin_for[request] = origin

    def stated_usage(self, response: Response) -> tuple[RobotsTxt | None, TdmRule | None]:
        """Return the robots.txt that states a usage of a page, and the rule of its TDM file.

        They are those that the request of the page knew, or else those in memory.
        """
        if not self.states_usage and self.tdm_files is None:  # the usual case
            return None, None
        key, request = origin_of(response.url), response.request
        origin = None if request is None else self.origin_for.get(request)
        if origin is None or origin.key != key:
            origin = self.files.get(key or "")
        if origin is None:
            return None, None
        robots, tdm = origin.content, origin.tdm.content if origin.tdm is not None else None
        has_usage = robots is not None and robots.has_usage
        return robots if has_usage else None, None if tdm is None else tdm.rule(response.url)

    # The pace of hosts.

    def apply_pace(self, origin: Origin, request: Request) -> Pacing | None:
        """Set the delay of the host of an origin, as it holds for the crawler of a request.

        Returns the pace that the robots.txt sets; None if it sets none, or if it is unknown.
        """
        if origin.content is None and origin.state is State.UNREACHABLE:
            return None  # the last known delay still applies
        pacing = pacing_of(origin, self.tokens(request), self._terms)
        self.frontier.set_delay(origin.host, origin.key, self.seconds_between(pacing))
        return pacing

    def seconds_between(self, pacing: Pacing | None) -> float:
        """Return the delay that a robots.txt sets, in seconds; 0 if it sets none."""
        if pacing is None or not self._settings.obey_rate_limits:
            return 0
        return min(pacing.seconds_between(self._clock.time()), self._settings.max_crawl_delay)

    # The crawl.

    def open(self) -> None:
        """Begin to call :meth:`poll` twice a second: the spider is open."""
        self._engine.open()
        self.poll()
        self._looping.start(WATCH_INTERVAL, now=False)

    def poll(self) -> None:
        """Do the work that no request causes. A job that fails does not prevent the others."""
        jobs = {
            "read REP_LOCAL_RULES": self._reload_rules,
            "limit the memory of origins": self._limit_memory,
            "renew the claims of the store": self._renew_claims,
            "look whether the spider closes": self._look_for_the_end,
            "end requests that other middlewares have dropped": self.frontier.collect_ended,
            "start what other middlewares wait for": self.frontier.waiting.start_beside_kept,
            "end fetches that take long": self.fetcher.poll,
        }
        for job, do in jobs.items():
            try:
                do()
            except Exception:
                logger.exception(
                    "A periodic job of the crawl has failed, and is tried again: %(job)s",
                    {"job": job},
                    extra={"spider": self._crawler.spider},
                )

    def _reload_rules(self) -> None:
        if self.local_rules is not None and self.local_rules.reload(self._crawler.spider):
            self._stats.inc_value("robotstxt/local_rules_reloads")
            self._stopped.clear()

    def _limit_memory(self) -> None:
        self.files.measure()
        self.evict()

    def _renew_claims(self) -> None:
        if self.store is not None:
            deferred_from_coro(self.store.claims.renew())

    def _look_for_the_end(self) -> None:
        if self._engine.is_closing:
            if self.frontier.is_closing:  # a response that has just arrived had its time
                self.fetcher.cancel(unwanted=self.frontier.may_callers_wait)
            self.frontier.close(self._settings.max_wait)

    def close(self) -> None:
        """End all fetches and all waiting in the downloader: the spider closes."""
        if self._looping.running:
            self._looping.stop()
        self.fetcher.cancel()
        self.frontier.close()

    # Fetches.

    async def _load_or_fetch(self, origin: Origin, page: Request, found: Lookup) -> FetchResult:
        """Return the result of a fetch. It has no meaning if the file came from the store."""
        event: FetchResult = Cancelled()
        if self.store is not None:
            await self.store.load(origin, found)
        content = origin.content
        if found.entry is None:
            event = await self.fetcher.fetch(origin, page)
            content = event.content if isinstance(event, Rules) else None
        if content is not None:
            await self._on_content(content, page)
        return event

    def _finish(self, origin: Origin, page: Request, found: Lookup, event: FetchResult) -> None:
        """Note the result of a fetch, which has no meaning if the file came from the store."""
        result = event if found.entry is None else None
        try:
            if found.entry is not None:
                origin.apply_entry(found.entry)
            else:
                origin.apply(event, self.now())
            if not isinstance(result, Cancelled):
                origin.record_answer(self._clock.monotonic(), self._wait_after(origin, page))
            if result is not None and self.store is not None:
                entry = None
                try:
                    if not isinstance(result, Cancelled):
                        entry = self.store.entry(origin, result, found)
                finally:  # the claim is released, whatever happens
                    save = deferred_from_coro(self.store.save(origin, entry, found))
                    save.addErrback(self.fetcher.log_failure, origin)
            if not isinstance(result, Cancelled):
                self._on_result(origin, page, result, found.body)
        finally:
            self._stopped.discard(origin.key)
            self.frontier.update_origin(origin.host, origin.key)
            self.evict()

    def _wait_after(self, origin: Origin, page: Request) -> float:
        """Return how long requests wait after the last answer. Infinity: until the next one."""
        if origin.state is State.UNREACHABLE and origin.content is None:
            return inf if self._settings.on_unreachable == "wait" else 0
        pacing = pacing_of(origin, self.tokens(page), self._terms)
        return pacing.seconds_until_visit_time(self._clock.time()) if pacing is not None else 0

    async def _on_content(self, content: RobotsTxt, page: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RepRobotParser(content), request=page
            )

    def _on_result(
        self, file: Origin, page: Request, event: FetchResult | None, body: bytes | None
    ) -> None:
        body = event.body if isinstance(event, Rules) else body
        if self.bodies is not None and body is not None:
            self.bodies[file.key] = body
        log_outcome(file, event, self._settings, self.now(), self._crawler.spider)
        self.states_usage |= file.content is not None and file.content.has_usage
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
            self._events.fetched(file, event, body)
            self._events.paced(file, tokens, self.frontier.known_host(file.host).delay)
