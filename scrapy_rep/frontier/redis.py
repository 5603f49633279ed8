"""A scheduler whose requests are in Redis, for the workers of one crawl (SCHEDULER).

What Scrapy calls only touches memory. One task makes the calls to Redis, as :mod:`~.shared_queue`
says. It leases a few times what the worker can start. The frontier of the crawl says which of these
requests start, as it does in a crawl of one process: a host belongs to one worker at a time, so its
delay, its back-off and its concurrency hold for all workers.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from redis import RedisError
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.request import request_from_dict
from twisted.internet.defer import Deferred

from ..exceptions import SettingError
from ..logs import plural, spider_logger
from ..policies.gate import Place
from ..scrapy_internals import Engine
from ..settings import read_queue_settings
from ..startup import abort_on_setting_error
from ..stores.base import StoreError
from ..stores.redis_url import RedisURL, clients
from .leased import NO_HOST, LeasedQueues, PlainQueue
from .queued import OutputObserver, find_frontier
from .shared_queue import Answer, Push, SharedQueue, State

if TYPE_CHECKING:
    from typing_extensions import Self

INTERVAL = 0.01
"""Seconds between two calls, at least. Meanwhile, what the next one says is collected."""

POLL = 1.0
"""Seconds after which a worker asks what others have pushed, if it could start more."""

LONGEST_PAUSE = 4.0
"""Seconds after which a worker asks which hosts an operator holds, and renews its lease if half of
that is over: they have to be less than half of a lease."""

RETRY_INTERVAL = 0.5
"""Seconds between two attempts at a Redis that does not answer."""

TIMEOUT = 10.0
"""Seconds for which a worker tries to reach Redis at its start, and at its end."""

MAX_SEEN = 50_000
"""How many of its last fingerprints a worker knows: links that are on each page need no call."""


class Scheduler(BaseScheduler):
    """A class for SCHEDULER. The workers of a crawl share its requests, and lose none.

    Needs REDIS_URL, or a Redis as REP_STORE, and asyncio. Raises
    :class:`~scrapy_rep.exceptions.SettingError` if a setting is unusable or Redis does not answer.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._seen: dict[bytes, None] = {}
        self._is_settled = False
        """Whether this worker has nothing to do, as Redis has confirmed."""
        self._is_away = self._is_closed = False
        self._next_poll = 0.0
        self._task: asyncio.Future[None] | None = None

    # What Scrapy calls.

    def open(self, spider: Spider) -> Deferred[None]:
        """Connect to Redis, and begin to lease requests. Raises SettingError if that fails."""
        self._spider = spider
        self._logger = spider_logger(__name__, spider)
        # Not earlier: an exception of the constructor would be replaced by one of Scrapy's.
        with abort_on_setting_error(self._crawler):
            self._settings = settings = read_queue_settings(self._crawler)
            self._serializer: Any = import_module(settings.serializer)
            try:
                self._url = RedisURL(settings.redis_url)
                client = self._url.client(asynchronous=True)
            except StoreError as error:
                raise SettingError(f"{settings.redis_url_name}: {error}") from None
        self.shared = SharedQueue(client, self._url.prefix, settings.queue_key, settings.turn)
        assert self._crawler.request_fingerprinter is not None
        self._fingerprint = self._crawler.request_fingerprinter.fingerprint
        self._said = asyncio.Event()
        """Set when there is something to say to Redis."""
        self.frontier = find_frontier(self._crawler)
        self._leased = self._leased_requests()
        self._crawler.signals.connect(self._on_idle, signals.spider_idle)
        return deferred_from_coro(self._open())

    def _leased_requests(self) -> LeasedQueues | PlainQueue:
        if self.frontier is None:
            self._engine = Engine(self._crawler)
            self._engine.open()
            self._logger.info(
                "This crawl does not obey robots.txt: the requests in Redis start in the order of "
                "their priority, whatever their hosts are."
            )
            return PlainQueue(self.shared, self._settings.concurrent_requests)
        self._engine = self.frontier.engine
        if self._crawler.get_spider_middleware(OutputObserver) is None:
            self._logger.warning(
                "The spider middleware scrapy_rep.PageDirectivesMiddleware is missing: while "
                "Redis is away, the requests of all pages in progress are kept in memory, "
                "without a limit. Add it to SPIDER_MIDDLEWARES, or use scrapy_rep.Addon."
            )
        return LeasedQueues(self.frontier, self.shared)

    def enqueue_request(self, request: Request) -> bool:
        """Push a request with the next call. Returns False if this worker has pushed it before.

        If another worker has, that is known later, and counted in ``dupefilter/filtered``.
        """
        fingerprint = b"" if request.dont_filter else self._fingerprint(request)
        if fingerprint in self._seen:
            self._stats.inc_value("dupefilter/filtered")
            return False
        host, is_new = NO_HOST, False
        if self.frontier is not None:
            address = self.frontier.accept(request)
            host = address.host
            is_new = self.frontier.policies.gate(address, 0).place is Place.UNKNOWN
        self._is_settled = False
        try:
            body = self._serializer.dumps(request.to_dict(spider=self._spider))
        except Exception as error:
            self._logger.warning(
                "A request cannot be stored in Redis, and is kept in memory: %(request)s "
                "(%(error)s)",
                {"request": request, "error": error},
            )
            self._stats.inc_value("scheduler/unserializable")
            self._leased.add(b"", request)
            return True
        if fingerprint:
            self._seen[fingerprint] = None
            if len(self._seen) > MAX_SEEN:
                del self._seen[next(iter(self._seen))]
        self.shared.push(Push(fingerprint, host, is_new, request.priority, body))
        self._leased.note_push(host)
        self._said.set()
        return True

    def next_request(self) -> Request | None:
        """Return a request that may start; None if there is none at this time."""
        self._said.set()  # a request may have ended
        if self.shared.is_full or not self.shared.is_leased:
            return None
        request = self._leased.pop()
        if request is not None:
            self._is_settled = False
            self._stats.inc_value("scheduler/dequeued/redis")
        return request

    def has_pending_requests(self) -> bool:
        """Whether this worker has something to do, or Redis has requests that nobody has."""
        return not self._is_closed and (not self._is_settled or self.shared.sizes.waiting > 0)

    def __len__(self) -> int:
        return self.shared.sizes.waiting + self.shared.kept + self._leased.size

    def close(self, reason: str) -> Deferred[None]:  # noqa: ARG002
        """Push what is kept, return what is leased, and end the connection."""
        return deferred_from_coro(self._close())

    def _on_idle(self) -> None:
        if self.shared.sizes.all and not self._is_closed:  # other workers have requests in progress
            raise DontCloseSpider

    # The task that makes the calls.

    async def _open(self) -> None:
        shared, until = self.shared, monotonic() + TIMEOUT
        while True:
            try:
                if self._settings.flush_on_start:
                    await shared.delete()
                foreign = await shared.foreign_requests()
                await shared.open()
                break
            except RedisError as error:
                if monotonic() > until:
                    with abort_on_setting_error(self._crawler):
                        text = f"Redis does not answer: {self._url.message(error)}"
                        raise SettingError(f"{self._settings.redis_url_name}: {text}") from None
                await asyncio.sleep(RETRY_INTERVAL)
        if foreign:
            self._logger.warning(
                "Another scheduler or another version of scrapy-rep has stored %(count)s in Redis "
                "at %(key)s. This crawl ignores what is stored there.",
                {"count": plural(foreign, "request"), "key": shared.key},
            )
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while not self._is_closed:
            pause = min(self._next_poll - monotonic(), LONGEST_PAUSE)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._said.wait(), max(pause, INTERVAL))
            await asyncio.sleep(INTERVAL)
            self._said.clear()
            try:
                await self._talk()
            except Exception:
                self._logger.exception("The task of the queue in Redis has failed, and goes on.")
                await asyncio.sleep(RETRY_INTERVAL)

    async def _talk(self, *, closing: bool = False) -> bool:
        """Make the next call, if it is needed. Returns whether Redis has answered."""
        shared, leased = self.shared, self._leased
        for request in [each for each in leased.started if self._engine.has_ended(each)]:
            shared.acknowledge(leased.started.pop(request))
        wanted = leased.settle(closing=closing)
        is_needed = closing or shared.is_due or shared.has(wanted)
        if not is_needed and monotonic() < self._next_poll:
            return True
        try:
            answer = await shared.call(wanted)
            self._note_return()
            if answer.state is State.OK:
                self._accept(answer, wanted.requests)
                if answer.dead:
                    await self._replace(answer.dead)
            elif answer.state is State.LOST:
                self._end()
            else:
                await self._begin_again(answer)
        except RedisError as error:
            self._note_outage(error)
            self._said.set()
            await asyncio.sleep(RETRY_INTERVAL)
            return False
        return True

    def _accept(self, answer: Answer, wanted: int) -> None:
        """Do what an answer says."""
        shared, leased, sizes = self.shared, self._leased, self.shared.sizes
        if new := answer.pushed - answer.filtered:
            self._stats.inc_value("scheduler/enqueued/redis", new)
        if answer.filtered:
            self._stats.inc_value("dupefilter/filtered", answer.filtered)
        found = 0
        for host, requests in answer.leased.items():
            leased.note_turn(host, len(requests))
            for name, body in requests:
                found += 1
                self._add(name, body)
        others_push = sizes.workers > 1 and found < wanted
        self._next_poll = monotonic() + min(answer.seconds, POLL if others_push else LONGEST_PAUSE)
        was_settled = self._is_settled
        self._is_settled = not (shared.kept or leased.started or leased.size)
        if found or (self._is_settled and not (was_settled and sizes.all)):
            self._engine.wake()
        if shared.kept or shared.held & leased.hosts or (found and sizes.waiting):
            self._said.set()

    def _add(self, name: bytes, body: bytes) -> None:
        try:
            request = request_from_dict(self._serializer.loads(body), spider=self._spider)
        except Exception as error:  # its callback has another name now, perhaps
            self._logger.error(
                "A request in Redis cannot be read, and is skipped: %(error)s",
                {"error": error},
                exc_info=error,
            )
            self.shared.acknowledge(name)
            return
        self._leased.add(name, request)

    # What can go wrong.

    def _note_outage(self, error: RedisError) -> None:
        if not self._is_away:
            self._is_away = True
            self._logger.warning(
                "Redis does not answer: %(error)s. New requests are kept in memory until it does.",
                {"error": self._url.message(error)},
            )

    def _note_return(self) -> None:
        if self._is_away:
            self._is_away = False
            self._logger.info(
                "Redis answers again. It gets what was kept: %(count)s.",
                {"count": plural(self.shared.kept, "request")},
            )

    async def _replace(self, worker: str) -> None:
        """Give back what a worker had that has died."""
        returned, failed = await self.shared.recover(worker)
        self._logger.warning(
            "The worker %(worker)s does not answer. In the queue again: %(returned)s. Failed, "
            "because each worker that had them died: %(failed)s.",
            {
                "worker": worker,
                "returned": plural(returned, "request"),
                "failed": plural(failed, "request"),
            },
        )
        self._stats.inc_value("scheduler/returned/redis", returned)
        if failed:
            self._stats.inc_value("scheduler/failed/redis", failed)

    async def _begin_again(self, answer: Answer) -> None:
        """Go on after Redis and this worker disagree: it has nothing any more."""
        if answer.state is State.EXPIRED:
            self._logger.warning(
                "This worker stood still for so long that others have its requests. It continues."
            )
        else:
            self._logger.error(
                "Redis has lost what this worker wrote in the last %(seconds)d s or more: "
                "%(count)s pushed again; pages may be requested again.%(more)s",
                {
                    "seconds": answer.lost_seconds,
                    "count": plural(answer.repeated, "request"),
                    "more": "" if answer.is_whole else " Older requests are lost.",
                },
            )
            await self.shared.recover()
        self._leased.take_all()
        self._leased.started.clear()
        self._seen.clear()  # Redis may not know them
        await self.shared.open()
        await self.shared.postpone(self._leased.waits())
        self._said.set()

    def _end(self) -> None:
        self._logger.error(
            "Redis has lost the requests of this crawl: it was flushed, or restarted without its "
            "data. The crawl ends. Start it again from its start URLs."
        )
        self._is_closed = True
        assert self._crawler.engine is not None
        deferred_from_coro(self._crawler.engine.close_spider_async(reason="redis_lost"))

    async def _close(self) -> None:
        was_lost, self._is_closed = self._is_closed, True
        is_sent = was_lost or self._task is None
        if self._task is not None:
            self._said.set()
            await self._task
        until = monotonic() + TIMEOUT
        while not is_sent and monotonic() < until:
            with suppress(RedisError):
                is_sent = await self._talk(closing=True) and not self.shared.is_due
                if is_sent:
                    await self.shared.close(persist=self._settings.persist)
        if not is_sent:
            self._logger.error(
                "Redis does not answer. This worker loses %(count)s.",
                {"count": plural(self.shared.kept, "request")},
            )
        for client in clients(self.shared.client):
            await client.aclose()
