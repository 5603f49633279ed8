"""One crawl: its objects are made and joined here, and their periodic jobs run here."""

from __future__ import annotations

from functools import partial
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from .clock import Clock
from .closing import Closing
from .fetch.downloader import Record
from .fetch.fetcher import Fetcher, Parts
from .fetch.fetches import Fetches
from .fetch.policy_store import open_policy_store
from .fetch.tdm_files import TdmFiles
from .frontier.frontier import Frontier
from .frontier.queued import record_waits
from .frontier.reservation import Reservations
from .frontier.waiting import Waiting
from .logs import get_logger
from .policies.policies import Policies
from .recorder import Events, Recorder
from .scrapy_internals import WATCH_INTERVAL, Engine
from .settings import Settings

logger = get_logger(__name__)


class Crawl:
    """The objects of one crawl. Raises SettingError for a setting that cannot be used."""

    def __init__(self, crawler: Crawler, settings: Settings) -> None:
        self._crawler = crawler
        self._settings = settings
        self.clock = clock = Clock()
        self.engine = Engine(crawler)
        self.closing = closing = Closing(clock)
        events: Events | None = None
        record: Record | None = None
        if settings.report or settings.archive is not None:
            from .reports.recording import open_recordings  # most crawls do not need its libraries

            events, archive = open_recordings(crawler, settings, clock)
            record = archive.record if archive is not None else None
        self.recorder = recorder = Recorder(crawler, settings, clock, events or Events())
        self._local_rules = None
        if settings.local_rules is not None:
            from .local_rules_file import LocalRulesFile  # most crawls need neither TOML nor lint

            self._local_rules = LocalRulesFile(settings.local_rules)
        self.policies = policies = Policies(settings, clock, recorder, self._local_rules)
        self.store = open_policy_store(settings, clock, recorder)
        """The store; None if the crawl has none."""
        shared = self.store.store if self.store is not None and self.store.store.shared else None
        reservations = partial(Reservations, shared, clock) if shared is not None else None

        def fetches_for(frontier: Frontier) -> Fetches:
            parts = Parts(crawler, settings, self.engine, clock, closing, recorder, frontier)
            fetcher = Fetcher(parts, shared=shared is not None, record=record)
            return Fetches(parts, fetcher, policies, self.store)

        self.frontier = Frontier(
            settings, self.engine, clock, closing, policies, recorder, fetches_for, reservations
        )
        self.fetches = self.frontier.fetches
        self.waiting = Waiting(self.frontier)
        """The requests that wait in the downloader."""
        self.tdm_files: TdmFiles | None = None
        """The TDM files of the crawl. None without REP_TDMREP."""
        if settings.tdmrep:
            self.tdm_files = TdmFiles(policies, self.fetches, closing, recorder)
        self._recorded_at = clock.monotonic()
        """When what waits was recorded last."""
        self._looping: Any = None  # an engine may be made before its event loop runs

    def open(self) -> None:
        """Begin the periodic jobs: the spider is open."""
        self.engine.open()
        if self._local_rules is not None:
            self._local_rules.log_ended(self._crawler.spider, self.clock.time())
        self.poll()
        self._looping = create_looping_call(self.poll)
        self._looping.start(WATCH_INTERVAL, now=False)

    def poll(self) -> None:
        """Do the work that no request causes. A job that fails does not prevent the others."""
        jobs = {
            "read REP_LOCAL_RULES": self._reload_rules,
            "limit the memory of origins": self._limit_memory,
            "renew the claims of the store": self._renew_claims,
            "save the queues": self._save_queues,
            "record what requests wait for": self._record_waits,
            "look whether the spider closes": self._look_for_the_end,
            "end requests that other middlewares have dropped": self.frontier.collect_ended,
            "start what other middlewares wait for": self.waiting.start_beside_kept,
            "end fetches that take long": self.fetches.fetcher.poll,
        }
        for job, do in jobs.items():
            try:
                do()
            except Exception:
                logger.exception(
                    "A periodic job of the crawl has failed, and is tried again: %(job)s",
                    {"job": job},
                    extra=self.recorder.extra,
                )

    def _reload_rules(self) -> None:
        if self._local_rules is not None and self._local_rules.reload(self._crawler.spider):
            self.recorder.count("robotstxt/local_rules_reloads")
            self.policies.stopped.clear()

    def _limit_memory(self) -> None:
        self.policies.origins.measure()
        self.fetches.evict()

    def _renew_claims(self) -> None:
        if self.store is not None:
            deferred_from_coro(self.store.renew())

    def _save_queues(self) -> None:
        for queues in self.frontier.queues:
            queues.save()

    def _record_waits(self) -> None:
        interval, now = self._settings.logstats_interval, self.clock.monotonic()
        if interval and now >= self._recorded_at + interval:
            self._recorded_at = now
            record_waits(self.frontier)

    def _look_for_the_end(self) -> None:
        if self.engine.is_closing:
            if self.closing.has_begun:  # a response that has just arrived had its time
                self.fetches.fetcher.cancel(unwanted=self.closing.may_callers_wait)
            self.frontier.close(self._settings.max_wait)

    async def close(self) -> None:
        """End all fetches and all waiting in the downloader, and close the store."""
        if self._looping is not None and self._looping.running:
            self._looping.stop()
        self.fetches.fetcher.cancel()
        self.frontier.close()
        self.recorder.end()
        if self.store is not None:
            await self.store.close()
