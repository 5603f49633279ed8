"""The archive of a crawl: each request for a robots.txt and its response, in a WARC file.

Each crawl has a file of its own. A thread writes the records, so that a slow or full disk does not
delay the crawl. What is lost is counted, and the first loss is logged. :func:`read` reads an
archive.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

import scrapy

from .. import __version__
from ..logs import get_logger
from ..settings import changed_settings
from .archive_reader import ArchivedRobotsTxt, ArchiveProblem, read
from .background_file import BackgroundFile, new_file
from .warc_records import Records

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from ..fetch.downloader import Exchange
    from ..frontier.clock import Clock
    from ..settings import Settings

__all__ = ["Archive", "ArchiveProblem", "ArchivedRobotsTxt", "read"]

logger = get_logger(__name__)

QUEUE_LIMIT = 1 << 26
"""The octets of the exchanges that may wait for the thread. The largest exchange has 1.5 MB."""

EXCHANGE_OVERHEAD = 4096
"""The octets that an exchange counts in addition to its bodies."""


class Archive:
    """The archive of one crawl, in a file of its own.

    Raises OSError or ValueError if the file cannot be made.
    """

    def __init__(
        self, path: str, spider: str, settings: Settings, stats: StatsCollector, clock: Clock
    ) -> None:
        self._stats = stats
        self._clock = clock
        self._info = _info(spider, settings)
        self._records = Records()
        descriptor, self._path = new_file(path)
        self._file = BackgroundFile(descriptor, QUEUE_LIMIT)
        self._lost: Counter[str] = Counter()
        self._failure: str | None = None
        """Why the first exchange was lost."""
        self._has_info = False
        self._has_logged = False
        self._closed = False

    def start(self) -> None:
        """Add the record that describes the crawl."""
        at, name = self._clock.time(), os.path.basename(self._path)
        self._has_info = True
        self._file.append(0, lambda: self._records.warcinfo(name, at, self._info))

    def record(self, exchange: Exchange) -> None:
        """Add a request and its response. This neither blocks nor raises."""
        octets = EXCHANGE_OVERHEAD + len(exchange.body) + len(exchange.file or b"")
        if self._closed:
            self._lose("too_late", "a response arrived after the spider had closed")
        elif not self._file.append(octets, lambda: self._records.exchange(exchange)):
            self._lose("queue_full", "records arrive faster than the disk can write them")
        self._report()

    async def close(self) -> None:
        """Return when all records are written, or after some seconds."""
        if self._closed:
            return
        self._closed = True
        try:
            await self._file.close(self._clock)
        except TimeoutError:
            self._lose("too_slow", "the disk did not write all records in time")
        except OSError as error:
            self._lose("write_failed", str(error))
        else:
            if waiting := len(self._file.waiting):
                self._lose("write_failed", "the disk did not take them", waiting)
        self._report()

    def _lose(self, reason: str, failure: str, number: int = 1) -> None:
        self._lost[reason] += number
        self._failure = self._failure or failure

    def _report(self) -> None:
        """Update the stats, and log the first failure."""
        for error in self._file.failures():
            self._failure = self._failure or str(error) or type(error).__name__
            if not isinstance(error, OSError):  # the next write tries again after an OSError
                self._lost["write_failed"] += 1
        written = self._file.written - self._has_info
        if written > 0:
            self._stats.set_value("robotstxt/archive/exchange_count", written)
        for reason, number in self._lost.items():
            self._stats.set_value(f"robotstxt/archive/lost_count/{reason}", number)
        if self._lost:
            self._stats.set_value("robotstxt/archive/lost_count", self._lost.total())
        if self._failure is not None and not self._has_logged:
            self._has_logged = True
            logger.error(
                "A record could not be added to the archive %(path)s (REP_ARCHIVE): %(failure)s. "
                "The crawl continues. The stat robotstxt/archive/lost_count counts all lost "
                "records.",
                {"path": self._path, "failure": self._failure},
            )


def _info(spider: str, settings: Settings) -> dict[str, str]:
    """Return the fields of the warcinfo record."""
    agent = settings.user_agent(None)
    if isinstance(agent, bytes):
        agent = agent.decode("latin-1")
    return {
        "software": (
            f"scrapy-rep/{__version__} Scrapy/{scrapy.__version__} warcio/{version('warcio')}"
        ),
        "format": "WARC File Format 1.1",
        "conformsTo": (
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
        ),
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
