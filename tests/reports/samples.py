"""Reports for tests, made as a crawl makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.meta_keys import ROBOTSTXT
from scrapy_rep.origin import Origin
from scrapy_rep.protocol.access import CopyInfo, FetchResult, Rules
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.reports.model import Run, Time
from scrapy_rep.reports.recorder import CrawlRecorder
from scrapy_rep.settings import Settings

if TYPE_CHECKING:
    from scrapy_rep.protocol.verdict import Verdict

NOW = 1_700_000_000.0


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def recorder(run_id: str = "run", now: float = NOW, **settings: Any) -> CrawlRecorder:
    """A recorder, and its clock at `recorder.clock`."""
    clock: Any = FakeClock(now)
    read = Settings.read(ScrapySettings(settings))
    made = CrawlRecorder(
        read,
        clock,
        Run(run_id, "sample", "scrapy-rep", "mybot", ["mybot"], {}, Time(now), Time(now)),
    )
    made.clock = clock  # type: ignore[attr-defined]
    return made


def sent(made: CrawlRecorder, url: str, verdict: Verdict | None = None, **meta: Any) -> None:
    """Send a request."""
    if verdict is not None:
        meta[ROBOTSTXT] = verdict
    made.sent(Request(url, meta=meta))


def fetched(
    made: CrawlRecorder,
    key: str,
    body: bytes = b"User-agent: *\nDisallow: /a\n",
    event: FetchResult | None = None,
    origin: Origin | None = None,
) -> Origin:
    """Fetch a robots.txt. Returns its origin."""
    origin = origin or Origin(key)
    now = made.clock.now  # type: ignore[attr-defined]
    if event is None:
        copy = CopyInfo(f"{key}/robots.txt")
        event = Rules(RobotsTxt.parse(body), 200, copy, now + 3600, body)
    origin.start_fetch(now)
    origin.apply(event, now)
    received = event.body if isinstance(event, Rules) else None
    made.fetched(origin, event, received, from_store=False)
    return origin


def part(made: CrawlRecorder) -> bytes:
    """The part file of a recorder."""
    made.mark_all_as_changed()
    return "".join([made.head(), *made.changes()]).encode()
