"""The archive of a crawl: each request for a robots.txt and its response, in a WARC file.

A thread writes the records, so that a slow or full disk does not delay the crawl. What is lost is
counted, and the first loss is logged. :func:`read` reads an archive.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING

import scrapy

from ..settings import changed_settings
from .archive_file import ArchiveFile
from .archive_reader import ArchivedRobotsTxt, ArchiveProblem, read
from .warc_records import (
    WARC_FORMAT,
    exchange_records,
    make_record_id,
    version_of,
    warcinfo_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.statscollectors import StatsCollector

    from ..fetch.exchange import Exchange
    from ..scheduling.clock import Clock
    from ..settings import Settings

__all__ = ["Archive", "ArchiveProblem", "ArchivedRobotsTxt", "read"]

logger = logging.getLogger(__name__)

QUEUE_LIMIT = 1 << 26
"""The octets of the exchanges that may wait for the thread. The largest exchange has 1.5 MB."""

EXCHANGE_OVERHEAD = 4096
"""The octets that an exchange counts in addition to its bodies."""

CLOSE_TIMEOUT = 30.0
"""Seconds that :meth:`Archive.close` waits at most for the thread."""

CLOSE_POLL_INTERVAL = 0.02


class Archive:
    """The archive of one crawl. Only its thread writes to the file.

    Raises OSError or ValueError if the file cannot be used.
    """

    def __init__(
        self, path: str, spider: str, settings: Settings, stats: StatsCollector, clock: Clock
    ) -> None:
        self._stats = stats
        self._clock = clock
        self._info = _info(spider, settings)
        self._warcinfo_id = make_record_id()
        self._file = ArchiveFile(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="robotstxt-archive")
        self._lock = Lock()
        """For what the thread changes, too: all attributes below."""
        self._queued = 0
        """The octets that wait for the thread."""
        self._counts: Counter[str] = Counter()
        self._failure: str | None = None
        """Why the first exchange was lost."""
        self._has_logged = False
        self._closed = False
        self._report()

    def start(self) -> None:
        """Add the record that describes the crawl."""
        at = self._clock.time()
        name = os.path.basename(self._file.path)
        self._submit(0, lambda: warcinfo_record(self._warcinfo_id, name, at, self._info), None)

    def record(self, exchange: Exchange) -> None:
        """Add a request and its response. This neither blocks nor raises."""
        octets = EXCHANGE_OVERHEAD + len(exchange.body) + len(exchange.file or b"")
        with self._lock:
            is_full = self._queued + octets > QUEUE_LIMIT
        if self._closed:
            self._lose("too_late", "a response arrived after the spider had closed")
        elif is_full:
            self._lose("queue_full", "records arrive faster than the disk can write them")
        else:
            self._submit(
                octets, lambda: exchange_records(exchange, self._warcinfo_id), "exchange_count"
            )
        self._report()

    async def close(self) -> None:
        """Return when all records are written, or after :data:`CLOSE_TIMEOUT` seconds."""
        if self._closed:
            return
        self._closed = True
        until = self._clock.monotonic() + CLOSE_TIMEOUT
        closing = self._thread.submit(self._file.close)
        while not closing.done() and self._clock.monotonic() < until:
            await self._clock.sleep(CLOSE_POLL_INTERVAL)
        self._thread.shutdown(wait=False)
        if not closing.done():
            self._lose("too_slow", f"the disk did not write all records in {CLOSE_TIMEOUT:g} s")
        self._report()

    def _submit(self, octets: int, make: Callable[[], bytes], counted: str | None) -> None:
        with self._lock:
            self._queued += octets
        try:
            self._thread.submit(self._write, octets, make, counted)
        except RuntimeError as error:  # the interpreter is shutting down
            self._lose("too_late", str(error))

    def _write(self, octets: int, make: Callable[[], bytes], counted: str | None) -> None:
        """Make records and append them. The thread calls this."""
        try:
            self._file.append(make())
        # Whatever happens here must not end in silence: no other code reads the result.
        except Exception as error:
            self._lose("write_failed", str(error) or type(error).__name__)
        else:
            if counted is not None:
                with self._lock:
                    self._counts[counted] += 1
        finally:
            with self._lock:
                self._queued -= octets

    def _lose(self, reason: str, failure: str) -> None:
        with self._lock:
            self._counts["lost_count"] += 1
            self._counts[f"lost_count/{reason}"] += 1
            self._failure = self._failure or failure

    def _report(self) -> None:
        """Update the stats, and log what happened in the thread. Only the crawl calls this."""
        with self._lock:
            counts, failure = dict(self._counts), self._failure
        for name, value in counts.items():
            self._stats.set_value(f"robotstxt/archive/{name}", value)
        while self._file.moved:
            name, size = self._file.moved.pop()
            self._stats.inc_value("robotstxt/archive/repaired_count")
            logger.warning(
                "The last record of %(path)s was incomplete, because a process was stopped while "
                "it wrote. Its %(size)d octets were moved to %(name)s.",
                {"path": self._file.path, "size": size, "name": name},
            )
        if failure is not None and not self._has_logged:
            self._has_logged = True
            logger.error(
                "A record could not be added to the archive %(path)s (REP_ARCHIVE): %(failure)s. "
                "The crawl continues. The stat robotstxt/archive/lost_count counts all lost "
                "records.",
                {"path": self._file.path, "failure": failure},
            )


def _info(spider: str, settings: Settings) -> dict[str, str]:
    """Return the fields of the warcinfo record."""
    agent = settings.user_agent(None)
    if isinstance(agent, bytes):
        agent = agent.decode("latin-1")
    return {
        "software": (
            f"scrapy-rep{version_of('scrapy-rep')} Scrapy/{scrapy.__version__} "
            f"warcio{version_of('warcio')}"
        ),
        **WARC_FORMAT,
        "robots": "RFC 9309",
        "http-header-user-agent": agent if isinstance(agent, str) else ", ".join(agent),
        "isPartOf": spider,
        "description": (
            "Requests for robots.txt files, redirects included, and their responses. Header names "
            "are in Scrapy's spelling, and the reason phrase of a status line is the standard one. "
            "The transfer coding is removed from bodies, the content coding is not. Values of "
            "request headers that may be secrets are replaced by ***."
        ),
        "x-scrapy-rep-settings": json.dumps(
            changed_settings(settings), default=str, sort_keys=True
        ),
    }
