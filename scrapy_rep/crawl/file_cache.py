"""Files of the origins of a crawl: in memory, from the store, or from a fetch.

All requests to an origin share one fetch.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.log import failure_to_exc_info
from twisted.internet.defer import CancelledError, Deferred

from ..frontier.clock import fire
from ..logs import get_logger
from ..origin import Action, OriginFile
from ..protocol.access import AccessResult, Cancelled, Rules, Unavailable, Unreachable
from .file_table import FileTable
from .policy_store import StoreLookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from ..fetch.fetcher import Fetcher
    from ..frontier.clock import Clock
    from ..frontier.engine import Engine
    from ..protocol.access import FetchResult
    from ..settings import Settings
    from .policy_store import PolicyStore

logger = get_logger(__name__)

File = TypeVar("File", bound=OriginFile[Any])


class Fetch(NamedTuple):
    """A fetch in progress."""

    file: OriginFile[Any]
    ended: Deferred[None]


class FileCache(Generic[File]):
    """One file of this type for each origin of a crawl, such as its robots.txt."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        clock: Clock,
        fetcher: Fetcher,
        policy_store: PolicyStore | None,
        file_type: type[File],
    ) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings
        self._engine = engine
        self._clock = clock
        self.now = clock.steady
        """Returns the time on the clock that the times of all files refer to."""
        self._fetcher = fetcher
        self._policy_store = policy_store
        self._files = FileTable(settings.cache_size, file_type)
        self._parsed = self._files.parsed
        self._fetches: dict[str, Fetch] = {}
        self._waiting_responses: Counter[str] = Counter()
        """How many responses wait for the file of an origin, which is that of their final URL."""
        self._closing = False
        self.bodies: dict[str, bytes] | None = None
        """The good copies by origin, as they were received. None: they are not kept, as in a crawl.
        """

    @property
    def files(self) -> Mapping[str, File]:
        """The files in memory, by the normal form of their origin. Read-only."""
        return self._files

    def get_fresh(self, key: str) -> File | None:
        """Return a file that is parsed and fresh, else None. This is the hot path."""
        file = self._parsed.get(key)
        if file is None or self.now() >= file.refresh_at:
            return None
        self._parsed.move_to_end(key)
        return file

    def get_or_fetch(self, key: str, request: Request) -> File | None:
        """Return a file that can be used, else start a fetch and return None.

        Also returns None if the file has to be fetched and the spider is closing.
        """
        if key not in self._files:
            self.evict(reserve=1)
        file = self._files.find_or_add(key)
        action = self._next_action(file, request)
        if action in (Action.REFRESH, Action.FETCH):
            self._start_fetch(file, request)
            # Twisted runs the coroutine at once, so the fetch may have ended already.
            if action is Action.FETCH:
                action = Action.WAIT if file.in_flight else file.next_action(self.now())
        return file if action in (Action.NONE, Action.REFRESH) else None

    async def wait_for(
        self, key: str, request: Request, response: Response | None = None
    ) -> File | None:
        """Return a file when it can be used; None if the spider closes first.

        This waits for the fetch only, not for the queue of the origin or the delay of its host.
        ``response`` is the response to the request, if that is what waits.
        """
        self._waiting_responses[key] += 1
        if response is not None:
            self._engine.exclude_response(request, response)
        started_at = self._clock.monotonic()
        try:
            while (file := self.get_or_fetch(key, request)) is None:
                fetch = self._fetches.get(key)
                if fetch is None:
                    break
                waiter: Deferred[None] = Deferred()
                fetch.ended.addBoth(_notify, waiter)
                await maybe_deferred_to_future(waiter)
                file = self._files.get(key)
                if file is not None and file.answered_at >= started_at:
                    break  # even if it has expired since
            return file
        finally:
            if response is not None:
                self._engine.include(request)
            self._waiting_responses[key] -= 1
            if not self._waiting_responses[key]:
                del self._waiting_responses[key]

    def is_wanted(self, key: str) -> bool:
        """Whether a request or a response waits for the file of an origin."""
        return key in self._waiting_responses

    async def may_fetch(self, page: Request, url: str) -> bool:  # noqa: ARG002
        """Whether a URL may be fetched for a page."""
        return True

    def may_probe(self, key: str, url: str) -> bool:  # noqa: ARG002
        """Whether pages of an origin have answered, so that a 5xx may stand for a missing file."""
        return False

    def _is_in_use(self, key: str) -> bool:
        """Whether the file of an origin has to be kept in memory."""
        return key in self._fetches or key in self._waiting_responses

    def _next_action(self, file: File, request: Request) -> Action:  # noqa: ARG002
        """Return what must be done before a request can use a file."""
        return file.next_action(self.now())

    def close(self) -> None:
        """Cancel all fetches, and start no more: the spider is closing."""
        self._closing = True
        self._cancel(self._fetches)

    def cancel_background_fetches(self) -> None:
        """Cancel the fetches for which no request waits. They would keep the crawl open."""
        self._cancel(key for key in self._fetches if not self.is_wanted(key))

    def _cancel(self, keys: Iterable[str]) -> None:
        for key in tuple(keys):
            fetch = self._fetches[key]
            if not fetch.file.is_cancelled:  # else it ends already
                fetch.file.is_cancelled = True
                fetch.ended.cancel()

    def _start_fetch(self, file: File, page: Request) -> None:
        if self._closing:
            return
        file.start_fetch(self.now())
        fetch = deferred_from_coro(self._fetch(file, page))
        fetch.addErrback(self._log_failure, file)
        if file.in_flight:
            self._fetches[file.key] = Fetch(file, fetch)

    async def _fetch(self, file: File, page: Request) -> None:
        """Load or fetch a file.

        This runs in a task of its own. It continues if a request that waits for it is cancelled.
        """
        event: FetchResult = Cancelled()
        found = StoreLookup()
        try:
            event = await self._load_or_fetch(file, page, found)
        except BaseException as error:
            event = self._fetcher.unexpected(file, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._fetches.pop(file.key, None)
            try:
                self._finish(file, page, None if found.is_hit else event, found)
            finally:
                self._on_end(file)
                self._files.count(file)
                self.evict()

    async def _load_or_fetch(self, file: File, page: Request, found: StoreLookup) -> FetchResult:
        """Return the result of a fetch. It has no meaning if the file came from the store."""
        event: FetchResult = Cancelled()
        if self._policy_store is not None:
            await self._policy_store.load(file, found)
        if found.is_hit:
            content = file.content
        else:
            event = await self._fetcher.fetch(file, page, self)
            content = event.content if isinstance(event, Rules) else None
        if content is not None:
            await self._on_content(content, page)
        return event

    def _finish(
        self, file: File, page: Request, event: FetchResult | None, found: StoreLookup
    ) -> None:
        """Note the result of a fetch, which is final even if a later step fails.

        ``event`` is None if the file came from the store.
        """
        is_cancelled = isinstance(event, Cancelled)
        file.in_flight = False
        if event is not None:
            file.apply(event, self.now())
        elif found.entry is not None:
            file.apply_entry(found.entry)
        if not is_cancelled:
            age = max(self.now() - file.fetched_at, 0) if event is None else None
            file.record_answer(self._clock.monotonic(), age)
        if event is not None:
            self._save(file, event, found)
        if is_cancelled:
            return
        body = event.body if isinstance(event, Rules) else found.body
        if self.bodies is not None and body is not None:
            self.bodies[file.key] = body
        if isinstance(event, (Unavailable, Unreachable)):
            kind = "unavailable" if isinstance(event, Unavailable) else "unreachable"
            self._stats.inc_value(f"{file.resource.stats}/{kind}")
            if isinstance(event, Unavailable) and event.result is not AccessResult.UNAVAILABLE:
                self._stats.inc_value(f"{file.resource.stats}/unavailable/{event.result}")
        self._on_result(file, page, event, body)

    async def _on_content(self, content: Any, page: Request) -> None:
        """Called with a file that was just parsed, before it is used."""

    def _on_result(
        self, file: File, page: Request, event: FetchResult | None, body: bytes | None
    ) -> None:
        """Called when a fetch for a page has ended, unless it was cancelled.

        ``event`` is None if the file came from the store. ``body`` is the file as it was received;
        None if none was received.
        """

    def _on_end(self, file: File) -> None:
        """Called when a fetch has ended."""

    def _save(self, file: File, event: FetchResult, found: StoreLookup) -> None:
        """Save the result of a fetch in the store, in a task of its own."""
        if self._policy_store is None:
            return
        entry = None
        try:
            if not isinstance(event, Cancelled):
                entry = self._policy_store.entry(file, event, found)
        finally:  # the claim is released, whatever happens
            save = deferred_from_coro(self._policy_store.save(file, entry, found))
            save.addErrback(self._log_failure, file)

    def _log_failure(self, failure: Failure, file: File) -> None:
        is_cancelled = isinstance(failure.value, (asyncio.CancelledError, CancelledError))
        if not is_cancelled and not file.is_error_reported:
            file.is_error_reported = True
            logger.error(
                "Error in scrapy-rep while it handled the %(file)s of %(origin)s. Please report "
                "this bug.",
                {"file": file.resource.name, "origin": file.key},
                exc_info=failure_to_exc_info(failure),
                extra={"spider": self._crawler.spider},
            )

    def evict(self, reserve: int = 0) -> None:
        """Keep the memory of the files within its limits. See :meth:`FileTable.evict`."""
        self._files.evict(self._is_in_use, reserve)


def _notify(result: None, waiter: Deferred[None]) -> None:
    """Resume a coroutine that waits for a fetch, which has ended."""
    fire(waiter, None)
    return result
