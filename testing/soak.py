"""Crawls of many origins, with faults at random, and what must hold for each crawl."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sqlite3
import time
import zlib
from collections import Counter, defaultdict
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from scrapy import Request, Spider
from scrapy.utils.reactor import is_reactor_installed

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.crawl.policy_store import CLAIM_SECONDS
from scrapy_rep.protocol.paths import host_of
from scrapy_rep.stores.entry import DICTIONARY, VERSION
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.counters import left_over
from testing.faults import (
    ALLOWED,
    DISALLOWED,
    HEAD,
    NAMES,
    PATHS,
    RULES,
    RULES_HOLD,
    ErrorFault,
    fault,
    length,
    meaning_of,
    raw,
    stall,
)
from testing.web import Page, redirect, text

from .hostile import ATTACKS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from testing.web import Misbehaviour, Site, Web

SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 200,
    "DOWNLOAD_TIMEOUT": 3,
    "REP_TIMEOUT": 3,
}

DAY = 86_400
DELAY = 0.1
"""The Crawl-delay of the sites that have one, in seconds."""

IN_A_ROW = 55.0
"""Seconds within which an unreachable robots.txt is fetched once, with its retries. The next
attempt comes after 60 seconds."""

PRIORITIES = (0, 0, 0, 5, -2)


# The crawls


class Variant(NamedTuple):
    """The circumstances of one crawl."""

    settings: dict[str, Any]
    clock: tuple[float, ...] = ()
    """Seconds by which the wall clock is wrong, for STEP_EVERY each, in a loop."""
    poisoned_store: bool = False
    errors: tuple[ErrorFault, ...] = ()


_BY_PRIORITY = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
_BY_SLOT = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}
_SMALL = {"REP_CACHE_SIZE": 3, "REP_CONCURRENT_FETCHES": 5}

_ERRORS = (
    ("scrapy_rep.fetch.fetcher.Fetcher._event", ValueError, 0.1, 1),
    ("scrapy_rep.fetch.fetcher.Fetcher._request", asyncio.CancelledError, 0.1, 2),
    ("scrapy_rep.crawl.policy_cache.PolicyCache._on_content", KeyError, 0.1, 3),
    ("scrapy_rep.stores.sqlite.SQLiteStore.get", TypeError, 0.2, 4),
    ("scrapy_rep.stores.sqlite.SQLiteStore.claim", ValueError, 0.2, 5),
    ("scrapy_rep.stores.sqlite.SQLiteStore.put", AttributeError, 0.2, 6),
    ("scrapy_rep.stores.sqlite.SQLiteStore.reserve_host", RuntimeError, 0.2, 7),
)
"""The function, the error, the part of the calls, and the seed of each."""

VARIANTS = {
    "by slot": Variant(_BY_SLOT),
    "by priority": Variant(_BY_PRIORITY),
    "small limits, by slot": Variant({**_SMALL, **_BY_SLOT}),
    "small limits, by priority": Variant({**_SMALL, **_BY_PRIORITY}),
    "a clock that steps": Variant({}, (0, 40 * DAY, -400 * DAY, 3600, -3600)),
    "a poisoned store": Variant({}, poisoned_store=True),
    "errors": Variant({}, errors=tuple(ErrorFault(*each) for each in _ERRORS)),
    # A store counts the thirty days of RFC 9309 §2.3.1.4 by the clock, so the steps are shorter.
    "everything": Variant({**_SMALL, **_BY_PRIORITY}, (0, 7200, -3600), poisoned_store=True),
}


@contextmanager
def circumstances(variant: Variant, soak: Soak, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the settings of a crawl of ``soak``. Its store is a file at ``path``."""
    settings = {**SETTINGS, **variant.settings}
    if variant.poisoned_store:
        poison(path, soak.roots, random.Random(9309))
    if variant.poisoned_store or variant.errors:
        settings["REP_STORE"] = f"sqlite:///{path}"
    with ExitStack() as stack:
        if variant.clock:
            clock = patch("scrapy_rep.frontier.clock.Clock.time", _stepping(variant.clock))
            stack.enter_context(clock)
        if variant.errors:
            stack.enter_context(patch("scrapy_rep.stores.fallback.RETRY_INTERVAL", 0))
        for error in variant.errors:
            stack.enter_context(error.injected())
        yield settings


STEP_EVERY = 0.7
"""Seconds."""


def _stepping(wrong_by: tuple[float, ...]) -> Callable[[object], float]:
    """Return a wall clock that is set again and again."""
    began = time.monotonic()

    def now(_: object) -> float:
        number = int((time.monotonic() - began) / STEP_EVERY)
        return time.time() + wrong_by[number % len(wrong_by)]

    return now


def poison(path: Path, roots: list[str], chance: random.Random) -> None:
    """Create a store with wrong entries, claims and reservations."""
    SQLiteStore(path, ttl=DAY).open()
    now = time.time()
    spans: list[tuple[Any, Any]] = [
        (now + 30 * DAY, now + 30 * DAY + CLAIM_SECONDS),
        (now, now + 30 * DAY),
        (now, 1e18),
        (now, "never"),
        ("yesterday", now + CLAIM_SECONDS),
    ]
    with sqlite3.connect(path) as db:
        for root in roots:
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, 0)",
                (root, now, chance.choice(_bad_entries())),
            )
            # The last one is the claim of a crawler that does not run any more.
            claim = chance.choice([*spans, (now, now + CLAIM_SECONDS)])
            db.execute("INSERT INTO claims VALUES (?, 'other', ?, ?, 0)", (root, *claim))
            reserved = (host_of(root), *chance.choice(spans))
            db.execute("INSERT OR IGNORE INTO hosts VALUES (?, 'other', ?, ?)", reserved)
    db.close()


def _bad_entries() -> list[bytes]:
    # Each of them, if it was used, would turn an allow into a disallow, or the reverse.
    return [
        b"",
        VERSION,
        VERSION + b"no entry",
        VERSION + bytes(1000),
        VERSION + zlib.compress(b'{"a":' * 10_000),
        _entry(refresh_at=1e18, expires_at=1e18),
        _entry(result="unavailable", refresh_at=1e18, expires_at=1e18),
        _entry(result="unreachable", refresh_at=1e18, expires_at=1e18),
        _entry(fetched_at=time.time() + 30 * DAY, expires_at=time.time() + 31 * DAY),
        _entry(expires_at="never"),
        _entry(expires_at=4e9, copy={"url": "https://a.example/", "etag": ["x"]}),
        _entry(copy={"url": "https://a.example/", "etag": '"1"\r\nX-Injected: 1'}),
    ]


def _entry(**fields: object) -> bytes:
    head = {"result": "rules", "fetched_at": time.time() - 9, "refresh_at": 0, **fields}
    deflate = zlib.compressobj(zdict=DICTIONARY)
    content = json.dumps(head).encode() + b"\nUser-agent: *\nDisallow: /public\n"
    return VERSION + deflate.compress(content) + deflate.flush()


# The origins


class Kind(NamedTuple):
    """The robots.txt of an origin, and its possible outcomes."""

    robots: Page | Misbehaviour
    meaning: str
    paths: tuple[str, ...] = ()
    """More pages to request. Rules disallow those that begin with /private."""
    delay: float = 0
    lifetime: float = 0
    """Seconds for which the robots.txt may be used. 0: longer than a crawl."""


class Mix(NamedTuple):
    """How many origins are of each kind."""

    hostile: int = 8
    """One of so many origins has hostile rules."""
    paced_hosts: int = 1
    """So many sites with a Crawl-delay have the rules of others, which redirect to them."""
    delay: float = DELAY
    """The Crawl-delay of the sites that have one, in seconds."""
    lifetime: float = 0
    """Seconds for which some of the good files may be used. 0: no file has a lifetime."""


GOOD = "has rules"
"""Return a robots.txt without a fault. Every third origin has one."""

BRIEF = "has rules that expire"
PACE = "asks for a pace"
PACED_HOST = "redirects to a paced host"
HOSTILE = tuple(f"has hostile rules: {name}" for name in ATTACKS)


def _kind(name: str, mix: Mix) -> Kind:
    if name == GOOD:
        return Kind(text(RULES), RULES_HOLD)
    if name == BRIEF:
        page = text(RULES, Cache_Control=f"max-age={mix.lifetime:.0f}", ETag='"1"')
        return Kind(page, RULES_HOLD, lifetime=mix.lifetime)
    if name == PACE:
        body = RULES + b"Crawl-delay: %g\n" % mix.delay
        return Kind(text(body), RULES_HOLD, delay=mix.delay)
    if name in HOSTILE:
        attack = ATTACKS[name.partition(": ")[2]]
        path = attack.url(2000).removeprefix("https://example.com")
        body = RULES + attack.body.partition(b"\n")[2]
        return Kind(text(body), RULES_HOLD, ("/private" + path, "/public" + path))
    return Kind(fault(name), meaning_of(name))


def _name(number: int, chance: random.Random, mix: Mix) -> str:
    if mix.lifetime and number % 9 == 0:
        return BRIEF
    if number % 3 == 0:
        return GOOD
    if number % 8 == 1:
        return PACED_HOST
    if number % 8 == 2:
        return PACE
    return chance.choice(HOSTILE if number % mix.hostile == 4 else NAMES)


def _pages(chance: random.Random, other: Site) -> dict[str, Page | Misbehaviour]:
    faulty: list[Page | Misbehaviour] = [
        Page(status=500),
        raw(b""),
        raw(HEAD, reset=True),
        raw(HEAD + length(b"four") + b"2"),
        stall(),
        redirect("/private"),
    ]
    return {
        "/faulty": chance.choice(faulty),
        "/moved": redirect(other.url(chance.choice(PATHS))),
    }


# The crawl


class SoakSpider(Spider):
    """Sends all requests at once, and records how each of them ended."""

    name = "soak"

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls
        self.ends: defaultdict[str, list[str]] = defaultdict(list)

    async def start(self) -> AsyncIterator[Any]:
        chance = random.Random(len(self.urls))
        for url in self.urls:
            yield Request(
                url,
                callback=self.parse,
                errback=self.failed,
                cb_kwargs={"asked": url},
                dont_filter=True,
                priority=chance.choice(PRIORITIES),
            )

    def parse(self, _: Response, asked: str) -> None:
        self.ends[asked].append("response")

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        disallowed = failure.check(RobotsTxtDisallowed)
        end = "disallowed" if disallowed else f"error: {type(failure.value).__name__}"
        self.ends[request.cb_kwargs["asked"]].append(end)


class Log(logging.Handler):
    """Records errors in the log, and origins that did not answer within REP_TIMEOUT.

    An origin for which an injected error is logged counts as one of the latter.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.errors: list[str] = []
        self.late: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        injected = record.exc_info and "unforeseen" in str(record.exc_info[1])
        if injected and isinstance(record.args, dict):
            if "origin" in record.args:
                self.late.add(str(record.args["origin"]))
        elif record.levelno >= logging.ERROR:
            self.errors.append(record.getMessage())
        elif isinstance(record.args, dict) and "longer than" in str(record.args.get("failure")):
            self.late.add(str(record.args["origin"]))


@contextmanager
def logged() -> Iterator[Log]:
    """Record the log during the block."""
    log = Log()
    logging.getLogger().addHandler(log)
    try:
        yield log
    finally:
        logging.getLogger().removeHandler(log)


class Soak:
    """Origins on a web, the URLs to crawl, and the check of a crawl."""

    def __init__(self, web: Web, origins: int, seed: int, mix: Mix = Mix()) -> None:  # noqa: B008 - it cannot be changed
        chance = random.Random(seed)
        shared: dict[str, Page | Misbehaviour] = {"/shared.txt": text(RULES)}
        body = RULES + b"Crawl-delay: %g\n" % mix.delay
        paced = [
            web.site(body, shared, host=f"127.0.0.{2 + each}") for each in range(mix.paced_hosts)
        ]
        kinds = {PACE: _kind(PACE, mix)}  # each once: some of the files are large
        self.sites: list[tuple[Site, str, Kind]] = [(site, PACE, kinds[PACE]) for site in paced]
        for number in range(origins):
            name = _name(number, chance, mix)
            if name == PACED_HOST:
                url = paced[number % len(paced)].url("/shared.txt")
                kind = Kind(redirect(url), RULES_HOLD)
            else:
                kind = kinds.get(name) or kinds.setdefault(name, _kind(name, mix))
            host = f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"
            self.sites.append((web.site(kind.robots, host=host), name, kind))
        for site, _, _ in self.sites:
            other, _, _ = chance.choice(self.sites)
            site.pages.update(_pages(chance, other))
        self.urls = [
            url
            for site, _, kind in self.sites
            for url in site.urls(*PATHS, "/faulty", "/moved", *kind.paths)
        ]
        chance.shuffle(self.urls)

    @property
    def roots(self) -> list[str]:
        """The origins."""
        return [site.root for site, _, _ in self.sites]

    def problems(self, crawler: Crawler, log: Log) -> list[str]:
        """Return what was wrong with a crawl. An empty list means that all is well."""
        spider = crawler.spider
        assert isinstance(spider, SoakSpider)
        most_asked = crawler.settings.getint("REP_RETRY_TIMES", 2) + 1
        evicts = crawler.settings.getint("REP_CACHE_SIZE", 100_000) < len(self.sites)
        problems = [*log.errors, *left_over(crawler)]
        problems += [
            f"{url} ended in {spider.ends[url]}" for url in self.urls if len(spider.ends[url]) != 1
        ]
        for site, name, kind in self.sites:
            # Without a reactor, Scrapy's client repeats a request whose connection ends.
            is_repeated = name.startswith(("resets", "closes")) and not is_reactor_installed()
            problems += [
                f"{site.root}, which {name}, {problem}"
                for problem in _problems(
                    site,
                    kind,
                    spider.ends,
                    is_late=site.root in log.late,
                    most_asked=inf if kind.lifetime or evicts else most_asked * (1 + is_repeated),
                )
            ]
        return problems

    def late(self, log: Log) -> set[str]:
        """The origins that answered too late because the machine was busy."""
        silent = {site.root for site, _, kind in self.sites if kind.meaning == DISALLOWED}
        return log.late - silent

    @staticmethod
    def summary(crawler: Crawler) -> Counter[str]:
        """The number of requests by their outcome."""
        spider = crawler.spider
        assert isinstance(spider, SoakSpider)
        return Counter(end for ends in spider.ends.values() for end in ends)


def _problems(
    site: Site, kind: Kind, ends: Mapping[str, list[str]], *, is_late: bool, most_asked: float
) -> Iterator[str]:
    """Return what is wrong with the requests that a site received."""
    others = {"/robots.txt", "/shared.txt"}
    pages = [received for received in site.received if received.path not in others]
    paths = {page.path for page in pages}
    if kind.meaning == DISALLOWED and paths:
        yield f"received {paths}"
    if kind.meaning != ALLOWED and any(path.startswith("/private") for path in paths):
        yield "received a disallowed page"
    if kind.meaning in (ALLOWED, RULES_HOLD) and "/public" not in paths and not is_late:
        yield f"did not receive an allowed page: it ended in {ends[site.url('/public')]}"
    for earlier, later in pairwise(pages):
        # A request is received after its start and before its end. Twisted's client may send one
        # page twice: it repeats a request if the server closes the connection just then.
        if later.at - earlier.at < kind.delay and later.path != earlier.path:
            yield f"received {later.path} {later.at - earlier.at:.3f} s after {earlier.path}"
    asked = [received.at for received in site.received if received.path == "/robots.txt"]
    in_a_row = max((sum(0 <= at - first < IN_A_ROW for at in asked) for first in asked), default=0)
    if in_a_row > most_asked:
        yield f"was asked {in_a_row} times in a row for its robots.txt"
    if any("x-injected" in received.headers for received in site.received):
        yield "received a header that a store has made up"
