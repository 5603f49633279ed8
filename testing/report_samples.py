"""Event logs without a crawl, made as a crawl makes them, and the reports of them.

Also a report whose sites are hostile, and surveys, whose rows may come from another program.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from scrapy import Request
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.pages.directives import PageDirectives
from scrapy_rep.protocol.access import CopyInfo, FetchResult, Rules, Unavailable, Unreachable
from scrapy_rep.protocol.paths import host_of, origin_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.reports.event_log import CrawlLog
from scrapy_rep.reports.reading import Database
from scrapy_rep.reports.records import Event, Report, RobotsFile, Run, utc
from scrapy_rep.reports.survey import Survey
from scrapy_rep.settings import DONT_OBEY, ROBOTSTXT, Settings, changed_settings
from testing.clock import FakeClock

START = 1_795_336_200.0
"""2026-11-22 08:30:00 UTC."""


class FakeFile:
    """A file in memory. Its disk may be full."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_full = False
        self.lost = 0

    def append(self, size: int, make: Callable[[], bytes], records: int) -> None:
        """Add a part."""
        if self.is_full:
            self.lost += records
        else:
            self.parts.append(make())


class SampleLog(CrawlLog):
    """The events of a run. `delay_of` is the delay that the crawl keeps for a host."""

    def __init__(self, run: Run, clock: FakeClock, settings: Settings) -> None:
        self.clock = clock
        self.file = FakeFile()
        self.delay_of: Callable[[str], float] = lambda _: 0.0
        file: Any = self.file
        super().__init__(run, settings, clock, file)

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
        return report_of(self, **limits)


def report_of(*logs: SampleLog, **limits: int) -> Report:
    """The report of several runs."""
    with closing(Database()) as database:
        for made in logs:
            lines = gzip.decompress(made.octets()).splitlines()
            database.add(msgspec.json.decode(line, type=Event) for line in lines)
        return database.report(**limits)


def log(run_id: str = "run", now: float = START, **settings: Any) -> SampleLog:
    """The log of a run."""
    read = Settings.read(ScrapySettings(settings))
    made = Run(run_id, "sample", "scrapy-rep", "mybot", utc(now), utc(now), ["mybot"])
    made.settings = {name: repr(value) for name, value in changed_settings(read).items()}
    made.max_crawl_delay = read.max_crawl_delay
    return SampleLog(made, FakeClock(now), read)


def sent(made: SampleLog, url: str, verdict: Verdict | None = None, **meta: Any) -> Request:
    """Send a request."""
    if verdict is not None:
        meta[ROBOTSTXT] = verdict
    key = origin_of(url)
    request = Request(url, meta=meta)
    made.sent(request, made.delay_of(host_of(key)) if key else 0.0)
    return request


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


# The crawl of a catalog

_FILE = """\
# Rules for {host}
User-agent: *
Disallow: /search
Disallow: /cart
Allow: /search/about
Disalow: /tmp
Crawl-delay: {delay}

User-agent: GPTBot
User-agent: CCBot
Disallow: /

Sitemap: https://{host}/sitemap.xml
"""
_SITES = (
    *("shop", "news", "forum", "wiki", "blog", "docs", "maps", "jobs", "music", "video"),
    *("photos", "books", "games", "travel", "health"),
)
_TOKENS = ("catalogbot",)


def run(**values: object) -> Run:
    """Return a run that ended well. ``values`` replace its fields."""
    found = Run(
        "20261122T083000-1-00000000",
        "catalog",
        "scrapy-rep 0.1.0, Scrapy 2.19.0",
        "catalogbot/1.2 (+https://bot.example/about)",
        utc(START),
        utc(START + 2_700),
        list(_TOKENS),
        {"REP_REPORT": "['reports/catalog.html']", "REP_STORE": "'sqlite:///robots.db'"},
        utc(START + 2_700),
        "finished",
        archive="archive/catalog.warc.gz",
        archive_sha256=sha256(b"catalog").hexdigest(),
        scrapy_settings={
            "USER_AGENT": "catalogbot/1.2 (+https://bot.example/about)",
            "HTTPCACHE_ENABLED": "True",
            "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
            "AUTOTHROTTLE_ENABLED": "False",
            "DEPTH_LIMIT": "6",
        },
        downloads={
            "request_method_count/GET": 1_204,
            "response_status_count/200": 1_180,
            "response_status_count/404": 24,
        },
    )
    for name, value in values.items():
        setattr(found, name, value)
    return found


def empty(*runs: Run) -> Report:
    """Return a report without requests."""
    return Report(utc(START + 3_000), list(runs) or [run()])


def usual(origins: int = 15, pages: int = 20) -> SampleLog:
    """Return the log of a crawl of this many origins. Two in eleven have no rules."""
    made = SampleLog(run(), FakeClock(START), Settings.read(ScrapySettings()))
    for number in range(origins):
        host = f"{_SITES[number % 15]}{number // 15 or ''}.example"
        _crawl(made, number, host, pages + number % 7)
    return made


def _verdict(origin: Origin, url: str, now: float) -> Verdict:
    return origin.verdict(url, _TOKENS, now, UnreachablePolicy())


def _crawl(made: SampleLog, number: int, host: str, pages: int) -> None:
    """Crawl one site, as if each began at the same time."""
    key, clock = f"https://{host}", made.clock
    clock.now = START + number % 60
    delay = (0, 2, 0, 5, 0, 10, 0, 1)[number % 8]
    events: dict[int, FetchResult] = {
        5: Unreachable("status 503", 503, f"{key}/robots.txt"),
        3: Unavailable(f"{key}/robots.txt", START + 86_400, 404),
    }
    event = events.get(number % 11)
    sent(made, f"{key}/robots.txt", is_robotstxt_request=True)
    clock.now += 0.1
    origin = fetched(made, key, _FILE.format(host=host, delay=delay or "none").encode(), event)
    if event is None:
        made.delay_of = lambda _: float(delay)
        made.paced(origin, f"Crawl-delay: {delay}" if delay else "", float(delay))
    else:
        made.delay_of = lambda _: 0.0
    paths = [f"/item/{page}" for page in range(pages)]
    paths += ["/search/about", "/search?q=a", "/search?q=b", "/search?q=c"]
    for page, path in enumerate(paths):
        verdict = _verdict(origin, f"{key}{path}", clock.now)
        if not verdict.allowed:
            made.disallowed(f"{key}{path}", verdict)
            continue
        clock.now += made.delay_of(host) + 0.05 * (1 + page % 5)
        if made.delay_of(host):
            made.waited(key, "pace", delay)
        sent(made, f"{key}{path}", verdict)
    if number % 5 == 1:
        for page in range(4):
            made.page(f"{key}/item/{page}", PageDirectives(noindex=True), {"train-ai": False})


def report(origins: int = 15) -> Report:
    """Return the report of a usual crawl."""
    return msgspec.structs.replace(usual(origins).report(), generated_at=utc(START + 3_000))


def troubled(origins: int = 15) -> Report:
    """Return a report in which the crawl did what it should not, and whose record has gaps."""
    made = usual(origins)
    shop, news = "https://shop.example", "https://news.example"
    made.clock.now, made.delay_of = START - 5_000, lambda _: 0.0
    fetched(made, shop, event=Unavailable(f"{shop}/robots.txt", START, 404))
    made.clock.now = START + 2_000
    denied = _verdict(fetched(made, shop), f"{shop}/a", made.clock.now)
    sent(made, f"{shop}/a/1", denied)
    sent(made, f"{shop}/a/2", denied)
    made.delay_of = lambda _: 2.0
    origin = fetched(made, news)
    made.disallowed(f"{news}/a", denied, was_sent=True)
    for page in range(3):
        made.clock.now += 0.4
        request = Request(f"{news}/a/mine/{page}", meta={DONT_OBEY: True})
        made.sent(request, 2.0, _verdict(origin, request.url, made.clock.now))
    agreed = Verdict(True, Reason.LOCAL_RULE, detail="they agreed (mail)")
    request = Request(f"{news}/a/ours", meta={ROBOTSTXT: agreed})
    made.clock.now += 2.5
    made.sent(request, 2.0, _verdict(origin, request.url, made.clock.now))
    other = run(id="2", ended_at=None, finish_reason=None, damage="line 7 cannot be read")
    found = report_of(made, SampleLog(other, FakeClock(START), Settings.read(ScrapySettings())))
    found.left_out.origins, found.left_out.files = 120, 3
    return msgspec.structs.replace(found, generated_at=utc(START + 3_000))


def hostile(texts: list[str]) -> Report:
    """Return a report in which each text of a site is one of these, in turn."""
    made = troubled(len(texts))
    made.runs = [_filled(run(damage="", ended_at=None), text) for text in texts]
    hosts = {}
    for number, (origin, text) in enumerate(zip(made.origins, texts, strict=True)):
        hosts[origin.host] = hostile_host = f"{number}{text}"
        kept = {"reason", "result", "kind", "effect", "source"} if number % 2 else set()
        _filled(origin, text, kept)
        origin.host = hostile_host
        made.files[text] = RobotsFile(10, f"{text}\nUser-agent: *\nDisallow: {text}\n{text}: 1\n")
    for host in made.hosts:
        host.host = hosts[host.host]
    made.totals = made.origins[0].counts
    return made


def _filled(value: Any, text: str, kept: Collection[str] = ()) -> Any:
    """Return a record whose texts are replaced, but for those of some fields."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name not in kept:
                setattr(value, name, _filled(getattr(value, name), text, kept))
        return value
    if isinstance(value, list):
        return [_filled(each, text, kept) for each in value]
    if isinstance(value, dict):
        return {f"{text}{key}": _filled(each, text, kept) for key, each in value.items()}
    return text if isinstance(value, str) else value


def survey(*texts: str) -> Survey:
    """Return a survey in which each figure has rows with these names."""
    counts = [{"name": text, "number": 1, "share": 0.5} for text in texts]
    extents = [
        {"name": text, "files": 3, "share": 0.5, "everything": 1, "something": 1, "nothing": 1}
        for text in texts
    ]
    quantiles = ("p10", "p25", "median", "p75", "p90", "p99", "largest")
    numbers = [{"name": text, **dict(zip(quantiles, range(7), strict=True))} for text in texts]
    differences = [{"name": text, "before": 0.5, "now": 1.0, "change": 0.5} for text in texts]
    figures = {
        "results": counts, "statuses": counts, "numbers": numbers, "features": counts,
        "agents": extents, "ai_agents": extents, "purposes": extents,
        "preferences": counts, "findings": counts,
        "differences": differences,
    }  # fmt: skip
    return msgspec.convert(
        {
            "type": "survey", "version": 3, "made_at": "2026-11-22T09:20:00Z",
            "sources": list(texts), "first_date": texts[0], "last_date": texts[-1],
            "complete": False, "sites": 2, "files": 2, "figures": figures,
            "left_out": {"features": 30},
        },
        Survey,
    )  # fmt: skip
