"""Event logs for tests, made as a crawl makes them."""

from __future__ import annotations

import gzip
from contextlib import closing
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from scrapy import Request
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.meta_keys import ROBOTSTXT
from scrapy_rep.origin import Origin
from scrapy_rep.protocol.access import CopyInfo, FetchResult, Rules
from scrapy_rep.protocol.paths import host_of, origin_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.reports.event_log import CrawlLog
from scrapy_rep.reports.reading import Database
from scrapy_rep.reports.records import (
    Event,
    Limits,
    Run,
    utc,
)
from scrapy_rep.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy_rep.protocol.verdict import Verdict
    from scrapy_rep.reports.records import Report

NOW = 1_700_000_000.0


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class SampleLog(CrawlLog):
    """The events of a run. `delay_of` is the delay that the crawl keeps for a host."""

    def __init__(self, run: Run, clock: FakeClock, settings: Settings) -> None:
        self.clock = clock
        self.file = FakeFile()
        self.delay_of: Callable[[str], float] = lambda _: 0.0
        faked: Any = clock, self.file
        super().__init__(run, settings, *faked)

    def octets(self) -> bytes:
        """The file."""
        self.flush()
        return b"".join(self.file.parts)

    def write(self, path: Path) -> Path:
        """Write the file."""
        path.write_bytes(self.octets())
        return path

    def report(self, **limits: int) -> Report:
        """The report of these events."""
        with closing(Database()) as database:
            lines = gzip.decompress(self.octets()).splitlines()
            database.add(self.run, [msgspec.json.decode(line, type=Event) for line in lines])
            return database.report(Limits(**limits))


class FakeFile:
    """A file in memory. Its disk may be full."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_full = False

    def append(self, size: int, make: Callable[[], bytes]) -> bool:
        if not self.is_full:
            self.parts.append(make())
        return not self.is_full

    def retry(self) -> None:
        pass


def log(run_id: str = "run", now: float = NOW, **settings: Any) -> SampleLog:
    """The log of a run."""
    read = Settings.read(ScrapySettings(settings))
    run = Run(run_id, "sample", "scrapy-rep", "mybot", utc(now), utc(now), ["mybot"])
    return SampleLog(run, FakeClock(now), read)


def sent(made: SampleLog, url: str, verdict: Verdict | None = None, **meta: Any) -> None:
    """Send a request."""
    if verdict is not None:
        meta[ROBOTSTXT] = verdict
    key = origin_of(url)
    made.sent(Request(url, meta=meta), made.delay_of(host_of(key)) if key else 0.0)


def fetched(
    made: SampleLog,
    key: str,
    body: bytes = b"User-agent: *\nDisallow: /a\n",
    event: FetchResult | None = None,
    origin: Origin | None = None,
) -> Origin:
    """Fetch a robots.txt. Returns its origin."""
    origin = origin or Origin(key)
    now = made.clock.now
    if event is None:
        copy = CopyInfo(f"{key}/robots.txt", sha256=sha256(body).hexdigest())
        event = Rules(RobotsTxt.parse(body), 200, copy, now + 3600, body)
    origin.start_fetch(now)
    origin.apply(event, now)
    received = event.body if isinstance(event, Rules) else None
    made.fetched(origin, event, received)
    return origin
