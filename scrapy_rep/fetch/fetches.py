"""The robots.txt of the origins of a crawl: from the store or from a fetch, and what they change.

All requests to an origin share a fetch. Its result is a value. It changes the origin, and the part
that needs it looks at the queues of the origin again.
"""

from __future__ import annotations

from functools import partial

from scrapy import Request, signals
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from ..origin import Action, Origin
from ..policies.policies import Policies
from ..protocol.access import Cancelled, FetchResult, Rules, Unreachable
from ..protocol.paths import ROBOTS_TXT, origin_of
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Reason, Verdict
from ..robotparser import RepRobotParser
from ..stores import Entry
from .fetcher import Fetcher, Parts
from .policy_store import PolicyStore

# Scrapy has this signal since 2.18.
_ROBOTS_PARSED = getattr(signals, "robots_parsed", None)


class Fetches:
    """The fetches of robots.txt files of one crawl."""

    def __init__(
        self, parts: Parts, fetcher: Fetcher, policies: Policies, store: PolicyStore | None
    ) -> None:
        self._crawler = parts.crawler
        self._clock = parts.clock
        self._closing = parts.closing
        self._recorder = parts.recorder
        self._demand = parts.demand
        self.fetcher = fetcher
        self._policies = policies
        self._origins = policies.origins
        self._store = store
        self.limit = fetcher.limit
        self.recent = fetcher.recent
        self._bodies: dict[str, bytes] | None = None

    def keep_bodies(self) -> dict[str, bytes]:
        """Keep good copies as they are received from now on. Returns where they are, by origin."""
        self._bodies = {}
        return self._bodies

    # Policies that can be used.

    def begin(self, key: str, request: Request) -> None:
        """Begin to fetch the robots.txt of an origin for a request, unless that is disallowed."""
        if self._policies.local_disallow(key, request.url) is not None:
            self._policies.stopped.add(key)
        else:
            self.usable(key, request)

    def usable(self, key: str, request: Request) -> Origin | None:
        """Return an origin whose policy can be used, else begin a fetch and return None.

        Also returns None if a fetch is due and the spider is closing, unless a caller waits for it.
        """
        origin = self._origins.find_or_add(key)
        action = self._policies.next_action(origin, self._demand.delay_of(origin.host))
        if action in (Action.REFRESH, Action.FETCH) and self._closing.may_wait(request):
            origin.start_fetch(self._policies.now())
            fetch = partial(self._load_or_fetch, origin, request)
            self.fetcher.start(origin, fetch, partial(self._finish, origin, request))
            # Twisted runs a coroutine at once, so the fetch may have ended already.
            action = origin.next_action(self._policies.now())
        return origin if action in (Action.NONE, Action.REFRESH) else None

    def attempt(self, host: str) -> int:
        """Return the last attempt of the fetches in progress from a host; 0 if there is none."""
        files = (fetch.file for fetch in self.fetcher.in_progress.values())
        return max((file.notes.attempt for file in files if file.host == host), default=0)

    def refresh(self, origin: Origin, request: Request) -> None:
        """Begin to fetch a robots.txt that is usable, if it is due for a refresh."""
        delay = self._demand.delay_of(origin.host)
        if self._policies.next_action(origin, delay) is Action.REFRESH:
            self.usable(origin.key, request)

    async def wait_for(
        self, key: str, request: Request, response: Response | None = None
    ) -> Origin | None:
        """Return an origin when its policy can be used; None if the spider closes first.

        This waits for the fetch only, not for the queue of the origin or the delay of its host.
        ``response`` is the response to the request, if that is what waits.
        """
        started_at = self._clock.monotonic()
        with self.fetcher.waiting(key, request, response):
            while (origin := self.usable(key, request)) is None:
                if not await self.fetcher.ended(key + ROBOTS_TXT):
                    break
                origin = self._origins.get(key)
                if origin is not None and origin.notes.answered_at >= started_at:
                    break  # even if it has expired since
            return origin

    async def verdict_on(
        self, url: str, request: Request, response: Response | None = None
    ) -> Verdict | None:
        """Return the verdict on a URL for the crawler of a request, when its robots.txt is known.

        Returns None for a scheme without robots.txt. See :meth:`wait_for`.
        """
        key, verdict = origin_of(url), self._policies.verdict_without_origin(url)
        if key is None or verdict is not None:
            return verdict
        origin = await self.wait_for(key, request, response)
        if origin is None:
            detail = "the spider closed before its robots.txt was known"
            return Verdict(False, Reason.UNREACHABLE, detail=detail)
        return self._policies.verdict(origin, url, self._policies.tokens(request))

    def evict(self) -> None:
        """Keep the memory of the origins within its limits."""
        awaited = {key for key, _ in self.fetcher.awaited}
        self._origins.evict(lambda key: key in awaited or self._demand.uses(key))

    # One fetch.

    async def _load_or_fetch(self, origin: Origin, page: Request) -> FetchResult | Entry:
        """Return the entry of the store that replaces a fetch, or the result of the fetch."""
        result: FetchResult | Entry | None
        result = await self._store.load(origin) if self._store is not None else None
        content = origin.content
        if result is None:
            result = await self.fetcher.fetch(origin, page)
            content = result.content if isinstance(result, Rules) else None
        if content is not None:
            await self._on_content(content, page)
        return result

    def _finish(self, origin: Origin, page: Request, result: FetchResult | Entry) -> None:
        policies = self._policies
        try:
            origin.apply(result, policies.now())
            if not isinstance(result, Cancelled):
                seconds = policies.seconds_after(origin, policies.tokens(page))
                origin.notes.answer(self._clock.monotonic(), seconds)
            body = self._save(origin, result)
            if not isinstance(result, Cancelled):
                self._on_result(origin, page, result, body)
        finally:
            policies.stopped.discard(origin.key)
            self._demand.update_origin(origin.host, origin.key)
            self.evict()

    def _save(self, origin: Origin, result: FetchResult | Entry) -> bytes | None:
        """Begin to save the result of a fetch, if it is new. Returns the good copy, if known."""
        if isinstance(result, Entry):
            return result.body
        entry: Entry | None = None
        if self._store is not None:
            try:
                entry = self._store.entry(origin, result)
            finally:  # the claim is released, whatever happens
                self._origins.keep(origin.key)
                saved = deferred_from_coro(self._store.save(origin, entry))
                saved.addBoth(self._on_saved, origin)
        return result.body if isinstance(result, Rules) else None if entry is None else entry.body

    def _on_saved(self, result: Failure | None, origin: Origin) -> None:
        self._origins.release(origin.key)
        if result is not None:
            self.fetcher.log_failure(result, origin)

    async def _on_content(self, content: RobotsTxt, page: Request) -> None:
        if _ROBOTS_PARSED is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=_ROBOTS_PARSED, robotparser=RepRobotParser(content), request=page
            )

    def _on_result(
        self, origin: Origin, page: Request, result: FetchResult | Entry, body: bytes | None
    ) -> None:
        policies, tokens = self._policies, self._policies.tokens(page)
        if self._bodies is not None and body is not None:
            self._bodies[origin.key] = body
        self._recorder.fetched(origin, result, body)
        if origin.content is not None:
            policies.note_content(origin.content)
        delay = policies.delay(origin, tokens)
        if delay is not None:
            self._demand.set_delay(origin.host, origin.key, delay)
        if isinstance(result, Unreachable) and origin.content is not None and result.retry_after:
            # Its good copy is used, once even if another fetch is due when that time has passed.
            origin.notes.answered_at += self._demand.hold(
                origin.host, origin.key, result.retry_after, result.status
            )
        host_delay = self._demand.delay_of(origin.host)
        self._recorder.paced(origin, tokens, delay or 0, host_delay)
